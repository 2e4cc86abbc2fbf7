package lab

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"busbar.dev/unit"
)

// active is a fault that is in place.
type active struct {
	f    Fault
	stop chan struct{} // of a link that flaps
	done chan struct{}
}

// list is the faults of now.
func (h *holder) list() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []Fault
	for _, a := range h.faults {
		all = append(all, a.f)
	}
	return all
}

// fault puts a fault in place, instead of another one of its place and kind.
func (h *holder) fault(f Fault) error {
	h.changing.Lock()
	defer h.changing.Unlock()
	if f.Kind == "node" {
		return h.faultNode(f)
	}
	if n, links := h.plan.InnerLink(f.Where); len(links) > 0 {
		return h.faultInner(f, n, links)
	}
	nic, err := h.plan.Link(f.Where)
	if err != nil {
		return &RequestError{err.Error()}
	}
	x := &h.plan.NICs[nic]
	f.Where = h.plan.Nodes[x.Node].Name + ":" + x.Name
	if f.What == "rate" { // looked at before the fault that it takes the place of is healed
		if err := tooSlow(x.Rate, f); err != nil {
			return err
		}
	}
	if err := h.repairOne(f.Kind+" "+f.Where, func(o Fault) bool {
		return o.What == f.What || isState(o) && isState(f)
	}); err != nil {
		return err
	}
	a := &active{f: f}
	switch f.What {
	case "rate":
		err = h.fab.shapeNIC(nic, f.Share)
	case "loss":
		err = h.fab.lose(nic, f.Share)
	case "down":
		err = h.fab.set(nic, false)
	case "flap":
		a.stop, a.done = make(chan struct{}), make(chan struct{})
		go h.flap(nic, a)
	}
	if err != nil {
		return err
	}
	h.keep(a)
	return nil
}

// keep lists a fault that is in place.
func (h *holder) keep(a *active) {
	h.mu.Lock()
	h.faults[a.f.Kind+" "+a.f.Where+" "+a.f.What] = a
	h.mu.Unlock()
}

// slowest is a rate at which a full packet still takes less than a minute.
const slowest = unit.Rate(1 << 10)

// tooSlow refuses what would leave next to nothing of a link, which shapers cannot do.
func tooSlow(r unit.Rate, f Fault) error {
	if left := r * unit.Rate(f.Share); left < slowest {
		return &RequestError{fmt.Sprintf("%v leaves %v; at least %v is needed: choose a greater rate, or down", f, left,
			slowest)}
	}
	return nil
}

// isState reports a fault that says whether a link is up.
func isState(f Fault) bool { return f.What == "down" || f.What == "flap" }

// faultInner makes a link inside a node slower.
func (h *holder) faultInner(f Fault, n int, links []int) error {
	if f.What != "rate" {
		return &RequestError{fmt.Sprintf("%s is inside a node; expected rate=PERCENT%%", f.Where)}
	}
	x := &h.plan.inner(n).Links[links[0]]
	if err := tooSlow(x.Rate, f); err != nil {
		return err
	}
	f.Where, _ = h.plan.place(f.Where) // one name, whichever GPU was said first
	if err := h.fab.shapeInner(n, links, f.Share); err != nil {
		return err
	}
	h.keep(&active{f: f})
	return nil
}

func (h *holder) faultNode(f Fault) error {
	n := h.plan.NodeByName(f.Where)
	if n < 0 {
		return &RequestError{fmt.Sprintf("no node %q; the lab has %s", f.Where, h.plan.names())}
	}
	if !hasProc() {
		return fmt.Errorf("the lab has no /proc of its own, so the programs of %s cannot be found", f.Where)
	}
	if f.What == "kill" { // over as soon as it is done
		return h.signalNode(n, syscall.SIGKILL)
	}
	if err := h.signalNode(n, syscall.SIGSTOP); err != nil {
		return err
	}
	h.keep(&active{f: f})
	return nil
}

// flap takes a link down and up until it is healed.
func (h *holder) flap(nic int, a *active) {
	defer close(a.done)
	t := time.NewTicker(a.f.Every)
	defer t.Stop()
	for up := false; ; up = !up {
		h.fab.set(nic, up)
		select {
		case <-t.C:
		case <-a.stop:
			return
		}
	}
}

// repair ends faults: all of them, those of a link ("node0:mlx5_0"), of a node and its links
// ("node0") or of a kind ("link"), and returns what is left.
func (h *holder) repair(what string) ([]Fault, error) {
	h.changing.Lock()
	defer h.changing.Unlock()
	what, err := h.plan.place(what)
	if err != nil {
		return nil, &RequestError{err.Error()}
	}
	if err := h.repairOne(what, func(Fault) bool { return true }); err != nil {
		return nil, err
	}
	return h.list(), nil
}

