package predict

import "busbar.dev/sim"

// ports are the NICs that NCCL's channels use.
func (p *Predictor) ports(algo string) sim.Ports {
	if len(p.Plan.Nodes) < 2 || p.large() {
		return nil
	}
	switch algo {
	case "ring", "chain":
		return ringPorts{p}
	case "tree":
		return treePorts{p}
	case "direct":
		// every GPU sends by its own NIC: NCCL goes over peers by NVLink, RCCL only from 32 or 64 ranks on
		if p.Plan.RCCL != nil || p.Card {
			return nil
		}
		return railPorts{p}
	}
	return nil
}

// ringPorts are the NICs at the ends of a node's part of a ring. Channels beyond
// those of the plan are its rings over again.
type ringPorts struct{ p *Predictor }

func (x ringPorts) Out(rank, _, channel int) int {
	return x.p.Plan.Devices(int(x.p.nodeOf[rank]), channel%x.p.Plan.Count())[1]
}

func (x ringPorts) In(rank, _, channel int) int {
	return x.p.Plan.Devices(int(x.p.nodeOf[rank]), channel%x.p.Plan.Count())[0]
}

func (x ringPorts) Turns() int { return x.p.Plan.Period() }

// treePorts are the NICs of the tree's search: the first of a channel where the
// rank is first in its order, else the second.
type treePorts struct{ p *Predictor }

func (x treePorts) Out(rank, _, channel int) int {
	n := &x.p.Plan.Nodes[x.p.nodeOf[rank]]
	g := &n.View.Graphs.Tree
	if len(g.Inter) == 0 || len(g.Intra) == 0 {
		return -1
	}
	c := channel % len(g.Inter)
	end := 1
	if at := g.Intra[c]; len(at) > 0 && at[0] < len(n.Ranks) && n.Ranks[at[0]] == rank {
		end = 0
	}
	nic := g.Inter[c][end]
	if nic < 0 || nic >= len(n.View.NICs) {
		return -1
	}
	return n.View.NICs[nic]
}

func (x treePorts) In(rank, peer, channel int) int { return x.Out(rank, peer, channel) }

func (x treePorts) Turns() int {
	turns := max(1, len(x.p.Plan.Nodes[0].View.Graphs.Tree.Inter))
	for i := range x.p.Plan.Nodes {
		if max(1, len(x.p.Plan.Nodes[i].View.Graphs.Tree.Inter)) != turns {
			return maxChannels * maxChannels // no two channels are known to be alike
		}
	}
	return turns
}

// railPorts are those of sends and receives: a sender takes the NIC of the rail
// that the receiver is on, over the GPU beside it.
type railPorts struct{ p *Predictor }

func (x railPorts) Out(rank, peer, channel int) int {
	mine, its := &x.p.Plan.Nodes[x.p.nodeOf[rank]], &x.p.Plan.Nodes[x.p.nodeOf[peer]]
	if mine.View != its.View || x.p.Plan.Env["NCCL_P2P_PXN_LEVEL"] == "0" {
		return -1
	}
	for i, r := range its.Ranks {
		if r == peer && i < len(mine.Ranks) {
			return x.p.machine.NearNIC(mine.Ranks[i], channel)
		}
	}
	return -1
}

func (x railPorts) In(rank, _, channel int) int { return x.p.machine.NearNIC(rank, channel) }

func (x railPorts) Turns() int { return 1 } // the nearest NICs
