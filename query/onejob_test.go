package query

import (
	"errors"
	"fmt"
	"testing"

	"busbar.dev/unit"
)

// TestOneJob asks step, need, plan, goodput and place for pairs of machine and model: all give one step time for the
// job that nobody described further, or all say that it does not fit.
func TestOneJob(t *testing.T) {
	if testing.Short() {
		t.Skip("searches a hundred plans")
	}
	fit := 0
	for _, machine := range []string{"dgx-h100:2", "dgx-a100:4", "baskerville:4", "dgx-b200:2", "4xa6000:2"} {
		for _, model := range []string{"gpt2-large", "llama3-8b", "llama2-13b", "llama3-70b"} {
			j := Job{Cluster: machine, Model: model}
			if machine == "4xa6000:2" {
				j.NIC = "25GbE"
			}
			times, misfits := map[string]unit.Span{}, 0
			add := func(door string, time unit.Span, err error) {
				switch none := (*misfit)(nil); {
				case errors.As(err, &none):
					misfits++
				case err != nil:
					t.Errorf("%s of %s on %s: %v", door, model, machine, err)
				default:
					times[door] = time
				}
			}
			s, err := Step{Job: j}.Run(t.Context(), Env{})
			if err == nil && s.Wrong() {
				misfits++
			} else if err == nil {
				add("step", s.Rows[0].Step, nil)
			} else {
				add("step", 0, err)
			}
			n, err := Need{Job: j}.Run(t.Context(), Env{})
			add("need", value(n, func() unit.Span { return n.Now.Step }), err)
			p, err := Plan{Cluster: j.Cluster, Model: j.Model, NIC: j.NIC}.Run(t.Context(), Env{})
			add("plan", value(p, func() unit.Span { return p.Plans[0].Step }), err)
			g, err := Goodput{Job: j}.Run(t.Context(), Env{})
			add("goodput", value(g, func() unit.Span { return g.Step }), err)
			nodes := 0
			fmt.Sscanf(machine[len(machine)-1:], "%d", &nodes)
			l, err := Place{Job: j, Nodes: nodes}.Run(t.Context(), Env{})
			add("place", value(l, func() unit.Span { return l.Best.Step }), err)
			if misfits != 0 && misfits != 5 {
				t.Errorf("%s on %s: %d of 5 say that it does not fit; others give %v", model, machine, misfits, times)
			}
			for door, x := range times {
				if near := x / times["step"]; near < 1-1e-9 || near > 1+1e-9 {
					t.Errorf("%s on %s: %s gives %v, step %v", model, machine, door, x, times["step"])
				}
			}
			fit += len(times) / 5
		}
	}
	if fit < 12 {
		t.Errorf("%d of 20 jobs fit: the test shows little", fit)
	}
}

// value is what f says where there is a document.
func value[D any](doc *D, f func() unit.Span) unit.Span {
	if doc == nil {
		return 0
	}
	return f()
}
