package plan

import (
	"fmt"
	"slices"

	"busbar/step"
	"busbar/unit"
)

// Part is a share of a step's time.
type Part struct {
	Name    string
	Seconds float64
}

// Parts of a step add up to its time.
func Parts(r *step.Result) []Part {
	list := []Part{{"computing", r.Compute}, {"the pipeline's filling", r.Step - r.Compute - r.Exposed - r.Optimizer - r.Host}, {"the update", r.Optimizer + r.Host}}
	for _, t := range r.Traffic {
		list = append(list, Part{fmt.Sprintf("%s among %s ranks", t.What, t.Group), t.Exposed})
	}
	return list
}

// Against says why a plan is slower than a better one: the part of its step that is longer by
// most.
func Against(best, other Plan) string {
	have := map[string]float64{}
	for _, p := range Parts(best.Result) {
		have[p.Name] += p.Seconds
	}
	var worst Part
	for _, p := range Parts(other.Result) {
		if d := p.Seconds - have[p.Name]; d > worst.Seconds {
			worst = Part{p.Name, d}
		}
	}
	slower := 100 * (other.Result.Step/best.Result.Step - 1)
	if worst.Name == "" {
		return fmt.Sprintf("%.1f%% slower", slower)
	}
	return fmt.Sprintf("%.1f%% slower: %v more for %s", slower, unit.Time(worst.Seconds*1e12), worst.Name)
}

// Holds prices plans again with every rate of the network so many times as high, and returns
// the order in which they then are, as places in the list.
func (q *Query) Holds(plans []Plan, factor float64) ([]int, error) {
	c, ok := step.Faster(q.Cluster, factor, step.Ports, step.Trunks)
	if !ok {
		return nil, nil
	}
	fabrics := map[int]*step.Fabric{}
	took := make([]float64, len(plans))
	order := make([]int, len(plans))
	for i := range plans {
		split := plans[i].Job.Split
		f := fabrics[split.Ranks()]
		if f == nil {
			f = step.NewFabric(c, q.Layout[:split.Ranks()], split, q.Version)
			fabrics[split.Ranks()] = f
		}
		r, err := step.Prepare(&plans[i].Job, f.With(split)).Price(q.GPU)
		if err != nil {
			return nil, err
		}
		took[i], order[i] = q.objective().Value(r), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case took[a] < took[b]:
			return -1
		case took[a] > took[b]:
			return 1
		}
		return 0
	})
	return order, nil
}
