package health

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

// TestSince: a fault that began is told from one that always was, with the time.
func TestSince(t *testing.T) {
	exact, late := 0, 0
	for seed := range uint64(50) {
		f := shared(8, 0, seed)
		f.run(12)
		f.fault = host(3, 0.6)
		list := f.run(10)
		if len(list) != 1 || list[0].Always {
			t.Errorf("seed %d: %v", seed, list)
			continue
		}
		switch d := list[0].Since.Sub(at(12)); {
		case d == 0:
			exact++
		case d < -5*time.Minute || d > 5*time.Minute:
			late++
		}
		g := shared(8, 0, seed)
		g.fault = host(3, 0.6)
		if list := g.run(20); len(list) != 1 || !list[0].Always || !list[0].Since.Equal(at(0)) {
			t.Errorf("seed %d, always: %+v", seed, list)
		}
	}
	t.Logf("the sweep of the change was named %d of 50 times; off by more than one %d times", exact, late)
	if exact < 45 || late > 1 {
		t.Errorf("%d exact, %d late", exact, late)
	}
}

// TestEnds: a finding keeps its ID while the fault lasts, is clearing after the first good
// sweep and ends with the third.
func TestEnds(t *testing.T) {
	for seed := range uint64(20) {
		f := shared(8, 4, seed)
		f.busy, f.upset = 0, 0
		f.run(10)
		f.fault = out(3, 0.5)
		list := f.run(3)
		if len(list) != 1 {
			t.Fatalf("seed %d: %v", seed, ids(list))
		}
		first := list[0]
		for range 6 {
			if list = f.run(1); len(list) != 1 || list[0].ID != first.ID || !list[0].Since.Equal(first.Since) ||
				list[0].Clearing {
				t.Fatalf("seed %d: %v", seed, list)
			}
		}
		f.fault = nil
		for good := 1; good <= 4; good++ {
			list = f.run(1)
			if want := good < enough; (len(list) == 1) != want || want && !list[0].Clearing {
				t.Errorf("seed %d after %d good sweeps: %v", seed, good, ids(list))
			}
			if again := f.h.Findings(at(f.sweeps)); !reflect.DeepEqual(again, list) {
				t.Errorf("asked twice: %v, then %v", list, again)
			}
		}
	}
}

// TestOneSweep: a node that is slow throughout one sweep is no finding, whatever the factor.
func TestOneSweep(t *testing.T) {
	for seed := range uint64(40) {
		f := shared(8, 4, seed)
		f.upset = 0
		f.run(10)
		f.fault = host(int(seed%8), 0.3)
		list := f.run(1)
		f.fault = nil
		list = append(list, f.run(3)...)
		if len(list) > 0 {
			t.Errorf("seed %d: %v", seed, ids(list))
		}
	}
}

// TestOrder: samples and heartbeats may come in any order and twice.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		var all []Observation
		f := shared(5, 0, seed)
		f.fault = host(1, 0.5)
		f.run(6)
		for i := range f.h.over("").series {
			k := f.h.over("").series[i].pairKey
			for _, p := range f.h.Pair(name(int(k.from)), name(int(k.to)), Way{}) {
				all = append(all, Observation{Sample: &Sample{
					Sweep: p.Sweep, Time: p.Time, From: name(int(k.from)), To: name(int(k.to)), Rate: p.Rate, Latency: p.Latency,
				}})
			}
		}
		var ports []Observation // of which a node tells in their order
		for i := range 40 {
			all = append(all, Observation{Beat: &Heartbeat{name(i % 5), at(0).Add(time.Duration(i/5) * time.Second)}})
			ports = append(ports,
				Observation{Link: &LinkState{name(i % 5), "eth0", i%3 != 0, at(0).Add(time.Duration(i) * time.Second)}},
				Observation{Count: &Count{
					name(i % 5), "eth0", "symbol_error", uint64(i * 10), at(0).Add(time.Duration(i) * time.Second),
				}})
		}
		fold := func(list []Observation) *History {
			h := New(0)
			for i := range 5 {
				h.SetPlace(name(i), Place{})
			}
			for _, o := range slices.Concat(list, ports) {
				h.Observe(o)
			}
			return h
		}
		want := fold(all).Findings(at(6))
		rng := rand.New(rand.NewPCG(seed, 1))
		mixed := append(slices.Clone(all), all[:len(all)/2]...)
		rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if got := fold(mixed).Findings(at(6)); !reflect.DeepEqual(got, want) {
			for i := range min(len(got), len(want)) {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("in order\n%+v\nmixed\n%+v", want[i], got[i])
				}
			}
			t.Fatalf("in order %v, mixed %v", ids(want), ids(got))
		}
		if !slices.ContainsFunc(want, func(f finding.Finding) bool { return f.ID == "slow-host:node1" }) {
			t.Fatalf("%v", ids(want))
		}
	})
}

