package audit

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/natural"
	"busbar.dev/unit"
)

// nodeNICs looks at how the GPUs of a node reach the network.
func (a *auditor) nodeNICs(n *node) {
	if len(n.gpus) > 0 && len(n.nics) == 0 {
		if n.clusterLen > 1 {
			a.say("nic-none", n.hosts)
		}
		return
	}
	a.sharedNICs(n)
	a.farNICs(n)
	a.unlikeNICs(n)
	var down []int
	plain, up := false, false        // an Ethernet port that may be the management's is up; one of another kind is
	var firmware groups[string, int] // of cards of one maker's number
	for _, k := range n.nics {
		a.nicItself(n, k)
		i := n.t.Devices[k].NIC
		if i == nil {
			continue
		}
		if len(i.Ports) > 0 && !slices.ContainsFunc(i.Ports, func(p cluster.Port) bool { return p.State != cluster.Down }) {
			down = append(down, k)
		} else if i.Kind == cluster.Ethernet {
			plain = true
		} else {
			up = true
		}
		if m := n.t.Devices[k].Model; i.Firmware != "" && m.Known() && m == n.t.Devices[n.nics[0]].Model {
			firmware.add(i.Firmware, k)
		}
	}
	ofFabric := func(k int) bool { return n.t.Devices[k].NIC.Kind != cluster.Ethernet }
	if len(down) > 0 && !up && (!plain || slices.ContainsFunc(down, ofFabric)) {
		a.say("all-ports-down", n.hosts, n.names(down))
	}
	if len(firmware.order) > 1 {
		var each []string
		for _, v := range firmware.order {
			each = append(each, n.names(firmware.of[v])+" "+v)
		}
		a.say("firmware-unlike", n.hosts, strings.Join(each, "; "))
	}
}

// sharedNICs reports GPUs that have fewer NICs than they are.
func (a *auditor) sharedNICs(n *node) {
	for _, s := range n.t.Shares() {
		if !s.Crowded() {
			continue
		}
		each := ""
		if s.Each.Known() {
			each = fmt.Sprintf(": %v each when all send, of %v", s.Each.Value, s.Each.Value*unit.Rate(len(s.GPUs)))
		}
		what := "one NIC"
		if len(s.NICs) > 1 {
			what = fmt.Sprintf("%d NICs", len(s.NICs))
		}
		a.shared.add(sharing{len(s.GPUs), what + each},
			sharedNIC{n.list, n.t.Devices[s.NICs[0]].Title(), n.names(s.GPUs)})
	}
}

// sharing is how many GPUs share what: one NIC: 12.5 GB/s each when all send. NICs of which it is the same are one
// finding.
type sharing struct {
	gpus int
	what string
}

// sharedNIC is a NIC of a node type that several GPUs share.
type sharedNIC struct {
	hosts     []string
	nic, gpus string
}

// mergeShared reports GPUs that share NICs, those of all nodes and NICs that share alike together: that is how nodes
// are built, and a node that differs in something else has it too.
func (a *auditor) mergeShared() {
	for _, key := range a.shared.order {
		var hosts, nics []string
		for _, s := range a.shared.of[key] {
			hosts, nics = append(hosts, s.hosts...), append(nics, s.nic)
		}
		hosts, nics = slices.Compact(natural.Sort(hosts)), slices.Compact(natural.Sort(nics))
		gpus := ""
		if len(nics) == 1 {
			gpus = " (" + a.shared.of[key][0].gpus + ")"
		}
		a.say("nic-shared", cluster.FormatHosts(hosts)+"/"+cluster.FormatHosts(nics), key.gpus, gpus, key.what)
	}
}

// farNICs reports GPUs whose nearest NIC is beyond their PCIe switches, those that are as far together. A GPU on its
// processor's chip-to-chip link is not far: NCCL reaches the NIC over that link with GPUDirect RDMA since 2.27.
func (a *auditor) farNICs(n *node) {
	var far groups[string, int]
	for _, g := range n.gpus {
		if c := n.class[g]; c.Type == cluster.SYS || (c.Type == cluster.PHB || c.Type == cluster.NODE) && !n.chipToChip(g) {
			far.add(c.String(), g)
		}
	}
	for _, key := range far.order {
		g := far.of[key]
		where, nics := n.hosts+"/"+n.t.Devices[g[0]].Name, n.names(n.nearestOf(g))
		if n.class[g[0]].Type == cluster.SYS {
			fix := "move the NIC or add one on their socket"
			if slices.ContainsFunc(n.gpus, func(o int) bool { return n.class[o].Type != cluster.SYS }) {
				fix = "use the GPUs on the NIC's socket for jobs that span nodes, or add a NIC on the other"
			}
			why := "NCCL turns GPUDirect RDMA off and stages through host memory"
			if noGDR(n, g) {
				why = "inter-node traffic, staged through host memory on these GPUs in any case, also crosses that link"
			} else {
				fix += "; NCCL_NET_GDR_LEVEL=SYS forces GPUDirect where the platform allows it: measure it first"
			}
			a.addFinding("nic-other-socket", finding.Warn, where,
				fmt.Sprintf("%s: the nearest NIC (%s) is reached only across the link between sockets (SYS): %s", n.names(g), nics,
					why), fix)
			continue
		}
		if noGDR(n, g) {
			continue // what a host bridge is in the way of, these GPUs cannot do
		}
		a.say("nic-far", where, n.names(g), nics, n.class[g[0]])
	}
}

