package lab

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// inside shapes what ranks of a node send to each other over its loopback: a class of a
// hierarchical token bucket for every link between its GPUs, told by the addresses of both.
// Links that lie one behind the other are shaped one behind the other: by an interface that
// packets take a detour over before the loopback, by the loopback itself, and by one that
// they take behind it.
func (f *fabric) inside(n int, x *Inner) error {
	h := f.at[n]
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := f.loopback(n, x, lo); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	over := [stages]netlink.Link{stageLoop: lo}
	for s, parent := range map[int]uint32{
		stageBefore: netlink.HANDLE_MIN_EGRESS, stageBehind: netlink.HANDLE_MIN_INGRESS,
	} {
		if !x.has(s) {
			continue
		}
		if over[s], err = detour(h, lo, detourName(s), parent); err != nil {
			return fmt.Errorf("links inside a node (kernel options IFB, NET_SCH_INGRESS, NET_CLS_U32, NET_ACT_MIRRED): %w", err)
		}
	}
	for s, l := range over {
		if l == nil || !x.has(s) {
			continue
		}
		if err := x.shape(h, l, s); err != nil {
			return fmt.Errorf("links inside a node (kernel options NET_SCH_HTB, NET_CLS_U32): %w", err)
		}
	}
	return nil
}

// loopback gives it packets of a size that links share well, and the addresses of GPUs that
// have no NIC.
func (f *fabric) loopback(n int, x *Inner, lo netlink.Link) error {
	h := f.at[n]
	if err := h.LinkSetMTU(lo, innerMTU); err != nil {
		return err
	}
	top := 0.0
	for _, l := range x.Links {
		top = max(top, float64(l.Rate))
	}
	if err := limitSegments(h, lo, top, innerMTU); err != nil {
		return err
	}
	if err := h.LinkSetTxQLen(lo, innerQueue); err != nil {
		return err
	}
	if len(f.p.Nodes[n].NICs) > 0 {
		return nil
	}
	for g := range x.GPUs {
		if err := addAddr(h, lo, f.p.gpuAddr(n, g, -1), 32); err != nil {
			return fmt.Errorf("address of a GPU: %w", err)
		}
	}
	return nil
}

// innerQueue is how many packets wait for a link inside a node at most, which is what it
// takes for none to be lost.
const innerQueue = 20000

// detour is an interface that all packets of one direction of the loopback cross.
func detour(h *netlink.Handle, lo netlink.Link, name string, parent uint32) (netlink.Link, error) {
	l, err := newIFB(h, name, innerQueue)
	if err != nil {
		return nil, err
	}
	return l, divert(h, lo, l, parent)
}

// keepOrder has every connection inside the node received by one processor. Detours are
// emptied by whichever is free, so that packets would overtake each other, and TCP takes that
// for loss.
func (n *namespaces) keepOrder() error {
	all := uint64(1)<<min(runtime.NumCPU(), 32) - 1
	return onThread(func() error {
		if err := n.enter(); err != nil {
			return err
		}
		return os.WriteFile("/sys/class/net/lo/queues/rx-0/rps_cpus", []byte(strconv.FormatUint(all, 16)), 0)
	})
}

// shape puts the links of a stage on an interface.
func (x *Inner) shape(h *netlink.Handle, l netlink.Link, stage int) error {
	root := netlink.MakeHandle(1, 0)
	index := l.Attrs().Index
	if err := h.QdiscReplace(netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: index, Handle: root, Parent: netlink.HANDLE_ROOT,
	})); err != nil {
		return err
	}
	for k := range x.Links {
		if x.Links[k].Stage != stage {
			continue
		}
		if err := h.ClassReplace(class(index, k, float64(x.Links[k].Rate))); err != nil {
			return fmt.Errorf("%s: %w", x.Links[k].Name, err)
		}
	}
	for i := range x.Routes {
		for j, way := range x.Routes[i] {
			for _, k := range way {
				if x.Links[k].Stage != stage {
					continue
				}
				if err := h.FilterAdd(between(index, root, i, j, classID(k))); err != nil {
					return fmt.Errorf("from GPU %d to %d: %w", i, j, err)
				}
			}
		}
	}
	return nil
}

// shapeInner gives links inside a node a share of their rate.
func (f *fabric) shapeInner(n int, links []int, share float64) error {
	x := f.p.inner(n)
	for _, k := range links {
		name := "lo"
		if s := x.Links[k].Stage; s != stageLoop {
			name = detourName(s)
		}
		l, err := f.at[n].LinkByName(name)
		if err != nil {
			return err
		}
		if err := f.at[n].ClassChange(class(l.Attrs().Index, k, float64(x.Links[k].Rate)*share)); err != nil {
			return fmt.Errorf("%s: %w", x.Links[k].Name, err)
		}
	}
	return nil
}

func detourName(stage int) string { return fmt.Sprintf("ifb%d", 10+stage) }

func classID(link int) uint32 { return netlink.MakeHandle(1, uint16(link+1)) }

func class(index, link int, rate float64) *netlink.HtbClass {
	// An eighth of a millisecond: unlike a plain token bucket this one lends what is missing
	// of a packet, so that it need not hold a whole one, and what it saves up while ranks wait
	// goes faster than the link.
	size := bucket(rate/2, innerMTU)
	// The library takes bits a second, and the bucket in bytes.
	return netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: index, Parent: netlink.MakeHandle(1, 0), Handle: classID(link)},
		netlink.HtbClassAttrs{
			Rate: uint64(rate * 8), Ceil: uint64(rate * 8), Buffer: uint32(size), Cbuffer: uint32(size), Quantum: 60 << 10,
		},
	)
}

// between sends what one GPU sends to another to a class.
func between(index int, root uint32, from, to int, id uint32) *netlink.U32 {
	const mask = 0xff00ff00
	gpu := func(g int) uint32 { return 10<<24 | uint32(g+1)<<8 }
	return &netlink.U32{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: root, Priority: 1, Protocol: unix.ETH_P_IP},
		ClassId:     id,
		Sel: &netlink.TcU32Sel{
			Flags: netlink.TC_U32_TERMINAL,
			Nkeys: 2,
			Keys:  []netlink.TcU32Key{{Mask: mask, Val: gpu(from), Off: 12}, {Mask: mask, Val: gpu(to), Off: 16}},
		},
	}
}
