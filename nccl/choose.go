package nccl

import "fmt"

// Call is a collective call to choose for.
type Call struct {
	Op Op
	// Bytes is the size as NCCL's model and nccl-tests count it: for AllGather and
	// ReduceScatter the total over ranks, else the buffer.
	Bytes int64
	// NoNVLS marks a datatype or operation that the switches cannot reduce (8-bit
	// types, products).
	NoNVLS bool
	// FP8 marks an 8-bit floating point type, which long rings lose precision on.
	FP8 bool
	// Scaled marks an average or a pre-multiplied sum, which PAT cannot scatter.
	Scaled bool
	// Group is the number of equal calls in one group; 0 means 1.
	Group int
}

// Choice is what NCCL would take.
type Choice struct {
	Algo     Algo
	Proto    Proto
	Channels int     // that carry data
	Threads  int     // per block
	Time     float32 // µs, by NCCL's own model
}

// Candidate is one combination and the time NCCL expects.
type Candidate struct {
	Algo  Algo
	Proto Proto
	Time  float32 // µs
}

// Time is what NCCL expects of a combination, in µs; false where it is not used.
func (t *Table) Time(call Call, a Algo, p Proto) (float32, bool) {
	e := t.Est[call.Op][a][p]
	if e.BW == 0 {
		return 0, false
	}
	c, r := t.comm, t.comm.rules
	if c.RCCL != nil {
		return t.timeRCCL(call, a, p), true
	}
	bw, lat := e.BW, e.Latency
	k := -1
	if s := call.Bytes >> 6; s > 0 {
		k = log2(int(s))
	} else if r.TinyCorrected {
		k = 0
	}
	if a == Tree && k >= 0 && k < 23 && (call.Op == AllReduce || r.TreeAnyOp) {
		bw *= r.TreeCorrection[p][k]
	}
	if a == NVLSTree && r.NVLSTreeCorrected && call.Op == AllReduce && k >= 0 && k < 24 && c.MinCC >= 100 &&
		c.Arch == ArchX86 {
		bw *= r.TreeCorrection[p][k]
	}
	if a == Ring && p == Simple && c.NNodes > 1 && call.Op == AllReduce {
		lat = float32(float64(lat) * t.plateau(call.Bytes))
	}
	pipe := divUp(max(call.Group, 1), max(c.Channels, 1))
	if a != Ring {
		pipe = divUp(pipe, r.Batch)
	}
	us := lat*float32(pipe) + float32(call.Bytes)/(1000*bw)
	if call.FP8 && a == Ring && c.NRanks > 8 && r.FP8Rings {
		us *= 1024
	}
	return us, true
}

// plateau is how much longer than a ring's steps its latency is once every rank has something to send in each.
func (t *Table) plateau(bytes int64) float64 {
	c := t.comm
	long := bytes/int64(max(c.Channels*c.NRanks, 1)) >= 64
	if c.rules.PlateauByRank {
		long = float64(bytes) >= float64(c.NRanks)/16*65536
	}
	if !long {
		return 1
	}
	return c.rules.Plateau[archOf(c.MinCC)]
}

// Candidates lists the combinations NCCL weighs, in its order.
func (t *Table) Candidates(call Call) []Candidate {
	var all []Candidate
	c := t.comm
	if c.NRanks <= 1 {
		return []Candidate{{Ring, Simple, 0}}
	}
	for a := range Algo(c.rules.Algos) {
		if !t.allowed(call, a) {
			continue
		}
		for p := range Proto(nProtos) {
			if us, ok := t.Time(call, a, p); ok {
				all = append(all, Candidate{a, p, us})
			}
		}
	}
	return all
}

// allowed are the gates that depend on the call.
func (t *Table) allowed(call Call, a Algo) bool {
	c := t.comm
	const directRanks, nvlsRanks = 8, 32
	switch a {
	case CollNetDirect, CollNetChain:
		return c.CollNet && c.MaxLocalRanks <= directRanks
	case NVLS, NVLSTree:
		if c.NVLSChannels == 0 || call.NoNVLS && call.Op != AllGather {
			return false
		}
		return (call.Op == AllReduce || c.MaxLocalRanks <= nvlsRanks) && (a == NVLSTree || c.NNodes == 1 || c.CollNet)
	case PAT:
		return !(call.Op == ReduceScatter && call.Scaled)
	}
	return true
}

// Choose takes the combination of least time; among equals the first.
func (t *Table) Choose(call Call) (Choice, error) {
	best := Candidate{Time: -1}
	for _, x := range t.Candidates(call) {
		if best.Time < 0 || x.Time < best.Time {
			best = x
		}
	}
	if best.Time < 0 {
		return Choice{},
			fmt.Errorf("no algorithm and protocol is left for %s; NCCL_ALGO and NCCL_PROTO exclude them all", call.Op)
	}
	if t.comm.RCCL != nil {
		best = t.override(call, best)
	}
	ch := Choice{Algo: best.Algo, Proto: best.Proto, Time: best.Time}
	most, threads := t.width(call, best.Algo, best.Proto)
	ch.Threads = threads
	ch.Channels = t.spread(call, best.Algo, best.Proto, most)
	return ch, nil
}

func divUp(a, b int) int { return (a + b - 1) / b }