// noGDR reports GPUs without GPUDirect RDMA, as all GeForce are.
func noGDR(n *node, gpus []int) bool {
	return !slices.ContainsFunc(gpus, func(g int) bool { i := n.t.Devices[g].GPU; return i == nil || i.GDR != cluster.No })
}

// unlikeNICs reports rails of different speed; where no GPU is known, NICs of InfiniBand.
func (a *auditor) unlikeNICs(n *node) {
	var rates groups[string, int]
	severity, which, nics := finding.Warn, "NICs near the GPUs", n.rails
	if len(n.gpus) == 0 {
		severity, which, nics = finding.Note, "The InfiniBand NICs", n.nics
	}
	for _, k := range nics {
		nic := n.t.Devices[k].NIC
		if nic == nil {
			continue
		}
		if r := nic.Rate(); r.Known() && (len(n.gpus) > 0 || nic.Kind == cluster.InfiniBand) {
			rates.add(r.Value.Bits(), k)
		}
	}
	if len(rates.order) < 2 {
		return
	}
	var each []string
	last := 0
	for _, r := range rates.order {
		each = append(each, n.names(rates.of[r])+" at "+r)
		last = rates.of[r][0]
	}
	a.addFinding("nic-rates-unlike", severity, n.where(last),
		which+" run at different rates: "+strings.Join(each, "; ")+
			"; the slowest sets the pace of every ring that uses it",
		"check cables and port speed (ibstat, ethtool), or name only the fast ones in NCCL_IB_HCA")
}

// nicItself looks at one NIC: down ports, MTU, PCIe slower than the port.
func (a *auditor) nicItself(n *node, k int) {
	d := &n.t.Devices[k]
	if d.NIC == nil {
		return
	}
	isRail := slices.Contains(n.rails, k)
	for _, p := range d.NIC.Ports {
		a.port(n, k, p, isRail)
	}
	if d.NIC.GDR == cluster.No && isRail {
		a.say("gdr-off", n.where(k))
	}
	a.nicBehindSlowPCIe(n, k)
}

func (a *auditor) port(n *node, k int, p cluster.Port, isRail bool) {
	d := &n.t.Devices[k]
	where := n.where(k)
	if len(d.NIC.Ports) > 1 && p.Num > 0 {
		where = fmt.Sprintf("%s:%d", where, p.Num)
	}
	ether := d.NIC.Kind == cluster.Ethernet || d.NIC.Kind == cluster.RoCE || p.Layer == "Ethernet"
	switch {
	case p.State == cluster.Down && isRail:
		a.addFinding("port-down", finding.Warn, where, "the port is down",
			"check the cable and the switch port; until then keep it out with NCCL_IB_HCA=^"+d.Title())
	case p.State == cluster.Init:
		a.say("port-init", where)
	}
	if ether && p.MTU.Known() && p.MTU.Value <= 1500 && p.Rate.Value >= 25*unit.Gbps {
		a.say("mtu-1500", where, p.MTU.Value, p.Rate.Value.Bits())
	}
	// A card that could do more by its data sheet is no fault of the port; one that
	// the port itself reports is.
	if p.Max.Origin > cluster.Spec && p.Rate.Known() && p.Rate.Value < p.Max.Value*0.97 && p.State != cluster.Down {
		a.say("port-slow", where, p.Rate.Value.Bits(), p.Max.Value.Bits())
	}
}

// nicBehindSlowPCIe compares a NIC's ports with the PCIe link it sits on.
func (a *auditor) nicBehindSlowPCIe(n *node, k int) {
	net := n.t.Devices[k].NIC.Rate()
	for _, l := range n.t.Links {
		if l.Kind != cluster.PCIe || !l.Rate.Known() || !net.Known() || l.A != k && l.B != k {
			continue
		}
		if l.Rate.Value < net.Value*0.95 && l.Rate.Origin >= cluster.Spec {
			a.say("nic-pcie-bound", n.where(k), net.Value, l.Rate.Value, l.Lanes, l.GTs)
		}
	}
}
