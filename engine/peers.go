package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"busbar.dev/internal/shm"
)

// registry is the links of a group, as they come into being on other goroutines than the
// driver's.
type registry struct {
	mu    sync.Mutex
	have  map[[2]int]bool // by peer and connection
	fresh []*link         // not yet taken over by the driver
	came  chan struct{}   // closed when something is added
}

func newRegistry() registry {
	return registry{have: map[[2]int]bool{}, came: make(chan struct{})}
}

// add notes a link; false when there is one already.
func (r *registry) add(l *link) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := [2]int{l.peer, l.k}
	if r.have[key] {
		return false
	}
	r.have[key] = true
	r.fresh = append(r.fresh, l)
	close(r.came)
	r.came = make(chan struct{})
	return true
}

// changed is closed when the next link comes.
func (r *registry) changed() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came
}

func (r *registry) has(peer, k int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.have[[2]int{peer, k}]
}

func (d *driver) newLink(peer, k int, s stream, fd int) *link {
	ring, _ := s.(*ringPair)
	return &link{
		d: d, peer: peer, k: k, s: s, ring: ring, fd: fd, buf: aligned(stage), maps: map[uint32]*shm.Segment{},
		told: map[uint32]bool{}, handles: map[uint64]pageHandle{},
	}
}

// adopt takes over new links. The caller holds the lock.
func (d *driver) adopt() {
	d.reg.mu.Lock()
	defer d.reg.mu.Unlock()
	for _, l := range d.reg.fresh {
		d.all = append(d.all, l)
		if d.peers[l.peer] == nil {
			d.peers[l.peer] = make([]*link, d.g.cfg.Conns)
		}
		d.peers[l.peer][l.k] = l
	}
	d.reg.fresh = d.reg.fresh[:0]
}

// missing is those of some peers to which not all links are there.
func (r *registry) missing(peers []int, conns int) (list []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range peers {
		for k := range conns {
			if !r.have[[2]int{p, k}] {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// reach makes links to peers. Of two ranks the greater one dials.
func (n *network) reach(need map[int]bool) error {
	wait, err := n.dialSome(need)
	if err != nil {
		return err
	}
	return n.await(wait)
}

// dialSome makes the links that this rank makes, and returns the peers that make the others. One
// goroutine at a time does so: no two may dial the same peer.
func (n *network) dialSome(need map[int]bool) (wait []int, err error) {
	n.dialing.Lock()
	defer n.dialing.Unlock()
	var dial []int
	for _, peer := range n.g.driver.reg.missing(slices.Collect(maps.Keys(need)), n.cfg.Conns) {
		if peer < n.cfg.Rank {
			dial = append(dial, peer)
		} else {
			wait = append(wait, peer)
		}
	}
	if len(dial) > 0 {
		err = n.dialAll(dial)
	}
	return wait, err
}

// await waits for links that others make.
func (n *network) await(peers []int) error {
	// All have met; how long they were given for that says nothing about how long they get ready.
	patience := max(n.cfg.JoinTimeout, time.Minute)
	if n.epoch > 0 { // a member may have much to do before it notices that it has others
		patience = max(patience, n.cfg.Stall)
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		came := n.g.driver.reg.changed()
		missing := n.g.driver.reg.missing(peers, n.cfg.Conns)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-came:
		case <-n.g.ending.doomed:
			return n.g.failure()
		case <-limit.C:
			return fmt.Errorf("rank %d: no connection from %s within %v; do they prepare the same call?", n.cfg.Rank,
				rankList(missing), patience)
		}
	}
}

// rankList names ranks, at most a few of them.
func rankList(ranks []int) string {
	slices.Sort(ranks)
	var b strings.Builder
	b.WriteString("rank ")
	if len(ranks) > 1 {
		b.Reset()
		b.WriteString("ranks ")
	}
	for i, r := range ranks {
		if i == 8 {
			fmt.Fprintf(&b, " and %d more", len(ranks)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r)
	}
	return b.String()
}
