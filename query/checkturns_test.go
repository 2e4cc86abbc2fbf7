package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"busbar.dev/engine/ranks"
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
	spent time.Duration
	rng   *rand.Rand
}

func (s *simulatedNodes) turn(_ context.Context, list [][2]int,
	limit time.Duration,
) (cells []pairs.Measure, took []time.Duration) {
	var longest time.Duration
	for _, p := range list {
		factor := 1.0
		for _, r := range p {
			if f := s.slow[r]; f > 0 {
				factor = min(factor, f)
			}
		}
		if f := s.bad[p]; f > 0 {
			factor = min(factor, f)
		}
		time := time.Duration(float64(s.pair) / factor * (1 + 0.05*s.rng.Float64()))
		failed := ""
		if s.dead[p[0]] || s.dead[p[1]] || time > limit {
			time, failed = limit, "no end"
		}
		longest = max(longest, time)
		for i := range p {
			m := pairs.Measure{From: p[i], To: p[1-i], Failed: failed}
			if failed == "" {
				noise := 1 + 0.03*s.rng.NormFloat64()
				m.Rate, m.Both, m.Latency = unit.Rate(1e9*factor*noise), unit.Rate(1e9*factor*noise), unit.Micros(20/noise)
				if m.Segments, m.MSS = 5000, 8948; s.lossy[p[0]] || s.lossy[p[1]] {
					m.Lost = 100
				}
			}
			cells = append(cells, m)
		}
		if failed != "" {
			time = 0
		}
		took = append(took, time)
	}
	s.spent += longest
	return cells, took
}

// TestCheckThousandNodes: a thousand nodes at the time that a pair takes in the lab (0.8 s, by 1 MiB messages at 500
// Mb/s) are checked within three minutes; whatever is wrong with a node is named, and nobody else.
func TestCheckThousandNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand nodes, twice: not in -short")
	}
	const n = 1000
	rounds := checkSchedule(n, 0)
	far := rounds[40][7]
	s := &simulatedNodes{
		pair: 800 * time.Millisecond, rng: rand.New(rand.NewPCG(1, 2)),
		slow: map[int]float64{17: 0.5, 500: 0.4}, lossy: map[int]bool{321: true}, dead: map[int]bool{999: true},
		bad: map[[2]int]float64{far: 0.3},
	}
	var locals []checkLocal
	for r := range n {
		s.names = append(s.names, fmt.Sprintf("n%d", r))
		locals = append(locals, checkLocal{Host: s.names[r]})
	}
	c := &checkPairs{
		names: s.names, hosts: s.names, away: func(int) bool { return false }, turn: s.turn, show: func(string) {},
	}
	table, err := c.measure(t.Context(), rounds)
	if err != nil {
		t.Fatal(err)
	}
	if s.spent > 3*time.Minute {
		t.Errorf("simulated time %v in %d turns; expected at most 3 minutes", s.spent, c.turns)
	}
	t.Logf("%d nodes: %d rounds, %d turns with repeats, simulated time %v", n, len(rounds), c.turns,
		s.spent.Round(time.Second))
	var got, want []string
	for _, node := range newCheckDoc("tcp", locals, table, expectation{}).Nodes {
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
	c = &checkPairs{
		names: s.names, hosts: s.names, away: func(int) bool { return false }, turn: s.turn, show: func(string) {},
	}
	if table, err = c.measure(t.Context(), rounds); err != nil ||
		newCheckDoc("tcp", locals, table, expectation{}).Wrong() || s.spent > 3*time.Minute {
		t.Errorf("healthy: %v, simulated time %v", err, s.spent)
	}
	t.Logf("all healthy: %d turns, simulated time %v, %d partners a node", c.turns, s.spent.Round(time.Second),
		table.Partners())
}

// TestCheckInProcess: ranks of this process are checked over its loopback, and give a verdict.
func TestCheckInProcess(t *testing.T) {
	job := ranks.DefaultJob()
	job.Ranks = 3
	doc, err := Check{Size: "64K", Iters: 2}.RunOn(t.Context(), Env{}, Programs{}, Ranks[*CheckDoc]{Job: job})
	if err != nil || doc == nil || len(doc.Nodes) != 1 || doc.Rounds < 3 || doc.Partners != 2 {
		t.Fatalf("%+v, %v", doc, err)
	}
	job.Transport = "mem"
	if _, err := (Check{Size: "64K", Iters: 2}).RunOn(t.Context(), Env{}, Programs{},
		Ranks[*CheckDoc]{Job: job}); err == nil {
		t.Error("a check without connections")
	}
}

// A node that nobody reaches is not the others' fault, and who does not come is named.
func TestCheckUnreachable(t *testing.T) {
	locals, table := nodePairs(4, 1, func(int, int) float64 { return 1 })
	locals[2].Away = "it did not come"
	d := newCheckDoc("tcp", locals, table, expectation{})
	if d.Hostlist != "n2" || d.Nodes[2].Verdict != "unreachable" || d.Nodes[1].Verdict != "healthy" {
		t.Errorf("one does not come: %+v", d)
	}
	for i := range locals[1:] {
		locals[i+1].Away = "it did not come"
	}
	if d := newCheckDoc("tcp", locals, &pairs.Table{}, expectation{}); d.Hostlist != "n0" {
		t.Errorf("nobody comes: %+v", d)
	}
}
