package sim

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/result"
)

// limit puts the bottleneck into words.
func (o *Outline) limit(r *result.Run, m *Model, kind Kind, size float64) result.Limit {
	p := r.Parts
	switch {
	case o.s.Ranks <= 1 || r.Time == 0:
		return result.Limit{Kind: result.ByNothing, Text: "one rank; nothing moves"}
	case p.Launch >= max(p.Latency, p.Moving+p.Sync):
		return result.Limit{
			Kind: result.ByLaunch,
			Text: fmt.Sprintf("starting the call takes %v of %v; larger or fewer calls would help", p.Launch, r.Time),
		}
	case p.Latency >= p.Moving+p.Sync:
		return o.slowChain(r, m)
	case p.Sync > p.Moving:
		return result.Limit{
			Kind: result.ByProtocol,
			Text: fmt.Sprintf("handing over the slices of %s takes %v of %v; the message is small for this protocol",
				words.Plural(r.Channels, "channel"), p.Sync, r.Time),
		}
	}
	l := &o.all[kind]
	text := ""
	switch kind {
	case Lane:
		text = fmt.Sprintf("%s can move at most %v each; more channels would help", words.Plural(r.Channels, "channel"),
			m.Wire.Lane)
		return result.Limit{Kind: result.ByProtocol, Text: text}
	case NIC:
		text = o.nicText(l, m)
	case Fabric:
		text = fmt.Sprintf("the uplinks of %s carry %v for their nodes; traffic that stays below one leaf would avoid them",
			o.m.name(l.id), l.rate)
		if part := hashed(l.flows, l.cables); isHashed(l.net) && part < 0.9 {
			text += fmt.Sprintf("; hashing %.0f connections over %d cables leaves %.0f%% of it, adaptive routing would not",
				l.flows, l.cables, 100*part)
		}
	case Staging:
		text = fmt.Sprintf("data is copied through host memory (%v); GPUDirect or peer access would avoid it",
			m.through(m.Staging, l))
	case Bounce, FarBounce:
		text = o.bounceText(kind, l, m)
	case Socket:
		text = fmt.Sprintf("data crosses between sockets at %v one direction; a NIC or peer on the GPU's own socket would "+
			"avoid it", l.rate)
	case PCIe, DMA, Shm, Far:
		text = fmt.Sprintf("the PCIe link carries %v one direction for %s", l.rate, gpus(l.users))
	default:
		text = fmt.Sprintf("a GPU's links carry %v one direction", l.rate)
		switch name := o.m.name(l.id); {
		case strings.Contains(name, "–"):
			text = fmt.Sprintf("the NVSwitches of a tray have %v one direction to the second level for all their GPUs; "+
				"traffic that stays in a tray would avoid it", l.rate)
		case strings.Contains(name, "→"):
			text = fmt.Sprintf("the links between two GPUs carry %v one direction", l.rate)
		}
	}
	return result.Limit{Kind: kind.limit(), Where: o.m.name(l.id), Text: text}
}

// bounceText says why data to and from a NIC is copied through host memory, how fast, and who says so.
func (o *Outline) bounceText(kind Kind, l *load, m *Model) string {
	x := o.m.describe(l.id)
	n := o.m.types[o.m.c.Hosts[x.host].Type]
	far, near := "", ""
	if kind == FarBounce && l.net != cluster.EFA {
		far = " of another socket"
		near = fmt.Sprintf("; from the NIC's own socket %v", m.Bounce)
	}
	return fmt.Sprintf("the NIC cannot reach the memory of GPUs%s (%s), so data is copied through host memory (%v one "+
		"direction%s)", far, n.indirect(n.nicOf(x.local)), m.bounce(kind, l), near)
}

// indirect says why a NIC does not read and write the memory of GPUs.
func (n *node) indirect(nic int) string {
	d := n.t.Devices[nic].NIC
	noDirect := func(dev int) bool { g := n.t.Devices[dev].GPU; return g != nil && g.GDR == cluster.No }
	switch {
	case d != nil && d.GDR == cluster.No:
		return "it has no GPUDirect RDMA"
	case d != nil && d.Kind == cluster.Ethernet:
		return "it is driven by kernel sockets"
	case slices.ContainsFunc(n.gpus, noDirect):
		return "the GPUs have no GPUDirect RDMA"
	}
	return "no common PCIe switch, which NCCL_NET_GDR_LEVEL requires by default"
}

