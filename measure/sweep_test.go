package measure

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// simulatedNodes are nodes whose pairs take a time and show figures, in simulated time.
type simulatedNodes struct {
	names []string
	pair  time.Duration // that a healthy pair takes
	slow  map[int]float64
	lossy map[int]bool
	dead  map[int]bool
	bad   map[[2]int]float64
	mu    sync.Mutex // of rng
	rng   *rand.Rand
}

func (s *simulatedNodes) measure(p [2]int, limit time.Duration) (got [2]pairs.Measure) {
	factor := 1.0
	for _, r := range p {
		if f := s.slow[r]; f > 0 {
			factor = min(factor, f)
		}
	}
	if f := s.bad[p]; f > 0 {
		factor = min(factor, f)
	}
	s.mu.Lock()
	takes := time.Duration(float64(s.pair) / factor * (1 + 0.05*s.rng.Float64()))
	noise := [2]float64{1 + 0.03*s.rng.NormFloat64(), 1 + 0.03*s.rng.NormFloat64()}
	s.mu.Unlock()
	if s.dead[p[0]] || s.dead[p[1]] || takes > limit {
		time.Sleep(limit)
		return [2]pairs.Measure{{Failed: "no end"}, {Failed: "no end"}}
	}
	time.Sleep(takes)
	for i := range got {
		rate := unit.Rate(1e9 * factor * noise[i])
		got[i] = pairs.Measure{Rate: rate, Both: rate, Latency: unit.Micros(20 / noise[i]), Segments: 5000, MSS: 8948}
		if s.lossy[p[0]] || s.lossy[p[1]] {
			got[i].Lost = 100
		}
	}
	return got
}

// sweep measures rounds between them, and says how long it took.
func (s *simulatedNodes) sweep(t *testing.T, rounds [][][2]int) (*pairs.Table, *Sweep, time.Duration) {
	t.Helper()
	var table *pairs.Table
	var spent time.Duration
	c := &Sweep{
		Names: s.names, Hosts: s.names, Show: func(string) {},
		Turn: Concurrently(func(_ context.Context, p [2]int, limit time.Duration) [2]pairs.Measure {
			return s.measure(p, limit)
		}),
	}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var err error
		if table, err = c.Measure(t.Context(), rounds); err != nil {
			t.Fatal(err)
		}
		spent = time.Since(begin)
	})
	return table, c, spent
}

// TestCheckThousandNodes: a thousand nodes at the time that a pair takes in the lab (0.8 s, by 1 MiB messages at 500
// Mb/s) are checked within three minutes; whatever is wrong with a node is named, and nobody else.
func TestCheckThousandNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand nodes, twice: not in -short")
	}
	const n = 1000
	rounds := Rounds(n, 0)
	far := rounds[40][7]
	s := &simulatedNodes{
		pair: 800 * time.Millisecond, rng: rand.New(rand.NewPCG(1, 2)),
		slow: map[int]float64{17: 0.5, 500: 0.4}, lossy: map[int]bool{321: true}, dead: map[int]bool{999: true},
		bad: map[[2]int]float64{far: 0.3},
	}
	var locals []Node
	for r := range n {
		s.names = append(s.names, fmt.Sprintf("n%d", r))
		locals = append(locals, Node{Host: s.names[r]})
	}
	table, c, spent := s.sweep(t, rounds)
	if spent > 3*time.Minute {
		t.Errorf("simulated time %v in %d turns; expected at most 3 minutes", spent, c.Turns)
	}
	t.Logf("%d nodes: %d rounds, %d turns with repeats, simulated time %v", n, len(rounds), c.Turns,
		spent.Round(time.Second))
	var got, want []string
	for _, node := range judged(locals, table, Expectation{}).Nodes {
		if node.Verdict != "healthy" {
			got = append(got, node.Host+" "+node.Verdict)
		}
	}
	for _, r := range []int{17, 321, 500, 999} {
		want = append(want, fmt.Sprintf("n%d unhealthy", r))
	}
	want = append(want, fmt.Sprintf("n%d suspect", far[0]), fmt.Sprintf("n%d suspect", far[1]))
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("named %v, expected %v", got, want)
	}
	s = &simulatedNodes{pair: s.pair, rng: s.rng, names: s.names}
	if table, c, spent = s.sweep(t, rounds); judged(locals, table, Expectation{}).Wrong() || spent > 3*time.Minute {
		t.Errorf("healthy: simulated time %v", spent)
	}
	t.Logf("all healthy: %d turns, simulated time %v, %d partners a node", c.Turns, spent.Round(time.Second),
		table.Partners())
}

// A node that nobody reaches is not the others' fault, and who does not come is named.
func TestCheckUnreachable(t *testing.T) {
	locals, table := nodePairs(4, 1, func(int, int) float64 { return 1 })
	locals[2].Away = "it did not come"
	d := judged(locals, table, Expectation{})
	if d.Hostlist != "n2" || d.Nodes[2].Verdict != "unreachable" || d.Nodes[1].Verdict != "healthy" {
		t.Errorf("one does not come: %+v", d)
	}
	for i := range locals[1:] {
		locals[i+1].Away = "it did not come"
	}
	if d := judged(locals, &pairs.Table{}, Expectation{}); d.Hostlist != "n0" {
		t.Errorf("nobody comes: %+v", d)
	}
}
