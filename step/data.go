package step

import (
	"busbar/coll"
)

// bucketSize is how much of the gradients travels at once when nobody says: PyTorch's default.
const bucketSize = 25 << 20

// gradients adds what replicas exchange: sums of gradients, and parameters that are divided.
func (p *pricing) gradients(r *Result, x *stage, micros float64) error {
	s := p.j.Split
	if s.DP*s.CP == 1 {
		return nil
	}
	if s.ZeRO == 3 {
		return p.sharded(x, micros)
	}
	return p.replicated(x)
}

// replicated is data parallelism with whole parameters: gradients are summed by bucket, the
// last layer's first, beside the backward pass of the last micro-batch; with ZeRO 1 and 2 each
// rank gets the sum of its share, and new parameters are gathered after the update.
func (p *pricing) replicated(x *stage) error {
	j, s := p.j, p.j.Split
	ready, sizes := p.buckets(x)
	end := x.backward()
	free, total := 0.0, 0.0
	var limit string
	for i := range ready {
		one, text, err := p.bucket(sizes[i])
		if err != nil {
			return err
		}
		start := max(free, ready[i])
		if j.Sync {
			start = max(free, end)
		}
		free = start + one
		total += one
		limit = text
	}
	open := max(0, free-end)
	if !j.Sync { // what runs beside computing slows it a little
		open += p.g.f[Slowdown] * min(total, end)
	}
	p.count(Data, "gradients", sum(sizes)/float64(max(1, len(sizes))), float64(len(sizes)), total/float64(max(1, len(sizes))), open/float64(max(1, len(sizes))), limit)
	if s.ZeRO > 0 {
		bytes := sum(x.params) * j.ParamWidth()
		one, text, err := p.f.Seconds(Shards, coll.AllGather, bytes)
		if err != nil {
			return err
		}
		open := one
		if !j.Sync { // gathered while the first blocks of the next step are computed
			open = max(0, one-x.forward()) + p.g.f[Slowdown]*min(one, x.forward())
		}
		p.count(Shards, "new parameters", bytes, 1, one, open, text)
	}
	return nil
}

// buckets are the gradients of a stage as they travel: when each is full, counted from the
// beginning of the backward pass, and its bytes.
func (p *pricing) buckets(x *stage) (ready, sizes []float64) {
	width := p.j.GradWidth()
	at, held := 0.0, 0.0
	for i := len(x.bwd) - 1; i >= 0; i-- {
		at += x.bwd[i]
		held += x.summed[i] * width
		for held >= bucketSize || i == 0 && held > 0 {
			n := min(held, max(bucketSize, held/8))
			ready, sizes = append(ready, at), append(sizes, n)
			held -= n
		}
	}
	return ready, sizes
}

// bucket is the time of one: among all replicas, or inside the sharding group and then among
// the copies of a share.
func (p *pricing) bucket(bytes float64) (float64, string, error) {
	s := p.j.Split
	switch {
	case s.ZeRO == 0:
		return p.f.Seconds(Data, coll.AllReduce, bytes)
	case s.Shard == s.DP*s.CP:
		return p.f.Seconds(Data, coll.ReduceScatter, bytes)
	}
	one, text, err := p.f.Seconds(Shards, coll.ReduceScatter, bytes)
	if err != nil {
		return 0, "", err
	}
	more, _, err := p.f.Seconds(Copies, coll.AllReduce, bytes/float64(s.Shard))
	return one + more, text, err
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
	open += p.g.f[Slowdown] * min(busy, end)
	bytes := sum(x.params) * j.ParamWidth() / float64(max(1, n))
	p.count(Shards, "parameters and gradients", bytes, 3*float64(n)*micros, busy/(3*float64(n)), open/(3*float64(n)), limit)
	return nil
}

// shares is how long every block's parameters take to gather and its gradients to divide.
func (p *pricing) shares(x *stage) (gather, scatter []float64, limit string, err error) {
	j, s := p.j, p.j.Split
	for _, n := range x.params {
		one, text, err := p.f.Seconds(Shards, coll.AllGather, n*j.ParamWidth())
		if err != nil {
			return nil, nil, "", err
		}
		back, _, err := p.f.Seconds(Shards, coll.ReduceScatter, n*j.GradWidth())
		if err != nil {
			return nil, nil, "", err
		}
		if s.Shard < s.DP*s.CP {
			more, _, err := p.f.Seconds(Copies, coll.AllReduce, n*j.GradWidth()/float64(s.Shard))
			if err != nil {
				return nil, nil, "", err
			}
			back += more
		}
		gather, scatter, limit = append(gather, one), append(scatter, back), text
	}
	return gather, scatter, limit, nil
}

// fsdp plays one micro-batch on two streams: computing, and collectives one after the other
// in the order in which FSDP starts them. A gather starts at the earliest when the block
// before the one before it is done, so that two blocks' parameters are held. see, if there is
// one, is told of everything: f, b of computing, g, s of gathering and dividing.
func fsdp(fwd, bwd, gather, scatter []float64, see func(traffic bool, kind byte, block int, from, took float64)) (end, busy float64) {
	n := len(fwd)
	done := make([]float64, n)
	comm, at := 0.0, 0.0
	move := func(kind byte, block int, earliest, t float64) float64 {
		from := max(comm, earliest)
		if see != nil {
			see(true, kind, block, from, t)
		}
		comm = from + t
		busy += t
		return comm
	}
	compute := func(kind byte, block int, earliest, t float64) {
		from := max(at, earliest)
		if see != nil {
			see(false, kind, block, from, t)
		}
		at = from + t
	}
	for i := range n {
		early := 0.0
		if i >= 2 {
			early = done[i-2]
		}
		compute('f', i, move('g', i, early, gather[i]), fwd[i])
		done[i] = at
	}
	// The last block's parameters are still there.
	back := make([]float64, n+2)
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
// written.
func (p *pricing) optimizer(params float64) float64 {
	s := p.j.Split
	if s.ZeRO > 0 {
		params /= float64(s.Shard)
	}
	return params * p.j.UpdateBytes() / p.g.bandwidth()
}
