package web

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// memory keeps questions within what the process may use: a question is let in when what it may need fits beside the others,
// and where the heap grows too far all the same, those that run are ended before the kernel ends the server.
type memory struct {
	limit int64 // bytes; 0 where none is known

	mu       sync.Mutex // guards following
	promised int64      // to questions that run
	tight    bool
	running  map[*context.CancelCauseFunc]struct{}
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
	return &memory{limit: limit, running: map[*context.CancelCauseFunc]struct{}{}}
}

// fits reports whether a question may begin. One alone always may, as long as there is memory.
func (m *memory) fits(cost int64) bool {
	if m.limit == 0 {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.tight && (m.promised == 0 || m.promised+cost <= m.limit*6/10)
}

func (m *memory) take(cost int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promised += cost
}

// watch gives a context that ends when memory runs short; done is called when the question has ended.
func (m *memory) watch(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	m.mu.Lock()
	m.running[&cancel] = struct{}{}
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		used := heap()
		if used > m.limit*8/10 && time.Since(collected) > 500*time.Millisecond { // much of it may be garbage
			runtime.GC()
			collected = time.Now()
			used = heap()
		}
		m.mu.Lock()
		m.tight = used > m.limit*7/10
		if used > m.limit*8/10 {
			for cancel := range m.running {
				(*cancel)(errMemory)
			}
		}
		m.mu.Unlock()
	}
}

// heap is what objects take, those included that nobody needs any more.
func heap() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
