package lab

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// fabric is the lab's network: bridges and cables in the holder's own namespace, NICs
// in those of the nodes.
type fabric struct {
	p     *Plan
	own   *netlink.Handle
	at    []*netlink.Handle // by node
	notes []string
}

func portName(nic int) string             { return fmt.Sprintf("p%d", nic) }
func bridgeName(sw int) string            { return fmt.Sprintf("s%d", sw) }
func cableName(cable int, end int) string { return fmt.Sprintf("c%d%c", cable, 'a'+end) }

// newFabric builds the network of a plan.
func newFabric(p *Plan, nodes []namespaces) (*fabric, error) {
	own, err := netlink.NewHandle()
	if err != nil {
		return nil, err
	}
	f := &fabric{p: p, own: own}
	noIPv6()
	for i := range nodes {
		h, err := netlink.NewHandleAt(nodes[i].net)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Nodes[i].Name, err)
		}
		f.at = append(f.at, h)
	}
	for i := range p.Switches {
		if err := f.bridge(i); err != nil {
			return nil, fmt.Errorf("switch %s: %w", p.Switches[i].Name, err)
		}
	}
	for i := range p.NICs {
		if err := f.nic(i, nodes[p.NICs[i].Node].net); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", p.Nodes[p.NICs[i].Node].Name, p.NICs[i].Name, err)
		}
	}
	for i := range p.Cables {
		if err := f.cable(i); err != nil {
			return nil,
				fmt.Errorf("cable %d, %s to %s: %w", i, p.Switches[p.Cables[i].A].Name, p.Switches[p.Cables[i].B].Name, err)
		}
	}
	if err := f.forward(); err != nil {
		return nil, err
	}
	for i := range p.Nodes {
		if err := f.node(i); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Nodes[i].Name, err)
		}
		if x := p.inner(i); x != nil && (x.has(stageBefore) || x.has(stageBehind)) {
			if err := nodes[i].keepOrder(); err != nil {
				f.notes = append(f.notes, fmt.Sprintf("%s: packets inside the node may overtake each other, which slows "+
					"connections down (kernel option RPS): %v", p.Nodes[i].Name, err))
			}
		}
	}
	return f, nil
}

// bridge is a switch that forwards by its table alone.
func (f *fabric) bridge(i int) error {
	off := false
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = bridgeName(i), 65000
	b := &netlink.Bridge{LinkAttrs: attrs, MulticastSnooping: &off}
	if err := f.own.LinkAdd(b); err != nil {
		return err
	}
	return f.own.LinkSetUp(b)
}

// veth makes a cable of two ends, the first of them here.
func (f *fabric) veth(name, peer string, mtu int, mac net.HardwareAddr, ns any) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.TxQLen = name, mtu, 1000
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerMTU, v.PeerHardwareAddr, v.PeerNamespace = peer, uint32(mtu), mac, ns
	return f.own.LinkAdd(v)
}

// nic lays the cable from a node to its switch.
func (f *fabric) nic(i int, ns netns.NsHandle) error {
	x := &f.p.NICs[i]
	if err := f.veth(portName(i), x.Name, x.MTU, f.p.mac(i), netlink.NsFd(int(ns))); err != nil {
		return err
	}
	if err := f.plug(portName(i), x.Switch); err != nil {
		return err
	}
	return f.shapeNIC(i, 1)
}

// shapeNIC gives both directions of a NIC's cable a share of its rate.
func (f *fabric) shapeNIC(i int, share float64) error {
	x := &f.p.NICs[i]
	rate := float64(x.Rate) * share
	if err := shape(f.own, portName(i), rate, x.MTU); err != nil {
		return err
	}
	return shape(f.at[x.Node], x.Name, rate, x.MTU)
}

// plug puts an end of a cable into a switch.
func (f *fabric) plug(name string, sw int) error {
	l, err := f.own.LinkByName(name)
	if err != nil {
		return err
	}
	b, err := f.own.LinkByName(bridgeName(sw))
	if err != nil {
		return err
	}
	if err := f.own.LinkSetMaster(l, b); err != nil {
		return err
	}
	if err := f.own.LinkSetLearning(l, false); err != nil {
		return err
	}
	if err := f.own.LinkSetFlood(l, false); err != nil {
		return err
	}
	if err := noFlooding(l.Attrs().Index); err != nil {
		return fmt.Errorf("%s: multicast would go round between switches: %w", name, err)
	}
	return f.own.LinkSetUp(l)
}

// noFlooding keeps multicast and broadcast from a switch's port too, which the library has no
// call for: between several spines they would go round for ever.
func noFlooding(port int) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
	msg.Index = int32(port)
	req.AddData(msg)
	info := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	info.AddRtAttr(nl.IFLA_BRPORT_MCAST_FLOOD, []byte{0})
	info.AddRtAttr(nl.IFLA_BRPORT_BCAST_FLOOD, []byte{0})
	req.AddData(info)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// cable joins two switches.
