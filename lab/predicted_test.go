//go:build linux

package lab

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/stats"
	"busbar.dev/schedule"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// What the scenarios are made of: nodes with one NIC of 100 Gb/s, two leaves with and without oversubscription, a node
// with two rails and the same with one NIC for all. Without a text it is Baskerville, with its links inside nodes.
const (
	oneNIC = `
types:
  node: {gpus: 4 x A100-SXM4-40GB, nics: 1 x 100GbE roce}
nodes:
  - {count: 8, type: node}
network: {nodes_per_leaf: 8}
`
	twoLeaves = `
types:
  node: {gpus: 1 x A100-SXM4-40GB, nics: 1 x 100GbE roce}
nodes:
  - {count: 8, type: node}
network: {nodes_per_leaf: 4, oversubscription: %d}
`
	rails = `
types:
  node: {gpus: 2 x A100-SXM4-40GB, nics: %d x 100GbE roce}
nodes:
  - {count: 2, type: node}
network: {rails: %[1]d, nodes_per_leaf: 8}
`
)

// scenario is a lab and what is tried in it; its words are algorithms, or step.
type scenario struct {
	name, cluster string
	layouts       [][2]int
	words         string
	sizes         []unit.Bytes // none: 1 and 4 MiB
	slow          string       // a NIC with a quarter of its rate
	jobs          int
	options       Options
	transport     engine.Transport
}

func scenarios() []scenario {
	const staging = unit.Rate(10e9)
	three, far := [][2]int{{1, 4}, {2, 2}, {4, 1}}, [][2]int{{2, 2}, {4, 1}}
	eight, pairs := [][2]int{{8, 1}}, [][2]int{{2, 2}}
	one := []unit.Bytes{4 * unit.MiB}
	return []scenario{
		{name: "three layouts", layouts: three, words: "ring ring:interleaved tree hierarchical halving_doubling"},
		{name: "steps", layouts: three, words: "step"},
		{name: "two leaves 1:1", cluster: fmt.Sprintf(twoLeaves, 1), layouts: eight, words: "ring tree halving_doubling"},
		{
			name: "two leaves 4:1", cluster: fmt.Sprintf(twoLeaves, 4), layouts: eight,
			words: "ring tree halving_doubling ring:crossing hierarchical:leaves",
		},
		{name: "two rails", cluster: fmt.Sprintf(rails, 2), layouts: pairs, words: "ring hierarchical"},
		{name: "one shared NIC", cluster: fmt.Sprintf(rails, 1), layouts: pairs, words: "ring hierarchical"},
		{name: "one slow NIC of eight", cluster: oneNIC, layouts: eight, words: "ring tree halving_doubling", slow: "node5"},
		{
			name: "two jobs share the spines", cluster: fmt.Sprintf(twoLeaves, 4), layouts: [][2]int{{4, 1}},
			words: "ring halving_doubling", sizes: one, jobs: 2,
		},
		{
			name: "staging half duplex", cluster: oneNIC, layouts: far, words: "ring tree", sizes: one,
			options: Options{Staging: staging},
		},
		{
			name: "staging also inside nodes", cluster: oneNIC, layouts: far, words: "ring tree", sizes: one,
			options: Options{Staging: staging, Local: true}, transport: engine.TCP,
		},
		{
			name: "staging far", cluster: oneNIC, layouts: pairs, words: "ring tree", sizes: one,
			options: Options{Staging: staging / 4},
		},
	}
}

