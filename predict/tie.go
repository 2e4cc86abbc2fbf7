package predict

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Near is how close the estimates of two ways must be, by NCCL's own model, for another release to take the other one;
// beside is how much more a bar has that holds both.
const (
	near   = 1.1
	beside = 1.05
)

// Tie is the error bar that holds what NCCL would take by its own estimates and the runner-up, where the release is a
// guess and the two are near each other; 1 elsewhere.
func (p *Predictor) Tie(op coll.Op, s Setting, taken unit.Time) float64 {
	if !p.Unsure || taken <= 0 || len(p.Layout) < 2 {
		return 1
	}
	call, ok := callOf(op)
	if !ok {
		return 1
	}
	list := p.Plan.Candidates(call)
	least := float32(0)
	for i, c := range list {
		if i == 0 || c.Time < least {
			least = c.Time
		}
	}
	factor := 1.0
	for _, c := range list {
		other := Setting{Algo: algoName(c.Algo, op.Kind), Proto: c.Proto.String(), Channels: s.Channels}
		if c.Time > near*least || other == s {
			continue
		}
		o := p.outline(op, other)
		if o.err != nil || !o.Regular() {
			continue
		}
		if t := o.Time(op, p.model(p.Figures, op, other)); t > 0 {
			r := float64(t) / float64(taken)
			factor = max(factor, beside*r, beside/r)
		}
	}
	return min(factor, widest)
}

// widest is the widest bar that is made of errors on machines that were left out; see package calibrate.
const widest = 3.0