func (f *fabric) cable(i int) error {
	x := &f.p.Cables[i]
	mtu := f.mtu()
	if err := f.veth(cableName(i, 0), cableName(i, 1), mtu, nil, nil); err != nil {
		return err
	}
	for end, sw := range []int{x.A, x.B} {
		if err := f.plug(cableName(i, end), sw); err != nil {
			return err
		}
		if err := shape(f.own, cableName(i, end), float64(x.Rate), mtu); err != nil {
			return err
		}
	}
	return nil
}

// mtu is the largest of the NICs, which cables between switches must carry.
func (f *fabric) mtu() int {
	m := 1500
	for i := range f.p.NICs {
		m = max(m, f.p.NICs[i].MTU)
	}
	return m
}

// forward writes the tables of all switches.
func (f *fabric) forward() error {
	index := map[string]int{} // by name: every table names the same few ports
	for s, table := range f.p.tables() {
		for d, port := range table {
			name := ""
			switch {
			case port.NIC >= 0:
				name = portName(port.NIC)
			case port.Cable >= 0:
				end := 0
				if f.p.Cables[port.Cable].B == s {
					end = 1
				}
				name = cableName(port.Cable, end)
			default:
				continue
			}
			if index[name] == 0 {
				l, err := f.own.LinkByName(name)
				if err != nil {
					return err
				}
				index[name] = l.Attrs().Index
			}
			err := f.own.NeighAppend(&netlink.Neigh{
				LinkIndex: index[name], Family: unix.AF_BRIDGE, State: netlink.NUD_NOARP, Flags: netlink.NTF_MASTER,
				HardwareAddr: f.p.mac(d),
			})
			if err != nil {
				return fmt.Errorf("table of switch %s: %w", f.p.Switches[s].Name, err)
			}
		}
	}
	return nil
}

// node brings up the interfaces of a node, with its addresses and its neighbours.
func (f *fabric) node(n int) error {
	h := f.at[n]
	if _, err := bringUp(h, "lo"); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	for _, i := range f.p.Nodes[n].NICs {
		if err := f.configure(h, i); err != nil {
			return fmt.Errorf("%s: %w", f.p.NICs[i].Name, err)
		}
	}
	if f.p.Staging > 0 {
		if err := f.stage(n); err != nil {
			return err
		}
	}
	if x := f.p.inner(n); x != nil {
		return f.inside(n, x)
	}
	return nil
}

// configure gives a NIC its address and routes: its own rail by the usual table, and
// everything else for who binds to its address.
func (f *fabric) configure(h *netlink.Handle, i int) error {
	x := &f.p.NICs[i]
	l, err := h.LinkByName(x.Name)
	if err != nil {
		return err
	}
	if err := addAddr(h, l, x.Addr, 16); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	for _, a := range f.p.gpuAddrs(i) {
		if err := addAddr(h, l, a, 16); err != nil {
			return fmt.Errorf("address of a GPU: %w", err)
		}
	}
	if err := h.LinkSetUp(l); err != nil {
		return err
	}
	for d := range f.p.NICs {
		if f.p.NICs[d].Node == x.Node {
			continue
		}
		for _, a := range append(f.p.gpuAddrs(d), f.p.NICs[d].Addr) {
			err := h.NeighSet(&netlink.Neigh{
				LinkIndex: l.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
				IP: net.IP(a.AsSlice()), HardwareAddr: f.p.mac(d),
			})
			if err != nil {
				return fmt.Errorf("neighbour: %w", err)
			}
		}
	}
	return f.policy(h, l, i)
}

// addAddr gives an interface an address in a network of so many bits.
func addAddr(h *netlink.Handle, l netlink.Link, a netip.Addr, bits int) error {
	return h.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IP(a.AsSlice()), Mask: net.CIDRMask(bits, 32)}})
}

// policy makes traffic leave by the NIC whose address it has.
func (f *fabric) policy(h *netlink.Handle, l netlink.Link, i int) error {
	x := &f.p.NICs[i]
	table := 100 + x.Place
	all := &net.IPNet{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}
	ip := net.IP(x.Addr.AsSlice())
	if err := h.RouteAdd(&netlink.Route{
		LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: all, Table: table, Src: ip,
	}); err != nil {
		return fmt.Errorf("route: %w", err)
	}
	r := netlink.NewRule()
	r.Family, r.Priority, r.Table = unix.AF_INET, 1000+x.Place, table
	r.Src = &net.IPNet{IP: ip.Mask(net.CIDRMask(16, 32)), Mask: net.CIDRMask(16, 32)} // its own and those of its GPUs
	if err := h.RuleAdd(r); err != nil {
		return fmt.Errorf("rule: %w", err)
	}
	return nil
}
