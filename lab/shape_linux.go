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
	if err := limitSegments(h, l, rate, mtu); err != nil {
		return err
	}
	return bucketOn(h, l, rate, bucket(rate, mtu))
}

// limitSegments keeps TCP to the segments of a rate on an interface.
func limitSegments(h *netlink.Handle, l netlink.Link, rate float64, mtu int) error {
	err := h.LinkSetGSOMaxSize(l, segment(rate, mtu))
	if err == nil {
		err = h.LinkSetGSOIPv4MaxSize(l, segment(rate, mtu))
	}
	if err != nil {
		return fmt.Errorf("segment size of %s: %w", l.Attrs().Name, err)
	}
	return nil
}

// bringUp finds an interface and sets it up.
func bringUp(h *netlink.Handle, name string) (netlink.Link, error) {
	l, err := h.LinkByName(name)
	if err != nil {
		return nil, err
	}
	return l, h.LinkSetUp(l)
}

// newIFB makes an interface that packets of others can be sent over.
func newIFB(h *netlink.Handle, name string, queue int) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.TxQLen, attrs.MTU = name, queue, 65000
	if err := h.LinkAdd(&netlink.Ifb{LinkAttrs: attrs}); err != nil {
		return nil, err
	}
	return bringUp(h, name)
}

// bucketOn puts a token bucket on an interface, in the place of the one it has.
func bucketOn(h *netlink.Handle, l netlink.Link, rate float64, size int) error {
	q := &netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT,
		},
		Rate:   uint64(rate),
		Limit:  queue,
		Buffer: netlink.Xmittime(uint64(rate), uint32(size)),
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
	ifb, err := newIFB(h, "ifb0", 1000)
	if err != nil {
		return fmt.Errorf("the path through host memory (kernel option IFB): %w", err)
	}
	mtu := 0
	var names []string
	for _, i := range f.p.Nodes[n].NICs {
		mtu = max(mtu, f.p.NICs[i].MTU)
		names = append(names, f.p.NICs[i].Name)
	}
	rate := float64(f.p.Staging)
	if err := bucketOn(h, ifb, rate, max(bucket(rate, mtu), 64<<10+mtu)); err != nil {
		return err
	}
	if f.p.Local {
		names = append(names, "lo")
	}
	for _, name := range names {
		l, err := h.LinkByName(name)
		if err == nil {
			err = divert(h, l, ifb, directions[:]...)
		}
		if err != nil {
			return fmt.Errorf("%s through host memory (kernel options NET_SCH_INGRESS, NET_CLS_U32, NET_ACT_MIRRED): %w", name,
				err)
		}
	}
	return nil
}

// divert sends directions of an interface over another one.
func divert(h *netlink.Handle, l, over netlink.Link, parents ...uint32) error {
	err := h.QdiscReplace(clsact(l))
	for _, parent := range parents {
		if err == nil {
			err = h.FilterAdd(&netlink.U32{
				FilterAttrs: netlink.FilterAttrs{
					LinkIndex: l.Attrs().Index, Parent: parent, Priority: 10, Protocol: unix.ETH_P_IP,
				},
				Actions: sendOver(over.Attrs().Index),
			})
		}
	}
	return err
}

// sendOver is the action of a filter that sends packets over an interface instead.
func sendOver(index int) []netlink.Action {
	return []netlink.Action{&netlink.MirredAction{
		ActionAttrs: netlink.ActionAttrs{Action: netlink.TC_ACT_STOLEN}, MirredAction: netlink.TCA_EGRESS_REDIR,
		Ifindex: index,
	}}
}

// clsact is the hooks of an interface for filters in both directions.
func clsact(l netlink.Link) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
}

// directions are where filters of the two directions of an interface hang.
var directions = [...]uint32{netlink.HANDLE_MIN_EGRESS, netlink.HANDLE_MIN_INGRESS}
