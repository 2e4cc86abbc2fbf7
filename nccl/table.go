package nccl

// Estimate is NCCL's belief about one combination: a latency in µs and an
// algorithm bandwidth in GB/s, 0 where the combination is not used.
type Estimate struct{ Latency, BW float32 }

// Table is what NCCL computes once per communicator: an estimate for every
// collective, algorithm and protocol.
type Table struct {
	Est [nOps][nAlgos][nProtos]Estimate
	// Threads is the most threads a block has; 0 where none are set.
	Threads [nAlgos][nProtos]int
	// PerThread is how many bytes make a thread worth its while.
	PerThread [nAlgos][nProtos]int

	comm *Comm
}

// NewTable computes the model for a communicator whose nodes agreed on graphs. An
// error says which setting NCCL would refuse.
func NewTable(c *Comm, g *Graphs) (*Table, error) {
	c.rules = c.Version.rules()
	t := &Table{comm: c}
	t.threads(c, g)
	if c.NRanks <= 1 {
		return t, nil
	}
	m := model{Comm: c, g: g}
	if c.RCCL != nil {
		t.estimateRCCL(m)
		return t, t.gate(c, g)
	}
	for op := range Op(nOps) {
		for a := range Algo(c.rules.Algos) {
			for p := range Proto(nProtos) {
				if m.modelled(op, a, p) {
					t.Est[op][a][p] = Estimate{m.latency(op, a, p), m.bandwidth(op, a, p)}
				}
			}
		}
	}
	return t, t.gate(c, g)
}

// model is what the formulas work with.
type model struct {
	*Comm
	g *Graphs
}

// hw is the latency of a step; on POWER trees in PCIe are as slow as rings.
func (m *model) hw(hw int, a Algo, p Proto) float64 {
	if m.Arch == ArchPower && hw == hwPCI && a == Tree && p == Simple {
		a = Ring
	}
	return m.rules.HW[hw][a][p]
}

// modelled reports whether the release computes a combination at all; the others
// print as zeros (NCCL 2.28 src/graph/tuning.cc, ncclTopoTuneModel).
func (m *model) modelled(op Op, a Algo, p Proto) bool {
	r := m.rules
	switch op {
	case Broadcast, Reduce:
		return a == Ring
	case AllGather, ReduceScatter:
		ok := a == Ring || a == NVLS && r.NVLSGather || a == CollNetDirect && r.DirectGather ||
			a == PAT && p == Simple && m.pat()
		if !ok {
			return false
		}
	case AllReduce:
		if a == PAT {
			return false
		}
	}
	if a == NVLS && r.NVLSLeast == 0 || a == NVLSTree && !r.NVLSTrees {
		return false
	}
	if a == NVLS || a == NVLSTree {
		return p == Simple && !(r.NVLSModel && m.g.NVLS.NChannels < 2)
	}
	return true
}

// pat reports whether PAT is on: one rank per node unless the user says otherwise
// (NCCL 2.28 src/graph/tuning.cc, ncclPatEnable).
func (m *model) pat() bool {
	if m.MinCC < m.rules.PATLeast {
		return false
	}
	if n, ok := envInt(m.Env, "NCCL_PAT_ENABLE"); ok && n != 2 {
		return n != 0
	}
	return m.NNodes == m.NRanks
}

// steps is how many steps a ring takes.
func (m *model) steps(op Op) int {
	switch op {
	case AllReduce:
		return 2 * (m.NRanks - 1)
	case AllGather, ReduceScatter:
		return m.NRanks - 1
	}
	return m.NRanks
}