// TestSameTime: sweeps of one time are in the order in which they came, whatever their names: a healthy one between two
// slow ones would hide a fault.
func TestSameTime(t *testing.T) {
	h := New(0)
	for k := range 5 {
		for a := range 8 {
			for b := range 8 {
				rate := unit.Rate(10e9 * pick(k >= 3 && (a == 5 || b == 5), 0.4))
				h.Add(Sample{Sweep: fmt.Sprint(9 - k), Time: at(0), From: name(a), To: name(b), Rate: rate})
			}
		}
	}
	if got := ids(h.Findings(at(1))); !slices.Equal(got, []string{"slow-host:node5"}) {
		t.Errorf("%v", got)
	}
}

// TestLost: measurements that fail are evidence, and a silent node explains them.
func TestLost(t *testing.T) {
	f := shared(8, 4, 3)
	for range 10 {
		f.sweep()
	}
	f.fails = func(a, b, k int) bool { return a == 2 || b == 2 }
	list := f.run(2)
	if len(list) != 1 || list[0].ID != "slow-host:node2" || list[0].Factor != 0 || list[0].Severity != finding.Error ||
		!strings.Contains(list[0].Text, "is cut off from all others") {
		t.Fatalf("%+v", list)
	}
	if bad := f.h.Unhealthy(at(f.sweeps)); !slices.Equal(bad, []string{"node2"}) {
		t.Errorf("bad: %v", bad)
	}
	now := at(f.sweeps)
	for i := range 8 {
		for k := range 20 {
			if at := now.Add(time.Duration(k-20) * 5 * time.Second); i != 2 || k < 4 {
				f.h.Beat(name(i), at)
			}
		}
	}
	list = f.h.Findings(now)
	if len(list) != 1 || list[0].ID != "silent:node2" || list[0].Severity != finding.Error {
		t.Errorf("%+v", list)
	}
	f.h.Forget("node2")
	if list := f.h.Findings(now); len(list) > 0 {
		t.Errorf("after it was taken out: %v", ids(list))
	}
}

// TestFewFailures: single measurements fail now and then.
func TestFewFailures(t *testing.T) {
	for seed := range uint64(20) {
		f := shared(8, 4, seed)
		rng := rand.New(rand.NewPCG(seed, 8))
		f.fails = func(a, b, k int) bool { return rng.Float64() < 0.01 }
		for range 50 {
			if list := f.h.Findings(f.sweep()); len(list) > 0 {
				t.Fatalf("seed %d: %v", seed, list)
			}
		}
	}
}

// TestThinning: what is kept stays within its bounds, is recent, and reaches far back.
func TestThinning(t *testing.T) {
	h := New(0)
	h.most.samples = 64
	for k := range 3000 {
		h.Add(Sample{Sweep: fmt.Sprint(k), Time: at(k), From: "a", To: "b", Rate: 1e9})
	}
	list := h.Pair("a", "b", Way{})
	if len(list) > 64 || len(list) < 32 {
		t.Fatalf("%d samples", len(list))
	}
	for k := 1; k <= 16; k++ {
		if got := list[len(list)-k].Sweep; got != fmt.Sprint(3000-k) {
			t.Errorf("the last but %d is %s", k, got)
		}
	}
	if list[0].Time.After(at(2800)) {
		t.Errorf("the oldest is of %s", list[0].Time)
	}
	small := New(0)
	small.most = bounds{samples: 512, sweeps: 10, nodes: 3, series: 2}
	refused := 0
	for k := range 100 {
		for _, pair := range []string{"ab", "ba", "ac", "ad"} {
			if !small.Add(Sample{Sweep: fmt.Sprint(k), Time: at(k), From: pair[:1], To: pair[1:], Rate: 1e9}) {
				refused++
			}
		}
	}
	if s := small.Size(); s.Sweeps > 10 || s.Pairs != 2 || s.Nodes != 3 || refused != 200 {
		t.Errorf("%+v, refused %d", s, refused)
	}
	small.Findings(at(101))
}
