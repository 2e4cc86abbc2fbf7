package predict

import (
	"maps"
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/unit"
)

// What is advised was tried: under the setting NCCL takes what the advice says
// and is faster by more than Worth. Where nothing is faster there is no advice.
func TestAdviceHolds(t *testing.T) {
	given := 0
	for _, m := range []struct {
		preset string
		nodes  int
	}{{"dgx-h100", 1}, {"dgx-h100", 2}, {"dgx-a100", 1}, {"dgx-a100", 4}, {"baskerville", 2}, {"azure-ndv4", 2}} {
		for _, v := range []nccl.Version{{Major: 2, Minor: 21, Patch: 5}, nccl.Newest} {
			p := predictor(t, m.preset, m.nodes, v, nil)
			for _, size := range sweep {
				q := Query{Kind: coll.AllReduce, Sizes: []unit.Bytes{size}}
				auto, best := ask(t, p, q, Auto)[0], ask(t, p, q, Best)[0]
				found, err := p.Advise(q)
				list := found.Advice
				if err != nil {
					t.Fatal(err)
				}
				if want := float64(auto.Time) / float64(best.Time); math.Abs(found.Gain-want) > 1e-9 {
					t.Errorf("%s %v: a gain of %g where best gains %g", m.preset, size, found.Gain, want)
				}
				if len(list) > 0 && !clearly(auto.Time, best.Time) {
					t.Errorf("%s %v: advice %q where best gains little", m.preset, size, list[0].Text)
				}
				for _, a := range list {
					given++
					other := predictor(t, m.preset, m.nodes, v, settingsOf(t, a.Setting))
					if got := ask(t, other, q, Auto)[0]; !clearly(auto.Time, got.Time) {
						t.Errorf("%s NCCL %v %v: %s brings %v instead of %v", m.preset, v, size, a.Setting, got.Time, auto.Time)
					}
				}
			}
		}
	}
	if given == 0 {
		t.Error("no advice was tried")
	}
}

// Over a sweep there is one recommendation, and it says so where it costs.
func TestOneAdvice(t *testing.T) {
	var sizes []unit.Bytes
	for b := unit.Bytes(8); b <= unit.GiB; b *= 4 {
		sizes = append(sizes, b)
	}
	for _, m := range []struct {
		preset string
		nodes  int
	}{{"dgx-h100", 1}, {"dgx-h100", 2}, {"dgx-a100", 2}, {"baskerville", 2}, {"azure-ndv4", 4}, {"dgx-1v", 2}} {
		p := predictor(t, m.preset, m.nodes, nccl.Newest, nil)
		for _, kind := range []coll.Kind{coll.AllReduce, coll.AllGather, coll.Broadcast, coll.AllToAll} {
			found, err := p.Advise(Query{Kind: kind, Sizes: sizes})
			if err != nil {
				t.Fatal(err)
			}
			if len(found.Advice) > 1 || found.Gain < 1 {
				t.Errorf("%s %s: gain %g, advice %+v", m.preset, kind, found.Gain, found.Advice)
			}
			for _, a := range found.Advice {
				if len(a.Text) > 420 || found.Gain <= Worth {
					t.Errorf("%s %s: gain %g, %d letters: %s", m.preset, kind, found.Gain, len(a.Text), a.Text)
				}
			}
		}
	}
}

// settingsOf reads a setting as a shell would.
func settingsOf(t *testing.T, text string) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, w := range strings.Fields(text) {
		k, v, ok := strings.Cut(w, "=")
		if !ok || !strings.HasPrefix(k, "NCCL_") {
			t.Fatalf("setting %q", text)
		}
		env[k] = strings.Trim(v, "'")
	}
	return env
}

// The form follows the release: a plain list would leave other collectives
// without an algorithm since 2.24.
func TestSettingForm(t *testing.T) {
	old, now := nccl.Version{Major: 2, Minor: 23, Patch: 4}, nccl.Version{Major: 2, Minor: 24, Patch: 3}
	for _, c := range []struct {
		v    nccl.Version
		kind coll.Kind
		word string
		want string
	}{
		{old, coll.AllReduce, "Tree", "Tree"},
		{now, coll.AllReduce, "Tree", "allreduce:tree"},
		{now, coll.ReduceScatter, "LL128", "reducescatter:ll128"},
		{now, coll.Barrier, "Tree", "allreduce:tree"},
	} {
		if got := SettingFor(c.v, c.kind, c.word); got != c.want {
			t.Errorf("NCCL %v %s: %s, want %s", c.v, c.kind, got, c.want)
		}
	}
}

// A setting that is in the way is named as such.
func TestAdviceToUnset(t *testing.T) {
	env := map[string]string{"NCCL_PROTO": "LL", "NCCL_DEBUG": "INFO"}
	p := predictor(t, "dgx-h100", 2, nccl.Newest, maps.Clone(env))
	found, err := p.Advise(Query{Kind: coll.AllReduce, Sizes: []unit.Bytes{unit.GiB}})
	list := found.Advice
	if err != nil || len(list) != 1 || list[0].Setting != "unset NCCL_PROTO" {
		t.Errorf("advice %+v, error %v", list, err)
	}
	if !maps.Equal(env, p.Plan.Env) {
		t.Errorf("the environment became %v", p.Plan.Env)
	}
}

// What a setting would bring is counted under the same launch, and beside the same others, whether it changes
// algorithms or channels.
func TestAdviceSameConditions(t *testing.T) {
	op := coll.Op{Kind: coll.AllReduce, Bytes: 8}
	for _, how := range []Conditions{{Serial: 8}, {Alone: true}, {}} {
		p := predictor(t, "dgx-h100", 1, nccl.Newest, nil)
		p.Conditions = how
		for _, env := range []map[string]string{
			{"NCCL_MIN_NCHANNELS": "32"}, {"NCCL_MAX_NCHANNELS": "4"}, {"NCCL_ALGO": "Ring"},
		} {
			q, err := p.under(env)
			if err != nil {
				t.Fatal(err)
			}
			fresh := predictor(t, "dgx-h100", 1, nccl.Newest, env)
			fresh.Conditions = how
			a, b := ask(t, q, Query{Kind: op.Kind, Sizes: []unit.Bytes{op.Bytes}}, Auto)[0],
				ask(t, fresh, Query{Kind: op.Kind, Sizes: []unit.Bytes{op.Bytes}}, Auto)[0]
			if a.Time != b.Time {
				t.Errorf("%+v under %v: %v, want %v", how, env, a.Time, b.Time)
			}
		}
		p.Conditions = Conditions{Graph: true} // a later question of the same predictor
		if q, err := p.under(map[string]string{"NCCL_MIN_NCHANNELS": "32"}); err != nil || !q.Graph {
			t.Errorf("conditions of an earlier question: %+v, %v", q.Conditions, err)
		}
	}
}
