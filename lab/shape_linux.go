package lab

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// segment is the most that TCP hands over at once on a shaped interface, and bucket
// what a shaper lets pass at once after a pause: as little as a segment needs, since
// what a bucket has saved up goes faster than the link it stands for.
func segment(rate float64, mtu int) int {
	// A quarter of a millisecond at the interface's rate, so that several flows take turns
	// often, but never less than two packets.
	return min(max(int(rate/4000), 2*mtu+64), 60<<10)
}

func bucket(rate float64, mtu int) int { return segment(rate, mtu) + mtu + 64 }

// queue is what waits before a shaper at most. Networks of training clusters do not
// drop for lack of buffers (credits, pause frames), so it holds more than the senders
// have under way.
const queue = 64 << 20

// shape limits what an interface sends, with a token bucket.
func shape(h *netlink.Handle, name string, rate float64, mtu int) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := h.LinkSetGSOMaxSize(l, segment(rate, mtu)); err != nil {
		return fmt.Errorf("segment size of %s: %w", name, err)
	}
	if err := h.LinkSetGSOIPv4MaxSize(l, segment(rate, mtu)); err != nil {
		return fmt.Errorf("segment size of %s: %w", name, err)
	}
	return bucketOn(h, l, rate, bucket(rate, mtu))
}

// bucketOn puts a token bucket on an interface, in the place of the one it has.
func bucketOn(h *netlink.Handle, l netlink.Link, rate float64, size int) error {
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       uint64(rate),
		Limit:      queue,
		Buffer:     netlink.Xmittime(uint64(rate), uint32(size)),
	}
	if err := h.QdiscReplace(q); err != nil {
		return fmt.Errorf("shaping %s (kernel option NET_SCH_TBF): %w", l.Attrs().Name, err)
	}
	return nil
}

// stage makes a node's path through host memory: an interface whose one token bucket
// both directions of all its NICs cross.
func (f *fabric) stage(n int) error {
	h := f.at[n]
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.TxQLen, attrs.MTU = "ifb0", 1000, 65000
	if err := h.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
		return fmt.Errorf("the path through host memory (kernel option IFB): %w", err)
	}
	ifb, err := h.LinkByName("ifb0")
	if err != nil {
		return err
	}
	if err := h.LinkSetUp(ifb); err != nil {
		return err
	}
	mtu := 0
	for _, i := range f.p.Nodes[n].NICs {
		mtu = max(mtu, f.p.NICs[i].MTU)
	}
	rate := float64(f.p.Staging)
	if err := bucketOn(h, ifb, rate, max(bucket(rate, mtu), 64<<10+mtu)); err != nil {
		return err
	}
	names := []string{}
	for _, i := range f.p.Nodes[n].NICs {
		names = append(names, f.p.NICs[i].Name)
	}
	if f.p.Local {
		names = append(names, "lo")
	}
	for _, name := range names {
		if err := divert(h, name, ifb.Attrs().Index); err != nil {
			return fmt.Errorf("%s through host memory (kernel options NET_SCH_INGRESS, NET_CLS_U32, NET_ACT_MIRRED): %w", name, err)
		}
	}
	return nil
}

// divert sends both directions of an interface over another one.
func divert(h *netlink.Handle, name string, over int) error {
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	if err := clsact(h, l); err != nil {
		return err
	}
	for _, parent := range []uint32{netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS} {
		if err := redirect(h, l, parent, over); err != nil {
			return err
		}
	}
	return nil
}

// redirect sends one direction of an interface over another one.
func redirect(h *netlink.Handle, l netlink.Link, parent uint32, over int) error {
	return h.FilterAdd(&netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: parent, Priority: 10, Protocol: unix.ETH_P_IP},
		Actions: []netlink.Action{&netlink.MirredAction{
			ActionAttrs: netlink.ActionAttrs{Action: netlink.TC_ACT_STOLEN}, MirredAction: netlink.TCA_EGRESS_REDIR, Ifindex: over,
		}},
	})
}

// clsact gives an interface the hooks for filters in both directions.
func clsact(h *netlink.Handle, l netlink.Link) error {
	return h.QdiscReplace(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
}
