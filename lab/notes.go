package lab

import (
	"fmt"
	"slices"
	"strings"
)

// notes say what the lab leaves out, in the words of the file it was made from.
func (b *planner) notes() {
	p := b.p
	add := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if b.noSwitch {
		add("the file joins the NICs to no switch; the lab puts all of them on one")
	}
	p.Notes = append(p.Notes, b.changed...)
	b.noteInside(add)
	add("latency is not imitated: a message takes what this machine's kernel takes, tens of µs, whatever the scale")
	if b.c.Network.Kind != "" && b.c.Network.Kind != "ethernet" {
		add("the network is Ethernet with TCP, not %s; credits and adaptive routing are not imitated", b.c.Network.Kind)
	}
	switch {
	case p.Staging == 0:
	case p.Local:
		add("every byte to or from a node's NICs, and between its ranks over TCP, crosses one half-duplex path of %s",
			p.Staging.Bits())
	default:
		add("every byte to or from a node's NICs crosses one half-duplex path of %s", p.Staging.Bits())
	}
}

// noteInside says what stands for the links inside nodes.
func (b *planner) noteInside(add func(string, ...any)) {
	p := b.p
	if p.Inside == Links {
		add("ranks of a node talk over TCP on the loopback, each link between GPUs at its scaled rate; the way between a " +
			"GPU and its NIC is not imitated beside the NIC itself")
		for i := range p.Inner {
			if left := p.Inner[i].Left; len(left) > 0 {
				add("a packet passes %d shapers inside a node; these links are beyond that and not imitated: %s", stages,
					strings.Join(left, ", "))
			}
		}
		return
	}
	what := "PCIe and host memory inside a node are"
	if slices.ContainsFunc(p.Nodes, func(n Node) bool { return b.c.TypeOf(n.Host).Linked() }) {
		what = "NVLink, PCIe and host memory inside a node are"
	}
	reason := ""
	if b.inMemory != "" {
		reason = " (" + b.inMemory + ")"
	}
	add("%s not imitated%s: ranks of a node talk through this machine's shared memory, at its speed", what, reason)
}