// plan is the lab of a scenario: all NICs together move what two cores can beside the collectives.
func (s *scenario) plan(t *testing.T) *Plan {
	t.Helper()
	o := s.options
	o.Inside, o.Scale, o.Spines = Memory, Scale{1, 200}, 2
	for _, l := range s.layouts {
		o.Nodes = max(o.Nodes, l[0]*max(s.jobs, 1))
	}
	switch {
	case s.cluster == "": // four ranks inside a node move as much as all NICs of a lab
		o.Inside, o.Scale.Den = Links, 800
		return preset(t, "baskerville", o.Nodes, o)
	case o.Nodes == 8:
		o.Scale.Den = 400
	}
	p, err := New(read(t, s.cluster), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// point is what was measured beside what was predicted; those of a group are compared with each other.
type point struct {
	group, algo         string
	measured, predicted unit.Time
}

// points runs a scenario in its lab.
func (s *scenario) points(t *testing.T, m *Sockets, iters int) (list []point) {
	t.Helper()
	l := up(t, s.plan(t), false)
	p := l.State.Plan
	slow := map[int]float64{}
	if s.slow != "" {
		i, err := p.Link(s.slow)
		if err == nil {
			slow[i] = 0.25
			_, err = l.Fault(Fault{Kind: "link", Where: s.slow, What: "rate", Share: 0.25})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range s.layouts {
		jobs := make([][]Slot, max(s.jobs, 1))
		for _, x := range p.Slots(n[0]*len(jobs), n[1]) {
			jobs[x.Node%len(jobs)] = append(jobs[x.Node%len(jobs)], x)
		}
		for _, word := range strings.Fields(s.words) {
			if flat := n[0] == 1 || n[1] == 1; flat && (word == "hierarchical" || word == "ring:interleaved") {
				continue // the same as ring
			}
			x := s.trial(t, p, word, n, iters)
			predicted, err := x.predict(t.Context(), m, p, jobs, slow)
			if err != nil {
				t.Fatal(err)
			}
			measured, err := x.measure(t.Context(), l, jobs)
			if err != nil || len(measured) != len(predicted) {
				t.Fatalf("%s %v %s: %d times for %d, %v", s.name, n, word, len(measured), len(predicted), err)
			}
			for i := range measured {
				group := fmt.Sprint(s.name, " ", n)
				if x.Step == nil {
					group += " " + x.Sizes[i].String()
				} else {
					word = []string{"step", "overlapped step"}[i]
				}
				list = append(list, point{group, word, measured[i], predicted[i]})
			}
		}
	}
	return list
}

// trial is an algorithm of a scenario, or steps of a model whose gradients are 1/64: as rates are smaller by the scale,
// its computing is made longer by what transfers take longer.
func (s *scenario) trial(t *testing.T, p *Plan, word string, n [2]int, iters int) *trial {
	t.Helper()
	x := newTrial(coll.AllReduce, strings.Replace(word, "step", "ring", 1), n[0], n[1])
	x.Sizes, x.Iters, x.Transport = s.sizes, iters, cmp.Or(s.transport, engine.Auto)
	if s.sizes == nil {
		x.Sizes = []unit.Bytes{unit.MiB, 4 * unit.MiB}
	}
	if p.Inside == Links {
		x.Transport = engine.TCP
	}
	if word != "step" {
		return x
	}
	model := "gpt2-large"
	if iters == 1 { // only counted
		model = "layers=2,hidden=256,vocab=512"
	}
	step, err := shrunk(model, p.Scale)
	if err != nil {
		t.Fatal(err)
	}
	x.Step, step.Params, step.Iters = step, x.Params, max(iters/3, 1)
	return x
}

func shrunk(model string, scale Scale) (*bench.StepPlan, error) {
	const shrink = 64
	m, err := workload.Parse(model)
	if err != nil {
		return nil, err
	}
	p := &bench.StepPlan{Type: coll.Float, Algo: "ring", Params: schedule.Params{Channels: 1}, Warm: 1, Iters: 1}
	if err := p.SetModel(m, bench.Compute{Batch: 8, Speed: 150}); err != nil {
		return nil, err
	}
	longer := 1 / (scale.Value() * shrink)
	more := func(d time.Duration) time.Duration { return time.Duration(float64(d) * longer) }
	for i := range p.Grads {
		g := &p.Grads[i]
		g.Bytes, g.After = max((g.Bytes/shrink+3)/4*4, 4), more(g.After)
	}
	p.First, p.Cap, p.Forward = engine.FirstBucket/shrink, engine.BucketCap/shrink, more(p.Forward)
	return p, nil
}

// score is the median and the greatest error of points, and where of two that differ by more than 15% the slower was
// predicted to be the faster.
func score(points []point) (median, worst float64, wrong []string) {
	var errs []float64
	for i, a := range points {
		errs = append(errs, math.Abs(float64(a.predicted)/float64(a.measured)-1))
		for _, b := range points[:i] {
			if a.measured > b.measured {
				a, b = b, a
			}
			if a.group == b.group && float64(b.measured) > 1.15*float64(a.measured) &&
				float64(a.predicted) > 1.02*float64(b.predicted) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is faster than %s, predicted slower", a.group, a.algo, b.algo))
			}
			a = points[i]
		}
		worst = max(worst, errs[i])
	}
	return stats.Median(errs), worst, wrong
}

// Collectives and steps in labs take what the schedule, the lab's plan and the costs of a message on this machine say.
// Rates are judged on a quiet machine only (make test-quiet); elsewhere every way is gone once, and points are counted.
func TestLabsBesidePredictions(t *testing.T) {
	quiet := os.Getenv("BUSBAR_QUIET") != ""
	if testing.Short() {
		t.Skip("labs of many seconds")
	}
	list, iters, want := scenarios(), 8, 70
	if !quiet {
		iters, want = 1, 5
		list = []scenario{list[0], list[1], list[6], list[7]}
		for i, words := range []string{"ring:interleaved", "step", "tree", "ring"} {
			s := &list[i]
			s.words, s.sizes, s.layouts = words, []unit.Bytes{256 * unit.KiB}, s.layouts[len(s.layouts)/2:][:1]
		}
	}
	var m *Sockets
	t.Run("pairs", func(t *testing.T) { m = costs(t, runtime.NumCPU(), 25*iters) })
	if m == nil {
		t.Skip("no lab here")
	}
	var points []point
	for _, s := range list {
		t.Run(s.name, func(t *testing.T) { points = append(points, s.points(t, m, iters)...) })
	}
	for _, p := range points {
		t.Logf("%-40s %-20s measured %8v, predicted %8v: %+.1f%%", p.group, p.algo, p.measured, p.predicted,
			100*(float64(p.predicted)/float64(p.measured)-1))
	}
	median, worst, wrong := score(points)
	t.Logf("%d points: median error %.1f%%, worst %.1f%%; wrong order: %q", len(points), median*100, worst*100, wrong)
	if len(points) != want {
		t.Errorf("%d points, want %d", len(points), want)
	}
	if quiet && (median > 0.1 || worst > 0.35 || len(wrong) > 0) {
		t.Errorf("expected a median of at most 10%%, at most 35%%, and the right order")
	}
}

func TestScore(t *testing.T) {
	at := func(algo string, measured, predicted float64) point {
		return point{"2x2", algo, unit.Micros(measured), unit.Micros(predicted)}
	}
	// ring against tree and direct against tree differ by more than 15%; the first is wrong.
	median, worst, wrong := score([]point{at("ring", 100, 110), at("tree", 120, 105), at("direct", 101, 90)})
	if math.Abs(worst-0.125) > 1e-9 || median > worst || len(wrong) != 1 {
		t.Errorf("median %g, worst %g, wrong %q", median, worst, wrong)
	}
}

// A step that is shrunk has the buckets of the whole one, and computes longer.
func TestShrunkSteps(t *testing.T) {
	whole, err := shrunk("gpt2-large", Scale{1, 64})
	if err != nil {
		t.Fatal(err)
	}
	small, err := shrunk("gpt2-large", Scale{1, 400})
	if err != nil {
		t.Fatal(err)
	}
	if got := small.Compute().Seconds() / whole.Compute().Seconds(); math.Abs(got/6.25-1) > 0.001 {
		t.Errorf("computing takes %.4f times as long", got)
	}
}
