package health

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
)

// calm is a fleet that nothing but its own noise disturbs, measured every hour.
func calm(n, leaf int, seed uint64) *fleet {
	f := shared(n, leaf, seed)
	f.busy, f.upset, f.every = 0, 0.001, time.Hour
	return f
}

// everybody is what is left of every pair.
func everybody(v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return v }
}

// across is what is left of pairs across leaves of some size.
func across(size int, v float64) func(a, b, r, k int) float64 {
	return func(a, b, r, k int) float64 { return pick(a/size != b/size, v) }
}

// TestWholePower: a fleet that became slower as a whole is found, as one finding and as nothing else.
func TestWholePower(t *testing.T) {
	const runs = 20
	for _, c := range []struct {
		name string
		past int
		busy float64
		most int // sweeps by which nine of ten are found
	}{
		{"calm, past of 20", 20, 0, 4},
		{"calm, past of 100", 100, 0, 3},
		{"15% of sweeps slow, past of 60", 60, 0.15, 10},
	} {
		for _, left := range []float64{0.8, 0.7, 0.5} {
			found, exact, other := 0, 0, 0
			for seed := range uint64(runs) {
				f := calm(8, []int{0, 4}[seed%2], *seeds+seed)
				f.busy = c.busy
				for range c.past {
					f.sweep()
				}
				f.fault = everybody(left)
				began := f.at(f.sweeps)
				for k := 1; k <= c.most; k++ {
					list := f.run(1)
					if len(list) == 0 {
						continue
					}
					if len(list) > 1 || list[0].ID != "slow-fleet:" || math.Abs(list[0].Factor-left) > 0.05 ||
						len(list[0].Nodes) != 8 || len(Drain(list)) > 0 {
						other++
						t.Logf("%s, to %.0f%%, seed %d: %v %v", c.name, 100*left, seed, ids(list), list[0].Factor)
					}
					found++
					if list[0].Since.Equal(began) {
						exact++
					}
					break
				}
			}
			t.Logf("%s, to %.0f%%: found within %d sweeps %d of %d; the sweep of the change met %d times, other findings %d",
				c.name, 100*left, c.most, found, runs, exact, other)
			if found < runs*9/10 || other > runs/10 {
				t.Errorf("%s, to %.0f%%: found %d, other %d", c.name, 100*left, found, other)
			}
		}
	}
}

// often is how many made-up fleets are tried: a third, or all with BUSBAR_LONG. Their seeds are always the same.
func often(all int) int {
	if os.Getenv("BUSBAR_LONG") != "" {
		return all
	}
	return all / 3
}

// TestWholeFalseAlarms counts findings of healthy fleets that are slow as a whole now and then, and
// that drift.
func TestWholeFalseAlarms(t *testing.T) {
	const length = 120
	runs := often(6)
	for _, c := range append(slices.Clone(noises[:8]), noises[10]) {
		alarms := map[string]bool{}
		for seed := range uint64(runs) {
			f := calm(8, []int{0, 4}[seed%2], 500+*seeds+seed)
			next := c.make(rand.New(rand.NewPCG(*seeds+seed, 13)))
			f.weather = func(int) float64 { return math.Exp(next()) }
			for range length {
				if list := f.run(1); len(list) > 0 {
					alarms[fmt.Sprint(seed, ids(list))] = true
				}
			}
		}
		t.Logf("%s: %d findings in %d healthy sweeps", c.name, len(alarms), runs*length)
		if len(alarms) > 0 {
			t.Errorf("%s: %v", c.name, alarms)
		}
	}
}

// TestWholeSetups: sweeps with other messages, with a bound of the rate or with more pairs at once
// are slower, and say nothing about the fleet.
func TestWholeSetups(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *fleet)
		want   []string
	}{
		{"as before", func(f *fleet) {}, []string{"slow-fleet:"}},
		{"another size", func(f *fleet) { f.setup = "64 KiB messages, 10 times" }, []string{}},
		{"a bound", func(f *fleet) { f.setup = "4 MiB messages, 10 times, at most 1 GB/s" }, []string{}},
		{"twice the nodes", func(f *fleet) { f.n = 16 }, []string{}},
	} {
		f := calm(8, 0, 3)
		f.setup = "4 MiB messages, 10 times"
		f.run(40)
		c.change(f)
		f.fault = everybody(0.5)
		for k := range 8 {
			got := ids(f.run(1))
			if k >= 3 && !slices.Equal(got, c.want) || k < 3 && len(got) > 0 && !slices.Equal(got, c.want) {
				t.Errorf("%s, sweep %d: %v", c.name, k, got)
			}
		}
	}
	// Both in turn, for ever, and then the fleet falls.
	f := calm(8, 4, 4)
	turn := func(fault float64) []string {
		f.setup, f.fault = "large", everybody(fault)
		if f.sweeps%2 == 1 {
			f.setup, f.fault = "small", everybody(0.2*fault)
		}
		return ids(f.run(1))
	}
	for range 60 {
		if got := turn(1); len(got) > 0 {
			t.Fatalf("sweep %d: %v", f.sweeps, got)
		}
	}
	for range 7 {
		turn(0.7)
	}
	if got := turn(0.7); !slices.Equal(got, []string{"slow-fleet:"}) {
		t.Errorf("%v", got)
	}
}

