package predict

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// The root of a scatter sends to all peers at once, by channels of their own: over NVLink it takes as long as a gather,
// and on two nodes, where the root's data leaves by the NICs of all GPUs, less.
func TestScatterSendsAtOnce(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		p := predictor(t, "dgx-h100", nodes, nccl.Newest, nil)
		was := unit.Time(0)
		for size := unit.Bytes(16 << 10); size <= 1<<30; size *= 4 {
			scatter := ask(t, p, Query{Kind: coll.Scatter, Sizes: []unit.Bytes{size}, Type: coll.Float}, Auto)[0]
			gather := ask(t, p, Query{Kind: coll.Gather, Sizes: []unit.Bytes{size}, Type: coll.Float}, Auto)[0]
			if scatter.Time > gather.Time+gather.Time/100 {
				t.Errorf("%d nodes, %v: scatter takes %v, gather %v", nodes, size, scatter.Time, gather.Time)
			}
			if scatter.Time < was {
				t.Errorf("%d nodes, %v: scatter takes %v, a quarter of it %v", nodes, size, scatter.Time, was)
			}
			was = scatter.Time
		}
	}
}

// What limits a call is told of the time that its row has, also where the messages were played.
func TestLimitTellsTheTimeOfItsRow(t *testing.T) {
	p := predictor(t, "dgx-h100", 2, nccl.Newest, nil)
	told := 0
	for _, kind := range []coll.Kind{coll.Scatter, coll.Gather, coll.AllToAll, coll.AllReduce, coll.Broadcast} {
		for _, algo := range []string{Auto, "binomial"} {
			q := Query{Kind: kind, Sizes: []unit.Bytes{1 << 10, 64 << 10, 1 << 20}, Type: coll.Float, Algos: []string{algo}}
			a, err := p.Ask(q)
			if err != nil {
				continue // a binomial all-to-all, say
			}
			for _, r := range a.Rows {
				if k := r.Limit.Kind; k != result.ByLaunch && k != result.ByLatency {
					continue
				}
				told++
				if want := fmt.Sprintf("of %v;", r.Time); !strings.Contains(r.Limit.Text, want) {
					t.Errorf("%v by %s at %v: %q does not say %q", kind, r.Algo, r.Asked, r.Limit.Text, want)
				}
			}
		}
	}
	if told < 10 {
		t.Errorf("only %d rows are limited by launch or latency", told)
	}
}

// One rank copies its data, which takes no longer than two that also send it.
func TestOneRankIsNotSlowerThanTwo(t *testing.T) {
	q := Query{Kind: coll.AllReduce, Sizes: []unit.Bytes{8, 1 << 20, 1 << 30}, Type: coll.Float}
	one, two := ask(t, block(t, "dgx-h100", 1, 1, nccl.Newest, nil), q, Auto),
		ask(t, block(t, "dgx-h100", 1, 2, nccl.Newest, nil), q, Auto)
	for i := range one {
		if one[i].Time > two[i].Time {
			t.Errorf("%v: one rank takes %v, two %v", one[i].Asked, one[i].Time, two[i].Time)
		}
	}
}

// GPUs of one Frontier node reach each other over Infinity Fabric also where they have no link of their own, and
// sentences about AMD's GPUs name AMD's library and links.
func TestAMDByItsOwnNames(t *testing.T) {
	for gpus := 2; gpus <= 8; gpus++ {
		p := block(t, "frontier", 1, gpus, nccl.Newest, nil)
		for _, kind := range []coll.Kind{coll.AllReduce, coll.AllToAll} {
			q := Query{Kind: kind, Sizes: []unit.Bytes{1 << 10, 4 << 20, 256 << 20}, Type: coll.Float, Algos: []string{Auto}}
			rows := ask(t, p, q, Auto)
			if k := rows[2].Limit.Kind; k != result.ByNVLink {
				t.Errorf("1x%d: %v is limited by %s: %s", gpus, kind, k, rows[2].Limit.Text)
			}
			advice, err := p.Advise(q)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{rows[0].Limit.Text, rows[1].Limit.Text, fmt.Sprint(advice.Advice)} {
				if strings.Contains(text, "nvlink") || strings.Contains(strings.ReplaceAll(text, "RCCL", ""), "NCCL's") {
					t.Errorf("1x%d: %v: %s", gpus, kind, text)
				}
			}
		}
	}
}
