package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/engine"
	"busbar.dev/unit"
)

// placed measures a job on several sets of nodes, with a flat ring. Gains are over the first of them.
func (c *Check) placed(ctx context.Context, env Env) (*Planned, error) {
	if c.Cluster == "" || c.Plan != "" || c.Jobs != 1 {
		return nil, errors.New("--place: expected a cluster, one job and no --plan: busbar lab check CLUSTER --place HOSTLIST --place HOSTLIST")
	}
	s, err := c.scenario(&env)
	if err != nil {
		return nil, err
	}
	sets, err := placements(s.cluster, c.Place)
	if err != nil {
		return nil, err
	}
	last := 0
	for _, o := range sets {
		last = max(last, slices.Max(o.plan))
	}
	s.layouts = [][2]int{{last + 1, sets[0].each}}
	d := &Planned{Verdict: c.verdict(), Cluster: s.cluster.Name, Placements: c.Place, Rows: []PlanRow{}, Steps: []PlanRow{}}
	err = c.inLab(ctx, &env, s, nil, func(x *session) error {
		d.Scale = x.lab.State.Plan.Scale
		if err := x.placeRows(sets, d); err != nil || c.Step == "" {
			return err
		}
		return x.placeSteps(sets, d)
	})
	if err != nil {
		return nil, err
	}
	d.rate()
	return d, nil
}

// placements are the nodes of hostlists; the first is what the others are compared with.
func placements(cl *cluster.Cluster, lists []string) ([]*orders, error) {
	var sets []*orders
	for _, list := range lists {
		names, err := cluster.ParseHosts(list)
		if err != nil {
			return nil, fmt.Errorf("--place: %w", err)
		}
		o := &orders{cluster: cl}
		for _, n := range names {
			at := slices.IndexFunc(cl.Hosts, func(h cluster.Host) bool { return cluster.SameHost(h.Name, n) })
			if at < 0 || slices.Contains(o.plan, at) {
				return nil, fmt.Errorf("--place %s: %s is no host of %s, or there twice", list, n, cl.Name)
			}
			o.plan = append(o.plan, at)
			if t := cl.TypeOf(at); t != nil {
				o.each = t.Count(cluster.GPU)
			}
		}
		sets = append(sets, o)
		if o.given = sets[0].plan; len(o.plan) != len(o.given) || o.each != sets[0].each || o.each == 0 {
			return nil, fmt.Errorf("--place %s: %d hosts of %d GPUs, and %d of %d before; expected sets that are alike", list, len(o.plan), o.each, len(o.given), sets[0].each)
		}
	}
	if len(sets) < 2 || len(sets[0].plan) < 2 {
		return nil, errors.New("--place: expected at least two sets of at least two hosts")
	}
	return sets, nil
}

func (x *session) placeRows(sets []*orders, d *Planned) error {
	l := x.lab.State.Plan
	for _, size := range x.s.sizes {
		var base *PlanRow
		for i, o := range sets {
			t, err := newTrial(x.s.kind, "ring", len(o.plan), o.each)
			if err != nil {
				return err
			}
			row, err := x.variant(x.check.Place[i], t, o.slots(l, o.plan), size, base)
			if err != nil {
				return err
			}
			row.Cluster = o.ncclGain(x.s.kind, unit.Bytes(float64(size)/l.Scale.Value()))
			base = cmp.Or(base, row)
			d.Rows = append(d.Rows, *row)
		}
	}
	return nil
}

func (x *session) placeSteps(sets []*orders, d *Planned) error {
	l := x.lab.State.Plan
	step, err := x.check.stepPlan(x.env)
	if err != nil {
		return err
	}
	d.Model, d.Shrink, d.Longer = x.check.Step, x.check.Shrink, x.check.stretch(&step, l.Scale)
	step.Wire = engine.Uncompressed
	var base *PlanRow
	for i, o := range sets {
		t, err := newTrial(x.s.kind, "ring", len(o.plan), o.each)
		if err != nil {
			return err
		}
		row, err := x.planStep(x.check.Place[i], t, step, o.slots(l, o.plan), base)
		if err != nil {
			return err
		}
		base = cmp.Or(base, row)
		d.Steps = append(d.Steps, *row)
	}
	return nil
}

// rate scores what was measured.
func (d *Planned) rate() {
	var points []Point
	for _, r := range slices.Concat(d.Rows, d.Steps) {
		points = append(points, r.Point)
	}
	d.Score = rate(points, orderMatters)
}
