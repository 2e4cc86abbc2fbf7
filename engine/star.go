package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Star is a job whose ranks talk to rank 0, and of which some may be missing, fall silent or be cut off from each
// other: what looks at hosts before anybody can rely on them. Rank 0 gives orders and collects replies; an order may
// seat some ranks in a Group of their own, whose failure is that group's alone.
type Star struct {
	*network
	addrs []string // where this rank listens

	mu      sync.Mutex
	to      []*control // rank 0's connections, nil where nobody came
	table   []member   // of rank 0
	come    int
	full    chan struct{} // closed when all have come
	begun   bool          // nobody is let in any more
	current *network      // of the group in which this rank has a seat
	seated  chan struct{} // closed and replaced when current changes
	groups  uint32        // so many were seated
	replies chan StarReply
}

// StarReply is what a rank replied to rank 0, or why it will not any more.
type StarReply struct {
	Rank int
	Body []byte
	Err  error
}

// Seat is a rank's place in a group of some ranks of a star. It travels in an order.
type Seat struct {
	Epoch uint32 `json:"epoch"`
	Rank  int    `json:"rank"`
	Size  int    `json:"size"`
	Meet  string `json:"meet"` // where the group's rank 0 listens
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
	s := &Star{
		network: &network{cfg: cfg, endpoint: d, quit: make(chan struct{})}, seated: make(chan struct{}),
		full: make(chan struct{}),
	}
	s.to, s.table, s.come = make([]*control, cfg.Size), make([]member, cfg.Size), 1
	s.replies = make(chan StarReply, 2*cfg.Size) // a reply and an end of each: who reads late holds nobody up
	d.receive = s.receive
	if cfg.Rank == 0 {
		err = s.host(ctx)
	} else {
		err = s.visit(ctx)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("rank %d of %d joins at %s: %w", cfg.Rank, cfg.Size, cfg.Meet, err)
	}
	return s, nil
}

// host is JoinStar of rank 0.
func (s *Star) host(ctx context.Context) (err error) {
	if s.cfg.Size == 1 {
		s.table[0] = s.own(nil)
		return nil
	}
	addrs, withdraw, err := s.open()
	if err != nil {
		return err
	}
	defer withdraw()
	s.addrs = addrs
	select {
	case <-s.full:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.table[0] = true, s.own(s.addrs)
	for r, ctl := range s.to {
		if ctl != nil {
			s.tasks.Go(func() { s.listen(r, ctl) })
		}
	}
	return nil
}

// visit is JoinStar of the others.
func (s *Star) visit(ctx context.Context) error {
	conn, err := s.findCoordinator(ctx)
	if err != nil {
		return err
	}
	s.up = &control{c: conn, limit: s.cfg.Timeout}
	if s.addrs, err = s.endpoint.listen(s.endpoint.reachableFrom(conn, &s.cfg), 0); err != nil {
		return err
	}
	return s.up.sendJSON(noteMember, s.own(s.addrs))
}

// receive takes a connection that has proven itself: of a rank to rank 0, or within a group.
func (s *Star) receive(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	if h.epoch == 0 {
		return s.admit(c, h, answer)
	}
	if n := s.groupOf(h.epoch); n != nil {
		return n.receive(c, h, answer)
	}
	answer(TooMany) // it may try again
	return TooMany
}

// admit takes the connection of a rank to rank 0.
func (s *Star) admit(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	why := Refusal(0)
	r := int(h.rank)
	if s.cfg.Rank != 0 || h.purpose != forControl || int(h.size) != s.cfg.Size || r < 1 || r >= s.cfg.Size {
		why = WrongGroup
	} else {
		s.mu.Lock()
		switch {
		case s.begun:
			why = Late
		case s.to[r] != nil:
			why = Taken
		}
		s.mu.Unlock()
	}
	if err := answer(why); err != nil || why != 0 {
		return max(why, Garbage)
	}
	ctl := &control{c: c, limit: s.cfg.Timeout}
	c.SetReadDeadline(time.Now().Add(patience))
	stop := closing(s.quit, c)
	kind, body, err := ctl.receive(nil)
	stop()
	c.SetReadDeadline(time.Time{})
	var m member
	if err != nil || kind != noteMember || json.Unmarshal(body, &m) != nil || len(m.Addrs) == 0 {
		return Garbage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun || s.to[r] != nil {
		return Taken
	}
	m.Rank = r
	s.to[r], s.table[r] = ctl, m
	if s.come++; s.come == s.cfg.Size {
		close(s.full)
	}
	return 0
}

// listen passes on what a rank replies.
func (s *Star) listen(rank int, ctl *control) {
	for {
		kind, body, err := ctl.receive(nil)
		if err == nil && kind != noteReply {
			continue
		}
		select {
		case s.replies <- StarReply{Rank: rank, Body: body, Err: err}:
		case <-s.quit:
		}
		if err != nil {
			return
		}
	}
}

// Rank is this rank's number.
func (s *Star) Rank() int { return s.cfg.Rank }

// Size is the number of ranks that were asked for.
func (s *Star) Size() int { return s.cfg.Size }

// Members are all ranks in order, of rank 0; who did not come has Pid 0.
func (s *Star) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Member, len(s.table))
	for r := range s.table {
		m := &s.table[r]
		list[r] = Member{Rank: r, Host: m.Host, Pid: m.Pid}
	}
	return list
}

