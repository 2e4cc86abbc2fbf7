package pairs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/unit"
)

func TestRounds(t *testing.T) {
	for n := range 40 {
		seen := map[[2]int]bool{}
		rounds := Rounds(n)
		for _, round := range rounds {
			busy := map[int]bool{}
			for _, p := range round {
				if p[0] >= p[1] || p[1] >= n || busy[p[0]] || busy[p[1]] || seen[p] {
					t.Fatalf("%d ranks: %v in %v", n, p, round)
				}
				busy[p[0]], busy[p[1]], seen[p] = true, true, true
			}
		}
		if len(seen) != n*max(n-1, 0)/2 {
			t.Errorf("%d ranks: %d pairs", n, len(seen))
		}
		if want := n - 1 + n%2; n >= 2 && len(rounds) != want {
			t.Errorf("%d ranks: %d rounds; %d are enough", n, len(rounds), want)
		}
	}
}

// fleet is a table of n ranks at 12 GB/s and 20 µs with some noise, and a fault.
func fleet(n int, seed uint64, fault func(from, to int) float64) *Table {
	rng := rand.New(rand.NewPCG(seed, 9))
	t := &Table{Names: make([]string, n)}
	for i := range t.Names {
		t.Names[i] = fmt.Sprintf("node%d", i)
	}
	for a := range n {
		for b := range n {
			if a == b {
				continue
			}
			f := fault(a, b)
			noise := func() float64 { return math.Exp(0.01 * rng.NormFloat64()) }
			t.Cells = append(t.Cells, Measure{
				From: a, To: b, Rate: unit.Rate(12 * f * noise() * float64(unit.GBps)),
				Both:    unit.Rate(11 * f * noise() * float64(unit.GBps)),
				Latency: unit.Time(20e6 * math.Exp(0.05*rng.NormFloat64())),
			})
		}
	}
	return t
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(a, b int) float64
		kind  finding.Kind
		who   []int
		worst finding.Severity
	}{
		{"healthy", func(a, b int) float64 { return 1 }, "", nil, 0},
		{"a slow host", func(a, b int) float64 {
			if a == 3 || b == 3 {
				return 0.45
			}
			return 1
		}, SlowHost, []int{3}, finding.Error},
		{"a slow sender", func(a, b int) float64 {
			if a == 5 {
				return 0.6
			}
			return 1
		}, SlowOut, []int{5}, finding.Warn},
		{"a slow receiver", func(a, b int) float64 {
			if b == 2 {
				return 0.7
			}
			return 1
		}, SlowIn, []int{2}, finding.Warn},
		{"a slow pair", func(a, b int) float64 {
			if a+b == 7 && a*b == 6 {
				return 0.4
			}
			return 1
		}, SlowPair, []int{1, 6}, finding.Error},
		{"a slow direction", func(a, b int) float64 {
			if a == 4 && b == 0 {
				return 0.3
			}
			return 1
		}, OneWay, []int{4, 0}, finding.Error},
	} {
		for seed := range uint64(20) {
			got := fleet(8, seed, c.fault).Findings()
			if c.kind == "" {
				if len(got) > 0 {
					t.Errorf("%s, seed %d: %v", c.name, seed, got)
				}
				continue
			}
			if len(got) != 2 { // bandwidth alone and both ways
				t.Errorf("%s, seed %d: %d findings: %v", c.name, seed, len(got), got)
				continue
			}
			for _, f := range got {
				if f.Kind != c.kind || !slices.Equal(f.Ranks, c.who) || f.Severity != c.worst {
					t.Errorf("%s, seed %d: %v", c.name, seed, f)
				}
				if f.Figure == BothWays &&
					(strings.Contains(f.Text, BothWays) || !strings.Contains(f.Text, "when both send at once")) {
					t.Errorf("%s, seed %d: the words leave it open which figure it is: %s", c.name, seed, f.Text)
				}
			}
		}
	}
}

