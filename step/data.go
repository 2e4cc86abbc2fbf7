package step

import (
	"math"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// gradients adds what replicas exchange: sums of gradients, and parameters that are divided; and
// what goes to the host and back.
func (p *pricing) gradients(x *stage, micros float64) error {
	s := p.j.Split
	if err := p.toHost(x, micros); err != nil {
		return err
	}
	switch {
	case s.DP*s.CP == 1 && p.j.Offload != workload.OffloadParams:
		return nil
	case s.ZeRO == 3 && s.PP == 1 || p.j.Offload == workload.OffloadParams:
		return p.sharded(x, micros)
	}
	return p.replicated(x)
}

// replicated is data parallelism with whole parameters: gradients are summed by bucket, the
// last layer's first, beside the backward pass of the last micro-batch; with ZeRO 1 and 2 each
// rank gets the sum of its share, and new parameters are gathered after the update.
func (p *pricing) replicated(x *stage) error {
	j, s := p.j, p.j.Split
	end := x.backward()
	sync := j.Sync || j.Rack > 0 // the hook of racks holds the backward pass
	var c clock
	var limit string
	bytes, n := unit.Volume(0), 0.0
	var encode, longest unit.Span
	for _, b := range p.buckets(x) {
		one, text, err := p.bucket(b.bytes)
		if err != nil {
			return err
		}
		encode += unit.Span(b.count) * p.encoding(b.bytes)
		c.addBuckets(&b, one, encode, end, sync)
		bytes += unit.Volume(b.count) * b.bytes
		n += b.count
		if t := one * unit.Span(b.count); t > longest {
			longest, limit = t, text
		}
	}
	open := max(encode, c.free-end)
	if !sync { // what runs beside computing slows it a little
		open += p.slowdown() * min(c.busy, end)
	}
	n = max(1, n)
	p.count(Data, "gradients", bytes/unit.Volume(n)*unit.Volume(j.WireWidth())/unit.Volume(j.GradWidth()), n,
		c.busy/unit.Span(n), open/unit.Span(n), limit)
	if s.ZeRO > 0 {
		bytes := unit.Volume(p.trained(x) * j.GatherWidth())
		one, text, err := p.among(Shards, coll.AllGather, bytes)
		if err != nil {
			return err
		}
		open := one
		if !j.Sync && !j.LateGather { // gathered while the first blocks of the next step are computed
			open = max(0, one-x.forward()) + p.slowdown()*min(one, x.forward())
		}
		p.count(Shards, "new parameters", bytes, 1, one, open, text)
	}
	return nil
}

// slowdown is the share that traffic adds to the computing beside it.
func (p *pricing) slowdown() unit.Span { return unit.Span(p.g.f.common(slowdown)) }

// buckets are some of one size that are full at one time, counted from the beginning of the
// backward pass.
type buckets struct {
	ready unit.Span
	bytes unit.Volume
	count float64
}

// clock is the stream of collectives beside computing.
type clock struct{ free, busy unit.Span }

// addBuckets puts buckets on the stream, each taking so long. Encoding is done where gradients are
// computed, and moves all that follows.
func (c *clock) addBuckets(b *buckets, one, encode, end unit.Span, sync bool) (from unit.Span) {
	from = max(c.free, b.ready+encode)
	if sync {
		from = max(c.free, end+encode)
	}
	c.free = from + unit.Span(b.count)*one
	c.busy += unit.Span(b.count) * one
	return from
}

// most is into how many buckets a block is cut: beyond, time is in proportion to bytes,
// and larger ones say the same.
const most = 8.0

// bucketSize is how many bytes travel at once.
func (p *pricing) bucketSize() unit.Volume {
	if p.j.Bucket > 0 {
		return unit.Volume(p.j.Bucket)
	}
	return unit.Volume(workload.DefaultBucket)
}

// buckets are the gradients of a stage as they travel.
func (p *pricing) buckets(x *stage) []buckets {
	width, size := p.j.GradWidth(), p.bucketSize()
	list := make([]buckets, 0, 2*len(x.bwd)+1)
	at, held := unit.Span(0), unit.Volume(0)
	for i := len(x.bwd) - 1; i >= 0; i-- {
		at += x.bwd[i]
		held += unit.Volume(x.summed[i] * width)
		if held >= size {
			each := max(size, held/most)
			n := math.Floor(float64(held/each) + 1e-9)
			list = append(list, buckets{at, each, n})
			held = max(0, held-unit.Volume(n)*each)
		}
		if i == 0 && held > 1 {
			list = append(list, buckets{at, held, 1})
		}
	}
	return list
}

// among is a collective of those that hold the same parameters: of experts' these are fewer, and often on other nodes.
func (p *pricing) among(g Group, kind coll.Kind, bytes unit.Volume) (unit.Span, string, error) {
	experts := bytes * unit.Volume(p.routed)
	one, limit, err := p.f.Time(g, kind, bytes-experts)
	if experts == 0 || err != nil {
		return one, limit, err
	}
	more, text, err := p.f.Time(SameExperts, kind, experts)
	if more > one {
		limit = text
	}
	return one + more, limit, err
}

// bucket is the time of one: among all replicas, or inside the sharding group and then among
// the copies of a share.
func (p *pricing) bucket(bytes unit.Volume) (unit.Span, string, error) {
	s := p.j.Split
	bytes *= unit.Volume(p.j.WireWidth() / p.j.GradWidth())
	switch {
	case p.j.Rack > 0:
		return p.f.TwoPhase(p.j.Rack, bytes)
	case p.j.Compress == workload.WireInt8:
		return p.f.Time(Data, coll.AllGather, bytes*unit.Volume(s.DP*s.CP))
	case s.ZeRO == 0 || p.j.SumsWhole():
		return p.among(Data, coll.AllReduce, bytes)
	case s.Shard == s.DP*s.CP:
		return p.among(Data, coll.ReduceScatter, bytes)
	}
	one, text, err := p.f.Time(Shards, coll.ReduceScatter, bytes)
	if err != nil {
		return 0, "", err
	}
	more, copies, err := p.f.Time(Copies, coll.AllReduce, bytes/unit.Volume(s.Shard))
	if more > one {
		text = copies
	}
	return one + more, text, err
}

// encoding is the time in which the GPU makes gradients of so many bytes smaller and brings
// their sum back.
func (p *pricing) encoding(bytes unit.Volume) unit.Span {
	if !p.j.Compresses() {
		return 0
	}
	s := p.j.Split
	return (bytes / unit.Volume(p.j.GradWidth()) * unit.Volume(p.j.EncodeBytes(s.DP*s.CP))).At(p.g.bandwidth())
}

// sharded is ZeRO 3 and FSDP: every block's parameters are gathered before it is computed,
// forward and backward, one ahead; its gradients are divided after the backward pass.
func (p *pricing) sharded(x *stage, micros float64) error {
	j := p.j
	n := len(x.fwd)
	gather, scatter, limit, err := p.shares(x)
	if err != nil {
		return err
	}
	end, busy := fsdp(x.fwd, x.bwd, gather, scatter, nil)
	open := max(0, end-sum(x.fwd)-sum(x.bwd))
	open += p.slowdown() * min(busy, end)
	divided := sum(x.params)
	if j.LoRA.Frozen() {
		divided = sum(x.summed)
	}
	// of a call on average
	bytes := unit.Volume((2*sum(x.params)*j.GatherWidth() + divided*j.WireWidth()) / 3 / float64(max(1, n)))
	p.count(Shards, "ZeRO/FSDP all-gathers and reduce-scatters", bytes, 3*float64(n)*micros, busy/(3*unit.Span(n)),
		open/(3*unit.Span(n)), limit)
	return nil
}

// shares is how long every block's parameters take to gather and its gradients to divide, and what limits the longest
// call. With parameters in the host's memory a rank's share comes from there first, one block ahead of the gathering,
// and the share of gradients goes there behind it.
func (p *pricing) shares(x *stage) (gather, scatter []unit.Span, limit string, err error) {
	j, s := p.j, p.j.Split
	var longest unit.Span
	of := func(took unit.Span, text string) {
		if took > longest {
			longest, limit = took, text
		}
	}
	for i, all := range x.params {
		one, text, err := p.among(Shards, coll.AllGather, unit.Volume(all*j.GatherWidth()))
		if err != nil {
			return nil, nil, "", err
		}
		of(one, text)
		n := all
		if j.LoRA.Frozen() {
			n = x.summed[i]
		}
		wire := unit.Volume(n * j.WireWidth())
		back, text, err := p.among(Shards, coll.ReduceScatter, wire)
		if err != nil {
			return nil, nil, "", err
		}
		of(back, text)
		if s.Shard < s.DP*s.CP {
			more, text, err := p.f.Time(Copies, coll.AllReduce, wire/unit.Volume(s.Shard))
			if err != nil {
				return nil, nil, "", err
			}
			of(more, text)
			back += more
		}
		back += p.encoding(unit.Volume(n * j.GradWidth()))
		if one, back, err = p.fetched(all, n, one, back); err != nil {
			return nil, nil, "", err
		}
		gather, scatter = append(gather, one), append(scatter, back)
	}
	return gather, scatter, limit, nil
}

// fsdp plays one micro-batch on two streams: computing, and collectives one after the other
// in the order in which FSDP starts them. A gather starts at the earliest when the block
// before the one before it is done, so that two blocks' parameters are held. see, if there is
// one, is called for everything: f, b of computing, g, s of gathering and dividing.
func fsdp(fwd, bwd, gather, scatter []unit.Span,
	see func(traffic bool, kind byte, block int, from, took unit.Span),
) (end, busy unit.Span) {
	n := len(fwd)
	done := make([]unit.Span, n)
	var comm, at unit.Span
	move := func(kind byte, block int, earliest, t unit.Span) unit.Span {
		from := max(comm, earliest)
		if see != nil {
			see(true, kind, block, from, t)
		}
		comm = from + t
		busy += t
		return comm
	}
	compute := func(kind byte, block int, earliest, t unit.Span) {
		from := max(at, earliest)
		if see != nil {
			see(false, kind, block, from, t)
		}
		at = from + t
	}
	for i := range n {
		early := unit.Span(0)
		if i >= 2 {
			early = done[i-2]
		}
		compute('f', i, move('g', i, early, gather[i]), fwd[i])
		done[i] = at
	}
	// The last block's parameters are still there.
	back := make([]unit.Span, n+2)
	back[n], back[n+1] = at, at
	have := at
	for i := n - 1; i >= 0; i-- {
		compute('b', i, have, bwd[i])
		back[i] = at
		if i > 0 { // the next one's parameters come while this one is computed, its gradients go after it
			have = move('g', i-1, back[i+1], gather[i-1])
		}
		move('s', i, at, scatter[i])
	}
	return max(at, comm), busy
}

// optimizer is the update: the state and the gradients read, the state and the parameters
// written, on the GPU or in the host's memory.
func (p *pricing) optimizer(params float64) (unit.Span, error) {
	if p.j.Offloads() {
		h, err := p.f.hostSide()
		if err != nil {
			return 0, err
		}
		return unit.Volume(p.share(params) * workload.HostUpdate).At(h.update), nil
	}
	return unit.Volume(p.share(params) * p.j.UpdateBytes()).At(p.g.bandwidth()), nil
}

// share is how many of a stage's parameters a rank updates.
func (p *pricing) share(params float64) float64 {
	if s := p.j.Split; s.ZeRO > 0 {
		return params / float64(s.Shard)
	}
	return params
}

// trained is how many parameters of a stage are updated: all, or those of adapters.
func (p *pricing) trained(x *stage) float64 {
	if p.j.LoRA.Frozen() {
		return sum(x.summed)
	}
	return sum(x.params)
}
