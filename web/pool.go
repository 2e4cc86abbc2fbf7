package web

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"time"
)

// pool lets about as many computations run as there are cores, and as many wait as can hope to be served. Heavy ones
// leave room for others. Clients take turns: who asks much waits for itself and not before others. A question is let in
// when what it may need of memory fits beside the others, and where the heap grows too far all the same, those of who
// asked for the most are ended before the kernel ends the server.
type pool struct {
	slots, heavies int   // there are
	limit          int64 // bytes that the process may use; 0 where none is known

	mu          sync.Mutex // guards following
	held, heavy int
	waiting     int
	promised    int64 // bytes, to questions that run
	each        map[string]*queue
	turns       []string // clients that wait, who is next first
	tight, over bool     // who has something here must wait for memory; everybody must
}

// queue is one client's.
type queue struct {
	promised int64
	runs     []*ticket
	wants    []*ticket
}

// ticket is a question that waits for a place, or has one.
type ticket struct {
	heavy bool
	cost  int64
	ready chan struct{} // closed when it has one
	end   context.CancelCauseFunc
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

// Estimates of what a question needs: beside a share for each byte of its files.
const (
	usualCost  = 48 << 20
	heavyCost  = 128 << 20
	costOfByte = 16
)

var (
	errBusy = errors.New("the server is busy with other questions; try again in a moment")
	// errMemory is why a question was ended.
	errMemory = errors.New("the server is short of memory; ask for less, or try again in a moment")
)

func newPool(limit int64) *pool {
	n := max(leastPlaces, runtime.GOMAXPROCS(0))
	return &pool{slots: n, heavies: max(1, n/4), limit: limit, each: map[string]*queue{}}
}

// enter waits for a place. The context that it gives ends when memory runs short; leave gives the place back. cost is
// what the question may need, in bytes.
func (p *pool) enter(ctx context.Context, client string, heavy bool, cost int64) (_ context.Context, leave func(),
	err error,
) {
	t := &ticket{heavy: heavy, cost: cost, ready: make(chan struct{})}
	ctx, t.end = context.WithCancelCause(ctx)
	p.mu.Lock()
	q := p.each[client]
	if q == nil {
		q = &queue{}
		p.each[client] = q
	}
	var late <-chan time.Time
	if !p.fits(q, cost) {
		late = time.After(memoryWait)
	}
	if p.waiting >= maxWaiting || len(q.wants) >= maxOfOne {
		p.tidy(client)
		p.mu.Unlock()
		t.end(nil)
		return nil, nil, errBusy
	}
	if q.wants = append(q.wants, t); len(q.wants) == 1 {
		p.turns = append(p.turns, client)
	}
	p.waiting++
	p.grant()
	p.mu.Unlock()
	leave = sync.OnceFunc(func() { p.leave(client, t) })
	select {
	case <-t.ready:
		return ctx, leave, nil
	case <-late:
		err = errBusy
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	leave() // the queue, or the place that it has got in the same moment
	return nil, nil, err
}

// fits reports whether a client's question may begin. One alone always may, as long as there is memory, and so may a
// usual one of who has no other: a client that asks much leaves room for that. The caller holds mu.
func (p *pool) fits(q *queue, cost int64) bool {
	switch own := q.promised; {
	case p.limit == 0:
		return true
	case p.over:
		return false
	case own == 0 && cost <= usualCost:
		return true
	case p.tight:
		return false
	default:
		return p.promised == 0 || p.promised+cost <= p.limit*6/10 && (own == 0 || own+cost <= p.limit*4/10)
	}
}

// grant gives free places to those who wait, one client after the other. The caller holds mu.
func (p *pool) grant() {
	for i := 0; p.held < p.slots && i < len(p.turns); {
		client := p.turns[i]
		q := p.each[client]
		at := slices.IndexFunc(q.wants,
			func(t *ticket) bool { return (!t.heavy || p.heavy < p.heavies) && p.fits(q, t.cost) })
		if at < 0 || len(q.runs) >= p.slots-1 { // one place is for others, always
			i++
			continue
		}
		t := q.wants[at]
		q.wants = slices.Delete(q.wants, at, at+1)
		q.runs = append(q.runs, t)
		p.waiting--
		p.count(q, t, 1)
		close(t.ready)
		p.turns = slices.Delete(p.turns, i, i+1)
		if len(q.wants) > 0 {
			p.turns = append(p.turns, client)
		}
	}
}

// count takes a place for a question, or gives it back. The caller holds mu.
func (p *pool) count(q *queue, t *ticket, n int) {
	p.held += n
	if t.heavy {
		p.heavy += n
	}
	p.promised += int64(n) * t.cost
	q.promised += int64(n) * t.cost
}

// leave gives a place back, or goes out of the queue.
func (p *pool) leave(client string, t *ticket) {
	t.end(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.each[client]
	if i := slices.Index(q.wants, t); i >= 0 {
		q.wants = slices.Delete(q.wants, i, i+1)
		p.waiting--
	} else {
		q.runs = slices.DeleteFunc(q.runs, func(x *ticket) bool { return x == t })
		p.count(q, t, -1)
	}
	p.tidy(client)
	p.grant()
}

// tidy forgets a client that has nothing here. The caller holds mu.
func (p *pool) tidy(client string) {
	q := p.each[client]
	if len(q.wants) == 0 {
		p.turns = slices.DeleteFunc(p.turns, func(c string) bool { return c == client })
		if len(q.runs) == 0 {
			delete(p.each, client)
		}
	}
}

// watchHeap looks at the heap until the context ends.
func (p *pool) watchHeap(ctx context.Context) {
	if p.limit == 0 {
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var collected time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		used, sure := heap(), false
		if used > p.limit*8/10 && time.Since(collected) > 500*time.Millisecond { // much of it may be garbage
			runtime.GC()
			collected, sure = time.Now(), true
			used = heap()
		}
		p.look(used, sure)
	}
}

// look takes note of what the heap has, and ends the questions of who asked for the most where that is too much; where
// there is room again, others begin.
func (p *pool) look(used int64, sure bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tight, p.over = used > p.limit*7/10, used > p.limit*8/10
	if p.over && sure || used > p.limit*9/10 {
		greatest := &queue{}
		for _, q := range p.each {
			if q.promised > greatest.promised {
				greatest = q
			}
		}
		for _, t := range greatest.runs {
			t.end(errMemory)
		}
	}
	p.grant()
}

// heap is what objects take, those included that nobody needs any more.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
