package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/internal/shm"
	"busbar.dev/unit"
)

// network is a group's or a star's standing among processes: listeners, the table of members,
// and the control connections.
type network struct {
	g        *Group // nil of a star
	cfg      Config
	endpoint *endpoint
	borrowed bool   // the endpoint is a star's, which closes it
	epoch    uint32 // the number of a star's group; 0 elsewhere
	members  []member
	tabled   chan struct{} // closed when members is known

	up          *control     // of all but rank 0: to rank 0
	coordinator *coordinator // of rank 0
	heard       atomic.Int64 // when rank 0 was last heard, of the others
	quit        chan struct{}
	dialing     sync.Mutex // one goroutine at a time connects
	tasks       sync.WaitGroup
	left        atomic.Bool // this rank has announced that it leaves
	// parting says that rank 0 has closed its group, and stays for the others only.
	parting atomic.Bool
	met     atomic.Bool // this rank has found rank 0
}

// Refused is how many connections were turned away, by reason.
func (g *Group) Refused() map[Refusal]int64 {
	all := map[Refusal]int64{}
	if g.net == nil {
		return all
	}
	for r := Garbage; r < refusals; r++ {
		if n := g.net.endpoint.refused[r].Load(); n > 0 {
			all[r] = n
		}
	}
	return all
}

// receive takes a connection that has proven itself.
func (n *network) receive(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	if why := n.known(h); why != 0 {
		answer(why)
		return why
	}
	if h.purpose == forControl {
		return n.coordinator.admit(c, h, answer)
	}
	select {
	case <-n.tabled: // the peer may have heard of everybody before this rank has
	case <-n.quit:
		return TooMany
	case <-time.After(patience):
		return TooMany
	}
	if n.g.driver.reg.has(h.rank, h.conn) {
		answer(Taken)
		return Taken
	}
	if answer(0) != nil {
		return Garbage
	}
	if err := n.newLink(c, h.rank, h.conn, false); err != nil {
		return Garbage
	}
	return 0
}

// known checks that a proven connection belongs to this group, and is one that the other side makes: control
// connections lead to rank 0, and of two ranks the greater one dials.
func (n *network) known(h hello) Refusal {
	if h.epoch != n.epoch || h.size != n.cfg.Size || h.rank <= n.cfg.Rank ||
		h.purpose == forControl && n.coordinator == nil || h.purpose == forData && (n.g == nil || h.conn >= n.cfg.Conns) {
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
	// Of a connection through shared memory the socket only rings, which needs no TLS.
	take := takeSealed
	if seg != nil {
		c, take = plain(c), takeSocket
	}
	s, fd, err := take(c, n.cfg.Timeout)
	if err != nil {
		return err
	}
	if seg != nil {
		s = newRingPair(seg, dialled, s)
	} else if n.cfg.MaxRate > 0 {
		if err := pace(fd, n.cfg.MaxRate/unit.Rate(n.cfg.Conns)); err != nil {
			s.close()
			return err
		}
	}
	if !n.g.driver.reg.add(n.g.driver.newLink(peer, k, s, fd)) {
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // a group that has failed waits for nobody
		select {
		case <-n.g.ending.doomed:
			cancel()
		case <-ctx.Done():
		}
	}()
	errs := make([]error, len(peers))
	sem := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			for k := range n.cfg.Conns {
				if errs[i] == nil && !n.g.driver.reg.has(p, k) {
					errs[i] = n.dial(ctx, p, k)
				}
			}
		})
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			if !n.g.ending.broken.Load() {
				n.suspect(peers[i], err)
			}
			return n.g.failure()
		}
	}
	return nil
}

// dial makes one connection to a peer.
func (n *network) dial(ctx context.Context, peer, k int) error {
	m := n.members[peer]
	addr := m.Addrs[k%len(m.Addrs)].String()
	c, err := n.endpoint.dial(ctx, k, addr, n.cfg.Timeout)
	if err != nil {
		return fmt.Errorf("connect to rank %d (%s) at %s: %w", peer, m.Host, addr, err)
	}
	h := hello{purpose: forData, conn: k, epoch: n.epoch, rank: n.cfg.Rank, size: n.cfg.Size}
	stop := closing(ctx.Done(), c)
	err = n.endpoint.introduce(c, h)
	stop()
	if err != nil {
		c.Close()
		return fmt.Errorf("connect to rank %d (%s) at %s: %w", peer, m.Host, addr, err)
	}
	return n.newLink(c, peer, k, true)
}

// own is what this rank tells the others of itself.
func (n *network) own(addrs []netip.AddrPort) member {
	return member{Rank: n.cfg.Rank, Host: n.cfg.Host, Pid: os.Getpid(), Addrs: addrs, Boot: hostIdentity()}
}

// member is what is known of a rank: nothing before all have met.
func (n *network) member(rank int) member {
	select {
	case <-n.tabled:
		return n.members[rank]
	default:
		return member{Rank: rank}
	}
}

// close ends what the network has under way.
func (n *network) close() {
	close(n.quit)
	if n.up != nil {
		n.up.c.Close()
	}
	if n.coordinator != nil {
		n.coordinator.close()
	}
	if !n.borrowed {
		n.endpoint.close()
	}
	n.tasks.Wait()
	if n.g == nil {
		return
	}
	n.g.driver.reg.mu.Lock()
	defer n.g.driver.reg.mu.Unlock()
	for _, l := range n.g.driver.reg.fresh {
		l.s.close()
	}
	n.g.driver.reg.fresh = nil
}