// nicText tells a port that GPUs share from one that is simply full.
func (o *Outline) nicText(l *load, m *Model) string {
	host := o.m.describe(l.id).host
	ranks, nics := int(o.m.on[host]), len(o.m.types[o.m.c.Hosts[host].Type].nics)
	if m.socketBound(l) {
		return fmt.Sprintf("kernel sockets move at most %v one direction through a port, whatever its rate (fitted to one "+
			"cluster with NCCL's own number of sockets; NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4 may raise it); RDMA "+
			"(RoCE or InfiniBand) would avoid it", m.Sockets)
	}
	text := fmt.Sprintf("a %s port is full", l.rate.Bits())
	switch {
	case l.users > 1 && ranks > nics:
		text = fmt.Sprintf("%s share one %s port", gpus(l.users), l.rate.Bits())
	case l.users > 1:
		text = fmt.Sprintf("a %s port is full, one of the node's %d; %s send a part of their data through it", l.rate.Bits(),
			nics, gpus(l.users))
	case ranks > 1 && l.ports < min(ranks, nics):
		text = fmt.Sprintf("everything goes through %d of the node's %s; the %s port is full", l.ports,
			words.Plural(nics, "port"), l.rate.Bits())
	case ranks > 1 && ranks <= nics:
		text = fmt.Sprintf("each GPU's own %s port is full", l.rate.Bits())
	}
	if part := m.share(NIC, l.net); part < 0.8 {
		text += fmt.Sprintf(" at the %.0f%% of its rate that NCCL gets over %s", 100*part, l.net)
	}
	return text
}

func gpus(n int) string { return words.Plural(n, "GPU") }

// slowChain says which messages wait for each other.
func (o *Outline) slowChain(r *result.Run, m *Model) result.Limit {
	var hops [nHops]float64
	peers := 0.0
	for i := range o.stages {
		for h, n := range o.stages[i].chain {
			hops[h] += n
		}
		if last := o.stages[i].last(); m.Wire.Peer > 0 && last > 0 {
			peers = max(peers, 1/last)
		}
	}
	total, most := 0.0, Hop(0)
	for h, n := range hops {
		total += n
		if n > hops[most] {
			most = Hop(h)
		}
	}
	if hops[OverNet] > 0 {
		most = OverNet
	}
	over := most.String()
	switch {
	case most == OverNVLink && o.m.xgmi():
		over = "xGMI"
	case most == OverNVLink:
		over = "NVLink"
	case most == OverPCIe:
		over = "PCIe"
	case most == OverNet:
		over = "the network"
	}
	took := fmt.Sprintf("%v of %v", r.Parts.Latency, r.Time)
	n := int(math.Round(total))
	var text string
	switch {
	case peers > 1.5:
		text = fmt.Sprintf("preparing messages to %.0f peers and sending one over %s take %s; larger messages or fewer "+
			"peers would help", peers, over, took)
	case most == OverSwitch && n <= 2:
		text = fmt.Sprintf("a message to the reducing switch and back takes %s; larger or fewer calls would help", took)
	case n <= 1:
		text = fmt.Sprintf("one message over %s takes %s; larger or fewer calls would help", over, took)
	default:
		text = fmt.Sprintf("%d sequential messages, %.0f of them over %s, take %s; an algorithm with fewer steps would help",
			n, hops[most], over, took)
	}
	return result.Limit{Kind: result.ByLatency, Text: text}
}

// xgmi tells whether GPUs are joined by AMD's links.
func (m *Machine) xgmi() bool {
	return slices.ContainsFunc(m.c.TypeOf(m.at(0).Host).Links, func(l cluster.Link) bool { return l.Kind == cluster.XGMI })
}

// name says what a resource is to people.
func (m *Machine) name(id int64) string {
	if id < 0 {
		return ""
	}
	x := m.describe(id)
	if x.host < 0 {
		n := x.local / 2
		if n < int64(len(m.net.up)) {
			return m.c.Network.Switches[n].Name
		}
		n -= int64(len(m.net.up))
		if k := n - int64(len(m.c.Network.Links)); k >= 0 {
			return m.c.Network.Switches[k].Name
		}
		l := &m.c.Network.Links[n]
		return m.c.EndName(l.A) + "–" + m.c.EndName(l.B)
	}
	host := m.c.Hosts[x.host].Name
	n := m.types[m.c.Hosts[x.host].Type]
	links := int64(2 * len(n.t.Links))
	switch {
	case x.local < links:
		l := &n.t.Links[x.local/2]
		a, b := &n.t.Devices[l.A], &n.t.Devices[l.B]
		if x.local%2 == 1 {
			a, b = b, a
		}
		if a.Kind == cluster.NVSwitch && b.Kind == cluster.NVSwitch {
			return fmt.Sprintf("%s/%s–%s", host, n.t.Devices[l.A].Title(), n.t.Devices[l.B].Title())
		}
		if a.Kind == cluster.NVSwitch {
			return host + "/" + b.Title()
		}
		if b.Kind == cluster.NVSwitch {
			return host + "/" + a.Title()
		}
		return fmt.Sprintf("%s/%s→%s", host, a.Title(), b.Title())
	case x.local < n.memory(0):
		return host + "/" + n.t.Devices[n.nicOf(x.local)].Title()
	}
	return host + "/" + n.t.Devices[x.local-n.memory(0)].Title() + " memory"
}
