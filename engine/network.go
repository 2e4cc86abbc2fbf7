package engine

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"busbar/internal/shm"
)

// network is a group's standing among processes: listeners, the table of members, and the
// control connections.
type network struct {
	g         *Group
	cfg       Config
	key       []byte
	listeners []net.Listener
	bind      []net.IP
	members   []member
	tabled    chan struct{} // closed when members is known
	guests    chan struct{} // strangers who may try at once
	refused   [refusals]atomic.Int64

	up     *control     // of all but rank 0: to rank 0
	center *center      // of rank 0
	heard  atomic.Int64 // when rank 0 was last heard, of the others
	quit   chan struct{}
	tasks  sync.WaitGroup
	left   atomic.Bool // this rank has said farewell
}

// maxGuests is how many connections may be in their handshake at once.
const maxGuests = 256

// Refused is how many connections were turned away, by reason.
func (g *Group) Refused() map[Refusal]int64 {
	all := map[Refusal]int64{}
	if g.net == nil {
		return all
	}
	for r := Garbage; r < refusals; r++ {
		if n := g.net.refused[r].Load(); n > 0 {
			all[r] = n
		}
	}
	return all
}

// accept lets connections in that prove themselves.
func (n *network) accept(l net.Listener) {
	defer n.tasks.Done()
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or the like
			select {
			case <-n.quit:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		select {
		case n.guests <- struct{}{}:
		default:
			n.refused[TooMany].Add(1)
			c.Close()
			continue
		}
		n.tasks.Go(func() {
			defer func() { <-n.guests }()
			if why := n.welcome(c); why != 0 {
				n.refused[why].Add(1)
				c.Close()
			}
		})
	}
}

// welcome is the handshake with a connection that came, and its reception.
func (n *network) welcome(c net.Conn) Refusal {
	stop := n.closing(c)
	h, answer, why := receiveHello(c, n.key)
	stop()
	if answer == nil {
		return why
	}
	if why == 0 {
		why = n.known(h)
	}
	if why != 0 {
		answer(why)
		return why
	}
	if h.purpose == forControl {
		return n.center.admit(c, h, answer)
	}
	select {
	case <-n.tabled: // the peer may have heard of everybody before this rank has
	case <-n.quit:
		return TooMany
	case <-time.After(patience):
		return TooMany
	}
	if n.g.reg.has(int(h.rank), int(h.conn)) {
		answer(Taken)
		return Taken
	}
	if answer(0) != nil {
		return Garbage
	}
	if err := n.newLink(c, int(h.rank), int(h.conn), false); err != nil {
		return Garbage
	}
	return 0
}

// closing closes a connection when the group ends; the function it returns calls that off.
func (n *network) closing(c net.Conn) func() {
	done := make(chan struct{})
	go func() {
		select {
		case <-n.quit:
			c.Close()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// known checks that a proven connection belongs to this group.
func (n *network) known(h hello) Refusal {
	switch {
	case int(h.size) != n.cfg.Size || int64(h.rank) >= int64(n.cfg.Size) || int(h.rank) == n.cfg.Rank:
		return WrongGroup
	case h.purpose == forControl && n.center == nil, h.purpose != forControl && h.purpose != forData:
		return WrongGroup
	case h.purpose == forData && int(h.conn) >= n.cfg.Conns:
		return WrongGroup
	}
	return 0
}

// newLink makes a connection a link of the group: its bytes go through shared memory where
// both sides are on one host, else through the socket.
func (n *network) newLink(c net.Conn, peer, k int, dialled bool) error {
	share, err := n.shares(peer)
	if err != nil {
		c.Close()
		return err
	}
	var seg *shm.Segment
	if share {
		if dialled {
			seg, err = n.offer(c)
		} else {
			seg, err = n.accepts(c)
		}
		if err != nil && n.cfg.Transport == Shm {
			c.Close()
			return fmt.Errorf("shared memory with rank %d: %w", peer, err)
		}
	}
	s, fd, err := takeSocket(c, n.cfg.Timeout)
	if err != nil {
		return err
	}
	if seg != nil {
		s = newRingPair(seg, dialled, s)
	}
	if !n.g.reg.add(n.g.newLink(peer, k, s, fd)) {
		s.close()
		return errors.New("connected already")
	}
	return nil
}

// dialAll connects to peers, several at a time. A peer that cannot be reached fails the
// group, as one does whose connection breaks later.
func (n *network) dialAll(peers []int) error {
	for _, p := range peers {
		if _, err := n.shares(p); err != nil {
			return err
		}
	}
	errs := make([]error, len(peers))
	sem := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			for k := range n.cfg.Conns {
				if errs[i] == nil && !n.g.reg.has(p, k) {
					errs[i] = n.dial(p, k)
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			n.suspect(peers[i], err)
			return n.g.failure()
		}
	}
	return nil
}

// dial makes one connection to a peer.
func (n *network) dial(peer, k int) error {
	m := n.members[peer]
	if len(m.Addrs) == 0 {
		return fmt.Errorf("rank %d has no address", peer)
	}
	addr := m.Addrs[k%len(m.Addrs)]
	c, err := n.dialFrom(k, addr, n.cfg.Timeout)
	if err != nil {
		return fmt.Errorf("connect to rank %d (%s) at %s: %w", peer, m.Host, addr, err)
	}
	h := hello{purpose: forData, conn: uint8(k), rank: uint32(n.cfg.Rank), size: uint32(n.cfg.Size)}
	if err := introduce(c, n.key, h); err != nil {
		c.Close()
		return fmt.Errorf("connect to rank %d (%s) at %s: %w", peer, m.Host, addr, err)
	}
	return n.newLink(c, peer, k, true)
}

// dialFrom dials from the k-th of the addresses to bind to, where there are any of the same
// family.
func (n *network) dialFrom(k int, addr string, limit time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: limit}
	if len(n.bind) > 0 {
		ip := n.bind[k%len(n.bind)]
		host, _, err := net.SplitHostPort(addr)
		if to := net.ParseIP(host); err == nil && (to == nil || (to.To4() == nil) == (ip.To4() == nil)) {
			d.LocalAddr = &net.TCPAddr{IP: ip}
		}
	}
	return d.Dial("tcp", addr)
}

func (n *network) member(rank int) member {
	if rank < len(n.members) {
		return n.members[rank]
	}
	return member{Rank: rank}
}

// close ends what the network has under way.
func (n *network) close() {
	close(n.quit)
	for _, l := range n.listeners {
		l.Close()
	}
	if n.up != nil {
		n.up.c.Close()
	}
	if n.center != nil {
		n.center.close()
	}
	n.tasks.Wait()
	n.g.reg.mu.Lock()
	defer n.g.reg.mu.Unlock()
	for _, l := range n.g.reg.fresh {
		l.s.close()
	}
	n.g.reg.fresh = nil
}
