package step

import (
	"cmp"
	"math"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// expertTraffic adds the traffic of a mixture of experts: tokens go to the ranks that have their experts and come back,
// forward and backward; products wait for it, where the host is not behind anyway. Where ranks share an expert's
// matrices too, each gathers what the others were sent, and sums are divided again: every token as often as it has
// experts (Megatron-LM's dispatcher by all-to-all).
func (p *pricing) expertTraffic(x *blockTime, again *unit.Span, b *prepared, times float64) error {
	j, s := p.j, p.j.Split
	s.ETP = s.ExpertTensor()
	if b.routed == nil || s.EP == 1 && s.ETP == 1 {
		return nil
	}
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	whole := unit.Volume(tokens * float64(b.routed.TopK) * float64(b.routed.In) * j.Precision.Width())
	part := whole
	if s.SeqParallel || j.Kernels == workload.Fused || s.ETP < s.TP {
		part /= unit.Volume(s.TP)
		tokens /= float64(s.TP)
	}
	there, back, limit, err := p.exchange(b.routed, tokens, part)
	if err != nil {
		return err
	}
	one := (there + back) / 2
	if s.SeqParallel && s.ETP > 1 {
		gather, _, err := p.f.Time(Tensor, coll.AllGather, whole)
		if err != nil {
			return err
		}
		scatter, text, err := p.f.Time(Tensor, coll.ReduceScatter, whole)
		if err != nil {
			return err
		}
		one += (gather + scatter) / 2
		limit = cmp.Or(limit, text)
	}
	open := p.exposed(one, x)
	n := unit.Span(j.Repeats())
	calls, all := 4+2*n, unit.Span(0) // that is waited for
	for i, to := range []*unit.Span{&x.fwd, &x.bwd, again} {
		wait := max(0, []unit.Span{2, 2, 2 * n}[i]*open-x.behind[i])
		*to, all = *to+wait, all+wait
	}
	p.count(Experts, "expert-parallel all-to-all", part, float64(calls)*times, one, all/calls, limit)
	return nil
}

// exchange is the time of tokens to their experts and back: by kernels that send a token once to a node, by
// all-to-all, or to all ranks.
func (p *pricing) exchange(routed *workload.Part, tokens float64,
	bytes unit.Volume,
) (there, back unit.Span, limit string, err error) {
	switch p.j.Recipe.Dispatcher {
	case workload.AllGather:
		all := unit.Volume(tokens * float64(routed.In) * p.j.Precision.Width() * float64(p.j.Split.EP))
		if there, _, err = p.f.Time(Experts, coll.AllGather, all); err == nil {
			back, limit, err = p.f.Time(Experts, coll.ReduceScatter, all)
		}
		return there, back, limit, err
	case workload.DeepEP, workload.HybridEP:
		d := p.j.Model.Detailed()
		call := predict.ExpertCall{
			Tokens: max(1, int(tokens)), Hidden: int(routed.In), TopK: int(routed.TopK), Experts: int(routed.Experts), Width: 2,
			SMs:    movers(p.j.Recipe.Dispatcher),
			Groups: int(d.GroupTopK),
		}
		there, limit, err = p.f.exchange(call, int(d.Groups))
		if err == nil {
			call.Combine = true
			back, _, err = p.f.exchange(call, int(d.Groups))
		}
		if err == nil {
			return there, back, limit, nil
		} // GPUs without links, or experts that ranks do not share evenly
	}
	one, limit, err := p.f.Time(Experts, coll.AllToAll, bytes)
	return one, one, limit, err
}

// movers is how many multiprocessors' worth of DeepEP's kernels move tokens: its 20, and twice as much by
// HybridEP, whose copies the memory engines do (NVIDIA 2025, Optimizing Communication for Mixture-of-Experts Training
// with Hybrid Expert Parallel).
func movers(d workload.Dispatcher) int {
	if d == workload.HybridEP {
		return 40
	}
	return 20
}

// expertsHidden is what of an exchange is hidden where it runs beside another micro-batch's passes, whose memory and
// multiprocessors it shares: NVIDIA names 37% of communication (NVIDIA-NeMo/Megatron-Bridge skills, moe-comm-overlap);
// this was chosen by the errors of runs with experts, whose hosts are hidden too.
const expertsHidden = 0.6

// exposed is what of an exchange computing waits for. Beside another micro-batch's passes it runs where recipes say so
// (Megatron-Core's overlap_moe_expert_parallel_comm), which a pipeline has with chunks alone.
func (p *pricing) exposed(one unit.Span, x *blockTime) unit.Span {
	if s := p.j.Split; !p.j.Recipe.Overlap || p.j.Recompute == workload.Full || s.PP > 1 && s.Chunks < 2 {
		return one
	}
	return max((1-expertsHidden)*one, one-(x.fwd+x.bwd)/4)
}

// exchangeKey is an exchange of tokens among the ranks of a pattern.
type exchangeKey struct {
	pattern
	predict.ExpertCall
}

// exchange is the time of tokens on their way to experts, or back, by kernels written for it, and what limits it. Where
// experts are in groups of which a token passes few, a group is on one node or on several.
func (f *Fabric) exchange(x predict.ExpertCall, groups int) (unit.Span, string, error) {
	key := exchangeKey{f.pattern(Experts), x}
	f.cache.mu.Lock()
	t, ok := f.cache.exchanges[key]
	f.cache.mu.Unlock()
	if ok {
		return t.time, t.limit, nil
	}
	o := f.cache.predictorOf(key.pattern)
	o.mu.Lock()
	defer o.mu.Unlock()
	p, err := f.predictor(Experts, o)
	if err != nil {
		return 0, "", err
	}
	x.Groups *= max(1, len(p.Plan.Nodes)/max(1, groups))
	took, err := p.Experts(x)
	if err != nil {
		return 0, "", err
	}
	t = cost{took.Time.Span(), took.Limit}
	if math.IsNaN(float64(t.time)) || t.time < 0 {
		t.time = 0
	}
	f.cache.mu.Lock()
	f.cache.exchanges[key] = t
	f.cache.mu.Unlock()
	return t.time, t.limit, nil
}
