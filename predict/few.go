package predict

import (
	"math/bits"

	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// mostCounted is how many ranks an algorithm whose rounds differ is counted over at most where there
// are more than can be counted at once.
const mostCounted = 512

// extrapolate prices such an algorithm (PAT) over so many ranks on the first of them: every rank sends and
// receives the same amount whatever their number, at the same rate, and each doubling of it is one more
// round, which takes what rounds take where there is nothing to move.
func (p *Predictor) extrapolate(op coll.Op, s Setting, why error) (*result.Run, error) {
	n := len(p.Layout)
	for k := mostCounted; k >= 64; k /= 2 {
		if k >= n {
			continue
		}
		q, err := p.first(k)
		if err != nil {
			return nil, err
		}
		tiny := op
		tiny.Bytes = unit.Bytes(k * op.Type.Size())
		wait, err := q.Price(tiny, s)
		if err != nil {
			continue // too many still, by its channels
		}
		share := op
		share.Bytes = unit.Bytes(float64(op.Bytes) * (float64(n-1) / float64(n)) / (float64(k-1) / float64(k)))
		run, err := q.Price(share, s)
		if err != nil {
			return nil, err
		}
		rounds := func(n int) unit.Time { return unit.Time(bits.Len(uint(n - 1))) }
		more := (rounds(n) - rounds(k)) * ((wait.Time - wait.Parts.Launch) / rounds(k))
		run.Op, run.Ranks, run.Margin = op, n, p.Margin(op)
		run.Time += more
		run.Parts.Latency += more
		return run, nil
	}
	return nil, why
}

// first is a predictor of the first k ranks, with as many of those beside them.
func (p *Predictor) first(k int) (*Predictor, error) {
	if q := p.smaller[k]; q != nil {
		return q, nil
	}
	q, err := New(p.Cluster, p.Layout[:k], p.Plan.Version, p.env, p.Figures)
	if err != nil {
		return nil, err
	}
	var beside []nccl.Layout
	for _, l := range p.beside {
		beside = append(beside, l[:min(k, len(l))])
	}
	if err := q.RunConcurrently(beside); err != nil {
		return nil, err
	}
	if p.smaller == nil {
		p.smaller = map[int]*Predictor{}
	}
	p.smaller[k] = q
	return q, nil
}