// Order sends a rank something to do, as JSON. Of rank 0 alone.
func (s *Star) Order(rank int, v any) error {
	if rank < 1 || rank >= len(s.to) || s.to[rank] == nil {
		return fmt.Errorf("rank %d is not there", rank)
	}
	return s.to[rank].sendJSON(noteOrder, v)
}

// Replies are what the others reply.
func (s *Star) Replies() <-chan StarReply { return s.replies }

// Next is the next order of rank 0. Its end is an error.
func (s *Star) Next(ctx context.Context) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { s.up.c.SetReadDeadline(time.Now()) })
	defer stop()
	for {
		kind, body, err := s.up.receive(nil)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, fmt.Errorf("rank 0 is gone: %w", err)
		case kind == noteOrder:
			return body, nil
		}
	}
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
		list[i] = Seat{Epoch: s.groups, Rank: i, Size: len(ranks), Meet: s.table[ranks[0]].Addrs[0]}
	}
	return list
}

// Sit joins the group in which this rank has a seat, within the context's limit. A rank sits in one group at a time.
func (s *Star) Sit(ctx context.Context, seat Seat) (*Group, error) {
	cfg := s.cfg
	cfg.Rank, cfg.Size, cfg.Meet, cfg.OnWait = seat.Rank, seat.Size, s.Reached(seat.Meet), nil
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if cfg.meetsInFile() {
		return nil, fmt.Errorf("a seat at %q; expected host:port", cfg.Meet)
	}
	w, err := newPoller()
	if err != nil {
		return nil, err
	}
	g := newGroup(cfg, w)
	g.driver.spin, g.driver.yields = spin, true
	n := newNetwork(g, s.endpoint)
	n.borrowed, n.epoch = true, seat.Epoch
	if seat.Rank == 0 {
		n.coordinator = newCoordinator(n)
	}
	s.mu.Lock()
	s.current = n
	close(s.seated)
	s.seated = make(chan struct{})
	s.mu.Unlock()
	if seat.Rank == 0 {
		err = n.gather(ctx, s.addrs)
	} else {
		err = n.visit(ctx, s.addrs)
	}
	if err != nil {
		n.left.Store(true)
		n.abandon()
		return nil, err
	}
	return g, nil
}

// Reached replaces an address that means any of rank 0's host by the one at which this rank reaches it.
func (s *Star) Reached(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || ip != nil && !ip.IsUnspecified() {
		return addr
	}
	if s.up == nil {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return net.JoinHostPort(s.up.c.RemoteAddr().(*net.TCPAddr).IP.String(), port)
}

// Address is where a rank listens, of rank 0: an address at which the others reach it.
func (s *Star) Address(rank int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.table[rank].Addrs) == 0 {
		return ""
	}
	return s.table[rank].Addrs[0]
}

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
	close(s.quit)
	s.mu.Lock()
	s.begun = true
	for _, ctl := range append(s.to, s.up) {
		if ctl != nil {
			ctl.c.Close()
		}
	}
	s.mu.Unlock()
	s.endpoint.close()
	s.tasks.Wait()
	return nil
}
