package predict

import (
	"context"

	"busbar.dev/coll"
	"busbar.dev/result"
)

// Steps is how many ops Simulate runs of a call, each an event of its timeline.
func (p *Predictor) Steps(op coll.Op, s Setting) (int64, error) {
	o := p.outline(op, s)
	if o.err != nil {
		return 0, o.err
	}
	return o.Ops(op, p.model(p.Figures, op, s)), nil
}

// Simulate predicts one call by playing every message, and keeps what every op did.
func (p *Predictor) Simulate(ctx context.Context, op coll.Op, s Setting) (*result.Run, error) {
	o := p.outline(op, s)
	if o.err != nil {
		return nil, o.err
	}
	return o.Exact(ctx, op, p.model(p.Figures, op, s), p.ports(s.Algo), true)
}
