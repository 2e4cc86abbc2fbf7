package step

import (
	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// contextTraffic adds the traffic of ranks that share sequences.
func (p *pricing) contextTraffic(x *blockTime, again *unit.Span, b *prepared, times float64) error {
	j, s := p.j, p.j.Split
	if s.CP == 1 {
		return nil
	}
	tokens := float64(j.MicroBatch) * float64(j.Seq) / float64(s.CP)
	kv := unit.Volume(2 * tokens * float64(j.Model.KVWidth()) / float64(s.TP) * j.Precision.Width())
	switch j.Context {
	case workload.Gather:
		return p.gathered(x, again, kv*unit.Volume(s.CP), times)
	case workload.Ulysses:
		heads := unit.Volume(2 * tokens * float64(j.Model.Dims.Hidden) / float64(s.TP) * j.Precision.Width())
		return p.exchanged(x, again, kv+heads, times)
	}
	return p.ring(x, b, kv, times)
}

// ring is blocks of keys and values that travel round while attention is computed with those
// that are there.
func (p *pricing) ring(x *blockTime, b *prepared, bytes unit.Volume, times float64) error {
	cp := unit.Span(p.j.Split.CP)
	one, limit, err := p.f.Time(Context, coll.SendRecv, bytes)
	if err != nil {
		return err
	}
	one *= cp - 1
	score := unit.Span(0)
	for i := range b.pass.Forward {
		if t := &b.pass.Forward[i]; t.Kind == workload.Score || t.Name == "scores" {
			score += p.g.Time(t, p.j.Precision)
		}
	}
	open := max(0, one-score*(cp-1)/cp)
	x.fwd += open
	x.bwd += open
	p.count(Context, "context-parallel keys and values", bytes, 2*times*float64(cp-1), one/(cp-1), open/(cp-1), limit)
	return nil
}

// gathered is all keys and values before attention, forward and backward, and their gradients
// divided after it; attention waits.
func (p *pricing) gathered(x *blockTime, again *unit.Span, bytes unit.Volume, times float64) error {
	gather, limit, err := p.f.Time(Context, coll.AllGather, bytes)
	if err != nil {
		return err
	}
	scatter, _, err := p.f.Time(Context, coll.ReduceScatter, bytes)
	if err != nil {
		return err
	}
	n := unit.Span(p.j.Repeats())
	x.fwd += gather
	x.bwd += gather + scatter
	*again += n * gather
	each := ((2+n)*gather + scatter) / (3 + n)
	p.count(Context, "context-parallel keys and values", bytes, float64(3+n)*times, each, each, limit)
	return nil
}

// exchanged is context-parallel all-to-all (Ulysses): queries, keys and values before attention and its
// output after it, and their gradients; attention waits.
func (p *pricing) exchanged(x *blockTime, again *unit.Span, bytes unit.Volume, times float64) error {
	one, limit, err := p.f.Time(Context, coll.AllToAll, bytes)
	if err != nil {
		return err
	}
	n := p.j.Repeats()
	x.fwd += one
	x.bwd += one
	*again += unit.Span(n) * one
	p.count(Context, "context-parallel all-to-all (Ulysses)", bytes, float64(2+n)*times, one, one, limit)
	return nil
}
