package measure

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// nodePairs is a table of n nodes whose pairs show a rate, times what of says, with some noise.
func nodePairs(n int, seed uint64, of func(from, to int) float64) ([]Node, *pairs.Table) {
	rng := rand.New(rand.NewPCG(seed, 0))
	t := &pairs.Table{}
	var locals []Node
	for i := range n {
		name := fmt.Sprintf("n%d", i)
		t.Names, t.Hosts = append(t.Names, name), append(t.Hosts, name)
		locals = append(locals, Node{Host: name})
	}
	for i := range n {
		for j := range n {
			if i != j {
				noise := 1 + 0.03*rng.NormFloat64()
				t.Cells = append(t.Cells, pairs.Measure{
					From: i, To: j, Latency: unit.Micros(20 / noise), Rate: unit.Rate(12e9 * noise * of(i, j)),
					Both: unit.Rate(11e9 * noise * of(i, j)),
				})
			}
		}
	}
	return locals, t
}

// judged is the verdict on nodes by what their pairs show.
func judged(list []Node, t *pairs.Table, x Expectation) *Check {
	nodes := make([]*Node, len(list))
	for i := range list {
		nodes[i] = &list[i]
	}
	return (&Checker{Expect: x}).judge(nodes, &checkedPairs{by: "tcp", table: t, sweep: &Sweep{}})
}

// TestComparedWith: nodes without GPUs were not compared with what GPUs have.
func TestComparedWith(t *testing.T) {
	locals, table := nodePairs(2, 1, func(int, int) float64 { return 1 })
	if d := judged(locals, table, Expectation{}); d.Expected != "the median of all pairs" {
		t.Errorf("no GPUs: %s", d.Expected)
	}
	locals[1].GPUs = 8
	if d := judged(locals, table, Expectation{}); d.Expected != "each GPU's own limits, and the median of all pairs" {
		t.Errorf("8 GPUs: %s", d.Expected)
	}
}

// Faults are named, each at its node and nowhere else; healthy nodes are not blamed.
func TestCheckVerdict(t *testing.T) {
	whole := func(int, int) float64 { return 1 }
	for seed := range uint64(50) {
		locals, table := nodePairs(8, seed, whole)
		if d := judged(locals, table, Expectation{}); d.Wrong() || d.Hostlist != "" || len(d.Nodes) != 8 {
			t.Errorf("healthy, seed %d: %+v", seed, d.Nodes)
		}
	}
	part := func(hit func(from, to int) bool) func(int, int) float64 {
		return func(from, to int) float64 {
			if hit(from, to) {
				return 0.4
			}
			return 1
		}
	}
	for name, tt := range map[string]struct {
		of      func(int, int) float64
		edit    func([]Node)
		verdict string // of node 3
		also    string // another node of the same verdict
	}{
		"slow NIC":     {of: part(func(a, b int) bool { return a == 3 || b == 3 }), verdict: "unhealthy"},
		"slow to send": {of: part(func(a, _ int) bool { return a == 3 }), verdict: "unhealthy"},
		"slow to get":  {of: part(func(_, b int) bool { return b == 3 }), verdict: "unhealthy"},
		"a pair": {
			of: part(func(a, b int) bool { return a == 3 && b == 5 || a == 5 && b == 3 }), verdict: "suspect", also: "n5",
		},
		"a sum": {
			of: whole, edit: func(l []Node) { l[3].found(finding.Finding{Severity: finding.Error}) }, verdict: "unhealthy",
		},
		"a GPU's state": {of: whole, edit: func(l []Node) {
			l[3].Findings = device.Findings("other name", []device.State{{Lost: "GPU is lost"}})
		}, verdict: "unhealthy"},
	} {
		locals, table := nodePairs(8, 7, tt.of)
		if tt.edit != nil {
			tt.edit(locals)
		}
		d := judged(locals, table, Expectation{})
		for _, n := range d.Nodes {
			want := "healthy"
			if n.Host == "n3" || n.Host == tt.also {
				want = tt.verdict
			}
			if n.Verdict != want || (want != "healthy") != (len(n.Reasons) > 0) {
				t.Errorf("%s: %+v; expected %s", name, n, want)
			}
		}
		if want := map[string]string{"unhealthy": "n3", "suspect": ""}[tt.verdict]; d.Hostlist != want || !d.Wrong() {
			t.Errorf("%s: hostlist %q", name, d.Hostlist)
		}
	}
}
