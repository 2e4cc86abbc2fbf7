package step

import (
	"cmp"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// expertTraffic adds the traffic of a mixture of experts: tokens go to the ranks that have their
// experts and come back, forward and backward; products wait for it. Where ranks share an
// expert's matrices too, each gathers what the others were sent, and sums are divided again:
// every token as often as it has experts (Megatron-LM's dispatcher by all-to-all).
func (p *pricing) expertTraffic(x *blockTime, again *unit.Span, b *prepared, times float64) error {
	j, s := p.j, p.j.Split
	topK := b.topK
	if topK == 0 || s.EP == 1 && s.TP == 1 {
		return nil
	}
	whole := unit.Volume(float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP) * float64(topK) * float64(j.Model.Dims.Hidden) * j.Precision.Width())
	part := whole
	if s.SeqParallel || j.Kernels == workload.Fused {
		part /= unit.Volume(s.TP)
	}
	one, limit, err := p.f.Time(Experts, coll.AllToAll, part)
	if err != nil {
		return err
	}
	shared := unit.Span(0)
	if s.SeqParallel && s.TP > 1 {
		gather, _, err := p.f.Time(Tensor, coll.AllGather, whole)
		if err != nil {
			return err
		}
		scatter, text, err := p.f.Time(Tensor, coll.ReduceScatter, whole)
		if err != nil {
			return err
		}
		shared = (gather + scatter) / 2
		limit = cmp.Or(limit, text)
	}
	calls := 4.0 // there and back, forward and backward
	x.fwd += 2 * (one + shared)
	x.bwd += 2 * (one + shared)
	if j.Recompute == workload.Full {
		*again += 2 * (one + shared)
		calls += 2
	}
	p.count(Experts, "expert-parallel all-to-all", part, calls*times, one+shared, one+shared, limit)
	return nil
}
