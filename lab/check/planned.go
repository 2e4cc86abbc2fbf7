package check

import (
	"context"
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

// planned measures a plan's order and algorithm beside the given order and a flat ring.
func (c *Check) planned(ctx context.Context, env Env) (*Planned, error) {
	switch {
	case c.Cluster == "":
		return nil, errors.New("--plan: no cluster; expected the one that the plan was made for: busbar lab check CLUSTER --plan DIR")
	case c.Jobs != 1:
		return nil, errors.New("--plan is one job, and has no -o")
	}
	s, err := c.scenario(&env)
	if err != nil {
		return nil, err
	}
	p, err := env.LaunchPlan(c.Plan)
	if err != nil {
		return nil, err
	}
	o, err := newOrders(c.Plan, p, s.cluster)
	if err != nil {
		return nil, err
	}
	s.layouts = [][2]int{{slices.Max(o.plan) + 1, o.each}}
	d := &Planned{
		Verdict: c.verdict(), Cluster: s.cluster.Name, Plan: c.Plan, Given: o.names(o.given), Order: o.names(o.plan), Rows: []PlanRow{}, Steps: []PlanRow{},
	}
	err = c.inLab(ctx, &env, s, nil, func(x *session) error {
		d.Scale = x.lab.State.Plan.Scale
		if err := x.planRows(o, d); err != nil || c.Step == "" {
			return err
		}
		return x.planSteps(o, d)
	})
	if err != nil {
		return nil, err
	}
	d.rate()
	return d, nil
}

// orders are a plan's order of hosts and the one in which they were given, as hosts of the cluster, which are the nodes
// of the lab.
type orders struct {
	cluster     *cluster.Cluster
	given, plan []int
	each        int    // ranks of a host
	nccl        string // release; "" is the newest
}

// newOrders finds the hosts of the plan in a folder in the cluster.
func newOrders(dir string, p *launch.Plan, cl *cluster.Cluster) (*orders, error) {
	hosts, err := p.Hosts()
	if err != nil {
		return nil, err
	}
	o := &orders{cluster: cl, each: len(hosts[0].GPUs), nccl: p.NCCL}
	find := func(list *[]int, name string) error {
		at := slices.IndexFunc(cl.Hosts, func(h cluster.Host) bool { return cluster.SameHost(h.Name, name) })
		if at < 0 {
			return fmt.Errorf("--plan %s: %s is no host of %s; expected a plan for this cluster (busbar plan -c CLUSTER --hosts … --emit DIR)", dir, name, cl.Name)
		}
		*list = append(*list, at)
		return nil
	}
	for _, h := range hosts {
		if len(h.GPUs) != o.each {
			return nil, fmt.Errorf("--plan %s: hosts have different numbers of ranks; a lab compares plans whose hosts are alike", dir)
		}
		if err := find(&o.plan, h.Name); err != nil {
			return nil, err
		}
	}
	sorted := slices.Sorted(slices.Values(o.plan))
	o.given = sorted // the cluster's own order where the plan has none
	if p.Given != "" {
		names, err := cluster.ParseHosts(p.Given)
		if err != nil {
			return nil, fmt.Errorf("--plan %s: given_hosts: %w", dir, err)
		}
		o.given = nil
		for _, n := range names {
			if err := find(&o.given, n); err != nil {
				return nil, err
			}
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(o.given)), sorted) {
		return nil, fmt.Errorf("--plan %s: given_hosts are others than those of nodes", dir)
	}
	if len(o.plan) < 2 {
		return nil, fmt.Errorf("--plan %s: one host has no order", dir)
	}
	return o, nil
}

// names is an order as a hostlist.
func (o *orders) names(order []int) string {
	var names []string
	for _, h := range order {
		names = append(names, o.cluster.Hosts[h].Name)
	}
	return cluster.FormatHosts(names)
}

// slots places ranks on nodes in an order.
func (o *orders) slots(l *lab.Plan, order []int) []lab.Slot {
	all := l.Slots(len(l.Nodes), o.each)
	var slots []lab.Slot
	for _, n := range order {
		slots = append(slots, all[n*o.each:(n+1)*o.each]...)
	}
	return slots
}

// ncclGain is how many times as fast a ring of NCCL is predicted to be on the cluster itself in the plan's order; 0
// where that cannot be predicted.
func (o *orders) ncclGain(kind coll.Kind, size unit.Bytes) float64 {
	v := nccl.Newest
	if o.nccl != "" {
		var err error
		if v, err = nccl.ParseVersion(o.nccl); err != nil {
			return 0
		}
	}
	var times [2]float64
	for i, order := range [][]int{o.given, o.plan} {
		var l nccl.Layout
		for _, h := range order {
			gpus := o.cluster.TypeOf(h).Of(cluster.GPU)
			if len(gpus) < o.each {
				return 0
			}
			for _, g := range gpus[:o.each] {
				l = append(l, nccl.Rank{Host: h, GPU: g})
			}
		}
		q, err := predict.New(o.cluster, l, v, nil, nil)
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

// planAlgos are the algorithms that a plan's order is tried with, the flat ring first.
var planAlgos = []string{"ring", "tree", "halving_doubling", "hierarchical", "hierarchical:leaves"}

// planTrials are the algorithms that make sense among ranks that are placed so.
func planTrials(l *lab.Plan, kind coll.Kind, nodes, each int, slots []lab.Slot) ([]Trial, error) {
	var list []Trial
	for _, word := range planAlgos {
		name := word
		if word == "hierarchical:leaves" {
			name = "ring" // and then what is particular to it
		}
		t, err := newTrial(kind, name, nodes, each)
		var no *schedule.Refusal
		if errors.As(err, &no) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if name != word {
			groups := l.Leaves(slots)
			if len(groups) < 2 || len(groups) == len(slots) || len(groups) == nodes {
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

// fastest is the trial that is predicted to be fastest, settled before anything is measured; the first, ring, stays
// where none is faster by 2%.
func fastest(times []unit.Time) (best int) {
	for k, t := range times {
		if float64(t) < 0.98*float64(times[best]) {
			best = k
		}
	}
	return best
}

// planRows measures collectives.
func (x *session) planRows(o *orders, d *Planned) error {
	l := x.lab.State.Plan
	before, after := o.slots(l, o.given), o.slots(l, o.plan)
	trials, err := planTrials(l, x.s.kind, len(o.plan), o.each, after)
	if err != nil {
		return err
	}
	predicted := make([][]unit.Time, len(x.s.sizes)) // by size and trial
	for k := range trials {
		times, _, err := x.predict(&trials[k], [][]lab.Slot{after}, x.s.sizes)
		if err != nil {
			return err
		}
		for i, t := range times {
			predicted[i] = append(predicted[i], t)
		}
	}
	for i, size := range x.s.sizes {
		base, err := x.variant("given order, ring", trials[0], before, size, nil)
		if err != nil {
			return err
		}
		gain := o.ncclGain(x.s.kind, unit.Bytes(float64(size)/l.Scale.Value()))
		base.Cluster = min(gain, 1) // 1, or 0 where the cluster cannot be predicted
		d.Rows = append(d.Rows, *base)
		row, err := x.variant("plan's order, ring", trials[0], after, size, base)
		if err != nil {
			return err
		}
		row.Cluster = gain
		d.Rows = append(d.Rows, *row)
		if best := fastest(predicted[i]); best > 0 {
			row, err := x.variant("plan's order, "+trials[best].Word, trials[best], after, size, base)
			if err != nil {
				return err
			}
			d.Rows = append(d.Rows, *row)
		}
	}
	return nil
}

// variant measures one order and algorithm at one size.
func (x *session) variant(name string, t Trial, slots []lab.Slot, size unit.Bytes, base *PlanRow) (*PlanRow, error) {
	defer x.env.Progress(fmt.Sprintf("%v by %s", size, name))()
	points, err := x.compare(t, [][]lab.Slot{slots}, []unit.Bytes{size})
	if err != nil {
		return nil, err
	}
	return planRow(name, points[0], base), nil
}

func planRow(name string, p Point, base *PlanRow) *PlanRow {
	r := &PlanRow{Variant: name, Builder: p.Algo, Point: p, Gain: 1, PredictedGain: 1}
	r.Point.Algo = name
	if base != nil {
		r.Gain, r.PredictedGain = float64(base.Measured)/float64(r.Measured), float64(base.Predicted)/float64(r.Predicted)
	}
	return r
}

// planSteps measures steps of training with overlap.
func (x *session) planSteps(o *orders, d *Planned) error {
	l := x.lab.State.Plan
	step, err := x.check.stepPlan(x.env)
	if err != nil {
		return err
	}
	d.Model, d.Shrink, d.Longer = x.check.Step, x.check.Shrink, x.check.stretch(&step, l.Scale)
	before, after := o.slots(l, o.given), o.slots(l, o.plan)
	trials, err := planTrials(l, coll.AllReduce, len(o.plan), o.each, after)
	if err != nil {
		return err
	}
	step.Wire = engine.Uncompressed
	var predicted []unit.Time
	for k := range trials {
		t, _, err := x.predictStep(&trials[k], step, after, true)
		if err != nil {
			return err
		}
		predicted = append(predicted, t)
	}
	base, err := x.planStep("given order, ring", trials[0], step, before, nil)
	if err != nil {
		return err
	}
	d.Steps = append(d.Steps, *base)
	best := fastest(predicted)
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

func (x *session) planStep(name string, t Trial, step bench.StepPlan, slots []lab.Slot, base *PlanRow) (*PlanRow, error) {
	step.Algo, step.Params = t.Algo, t.Params
	rows, err := x.stepRows(&t, step, slots)
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
