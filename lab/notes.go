package lab

import "fmt"

// notes say what the lab leaves out, in the words of the file it was made from.
func (b *planner) notes() {
	p := b.p
	add := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if b.loose {
		add("the file joins the NICs to no switch; the lab puts all of them on one")
	}
	p.Notes = append(p.Notes, b.odd...)
	inside := false
	for _, n := range p.Nodes {
		if t := b.c.TypeOf(n.Host); t.Linked() {
			inside = true
		}
	}
	what := "PCIe and host memory inside a node are"
	if inside {
		what = "NVLink, PCIe and host memory inside a node are"
	}
	add("%s not imitated: ranks of a node talk through this machine's shared memory, at its speed", what)
	add("latency is not imitated: a message takes what this machine's kernel takes, tens of µs, whatever the scale")
	if b.c.Network.Kind != "" && b.c.Network.Kind != "ethernet" {
		add("the network is Ethernet with TCP, not %s; credits and adaptive routing are not imitated", b.c.Network.Kind)
	}
	switch {
	case p.Staging == 0:
	case p.Local:
		add("every byte to or from a node's NICs, and between its ranks over TCP, crosses one half-duplex path of %s", p.Staging.Bits())
	default:
		add("every byte to or from a node's NICs crosses one half-duplex path of %s", p.Staging.Bits())
	}
}
