package web

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// memory keeps questions within what the process may use: a question is let in when what it may need fits beside the
// others, and where the heap grows too far all the same, those that run are ended before the kernel ends the server.
type memory struct {
	limit int64 // bytes; 0 where none is known

	mu       sync.Mutex                          // guards following
	promised int64                               // to questions that run
	each     map[string]int64                    // of it to each client
	tight    bool                                // who has something here must wait
	over     bool                                // everybody must
	running  map[*context.CancelCauseFunc]string // whose they are
	changed  func()                              // is told when there is room again
}

// errMemory is why a question was ended.
var errMemory = errors.New("the server is short of memory; ask for less, or try again in a moment")

// Estimates of what a question needs: beside a share for each byte of its files.
const (
	usualCost  = 48 << 20
	heavyCost  = 128 << 20
	costOfByte = 16
)

func newMemory(limit int64) *memory {
	return &memory{
		limit: limit, each: map[string]int64{}, running: map[*context.CancelCauseFunc]string{}, changed: func() {},
	}
}

// fits reports whether a client's question may begin. One alone always may, as long as there is memory, and so may a
// usual one of who has no other: a client that asks much leaves room for that.
func (m *memory) fits(client string, cost int64) bool {
	if m.limit == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.each[client]
	switch {
	case m.over:
		return false
	case own == 0 && cost <= usualCost:
		return true
	case m.tight:
		return false
	}
	return m.promised == 0 || m.promised+cost <= m.limit*6/10 && (own == 0 || own+cost <= m.limit*4/10)
}

func (m *memory) take(client string, cost int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promised += cost
	if m.each[client] += cost; m.each[client] == 0 {
		delete(m.each, client)
	}
}

// most is the client to whom the most is promised. The caller holds mu.
func (m *memory) most() (client string) {
	for c, n := range m.each {
		if n > m.each[client] {
			client = c
		}
	}
	return client
}

// watch gives a context that ends when memory runs short; done is called when the question has ended.
func (m *memory) watch(ctx context.Context, client string) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	m.running[&cancel] = client
	m.mu.Unlock()
	return ctx, func() {
		m.mu.Lock()
		delete(m.running, &cancel)
		m.mu.Unlock()
		cancel(nil)
	}
}

// run looks at the heap until the context ends.
func (m *memory) run(ctx context.Context) {
	if m.limit == 0 {
		return
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var collected time.Time
	least := mapped()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		used, sure := heap(), false
		if used > m.limit*8/10 && time.Since(collected) > 500*time.Millisecond { // much of it may be garbage
			runtime.GC()
			collected, sure = time.Now(), true
			used = heap()
		}
		if m.look(used, sure) {
			m.changed()
		}
		if m.idle() && mapped() > 2*least+spareHeap {
			debug.FreeOSMemory()
			least = mapped()
		}
	}
}

// spareHeap is what the process keeps of the memory that questions had, when none runs any more.
const spareHeap = 32 << 20

func (m *memory) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.running) == 0
}

// look takes note of what the heap has, and ends the questions of who asked for the most where that is too much. It
// tells whether there is more room than before.
func (m *memory) look(used int64, sure bool) (more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	tight, over := used > m.limit*7/10, used > m.limit*8/10
	more = m.tight && !tight || m.over && !over
	m.tight, m.over = tight, over
	if over && sure || used > m.limit*9/10 {
		greatest := m.most()
		for cancel, client := range m.running {
			if client == greatest || len(m.each) == 0 {
				(*cancel)(errMemory)
			}
		}
	}
	return more
}

// heap is what objects take, those included that nobody needs any more.
func heap() int64 { return measured("/memory/classes/heap/objects:bytes") }

// mapped is what the heap has of the system's memory.
func mapped() int64 {
	return heap() + measured("/memory/classes/heap/free:bytes", "/memory/classes/heap/unused:bytes")
}

func measured(names ...string) (sum int64) {
	for _, name := range names {
		s := []metrics.Sample{{Name: name}}
		metrics.Read(s)
		sum += int64(s[0].Value.Uint64())
	}
	return sum
}
