package coll

import "busbar.dev/unit"

// BusFactor is what nccl-tests multiplies algbw with to get busbw: the share of the
// data that must cross the busiest link of a bandwidth-optimal algorithm, so that busbw
// can be compared with a link's rate whatever the collective and the number of ranks.
func (k Kind) BusFactor(n int) float64 {
	if n < 1 {
		return 0
	}
	f := float64(n)
	switch k {
	case AllReduce:
		return 2 * (f - 1) / f
	case ReduceScatter, AllGather, AllToAll, AllToAllV, Gather, Scatter:
		return (f - 1) / f
	case Broadcast, Reduce, SendRecv, Hypercube:
		return 1
	}
	return 0 // a barrier moves nothing
}

// AlgBytes is what nccl-tests divides by the time to get algbw. It is the size
// column, except that hypercube leaves out the rank's own block (and therefore has the
// factor 1 where all_gather has (n-1)/n: their busbw is the same).
func (o Op) AlgBytes(n int) unit.Bytes {
	if o.Kind == Hypercube {
		return unit.Bytes(n-1) * o.Block(n)
	}
	return o.Size(n)
}

// AlgBW is the algorithm bandwidth of a call that took t. No time, no bandwidth.
func (o Op) AlgBW(n int, t unit.Time) unit.Rate {
	if t <= 0 {
		return 0
	}
	return unit.Rate(float64(o.AlgBytes(n)) / (float64(t) / float64(unit.Second)))
}

// BusBW is the bus bandwidth of a call that took t.
func (o Op) BusBW(n int, t unit.Time) unit.Rate {
	return o.AlgBW(n, t) * unit.Rate(o.Kind.BusFactor(n))
}
