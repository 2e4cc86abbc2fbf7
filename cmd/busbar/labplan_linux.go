package main

import (
	"errors"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// labPlan is a plan's order of hosts and the one in which they were given, as nodes of the lab.
type labPlan struct {
	plan         *launch.Plan
	given, order []int
	each         int
}

// readLabPlan finds a plan's hosts in the cluster.
func readLabPlan(dir string, cl *cluster.Cluster) (*labPlan, error) {
	p, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	hosts, err := p.Hosts()
	if err != nil {
		return nil, err
	}
	x := &labPlan{plan: p, each: len(hosts[0].GPUs)}
	find := func(name string) (int, error) {
		at := slices.IndexFunc(cl.Hosts, func(h cluster.Host) bool { return launch.Same(h.Name, name) })
		if at < 0 {
			return 0, fmt.Errorf("--plan %s: %s is no host of %s; expected a plan for this cluster (busbar plan -c CLUSTER --hosts … --emit DIR)", dir, name, cl.Name)
		}
		return at, nil
	}
	for _, h := range hosts {
		if len(h.GPUs) != x.each {
			return nil, fmt.Errorf("--plan %s: hosts have different numbers of ranks; a lab compares plans whose hosts are alike", dir)
		}
		at, err := find(h.Name)
		if err != nil {
			return nil, err
		}
		x.order = append(x.order, at)
	}
	x.given = slices.Sorted(slices.Values(x.order)) // the cluster's own order where nobody gave one
	if p.Given != "" {
		names, err := cluster.ParseHosts(p.Given)
		if err != nil {
			return nil, fmt.Errorf("--plan %s: given_hosts: %w", dir, err)
		}
		x.given = nil
		for _, n := range names {
			at, err := find(n)
			if err != nil {
				return nil, err
			}
			x.given = append(x.given, at)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(x.given)), slices.Sorted(slices.Values(x.order))) {
		return nil, fmt.Errorf("--plan %s: given_hosts are others than those of nodes", dir)
	}
	if len(x.order) < 2 {
		return nil, fmt.Errorf("--plan %s: one host has no order", dir)
	}
	return x, nil
}

// planned measures a plan's order and algorithm beside the given order and a flat ring.
func (c *labCheckCmd) planned(e *env) error {
	switch {
	case c.Cluster == "":
		return errors.New("--plan: no cluster; expected the one that the plan was made for: busbar lab check CLUSTER --plan DIR")
	case c.Points != "" || c.Jobs != 1:
		return errors.New("--plan is one job, and has no -o")
	}
	list, err := c.scenarios(e)
	if err != nil {
		return err
	}
	s := list[0]
	p, err := readLabPlan(c.Plan, s.cluster)
	if err != nil {
		return err
	}
	s.layouts = [][2]int{{slices.Max(p.order) + 1, p.each}}
	d := labPlanDoc{Plan: c.Plan, Rows: []labPlanRow{}, Steps: []labPlanRow{}, labVerdict: labVerdict{MaxMedian: c.Median, MaxWorst: c.Worst, MaxNoise: c.Noise}}
	d.Order, d.Given = hostOrder(s.cluster, p.order), hostOrder(s.cluster, p.given)
	err = c.inLab(e, s, nil, &labCheckDoc{}, func(x *labChecker) error {
		d.Cluster, d.Scale = s.cluster.Name, x.l.State.Plan.Scale
		if err := x.planRows(p, &d); err != nil || c.Step == "" {
			return err
		}
		return x.planSteps(p, &d)
	})
	if err != nil {
		return err
	}
	var points []lab.Point
	for _, r := range append(slices.Clone(d.Rows), d.Steps...) {
		points = append(points, r.Point)
	}
	d.Score = lab.Rate(points, orderMatters)
	if c.JSON {
		err = writeIndented(e.stdout, d)
	} else {
		err = printLabPlan(e, &d)
	}
	if err == nil && (d.Score.Points == 0 || d.Score.Median > c.Median || d.Score.Worst > c.Worst || len(d.Score.Wrong) > 0) {
		return errWrong
	}
	return err
}

func hostOrder(cl *cluster.Cluster, order []int) string {
	var names []string
	for _, h := range order {
		names = append(names, cl.Hosts[h].Name)
	}
	return cluster.FormatHosts(names)
}

// seats puts ranks on nodes in an order.
func (p *labPlan) seats(l *lab.Plan, order []int) []lab.Seat {
	all := l.Seats(len(l.Nodes), p.each)
	var seats []lab.Seat
	for _, n := range order {
		seats = append(seats, all[n*p.each:(n+1)*p.each]...)
	}
	return seats
}

// planAlgos are the algorithms that a plan's order is tried with, the flat ring first.
var planAlgos = []string{"ring", "tree", "halving_doubling", "hierarchical", "hierarchical:leaves"}

// planTrials are the algorithms that make sense among ranks that sit so.
func planTrials(l *lab.Plan, kind coll.Kind, nodes, each int, seats []lab.Seat) ([]lab.Trial, error) {
	var list []lab.Trial
	for _, word := range planAlgos {
		name := word
		if word == "hierarchical:leaves" {
			name = "ring" // and then what is particular to it
		}
		t, err := lab.NewTrial(kind, name, nodes, each)
		var no *schedule.Refusal
		if errors.As(err, &no) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name != word {
			groups := l.Leaves(seats)
			if len(groups) < 2 || len(groups) == len(seats) || len(groups) == nodes {
				continue // the same as another
			}
			t.Word, t.Algo, t.Params.Groups = word, "hierarchical", groups
			if _, err := t.Schedule(); errors.As(err, &no) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		list = append(list, t)
	}
	if len(list) == 0 || list[0].Word != "ring" {
		return nil, fmt.Errorf("%s has no ring; expected a collective that has", kind)
	}
	return list, nil
}

// planRows measures collectives.
func (x *labChecker) planRows(p *labPlan, d *labPlanDoc) error {
	l := x.l.State.Plan
	before, after := p.seats(l, p.given), p.seats(l, p.order)
	trials, err := planTrials(l, x.s.kind, len(p.order), p.each, after)
	if err != nil {
		return err
	}
	// The algorithm is settled before anything is measured; ring stays where nothing is faster by 2%.
	chosen := make([]int, len(x.s.sizes))
	least := make([]unit.Time, len(x.s.sizes))
	for k := range trials {
		times, _, err := x.predict(&trials[k], [][]lab.Seat{after})
		if err != nil {
			return err
		}
		for i, t := range times {
			if k == 0 || float64(t) < 0.98*float64(least[i]) {
				chosen[i], least[i] = k, t
			}
		}
	}
	sizes := x.s.sizes
	for i, size := range sizes {
		x.s.sizes = []unit.Bytes{size}
		base, err := x.way(d, "given order, ring", trials[0], before, nil)
		if err != nil {
			return err
		}
		real := p.onCluster(x.s.cluster, x.s.kind, unit.Bytes(float64(size)/l.Scale.Value()))
		base.Cluster = min(real, 1) // 1, or 0 where the cluster cannot be predicted
		d.Rows = append(d.Rows, *base)
		row, err := x.way(d, "plan's order, ring", trials[0], after, base)
		if err != nil {
			return err
		}
		row.Cluster = real
		d.Rows = append(d.Rows, *row)
		if chosen[i] > 0 {
			row, err := x.way(d, "plan's order, "+trials[chosen[i]].Word, trials[chosen[i]], after, base)
			if err != nil {
				return err
			}
			d.Rows = append(d.Rows, *row)
		}
	}
	x.s.sizes = sizes
	return nil
}

// way measures one way at one size.
func (x *labChecker) way(d *labPlanDoc, name string, t lab.Trial, seats []lab.Seat, base *labPlanRow) (*labPlanRow, error) {
	defer x.e.progress(x.c.common, fmt.Sprintf("%v by %s", x.s.sizes[0], name))()
	points, err := x.on(t, [][]lab.Seat{seats})
	if err != nil {
		return nil, err
	}
	return planRow(name, points[0], base), nil
}

func planRow(name string, p lab.Point, base *labPlanRow) *labPlanRow {
	r := &labPlanRow{Way: name, Builder: p.Algo, Point: p, Gain: 1, PredictedGain: 1}
	r.Point.Algo = name
	if base != nil {
		r.Gain, r.PredictedGain = float64(base.Measured)/float64(r.Measured), float64(base.Predicted)/float64(r.Predicted)
	}
	return r
}

// onCluster is how many times as fast a ring of NCCL is predicted to be on the cluster itself in the plan's order; 0
// where that cannot be said.
func (p *labPlan) onCluster(cl *cluster.Cluster, kind coll.Kind, size unit.Bytes) float64 {
	v, err := nccl.ParseVersion(p.plan.NCCL)
	if err != nil {
		return 0
	}
	var times [2]float64
	for i, order := range [][]int{p.given, p.order} {
		var l nccl.Layout
		for _, h := range order {
			gpus := cl.TypeOf(h).Of(cluster.GPU)
			if len(gpus) < p.each {
				return 0
			}
			for _, g := range gpus[:p.each] {
				l = append(l, nccl.Rank{Host: h, GPU: g})
			}
		}
		q, err := predict.New(cl, l, v, nil, nil)
		if err != nil {
			return 0
		}
		a, err := q.Ask(predict.Query{Kind: kind, Type: coll.Float, Sizes: []unit.Bytes{size}, Algos: []string{"ring"}})
		if err != nil || len(a.Rows) == 0 {
			return 0
		}
		times[i] = a.Rows[0].Time.Seconds()
	}
	return times[0] / times[1]
}

// planSteps measures steps of training with overlap.
func (x *labChecker) planSteps(p *labPlan, d *labPlanDoc) error {
	l := x.l.State.Plan
	step, err := x.c.stepPlan()
	if err != nil {
		return err
	}
	longer := 1 / (l.Scale.Value() * float64(x.c.Shrink))
	stretch(&step, x.c.Shrink, longer)
	d.Model, d.Shrink, d.Longer = x.c.Step, x.c.Shrink, longer
	before, after := p.seats(l, p.given), p.seats(l, p.order)
	trials, err := planTrials(l, coll.AllReduce, len(p.order), p.each, after)
	if err != nil {
		return err
	}
	step.Wire = engine.Uncompressed
	best, least := 0, unit.Time(0)
	for k := range trials {
		t, _, err := x.predictStep(&trials[k], step, after, true)
		if err != nil {
			return err
		}
		if k == 0 || float64(t) < 0.98*float64(least) {
			best, least = k, t
		}
	}
	base, err := x.planStep("given order, ring", trials[0], step, before, nil)
	if err != nil {
		return err
	}
	d.Steps = append(d.Steps, *base)
	for k := range trials {
		if k != 0 && k != best {
			continue
		}
		row, err := x.planStep("plan's order, "+trials[k].Word, trials[k], step, after, base)
		if err != nil {
			return err
		}
		d.Steps = append(d.Steps, *row)
	}
	return nil
}

func (x *labChecker) planStep(name string, t lab.Trial, step bench.StepPlan, seats []lab.Seat, base *labPlanRow) (*labPlanRow, error) {
	step.Algo, step.Params = t.Algo, t.Params
	rows, err := x.stepRows(&t, step, seats)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r.Overlap {
			r.Point.Algo = t.Word
			return planRow(name, r.Point, base), nil
		}
	}
	return nil, failure.Cannot(errors.New("the ranks reported no steps with overlap"))
}
