package predict

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Class is how data moves in a layout, in the words of `busbar calibrate --check`. Predictions of one class tend to be
// wrong by the same amount. On one node it is what joins neighbours: nvlink-single-node (a board of GPUs), nvlink-rack,
// bridge-single-node (cards), pcie-single-node (peer to peer) or host-single-node (through host memory). Several nodes
// have the network's name: multi-node-infiniband, with -staged where host memory is between GPUs and NICs and -cards
// of PCIe cards. GPUs before Ampere and releases before 2.12, of whose hosts and rules less is
// known, have a class of their own: -early.
func (p *Predictor) Class() string {
	if p.early() {
		return p.path() + early
	}
	return p.path()
}

// early tells GPUs before Ampere and releases before 2.12.
func (p *Predictor) early() bool {
	v := p.Plan.Version
	return p.Plan.RCCL == nil && (p.Plan.MinCC < 80 || v.Compare(nccl.Version{Major: 2, Minor: 12}) < 0)
}

// path is how data moves.
func (p *Predictor) path() string {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	m, _ := hardware.GPUByName(t.Devices[p.Layout[0].GPU].Model.Value)
	switch several := len(p.Plan.Nodes) > 1; {
	case p.Plan.RCCL != nil && several:
		return "xgmi-multi-node-" + netName(p.network())
	case p.Plan.RCCL != nil:
		return "xgmi-single-node"
	case several && p.network() != cluster.Ethernet && p.machine.Staged(0):
		return "multi-node-" + netName(p.network()) + staged
	case several && p.Card && m.Form == "card":
		return "multi-node-" + netName(p.network()) + "-cards"
	case several:
		return "multi-node-" + netName(p.network())
	}
	switch hop := p.inner(); {
	case hop == sim.OverPCIe:
		return "pcie-single-node"
	case hop != sim.OverNVLink:
		return "host-single-node"
	case len(p.Layout) > 0 && p.Layout[len(p.Layout)-1].Host != p.Layout[0].Host,
		t.Trays > 1 && len(p.Layout) > t.Count(cluster.GPU)/t.Trays:
		return "nvlink-rack"
	case m.Name != "" && !m.Module():
		return "bridge-single-node"
	}
	return "nvlink-single-node"
}

// staged ends the paths of layouts with host memory between GPUs and NICs, early the classes of old GPUs and releases.
const (
	staged = "-staged"
	early  = "-early"
)

// inner is the slowest kind of way between neighbours on the first node.
func (p *Predictor) inner() sim.Hop {
	if !p.reached {
		p.reach()
	}
	ranks := p.Plan.Nodes[0].Ranks
	if len(p.Plan.Nodes) == 1 {
		ranks = p.Plan.Ring(0)
	}
	slowest := sim.OverNVLink
	for i := range ranks[1:] {
		if p.Layout[ranks[i]].Host == p.Layout[ranks[i+1]].Host {
			slowest = max(slowest, p.machine.Between(ranks[i], ranks[i+1]))
		}
	}
	return slowest
}

// network is the family of the first NIC of the first node.
func (p *Predictor) network() cluster.NetKind {
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	for _, d := range t.Of(cluster.NIC) {
		if k := t.Devices[d].NIC.Kind; k != "" {
			return k
		}
	}
	return p.Cluster.Network.Kind
}

func netName(k cluster.NetKind) string {
	switch k {
	case "":
		return "unknown"
	case cluster.Ethernet:
		return "tcp"
	}
	return string(k)
}

// SizeClass is the size of a message in words, as `busbar calibrate --check` prints it:
// small below 64 KiB, large above 16 MiB, middle between.
func SizeClass(size unit.Bytes) string {
	switch {
	case size < 64*unit.KiB:
		return "small"
	case size > 16*unit.MiB:
		return "large"
	}
	return "middle"
}

// Family is what classes have in common whose predictions tend to be wrong alike: one node with links between its GPUs,
// one of cards, several by RDMA to the GPUs of boards, several by other RDMA, several by a kind of TCP; all of them
// again where they are early.
func Family(class string) string {
	if path, is := strings.CutSuffix(class, early); is {
		return Family(path) + early
	}
	switch {
	case class == "", class == oneThread:
		return class
	case strings.HasPrefix(class, "pcie"), strings.HasPrefix(class, "host"), strings.HasPrefix(class, "bridge"):
		return "cards"
	case !strings.Contains(class, "multi-node"):
		return "one-node"
	case strings.Contains(class, "tcp"):
		return "several-tcp"
	case strings.HasSuffix(class, staged), strings.HasSuffix(class, "-cards"):
		return "several-cards"
	}
	return "several-rdma"
}
