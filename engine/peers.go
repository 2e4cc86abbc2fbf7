package engine

import (
	"fmt"
	"sort"
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

// news is closed when the next link comes.
func (r *registry) news() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.came
}

func (r *registry) has(peer, k int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.have[[2]int{peer, k}]
}

func (g *Group) newLink(peer, k int, s stream, fd int) *link {
	return &link{g: g, peer: peer, k: k, s: s, fd: fd, buf: aligned(stage), maps: map[uint32]*shm.Segment{}, told: map[uint32]bool{}, votes: map[uint64]ballot{}}
}

// adopt lets the driver know of new links. The caller holds the driver's lock.
func (g *Group) adopt() {
	g.reg.mu.Lock()
	defer g.reg.mu.Unlock()
	for _, l := range g.reg.fresh {
		g.all = append(g.all, l)
		if g.peers[l.peer] == nil {
			g.peers[l.peer] = make([]*link, g.cfg.Conns)
		}
		g.peers[l.peer][l.k] = l
	}
	g.reg.fresh = g.reg.fresh[:0]
}

// reach makes links to peers. Of two ranks the greater one dials.
func (g *Group) reach(need map[int]bool) error {
	wait, err := g.dialSome(need)
	if err != nil || g.net == nil {
		return err
	}
	return g.await(wait)
}

// dialSome makes the links that this rank makes, and returns the peers that make the others. One
// goroutine at a time does so: no two may dial the same peer.
func (g *Group) dialSome(need map[int]bool) (wait []int, err error) {
	g.dialing.Lock()
	defer g.dialing.Unlock()
	var dial []int
	for peer := range need {
		if g.locals != nil {
			g.meetLocal(peer)
			continue
		}
		for k := range g.cfg.Conns {
			if !g.reg.has(peer, k) {
				if peer < g.rank {
					dial = append(dial, peer)
				} else {
					wait = append(wait, peer)
				}
				break
			}
		}
	}
	if len(dial) > 0 {
		err = g.net.dialAll(dial)
	}
	return wait, err
}

// await waits for links that others make.
func (g *Group) await(peers []int) error {
	// All have met; how long they were given for that says nothing about how long they get ready.
	patience := max(g.cfg.JoinTimeout, time.Minute)
	if g.net.epoch > 0 { // a member may have much to do before it notices that it has others
		patience = max(patience, g.cfg.Stall)
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		came := g.reg.news()
		missing := peers[:0:0]
		for _, p := range peers {
			for k := range g.cfg.Conns {
				if !g.reg.has(p, k) {
					missing = append(missing, p)
					break
				}
			}
		}
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-came:
		case <-g.doomed:
			return g.failure()
		case <-limit.C:
			return fmt.Errorf("rank %d: no connection from %s within %v; do they prepare the same call?", g.rank, rankList(missing), patience)
		}
	}
}

// rankList names ranks, at most a few of them.
func rankList(ranks []int) string {
	sort.Ints(ranks)
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

// meetLocal joins two ranks of one process, once.
func (g *Group) meetLocal(peer int) {
	a, b := g, g.locals[peer]
	if a.rank > b.rank {
		a, b = b, a
	}
	a.pair.Lock() // of the lower rank, whoever comes first
	defer a.pair.Unlock()
	if a.reg.has(b.rank, 0) {
		return
	}
	x, y := newPipe(b.waiter.(*bell), a.waiter.(*bell)), newPipe(a.waiter.(*bell), b.waiter.(*bell))
	b.reg.add(b.newLink(a.rank, 0, duct{in: x, out: y}, -1))
	a.reg.add(a.newLink(b.rank, 0, duct{in: y, out: x}, -1))
}
