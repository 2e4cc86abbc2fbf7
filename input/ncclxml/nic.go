package ncclxml

import (
	"cmp"
	"fmt"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// unnamed begins the net names that Write makes up.
const unnamed = "unnamed-"

// addNIC adds a NIC with one port for each net element. position is its place
// among the node's NICs.
func (b *builder) addNIC(l *leaf, position int) {
	d := cluster.Device{Kind: cluster.NIC, Index: -1, Name: fmt.Sprintf("nic%d", position)}
	if l.index >= 0 {
		d.Index = position
	}
	info := &cluster.NICInfo{}
	for _, n := range l.nets {
		info.Ports = append(info.Ports, b.port(n))
		info.GDR = max(info.GDR, tri(n.Get("gdr")))
		info.Reduction = max(info.Reduction, tri(n.Get("coll")))
	}
	first := ""
	if len(info.Ports) > 0 {
		first = info.Ports[0].Label
		if !slices.ContainsFunc(info.Ports, func(p cluster.Port) bool { return p.Label != first }) {
			d.Label = first // always so for a single port
		}
	}
	info.Kind = netKind(pciID(l.el), first)
	d.NIC = info
	b.addLeaf(l, d)
}

func (b *builder) port(n *element) cluster.Port {
	p := cluster.Port{Label: n.Get("name"), GUID: swapGUID(n.Get("guid"))}
	if strings.HasPrefix(p.Label, unnamed) {
		p.Label = ""
	}
	p.Num = upTo(1<<16-1, n, "port")
	s := n.Get("speed")
	if mbps := upTo(1e9, n, "speed"); mbps > 0 {
		p.Rate = cluster.FromRead(unit.Rate(float64(mbps))*unit.Gbps/1000, b.src)
	} else if s != "" {
		b.f.Warnf(n.Line, n.Get("name"),
			"speed %.60q Mb/s; expected more than zero: left unknown (NCCL counts it as 10 Gb/s)", s)
	}
	return p
}

// netKind tells the network from the card's class and maker and from the name,
// which is an RDMA device where NCCL uses verbs and an interface where it uses
// sockets.
func netKind(id *cluster.PCIID, label string) cluster.NetKind {
	id = cmp.Or(id, &cluster.PCIID{})
	rdma := strings.HasPrefix(id.Class, "0207") ||
		slices.ContainsFunc([]string{"mlx", "bnxt_re", "irdma", "roce", "ionic"},
			func(p string) bool { return strings.HasPrefix(label, p) })
	kind := board.NetKind(*id, label, rdma, "")
	if kind == cluster.Ethernet && !strings.HasPrefix(id.Class, "02") {
		return "" // nobody said what it is
	}
	return kind
}

// swapGUID turns NCCL's number, the network's byte order read as the host's,
// into the GUID as other tools print it, and back. Zero means none.
func swapGUID(s string) string {
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.ToLower(s), "0x"), 16, 64)
	if err != nil || v == 0 {
		return ""
	}
	return fmt.Sprintf("0x%016x", mathbits.ReverseBytes64(v))
}
