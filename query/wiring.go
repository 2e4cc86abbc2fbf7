package query

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// wiringAdvice is what another order of hosts, or a sum by racks, would bring for the largest size. It is priced as a
// step's gradients are, for ranks that are all replicas.
func wiringAdvice(p *predict.Predictor, layout string, ask predict.Query,
	env map[string]string,
) ([]predict.Advice, error) {
	wirings := step.Wirings(p.Cluster, p.Layout, env)
	if len(wirings) == 0 || len(ask.Sizes) == 0 {
		return nil, nil
	}
	size := unit.Volume(slices.Max(ask.Sizes))
	split, err := workload.Split{}.On(len(p.Layout))
	if err != nil {
		return nil, err
	}
	f := step.NewFabric(p.Cluster, p.Layout, split, p.Plan.Version)
	f.Env = env
	now, _, err := f.Time(step.Data, ask.Kind, size)
	if err != nil {
		return nil, err
	}
	var list []predict.Advice
	for _, w := range wirings {
		var t unit.Span
		switch {
		case w.Rack == 0:
			t, _, err = w.On(f).Time(step.Data, ask.Kind, size)
		case ask.Kind == coll.AllReduce:
			t, _, err = w.On(f).TwoPhase(w.Rack, size)
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if t*predict.Worth < now {
			list = append(list, predict.Advice{
				Layout: layout, Setting: w.Setting, Gain: math.Round(float64(now/t)*1e4) / 1e4,
				Text: fmt.Sprintf("with %s, %s of %v would take %v instead of %v: %s", w.Setting, ask.Kind, size.Bytes(), t.Time(),
					now.Time(), w.Text),
			})
		}
	}
	return list, nil
}
