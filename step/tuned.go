package step

import (
	"cmp"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Choice is a collective of a job for which another algorithm or protocol than NCCL's own choice is
// predicted to be faster.
type Choice struct {
	Group    Group      `json:"group"`
	Kind     coll.Kind  `json:"op"`
	Bytes    unit.Bytes `json:"bytes"`
	Algo     string     `json:"algo"`
	Proto    string     `json:"proto"`
	Own      string     `json:"nccl_algo"`
	OwnProto string     `json:"nccl_proto"`
	Gain     float64    `json:"times_as_fast"`
}

// mostTuned is the ranks of a group up to which choices are weighed one by one.
const mostTuned = 1 << 10

// tunable are the collectives that NCCL asks a tuner about, of those that steps have.
var tunable = []coll.Kind{coll.AllReduce, coll.AllGather, coll.ReduceScatter}

// Tuned is the fabric under a tuner plugin that knows the job: its collectives run by what NCCL can
// run fastest, where that is predicted to gain more than predict.Worth.
func (f *Fabric) Tuned() *Fabric {
	t := &Fabric{
		Env: f.Env, c: f.c, layout: f.layout, split: f.split, version: f.version, cache: newCache(f.cache.found),
		leaves: f.leaves,
	}
	t.cache.tuned = map[call]Choice{}
	return t
}

// Choices are those of collectives that were priced so far, by group and size.
func (f *Fabric) Choices() []Choice {
	f.cache.mu.Lock()
	defer f.cache.mu.Unlock()
	list := []Choice{}
	for _, c := range f.cache.tuned {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Choice) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Bytes, b.Bytes))
	})
	return list
}

// tune is a collective's price under a tuner: that of NCCL's own choice, or a better one.
func (f *Fabric) tune(g Group, p *predict.Predictor, op coll.Op, own cost) (cost, error) {
	if f.cache.tuned == nil || !slices.Contains(tunable, op.Kind) || len(p.Layout) > mostTuned {
		return own, nil
	}
	a, err := p.Ask(predict.Query{
		Kind: op.Kind, Type: op.Type, Sizes: []unit.Bytes{op.Bytes}, Algos: []string{predict.All},
	})
	if err != nil {
		return own, nil // there is nothing else that could be taken
	}
	var best, was *predict.Row
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Chosen {
			was = r
		}
		if !r.Beyond && (best == nil || r.Time < best.Time) {
			best = r
		}
	}
	if was == nil || best == was || float64(was.Time) < predict.Worth*float64(best.Time) {
		return own, nil
	}
	t := cost{best.Time.Span(), best.Limit.Text}
	f.cache.mu.Lock()
	f.cache.tuned[call{f.pattern(g), op.Kind, op.Bytes}] = Choice{
		g, op.Kind, op.Bytes, best.Algo, best.Proto, was.Algo, was.Proto, float64(was.Time.Span() / t.time),
	}
	f.cache.mu.Unlock()
	return t, nil
}