// TestWholeOtherPairs: a fleet of which other nodes are measured did not become slower.
func TestWholeOtherPairs(t *testing.T) {
	f := calm(8, 0, 5)
	f.run(40)
	f.fault = everybody(0.5)
	shift := f.h
	f.h = New(0)
	for range 6 { // eight other nodes, which always were slower
		f.sweep()
	}
	for _, from := range f.h.nodeNames() {
		for _, to := range f.h.nodeNames() {
			for _, p := range f.h.Pair(from, to, Way{}) {
				shift.Add(Sample{
					Sweep: p.Sweep, Time: p.Time, From: "other" + from, To: "other" + to, Rate: p.Rate, Latency: p.Latency,
				})
			}
		}
	}
	if got := shift.Findings(f.at(f.sweeps)); len(got) > 0 {
		t.Errorf("%v", ids(got))
	}
}

// TestWholeSpine: what crosses leaves falls together: one finding where that is most pairs, and with two leaves the
// path between them.
func TestWholeSpine(t *testing.T) {
	for leaf, want := range map[int]string{4: "slow-fleet:", 8: "slow-path:leaf0-leaf1"} {
		for seed := range uint64(often(10)) {
			f := calm(16, leaf, *seeds+seed)
			if list := f.run(40); len(list) > 0 {
				t.Errorf("leaves of %d, seed %d: %v", leaf, seed, ids(list))
			}
			f.fault = across(leaf, 0.6)
			if got := ids(f.run(5)); !slices.Equal(got, []string{want}) {
				t.Errorf("leaves of %d, seed %d: %v", leaf, seed, got)
			}
		}
	}
}

// TestWholeEnds: it clears with three good sweeps, or when the lower level is what is usual; who
// asks late gets the same answer as who asks always; faults of nodes are found meanwhile.
func TestWholeEnds(t *testing.T) {
	f := calm(8, 4, 6)
	f.run(40)
	f.fault = everybody(0.55)
	began := f.at(f.sweeps)
	first := f.run(6)
	if len(first) != 1 || first[0].ID != "slow-fleet:" || !first[0].Since.Equal(began) ||
		first[0].Severity != finding.Error || first[0].Confidence < 0.9 {
		t.Fatalf("%+v", first)
	}
	f.fault = func(a, b, r, k int) float64 { return 0.55 * host(2, 0.5)(a, b, r, k) }
	if got := ids(f.run(3)); !slices.Equal(got, []string{"slow-fleet:", "slow-host:node2"}) &&
		!slices.Equal(got, []string{"slow-host:node2", "slow-fleet:"}) {
		t.Errorf("a slow node of a slow fleet: %v", got)
	}
	f.fault = everybody(0.55)
	f.run(5)
	// The same history, asked once only.
	late := New(0)
	for _, s := range f.h.Sweeps() {
		for _, from := range f.h.nodeNames() {
			for _, to := range f.h.nodeNames() {
				for _, p := range f.h.Pair(from, to, Way{}) {
					if p.Sweep == s.ID {
						late.Add(Sample{Sweep: p.Sweep, Time: p.Time, From: from, To: to, Rate: p.Rate, Latency: p.Latency})
					}
				}
			}
		}
	}
	if got := late.Findings(f.at(f.sweeps)); len(got) != 1 || got[0].ID != "slow-fleet:" || !got[0].Since.Equal(began) {
		t.Errorf("asked late: %+v", got)
	}
	f.fault = nil
	if got := f.run(1); len(got) != 1 || !got[0].Clearing {
		t.Errorf("a good sweep: %+v", got)
	}
	if got := f.run(2); len(got) > 0 {
		t.Errorf("three good sweeps: %v", ids(got))
	}
	// For good.
	f = calm(8, 4, 7)
	f.run(40)
	f.fault = everybody(0.8)
	if got := ids(f.run(50)); !slices.Equal(got, []string{"slow-fleet:"}) {
		t.Errorf("after 50 sweeps: %v", got)
	}
	if got := ids(f.run(60)); len(got) > 0 {
		t.Errorf("after 110 sweeps it is what is usual: %v", got)
	}
	f.fault = everybody(0.5)
	if got := f.run(4); len(got) != 1 || got[0].ID != "slow-fleet:" || !strings.Contains(got[0].Text, "as a whole") ||
		math.Abs(got[0].Factor-0.625) > 0.03 {
		t.Errorf("slower again: %+v", got)
	}
}
