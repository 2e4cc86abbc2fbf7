package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Star is a job whose ranks talk to rank 0, and of which some may be missing, fall silent or be cut off from each
// other: what looks at hosts before anybody can rely on them. Rank 0 gives orders and collects replies; an order may
// seat some ranks in a Group of their own, whose failure is that group's alone.
type Star struct {
	*network
	addrs []netip.AddrPort // where this rank listens

	mu      sync.Mutex
	current *network      // of the group in which this rank has a seat
	seated  chan struct{} // closed and replaced when current changes
	groups  uint32        // so many were seated
	orders  []int         // by rank: so many were given
	replies chan StarReply
}

// StarReply is what a rank replied to rank 0, or why it will not any more.
type StarReply struct {
	Rank int
	Body []byte
	Err  error
}

// Seat is a rank's place in a group of some ranks of a star. It travels in an order, and Sit checks it.
type Seat struct {
	Epoch uint32         `json:"epoch"`
	Rank  int            `json:"rank"`
	Size  int            `json:"size"`
	Meet  netip.AddrPort `json:"meet"` // where the group's rank 0 listens
}

// JoinStar makes this process a rank of a star. Rank 0 begins with those who have come within Config.JoinTimeout. The
// others look for it twice as long.
func JoinStar(ctx context.Context, cfg Config) (*Star, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	limit := cfg.JoinTimeout
	if cfg.Rank > 0 {
		limit *= 2
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("rank 0 did not let it in within %v", limit))
	defer cancel()
	d, err := newEndpoint(&cfg)
	if err != nil {
		return nil, err
	}
	s := &Star{network: newNetwork(cfg, d, nil), seated: make(chan struct{}), orders: make([]int, cfg.Size)}
	s.replies = make(chan StarReply, 2*cfg.Size) // a reply and an end of each: who reads late holds nobody up
	d.receive = s.receive
	if cfg.Rank == 0 {
		s.coordinator.listen = s.listen
		err = s.host(ctx)
	} else {
		s.addrs, err = s.greetCoordinator(ctx, nil)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("rank %d of %d joins at %s: %w", cfg.Rank, cfg.Size, cfg.Meet, err)
	}
	return s, nil
}

// host is JoinStar of rank 0.
func (s *Star) host(ctx context.Context) (err error) {
	if s.cfg.Size > 1 {
		addrs, withdraw, err := s.open()
		if err != nil {
			return err
		}
		defer withdraw()
		s.addrs = addrs
		select {
		case <-s.coordinator.full:
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return context.Cause(ctx)
			}
		}
	}
	s.coordinator.begin(s.own(s.addrs))
	return nil
}

// receive takes a connection that has proven itself: of a rank to rank 0, or within a group.
func (s *Star) receive(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	if h.epoch == 0 {
		return s.network.receive(c, h, answer)
	}
	if n := s.groupOf(h.epoch); n != nil {
		return n.receive(c, h, answer)
	}
	answer(TooMany) // it may try again
	return TooMany
}

// listen passes on what a rank replies: once to an order, and once before, to say that it is ready.
func (s *Star) listen(rank int, ctl *control) {
	select {
	case <-s.tabled:
	case <-s.quit:
		return
	}
	for got := 0; ; got++ {
		m, err := ctl.receive(noteReply)
		s.mu.Lock()
		if err == nil && got > s.orders[rank] {
			err = &protocolError{rank, "a reply to no order"}
		}
		s.mu.Unlock()
		select {
		case s.replies <- StarReply{Rank: rank, Body: m.body, Err: err}:
		case <-s.quit:
		}
		if err != nil {
			ctl.c.Close()
			return
		}
	}
}

// Rank is this rank's number.
func (s *Star) Rank() int { return s.cfg.Rank }

// Members are all ranks in order, of rank 0; who did not come has Pid 0.
func (s *Star) Members() []Member {
	list := make([]Member, len(s.members))
	for r, m := range s.members {
		list[r] = Member{r, m.Host, m.Pid}
	}
	return list
}

// Order sends a rank something to do, as JSON. Of rank 0 alone.
func (s *Star) Order(rank int, v any) error {
	if rank < 1 || rank >= len(s.members) || s.members[rank].Pid == 0 {
		return fmt.Errorf("rank %d is not there", rank)
	}
	s.mu.Lock()
	s.orders[rank]++
	s.mu.Unlock()
	return s.coordinator.ranks[rank].c.sendJSON(noteOrder, v)
}

