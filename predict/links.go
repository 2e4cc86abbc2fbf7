package predict

import (
	"context"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/result"
)

// AddLinks gives a row how busy every link is.
func (p *Predictor) AddLinks(ctx context.Context, r *Row) (err error) {
	r.Links, err = p.links(ctx, r.operation(), r.setting, r.run)
	return err
}

// links is how busy every link is in a run that Price predicted.
func (p *Predictor) links(ctx context.Context, op coll.Op, s Setting, run *result.Run) ([]result.Links, error) {
	o := p.outline(op, s)
	if o.err != nil {
		return nil, fmt.Errorf("the links of %s over %d ranks cannot be told apart: %w", s.Algo, len(p.Layout), o.err)
	}
	return o.Links(ctx, op, p.model(p.Figures, op, s), p.ports(s.Algo), run)
}
