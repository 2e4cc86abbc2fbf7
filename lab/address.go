package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// address gives every NIC its address: 10.(64+place).node+1, so that NICs of one
// place, a rail, share a subnet.
func (p *Plan) address() error {
	for i := range p.NICs {
		x := &p.NICs[i]
		if x.Place > 126 {
			return fmt.Errorf("%s/%s: more than 127 NICs in a node", p.Nodes[x.Node].Name, x.Name)
		}
		x.Addr = netip.AddrFrom4([4]byte{10, byte(64 + x.Place), byte((x.Node + 1) >> 8), byte(x.Node + 1)})
		for _, k := range p.Nodes[x.Node].NICs {
			if k < i && p.NICs[k].Name == x.Name {
				x.Name = fmt.Sprintf("%.12s_%d", x.Name, x.Place%100)
			}
		}
	}
	return nil
}

// mac is the hardware address of a NIC, locally administered.
func (p *Plan) mac(nic int) net.HardwareAddr {
	a := p.NICs[nic].Addr.As4()
	return net.HardwareAddr{0x02, 0xbb, a[0], a[1], a[2], a[3]}
}

// hostsText is the hosts file of the lab: node0 is the first NIC of a node, and
// node0-mlx5_1 one of several; node0-gpu1 is a GPU where links between them are shaped.
func (p *Plan) hostsText() string {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for k, n := range p.Nodes {
		for place, i := range n.NICs {
			x := &p.NICs[i]
			fmt.Fprint(&b, x.Addr, " ")
			if place == 0 {
				b.WriteString(n.Name + " ")
			}
			b.WriteString(n.Name + "-" + x.Name + "\n")
		}
		if len(n.NICs) == 0 {
			b.WriteString("127.0.0.1 " + n.Name + "\n")
		}
		if x := p.inner(k); x != nil {
			for g := range x.GPUs {
				nic := -1
				if near := n.Near[g]; len(near) > 0 {
					nic = near[0]
				}
				fmt.Fprintf(&b, "%v %s-gpu%d\n", p.gpuAddr(k, g, nic), n.Name, g)
			}
		}
	}
	return b.String()
}

// NodeByName finds a node, or -1.
func (p *Plan) NodeByName(name string) int {
	return slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == name })
}

// Link finds NODE:NIC; NODE alone is its only NIC.
func (p *Plan) Link(word string) (int, error) {
	name, nic, ok := strings.Cut(word, ":")
	n := p.NodeByName(name)
	if n < 0 {
		return -1, fmt.Errorf("%s: no node %q; the lab has %s", word, name, p.names())
	}
	var have []string
	for k, i := range p.Nodes[n].NICs {
		have = append(have, p.NICs[i].Name)
		if p.NICs[i].Name == nic || nic == fmt.Sprint(k) {
			return i, nil
		}
	}
	if !ok && len(p.Nodes[n].NICs) == 1 {
		return p.Nodes[n].NICs[0], nil
	}
	return -1, fmt.Errorf("%s: expected NODE:NIC; the NICs of %s are %s", word, name, strings.Join(have, ", "))
}

func (p *Plan) names() string {
	var all []string
	for i := range p.Nodes {
		all = append(all, p.Nodes[i].Name)
	}
	return strings.Join(all, ", ")
}
