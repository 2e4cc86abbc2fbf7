package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// even is the factor within which predictions of two settings of one job say next to nothing about which is faster: they were right in 52 of 99 measured pairs.
const even = 1.05

// planOrder says what arrangePlans does.
const planOrder = "of plans within 5% of the best, those without offload, with memory to spare and with the fewest settings come first"

// arrangePlans puts first what is easiest to run of the plans that are as good as the fastest: without offload, with room in memory, with few settings.
func (x *planned) arrangePlans(ctx context.Context) error {
	if err := x.withoutOffload(ctx); err != nil {
		return err
	}
	plans := x.answer.Plans
	limit := x.fastest() * even
	easy := func(p plan.Plan) []int {
		key := []int{0, 0, len(parallelKinds(&p.Job))}
		if p.Job.Offloads() {
			key[0] = 1
		}
		if x.tight(&p) {
			key[1] = 1
		}
		return key
	}
	slices.SortStableFunc(plans, func(a, b plan.Plan) int {
		if a.Value > limit || b.Value > limit {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Or(slices.Compare(easy(a), easy(b)), cmp.Compare(a.Value, b.Value))
	})
	return nil
}

// withoutOffload takes the best plan that keeps all on the GPU in place of one with the same degrees that does not, where the two cannot be told apart.
// What the host does depends on its memory and processors, of which least is known.
func (x *planned) withoutOffload(ctx context.Context) error {
	plans := x.answer.Plans
	if len(x.Offload) > 0 || x.order != nil || !slices.ContainsFunc(plans, func(p plan.Plan) bool { return p.Job.Offloads() }) {
		return nil
	}
	q := *x.query
	q.Spaces, q.Watch = nil, nil
	for _, s := range x.query.Spaces {
		own := *s
		own.Offload = []workload.Offload{""}
		q.Spaces = append(q.Spaces, &own)
	}
	a, err := plan.Search(ctx, &q)
	switch {
	case errors.Is(err, plan.ErrNone) || ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	for i := range plans {
		for _, p := range a.Plans {
			if plans[i].Job.Offloads() && plan.SameDegrees(&p.Job.Split, &plans[i].Job.Split) && p.Value <= plans[i].Value*step.TieMargin {
				plans[i] = p
				break
			}
		}
	}
	return nil
}

// fastest is the least value of the objective that a plan has.
func (x *planned) fastest() float64 {
	return slices.MinFunc(x.answer.Plans, func(a, b plan.Plan) int { return cmp.Compare(a.Value, b.Value) }).Value
}

// tight says that a plan's memory is within what predictions of it are good for of all that the GPU has.
func (x *planned) tight(p *plan.Plan) bool {
	return p.Result.Memory.Total()*step.MemoryMargin > unit.Volume(x.query.GPU.Model.Memory)
}

// behind says why a plan that is predicted to be better than the first comes after it.
func (x *planned) behind(i int) string {
	first, p := &x.answer.Plans[0], &x.answer.Plans[i]
	why := "more settings: " + strings.Join(parallelKinds(&p.Job), ", ")
	switch {
	case p.Job.Offloads() && !first.Job.Offloads():
		why = "it offloads"
	case x.tight(p) && !x.tight(first):
		why = "its memory is tight"
	}
	gain := 1 - p.Value/first.Value
	if gain < 0.0005 {
		return "as good, but " + why
	}
	return fmt.Sprintf("%.1f%% %s, too little to tell, but %s", 100*gain, x.goal.Better(), why)
}
