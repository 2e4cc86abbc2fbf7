package web

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// pool lets about as many computations run as there are cores, and as many wait as can hope to be served. Heavy ones
// leave room for others. Clients take turns: who asks much waits for itself and not before others.
type pool struct {
	slots, heavies int // there are
	memory         *memory

	mu      sync.Mutex // guards following
	held    int
	heavy   int
	waiting int
	each    map[string]*queue
	turns   []string // clients that wait, who is next first
}

// queue is one client's.
type queue struct {
	held  int
	wants []*ticket
}

// ticket is a question that waits for a place.
type ticket struct {
	heavy bool
	cost  int64
	ready chan struct{} // closed when it has one
}

// Bounds of those who wait; a browser that asks again is better off.
const (
	maxWaiting = 64
	maxOfOne   = 16
)

// memoryWait is how long a question waits for memory that others hold.
const memoryWait = 2 * time.Second

// leastPlaces keeps a quick question from waiting behind slow ones where there are few
// cores: they share them.
const leastPlaces = 4

var errBusy = errors.New("the server is busy with other questions; try again in a moment")

func newPool(m *memory) *pool {
	n := max(leastPlaces, runtime.GOMAXPROCS(0))
	p := &pool{slots: n, heavies: max(1, n/4), memory: m, each: map[string]*queue{}}
	m.changed = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.grant()
	}
	return p
}

// enter waits for a place. leave gives it back. cost is what the question may need, in bytes.
func (p *pool) enter(ctx context.Context, client string, heavy bool, cost int64) (leave func(), err error) {
	t := &ticket{heavy, cost, make(chan struct{})}
	p.mu.Lock()
	q := p.each[client]
	if q == nil {
		q = &queue{}
		p.each[client] = q
	}
	var late <-chan time.Time
	if !p.memory.fits(client, cost) {
		late = time.After(memoryWait)
	}
	if p.waiting >= maxWaiting || len(q.wants) >= maxOfOne {
		p.tidy(client)
		p.mu.Unlock()
		return nil, errBusy
	}
	if q.wants = append(q.wants, t); len(q.wants) == 1 {
		p.turns = append(p.turns, client)
	}
	p.waiting++
	p.grant()
	p.mu.Unlock()
	select {
	case <-t.ready:
	case <-late:
		if p.giveUp(client, q, t, false) {
			return nil, errBusy
		}
	case <-ctx.Done():
		p.giveUp(client, q, t, true)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(client, t)
	}), nil
}

// giveUp takes a question out of the queue; one that has got its place in the same moment gives it back where it is not
// wanted any more, and else keeps it.
func (p *pool) giveUp(client string, q *queue, t *ticket, always bool) (gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(q.wants, t); i >= 0 {
		q.wants = slices.Delete(q.wants, i, i+1)
		p.waiting--
		p.tidy(client)
		return true
	}
	if always {
		p.leave(client, t)
	}
	return always
}

// grant gives free places to those who wait, one client after the other. The caller holds mu.
func (p *pool) grant() {
	for i := 0; p.held < p.slots && i < len(p.turns); {
		client := p.turns[i]
		q := p.each[client]
		at := slices.IndexFunc(q.wants,
			func(t *ticket) bool { return (!t.heavy || p.heavy < p.heavies) && p.memory.fits(client, t.cost) })
		if at < 0 || q.held >= p.slots-1 { // one place is for others, always
			i++
			continue
		}
		t := q.wants[at]
		q.wants = slices.Delete(q.wants, at, at+1)
		p.waiting--
		q.held++
		p.held++
		if t.heavy {
			p.heavy++
		}
		p.memory.take(client, t.cost)
		close(t.ready)
		p.turns = slices.Delete(p.turns, i, i+1)
		if len(q.wants) > 0 {
			p.turns = append(p.turns, client)
		}
	}
}

// leave gives a place back. The caller holds mu.
func (p *pool) leave(client string, t *ticket) {
	p.each[client].held--
	p.held--
	if t.heavy {
		p.heavy--
	}
	p.memory.take(client, -t.cost)
	p.tidy(client)
	p.grant()
}

// tidy forgets a client that has nothing here. The caller holds mu.
func (p *pool) tidy(client string) {
	q := p.each[client]
	if len(q.wants) == 0 {
		p.turns = slices.DeleteFunc(p.turns, func(c string) bool { return c == client })
		if q.held == 0 {
			delete(p.each, client)
		}
	}
}
