package predict

import (
	"context"

	"busbar.dev/result"
)

// Steps is how many ops Simulate runs of a row, each an event of its timeline.
func (p *Predictor) Steps(r *Row) (int64, error) {
	op := r.operation()
	o := p.outline(op, r.setting)
	if o.err != nil {
		return 0, o.err
	}
	return o.Ops(op, p.model(p.Figures, op, r.setting)), nil
}

// Simulate predicts a row again by playing every message, and keeps what every op did.
func (p *Predictor) Simulate(ctx context.Context, r *Row) (*result.Run, error) {
	op := r.operation()
	o := p.outline(op, r.setting)
	if o.err != nil {
		return nil, o.err
	}
	run, err := o.Exact(ctx, op, p.model(p.Figures, op, r.setting), p.ports(r.setting.Algo), true)
	if err == nil {
		run.Op, run.Algo = r.run.Op, r.Algo
	}
	return run, err
}
