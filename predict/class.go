package predict

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Class is the kind of hardware and network that a prediction is about, in the
// words of `busbar calibrate --check`: nvlink-single-node, pcie-single-node, nvlink-rack,
// multi-node-infiniband, …. Predictions of one class tend to be wrong by the same
// amount.
func (p *Predictor) Class() string {
	if p.Plan.RCCL != nil {
		if len(p.Plan.Nodes) > 1 {
			return "xgmi-multi-node-" + netName(p.network())
		}
		return "xgmi-single-node"
	}
	if len(p.Plan.Nodes) > 1 {
		return "multi-node-" + netName(p.network())
	}
	hosts := map[int]bool{}
	for _, r := range p.Layout {
		hosts[r.Host] = true
	}
	t := p.Cluster.TypeOf(p.Layout[0].Host)
	switch {
	case !t.Linked():
		return "pcie-single-node"
	case len(hosts) > 1 || t.Trays > 1 && len(p.Layout) > t.Count(cluster.GPU)/t.Trays:
		return "nvlink-rack"
	}
	return "nvlink-single-node"
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

// Family is what classes of hardware have in common whose predictions tend to be wrong alike: one node with links
// between its GPUs, one without, several by RDMA, several by a kind of TCP.
func Family(class string) string {
	switch {
	case strings.HasPrefix(class, "pcie"):
		return "cards"
	case !strings.Contains(class, "multi-node"):
		return "one-node"
	case strings.Contains(class, "tcp"):
		return "several-tcp"
	}
	return "several-rdma"
}
