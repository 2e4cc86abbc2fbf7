package nccl

import "strings"

// rcclModelled is RCCL's arithmetic for one communicator (RCCL 2.21 src/graph/tuning.cc, ncclTopoTuneModel).
type rcclModelled struct {
	model
	t *rcclTuning
}

// estimateRCCL fills the table.
func (t *Table) estimateRCCL(m model) {
	x := rcclModelled{m, m.RCCL.tuningOf(m.Version)}
	for op := range Op(nOps) {
		for _, a := range []Algo{Tree, Ring} {
			for p := range Proto(nProtos) {
				alone := m.NNodes == 1 && m.RCCL.cdna3() && a == Tree && p == Simple
				if a == Tree && op != AllReduce || alone {
					continue
				}
				t.Est[op][a][p] = Estimate{x.latency(op, a, p), x.bandwidth(op, a, p)}
			}
		}
	}
}

func (x *rcclModelled) bandwidth(op Op, a Algo, p Proto) float32 {
	g := x.g.of(a)
	bw := g.BwInter
	if x.NNodes <= 2 {
		bw = g.BwIntra
	}
	bus := float32(g.NChannels) * bw
	if x.RCCL.BaseBw > 0 {
		bus = x.RCCL.BaseBw
	}
	bus *= float32(x.t.ratio[bit(x.NNodes > 2)][a][p])
	if a == Tree {
		return bus * .5
	}
	if p == LL && (op == Broadcast || op == Reduce) && x.RCCL.cdna3() && x.NNodes == 1 {
		bus = float32(float64(bus) * 1.65)
	}
	return bus * float32(float64(x.NRanks)/float64(x.steps(op)))
}

func (x *rcclModelled) latency(op Op, a Algo, p Proto) float32 {
	g := x.g.of(a)
	inside := float32(x.t.intra[a][p])
	if g.TypeIntra != PathNVL {
		inside = float32(rcclPCI[p])
	}
	across, lat := float32(x.t.net[a][p]), float32(rcclBase[p])
	if a == Tree {
		return lat + 2*(float32(x.NRanks/x.NNodes-1)*inside+float32(log2(x.NNodes))*across)
	}
	steps := x.steps(op)
	if op == Reduce || op == Broadcast {
		each := inside
		if x.NNodes > 1 {
			each = across
		}
		if g.SameChannels {
			return lat + each
		}
		if p == Simple {
			each = x.treeStep(g, p)
		}
		return lat + float32(steps)*each
	}
	if x.NNodes > 1 {
		inside = max(inside, x.overhead(p))
	}
	between := x.NNodes - 1
	if op == AllReduce && x.NNodes > 1 {
		between = 2 * x.NNodes
		if x.Version.From(26) {
			between = 2 * (x.NNodes - 1)
		}
	}
	return lat + float32(steps-between)*inside + float32(between)*across
}

// treeStep is a step of a tree, by which rings of different orders are counted.
func (x *rcclModelled) treeStep(g *Graph, p Proto) float32 {
	switch {
	case x.NNodes > 1:
		return float32(x.t.net[Tree][p])
	case g.TypeIntra == PathNVL:
		return float32(x.t.intra[Tree][p])
	}
	return float32(rcclPCI[p])
}

// overhead is that of a step of a ring which goes over a network somewhere.
func (x *rcclModelled) overhead(p Proto) float32 {
	us := float32(1)
	if x.Arch == ArchX86 && x.Vendor == AMD {
		us = 2
	}
	if p == Simple {
		us *= 3
	}
	return us
}

// timeRCCL is what RCCL expects of a combination.
func (t *Table) timeRCCL(call Call, a Algo, p Proto) float32 {
	c, e := t.comm, t.Est[call.Op][a][p]
	bw := e.BW
	k := min(log2(int(call.Bytes>>6)), rcclSizes-1)
	if a == Tree || c.NNodes > 1 {
		bw *= c.RCCL.tuningOf(c.Version).factor[a][p][k]
	}
	pipe := max(call.Group, 1)
	if a != Ring {
		pipe = divUp(pipe, c.Version.batch())
	}
	return e.Latency*float32(pipe) + float32(call.Bytes)/(1000*bw)
}

// ll128RCCL is RCCL's gate for LL128: on gfx90a, and on MI300X and later since 2.26, where the model says so.
func (c *Comm) ll128RCCL(g *Graph) bool {
	r := c.RCCL
	return (r.Arch == "gfx90a" || c.Version.From(26)) && r.LL128 && g.TypeInter <= PathPXB && g.TypeIntra <= PathNVL
}

// protoRange is the sizes, per rank but of all-reduce, up to which LL and LL128 are taken between nodes.
type protoRange struct{ ll, least128, ll128 int64 }

// rcclRanges override the choice of a protocol since 2.26 (RCCL 2.28 src/rccl_wrap.cc), by table of figures.
var rcclRanges = map[int][nOps]protoRange{
	5: {
		ReduceScatter: {655360, 131072, 3211264}, AllGather: {98304, 98304, 5046272}, AllReduce: {524288, 524288, 4415057},
		Reduce: {4096, 4096, 16777216}, Broadcast: {8192, 8192, 33554432},
	},
	6: {
		ReduceScatter: {65536, 65536, 8388608}, AllGather: {65536, 65536, 8388608}, AllReduce: {262144, 262144, 70640910},
		Reduce: {16383, 16383, 16777216}, Broadcast: {2048, 2048, 16777216},
	},
}

// override is the protocol that RCCL takes whatever its table says: by size, where the user left it open.
func (t *Table) override(call Call, ch Candidate) Candidate {
	c := t.comm
	if _, set := c.Env["NCCL_PROTO"]; set || !c.Version.From(26) || ch.Algo != Ring && ch.Algo != Tree {
		return ch
	}
	size := call.Bytes
	if call.Op != AllReduce {
		size /= int64(max(c.NRanks, 1))
	}
	want := ch.Proto
	if c.NNodes == 1 {
		gfx950 := strings.HasPrefix(c.RCCL.Arch, "gfx95")
		switch {
		case gfx950 && (call.Op == AllGather && size <= 88448 || call.Op == ReduceScatter && size <= 1<<20),
			c.RCCL.cdna3() && call.Op == ReduceScatter && size <= 352128:
			want = LL
		}
	} else if r, ok := rcclRanges[c.RCCL.Tuning]; ok {
		want = r[call.Op].proto(size, call.Op == AllReduce && c.NNodes > 2, t.Est[call.Op][ch.Algo][LL128].BW > 0)
	}
	if us, ok := t.Time(call, ch.Algo, want); ok {
		ch.Proto, ch.Time = want, us
	}
	return ch
}

// proto is the protocol of a size.
func (r protoRange) proto(size int64, many, ll128 bool) Proto {
	most := r.ll128
	if many {
		most = int64(float64(most) * 3.8)
	}
	switch {
	case ll128 && size > r.least128 && size <= most:
		return LL128
	case size <= r.ll:
		return LL
	}
	return Simple
}