// repairOne ends the faults of a place that match.
func (h *holder) repairOne(what string, match func(Fault) bool) error {
	h.mu.Lock()
	var gone []*active
	for key, a := range h.faults {
		place := a.f.Kind + " " + a.f.Where
		if (what == "" || what == "all" || what == place || what == a.f.Where || what == a.f.Kind ||
			strings.HasPrefix(a.f.Where, what+":")) && match(a.f) {
			gone = append(gone, a)
			delete(h.faults, key)
		}
	}
	h.mu.Unlock()
	for _, a := range gone {
		if err := h.undo(a); err != nil {
			return fmt.Errorf("%v: %w", a.f, err)
		}
	}
	return nil
}

func (h *holder) undo(a *active) error {
	if a.f.Kind == "node" {
		return h.signalNode(h.plan.NodeByName(a.f.Where), syscall.SIGCONT)
	}
	if n, links := h.plan.InnerLink(a.f.Where); len(links) > 0 {
		return h.fab.shapeInner(n, links, 1)
	}
	nic, err := h.plan.Link(a.f.Where)
	if err != nil {
		return err
	}
	switch a.f.What {
	case "rate":
		return h.fab.shapeNIC(nic, 1)
	case "loss":
		return h.fab.lose(nic, 0)
	case "flap":
		close(a.stop)
		<-a.done
	}
	return h.fab.set(nic, true)
}

// set takes the cable of a NIC out of its switch or puts it back.
func (f *fabric) set(nic int, up bool) error {
	l, err := f.own.LinkByName(portName(nic))
	if err != nil {
		return err
	}
	if up {
		return f.own.LinkSetUp(l)
	}
	return f.own.LinkSetDown(l)
}

// lossPriority is of the filters that lose packets, before any others.
const lossPriority = 5

// lose drops a part of what passes a NIC's port, in both directions: a classic filter
// program draws a random number and sends what it hits to an interface whose other end
// nobody listens to. 0 ends it.
func (f *fabric) lose(nic int, share float64) error {
	l, err := f.own.LinkByName(portName(nic))
	if err != nil {
		return err
	}
	if share == 0 {
		return f.own.QdiscDel(clsact(l)) // the hooks are the loss's alone on a switch's port
	}
	hole, err := f.blackHole()
	if err != nil {
		return err
	}
	if err := f.own.QdiscReplace(clsact(l)); err != nil {
		return err
	}
	for _, parent := range directions {
		if err := addLoss(l.Attrs().Index, parent, share, hole); err != nil {
			return fmt.Errorf("losing packets (kernel options NET_CLS_BPF, NET_ACT_MIRRED): %w", err)
		}
	}
	return nil
}

// blackHole is an interface from which nothing returns; its other end has no address.
func (f *fabric) blackHole() (int, error) {
	l, err := f.own.LinkByName("pit")
	if err != nil {
		if err := f.veth("pit", "bottom", 65000, nil, nil); err != nil {
			return 0, err
		}
		if _, err := bringUp(f.own, "bottom"); err != nil {
			return 0, err
		}
		if l, err = bringUp(f.own, "pit"); err != nil {
			return 0, err
		}
	}
	return l.Attrs().Index, nil
}

// addLoss adds the filter: ld rand; jge #limit, keep; ret -1; keep: ret 0. The library
// has no form for classic programs, so the request is put together here.
func addLoss(link int, parent uint32, share float64, hole int) error {
	const rand = 0xfffff000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM
	limit := uint32(math.Min(share*float64(1<<32), math.MaxUint32))
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: rand},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: 1, Jf: 0, K: limit},
		{Code: unix.BPF_RET | unix.BPF_K, K: math.MaxUint32},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	var ops []byte
	native := nl.NativeEndian()
	for _, op := range program {
		var b [8]byte
		native.PutUint16(b[0:], op.Code)
		b[2], b[3] = op.Jt, op.Jf
		native.PutUint32(b[4:], op.K)
		ops = append(ops, b[:]...)
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWTFILTER, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddData(&nl.TcMsg{
		Family: nl.FAMILY_ALL, Ifindex: int32(link), Parent: parent,
		Info: netlink.MakeHandle(lossPriority, nl.Swap16(unix.ETH_P_ALL)),
	})
	req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated("bpf")))
	opts := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
	opts.AddRtAttr(nl.TCA_BPF_OPS_LEN, nl.Uint16Attr(uint16(len(program))))
	opts.AddRtAttr(nl.TCA_BPF_OPS, ops)
	actions := opts.AddRtAttr(nl.TCA_BPF_ACT, nil)
	if err := netlink.EncodeActions(actions, sendOver(hole)); err != nil {
		return err
	}
	req.AddData(opts)
	// The holder's own network is the fabric's; a request outside a handle goes there.
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
