package engine

import (
	"fmt"
	"sync"
	"unsafe"

	"busbar.dev/internal/shm"
)

// arena is memory of this rank that peers of the same host can map.
type arena struct {
	id   uint32
	seg  *shm.Segment
	idle bool // given back, without memory behind it until it is used again
}

// spot is where in an arena a memory of a call begins.
type spot struct {
	in  *arena // nil where it is elsewhere
	off int64
}

// arenas is the memory of a rank that peers of the same host can map.
type arenas struct {
	mu   sync.Mutex
	list []*arena
}

// maxArenas limits what a rank hands out, and what it maps of a peer.
const maxArenas = 1024

// Alloc is memory for buffers of calls. Peers on the same host read straight from it, so that
// calls on it need no copies; elsewhere it is like any other memory. It stays until the
// process ends, or Free gives it back.
func (g *Group) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d bytes of memory", n)
	}
	if n == 0 || g.net == nil || g.Transport() == TCP {
		return aligned(int64(n)), nil
	}
	b, err := g.memory.alloc(n)
	switch {
	case err != nil && g.cfg.Transport == Shm:
		return nil, fmt.Errorf("%d bytes of shared memory: %w", n, err)
	case b == nil:
		return aligned(int64(n)), nil
	}
	return b, nil
}

// alloc is n bytes of an arena, of one that was given back if there is a like one; nil when
// there are too many.
func (m *arenas) alloc(n int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.list {
		mem := a.seg.Bytes()
		if near := len(mem) >= n && len(mem) <= 2*n+4096; a.idle && near && a.seg.Reserve() == nil {
			a.idle = false
			return mem[:n:n], nil
		}
	}
	if len(m.list) == maxArenas {
		return nil, nil
	}
	seg, err := shm.Create(int64(n+4095) &^ 4095)
	if err != nil {
		return nil, err
	}
	m.list = append(m.list, &arena{id: uint32(len(m.list)), seg: seg})
	return seg.Bytes()[:n:n], nil
}

// Free gives memory of Alloc back to the system, all of it. No call may be bound to it any more
// on this rank; peers are done with it when those calls have returned here. They keep the
// addresses under which they know it, which cost nothing, and a later Alloc takes it up again.
func (g *Group) Free(b []byte) {
	at := g.memory.locate(b)
	if at.in == nil || at.off != 0 {
		return // the collector's
	}
	g.memory.mu.Lock()
	defer g.memory.mu.Unlock()
	if !at.in.idle && at.in.seg.Release() == nil {
		at.in.idle = true
	}
}

// locate finds the arena that holds a piece of memory.
func (m *arenas) locate(b []byte) spot {
	if len(b) == 0 {
		return spot{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, a := range m.list {
		mem := a.seg.Bytes()
		base := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
		if !a.idle && at >= base && at+uintptr(len(b)) <= base+uintptr(len(mem)) {
			return spot{a, int64(at - base)}
		}
	}
	return spot{}
}

// settle lets nobody map the arenas any more.
func (m *arenas) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.list {
		a.seg.Settle()
	}
}
