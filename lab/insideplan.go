package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// innerTogether is what two cores push through sockets inside nodes beside the collectives
// themselves, all ranks together and with half of it to spare: four ranks of a ring that
// nothing shapes move 4 GB/s on such a machine.
const innerTogether = unit.Rate(2e9)

// innerMost is beyond any machine that a lab is for, and within what the kernel's shapers
// count in.
const innerMost = unit.Rate(4e9)

// innerMTU is the packet size of the loopback where links inside nodes are shaped: packets
// of 64 KiB, which it has otherwise, are long beside what a scaled link does at once.
const innerMTU = 9000

// insides reads the insides of the nodes, at the rates of the cluster.
func (b *planner) insides() {
	at := map[int]int{}
	for n := range b.p.Nodes {
		typ := b.c.Hosts[b.p.Nodes[n].Host].Type
		k, ok := at[typ]
		if !ok {
			k = -1
			if x := b.inner(typ); x != nil {
				k = len(b.p.Inner)
				b.p.Inner = append(b.p.Inner, *x)
			}
			at[typ] = k
		}
		b.p.Nodes[n].Inner = k
	}
}

// flow is what ranks inside nodes send at once, each over its fastest link: those of a
// full node, or all that the lab is meant for.
func (b *planner) flow() unit.Rate {
	most, all := unit.Rate(0), unit.Rate(0)
	for n := range b.p.Nodes {
		x := b.p.inner(n)
		if x == nil {
			continue
		}
		if g := b.p.Nodes[n].GPUs; g > 1 {
			all += x.fastest() * unit.Rate(min(g, x.GPUs))
		}
		most = max(most, x.fastest()*unit.Rate(x.GPUs))
	}
	return max(most, all)
}

// inner is the inside of a node, nil where it is not known.
func (p *Plan) inner(n int) *Inner {
	if k := p.Nodes[n].Inner; k >= 0 && k < len(p.Inner) {
		return &p.Inner[k]
	}
	return nil
}

// choose settles how ranks of a node reach each other; rates are the lab's by now.
func (b *planner) choose(flow unit.Rate) error {
	p := b.p
	var reason string
	known, several := len(p.Inner) > 0, false
	for n := range p.Nodes {
		several = several || b.c.TypeOf(p.Nodes[n].Host).Count(cluster.GPU) > 1
		known = known && (p.inner(n) != nil || p.Nodes[n].GPUs < 2)
		if x := p.inner(n); x != nil && p.Nodes[n].GPUs > x.GPUs {
			known, reason = false,
				fmt.Sprintf("%s is to have %d ranks and has %d GPUs", p.Nodes[n].Name, p.Nodes[n].GPUs, x.GPUs)
		}
	}
	switch {
	case b.o.Inside == Memory:
	case b.o.Local:
		reason = "what ranks of a node exchange crosses the path through host memory instead"
	case !several && reason == "":
		reason = "no node has two GPUs"
	case !known && reason == "":
		reason = "the file does not say how the GPUs of a node are joined, and how fast"
	case reason != "":
	case flow > innerMost:
		reason = fmt.Sprintf("%v a second would flow inside nodes; no shaper does that", unit.Bytes(flow))
	case b.o.Inside == Links || flow <= innerTogether*1.001:
		p.Inside = Links
		return nil
	default:
		fit := oneOver(float64(flow/innerTogether) / p.Scale.Value())
		reason = fmt.Sprintf("%v a second would flow inside nodes, more than two cores push; with --scale %v they are",
			unit.Bytes(flow), fit)
	}
	if b.o.Inside == Links {
		return fmt.Errorf("links inside nodes: %s", reason)
	}
	p.Inside, p.Inner, b.inMemory = Memory, nil, reason
	for n := range p.Nodes {
		p.Nodes[n].Inner = -1
	}
	return nil
}

// gpuAddr is the address of a GPU on a NIC of its node, or where nic is -1 on the loopback.
// Its third byte is the GPU's number, whatever the NIC, which tells the shapers of the links
// between GPUs who sends to whom.
func (p *Plan) gpuAddr(node, gpu, nic int) netip.Addr {
	place := byte(63)
	if nic >= 0 {
		place = byte(64 + p.NICs[nic].Place)
	}
	return netip.AddrFrom4([4]byte{10, place, byte(gpu + 1), byte(node + 1)})
}

// gpuAddrs are the addresses of GPUs that lie on a NIC.
func (p *Plan) gpuAddrs(nic int) (list []netip.Addr) {
	n := p.NICs[nic].Node
	x := p.inner(n)
	if x == nil {
		return nil
	}
	for g := range x.GPUs {
		if slices.Contains(p.Nodes[n].Near[g], nic) {
			list = append(list, p.gpuAddr(n, g, nic))
		}
	}
	return list
}

// Bind is what a rank on a slot binds to: the address of its GPU where links inside nodes
// are shaped, else its NICs.
func (p *Plan) Bind(s Slot) string {
	var words []string
	for _, i := range s.NICs {
		if p.Inside == Links && p.inner(s.Node) != nil {
			words = append(words, p.gpuAddr(s.Node, s.Local, i).String())
		} else {
			words = append(words, p.NICs[i].Name)
		}
	}
	switch {
	case len(words) == 0 && p.inner(s.Node) == nil:
		return "127.0.0.1"
	case len(words) == 0:
		return p.gpuAddr(s.Node, s.Local, -1).String()
	}
	return strings.Join(words, ",")
}

// InnerLink finds NODE:A-B, a link inside a node by its two ends: the node and both of its
// directions, none where there is no such link.
func (p *Plan) InnerLink(word string) (node int, links []int) {
	name, rest, _ := strings.Cut(word, ":")
	a, z, ok := strings.Cut(rest, "-")
	if node = p.NodeByName(name); node < 0 || !ok {
		return node, nil
	}
	if x := p.inner(node); x != nil {
		for k := range x.Links {
			if l := x.Links[k].Name; l == a+"→"+z || l == z+"→"+a {
				links = append(links, k)
			}
		}
	}
	return node, links
}

// checkSlots reports a layout with more ranks on a node than it has GPUs, between which links
// are shaped.
func (p *Plan) checkSlots(slots []Slot) error {
	for _, s := range slots {
		if x := p.inner(s.Node); p.Inside == Links && x != nil && s.Local >= x.GPUs {
			return fmt.Errorf("%s has %d GPUs, and a rank takes one where links between them are imitated; `busbar lab up "+
				"--inside memory` has no such bound", p.Nodes[s.Node].Name, x.GPUs)
		}
	}
	return nil
}