// Replies are what the others reply.
func (s *Star) Replies() <-chan StarReply { return s.replies }

// Next is the next order of rank 0. Its end is an error.
func (s *Star) Next(ctx context.Context) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { s.up.c.SetReadDeadline(time.Now()) })
	defer stop()
	m, err := s.up.receive(noteOrder)
	var bad *protocolError
	switch {
	case errors.As(err, &bad):
		return nil, &PeerError{Rank: 0, Cause: Failed, Text: bad.text}
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("rank 0 is gone: %w", err)
	}
	return m.body, nil
}

// Reply sends what came of an order to rank 0, as JSON.
func (s *Star) Reply(v any) error { return s.up.sendJSON(noteReply, v) }

// Seats are the places of some ranks in a group of them, of which the first is its rank 0.
func (s *Star) Seats(ranks []int) []Seat {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups++
	list := make([]Seat, len(ranks))
	for i := range ranks {
		list[i] = Seat{Epoch: s.groups, Rank: i, Size: len(ranks), Meet: s.members[ranks[0]].Addrs[0]}
	}
	return list
}

// Sit joins the group in which this rank has a seat, within the context's limit. A rank sits in one group at a time,
// and takes no seat of a group that is older than its last.
func (s *Star) Sit(ctx context.Context, seat Seat) (*Group, error) {
	if seat.Size < 2 || seat.Size > s.cfg.Size {
		return nil, fmt.Errorf("a seat among %d ranks of %d", seat.Size, s.cfg.Size)
	}
	meet, err := seat.Meet, error(nil)
	if seat.Rank > 0 {
		meet, err = s.Reached(meet)
	}
	cfg := s.cfg
	cfg.Rank, cfg.Size, cfg.Meet, cfg.OnWait = seat.Rank, seat.Size, meet.String(), nil
	if err = cmp.Or(err, cfg.complete()); err != nil {
		return nil, fmt.Errorf("a seat: %w", err)
	}
	w, err := newPoller()
	if err != nil {
		return nil, err
	}
	g := newGroup(cfg, w)
	g.driver.spin, g.driver.yields = spin, true
	n := newNetwork(cfg, s.endpoint, g)
	g.net, n.borrowed, n.epoch = n, true, seat.Epoch
	if err = s.take(n); err == nil && seat.Rank == 0 {
		err = n.gather(ctx, s.addrs)
	} else if err == nil {
		err = n.visit(ctx, s.addrs)
	}
	if err != nil {
		n.left.Store(true)
		n.abandon()
		return nil, err
	}
	return g, nil
}

// take makes a group the one in which this rank sits.
func (s *Star) take(n *network) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.epoch == 0 || s.current != nil && n.epoch <= s.current.epoch {
		return fmt.Errorf("a seat in group %d, which is over", n.epoch)
	}
	s.current = n
	close(s.seated)
	s.seated = make(chan struct{})
	return nil
}

// Reached is an address that this rank may connect to: one that means any of rank 0's host becomes the one at which
// this rank reaches it, and Config.MayDial is asked.
func (s *Star) Reached(addr netip.AddrPort) (netip.AddrPort, error) {
	if !addr.IsValid() || addr.Port() == 0 || addr.Addr().IsMulticast() {
		return addr, fmt.Errorf("%.80q is no address to connect to", addr)
	}
	if addr.Addr().IsUnspecified() {
		host := netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if s.up != nil {
			host = addrPort(s.up.c.RemoteAddr()).Addr()
		}
		addr = netip.AddrPortFrom(host, addr.Port())
	}
	return addr, s.endpoint.allow(addr)
}

// Address is where a rank listens that has come, of rank 0.
func (s *Star) Address(rank int) netip.AddrPort { return s.members[rank].Addrs[0] }

// groupOf is the group of an epoch, which the other side may know of sooner; nil when it does not come.
func (s *Star) groupOf(epoch uint32) *network {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		s.mu.Lock()
		n, seated := s.current, s.seated
		s.mu.Unlock()
		if n != nil && n.epoch >= epoch {
			if n.epoch > epoch {
				return nil
			}
			return n
		}
		select {
		case <-seated:
		case <-s.quit:
			return nil
		case <-limit.C:
			return nil
		}
	}
}

// Close ends the membership. Ranks that wait for orders notice.
func (s *Star) Close() error {
	s.close()
	return nil
}
