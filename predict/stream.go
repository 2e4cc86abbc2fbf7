package predict

import (
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Stream is a transfer by RDMA from the memory of a host to that of another, as perftest's programs make it: no GPU
// takes part.
type Stream struct {
	Net   cluster.NetKind
	Port  unit.Rate // of the link
	Slot  unit.Rate // of PCIe, 0 unknown
	Bytes unit.Bytes
}

// Rate predicts a stream by the figures that predictions of collectives have for ports and slots, calibrated where the
// cluster is; c may be nil. The margin is that of collectives over RDMA of any kind, or over
// sockets: who names a port by it wants to be sure.
func (s Stream) Rate(c *cluster.Cluster) (r unit.Rate, margin float64, err error) {
	if c == nil {
		c = &cluster.Cluster{}
	}
	f, err := Figures(c)
	if err != nil {
		return 0, 0, err
	}
	class := "multi-node-" + netName(s.Net)
	op := coll.Op{Kind: coll.SendRecv, Bytes: s.Bytes, Type: coll.Uint8}
	// shares of ports and slots are those of all generations
	m := f.NCCLModel(sim.Setup{Gen: sim.Hopper, Kind: op.Kind, Algo: "direct", Proto: sim.Simple})
	return m.Stream(s.Port, s.Slot, s.Net), barOf(FamilyBar(barName(class, op.Bytes))).Factor, nil
}
