package step

import (
	"cmp"
	"math"

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
	if b.routed == nil || s.EP == 1 && s.ETP == 1 {
		return nil
	}
	whole := unit.Volume(float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP) * float64(b.routed.TopK) * float64(b.routed.In) * j.Precision.Width())
	part := whole
	if s.SeqParallel || j.Kernels == workload.Fused || s.ETP < s.TP {
		part /= unit.Volume(s.TP)
	}
	part *= unit.Volume(p.distinct(b.routed.TopK))
	one, limit, err := p.f.Time(Experts, coll.AllToAll, part)
	if err != nil {
		return err
	}
	shared := unit.Span(0)
	if s.SeqParallel && s.ETP > 1 {
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

// distinct is the share of a token's copies that travel between NVLink domains: one goes to each domain that has experts of
// it, and is copied there (DeepEP, HybridEP and Megatron-Core's flexible dispatcher). Within one domain all copies travel.
func (p *pricing) distinct(topK int64) float64 {
	x, err := p.f.Predictor(Experts)
	if err != nil || x == nil || x.Plan.NNodes < 2 || !p.j.Flex {
		return 1
	}
	n := float64(x.Plan.NNodes)
	return n * (1 - math.Pow(1-1/n, float64(topK))) / float64(topK)
}