// TestHoles takes tables with missing and impossible cells.
func TestHoles(t *testing.T) {
	table := fleet(6, 1, func(a, b int) float64 { return 1 })
	table.Cells = append(table.Cells, Measure{From: 9, To: 1, Rate: unit.GBps}, Measure{From: -1, To: 1}, Measure{
		From: 2, To: 2, Rate: 1,
	})
	for i := range table.Cells {
		if i%3 == 0 {
			table.Cells[i].Rate = 0
		}
		if i%4 == 0 {
			table.Cells[i].Latency = -5
		}
	}
	if got := table.Findings(); len(got) > 0 {
		t.Errorf("holes are no faults: %v", got)
	}
	for _, empty := range []*Table{
		{}, {Names: []string{"a"}}, {Names: []string{"a", "b"}, Cells: []Measure{{From: 0, To: 1, Rate: 5}}},
	} {
		if got := empty.Findings(); len(got) > 0 {
			t.Errorf("%v", got)
		}
	}
}

// TestHosts: pairs within a host are fast and no measure for the others, and a host whose
// ranks are all slow is named once.
func TestHosts(t *testing.T) {
	for seed := range uint64(20) {
		table := fleet(8, seed, func(a, b int) float64 {
			switch {
			case a/2 == b/2:
				return 40
			case a/2 == 2 || b/2 == 2:
				return 0.4
			}
			return 1
		})
		for i := range 8 {
			table.Hosts = append(table.Hosts, fmt.Sprintf("host%d", i/2))
		}
		got := table.Findings()
		if len(got) != 2 {
			t.Fatalf("seed %d: %d findings: %v", seed, len(got), got)
		}
		for _, f := range got {
			if f.Kind != SlowHost || !slices.Equal(f.Ranks, []int{4, 5}) || f.Severity != finding.Error ||
				!strings.Contains(f.Text, "host2, with all its 2 ranks, is slow with all others") {
				t.Errorf("seed %d: %+v", seed, f)
			}
		}
		// One of its ranks alone is named by itself.
		table = fleet(8, seed, func(a, b int) float64 {
			switch {
			case a/2 == b/2:
				return 40
			case a == 5:
				return 0.4
			}
			return 1
		})
		for i := range 8 {
			table.Hosts = append(table.Hosts, fmt.Sprintf("host%d", i/2))
		}
		for _, f := range table.Findings() {
			if f.Kind != SlowOut || !slices.Equal(f.Ranks, []int{5}) || !strings.HasPrefix(f.Text, "node5 sends slowly") {
				t.Errorf("seed %d: %+v", seed, f)
			}
		}
	}
}

// TestUnmeasuredIsNotSlow: who has no figures is not named, and makes nobody else look slow.
func TestUnmeasuredIsNotSlow(t *testing.T) {
	table := fleet(8, 1, func(a, b int) float64 { return 1 })
	table.Cells = slices.DeleteFunc(table.Cells, func(m Measure) bool { return m.From > 2 || m.To > 2 })
	for _, f := range table.Findings() {
		if f.Severity != finding.Note {
			t.Errorf("%+v", f)
		}
	}
}

// What stood out once and not again is gone, and where all pairs scatter from one measurement to the next nothing
// stands out by less than that.
func TestBetter(t *testing.T) {
	slow := func(hit int) func(a, b int) float64 {
		return func(a, b int) float64 {
			if a == hit || b == hit {
				return 0.4
			}
			return 1
		}
	}
	table := fleet(8, 1, slow(3))
	table.Better(fleet(8, 2, slow(-1)))
	if got := table.Findings(); len(got) > 0 {
		t.Errorf("slow once: %v", got)
	}
	table = fleet(8, 1, slow(3))
	table.Better(fleet(8, 2, slow(3)))
	if got := table.Findings(); len(got) != 2 || got[0].Kind != SlowHost || got[0].Ranks[0] != 3 {
		t.Errorf("slow twice: %v", got)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	wild := func(hit int) *Table {
		t := fleet(8, 3, slow(hit))
		for i := range t.Cells {
			t.Cells[i].Latency = unit.Time(float64(t.Cells[i].Latency) * math.Exp(0.4*rng.ExpFloat64()))
		}
		return t
	}
	for range 50 {
		table = wild(3)
		table.Better(wild(3))
		table.Better(wild(3))
		for _, f := range table.Findings() {
			if f.Figure == "latency" && f.Severity != finding.Note || f.Ranks[0] != 3 {
				t.Errorf("latencies scatter: %v", f)
			}
		}
	}
}
