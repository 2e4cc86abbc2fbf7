package shm

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// cacheLine is the spacing that keeps two processes' words apart.
	cacheLine = 64
	// FlagSize is the memory of a Flag: two lines, since processors fetch lines
	// in pairs.
	FlagSize = 2 * cacheLine
)

// Patience is how to wait. It learns from wait to wait, so it belongs to one
// goroutine.
type Patience struct {
	// Limit is the longest wait; 0 means DefaultLimit.
	Limit time.Duration
	// Crowded says that there are more ranks than processors: a spinning process
	// would keep the one it waits for from running, so it yields instead.
	Crowded bool
	// Check, if set, is asked every CheckEvery of a long wait; its error ends the
	// wait.
	Check func() error

	// spin is how long to spin next time, learnt from whether it helped: it does
	// not where the peer shares the processor.
	spin int
}

const (
	// DefaultLimit is the limit of a Patience that has none.
	DefaultLimit = 30 * time.Second
	// CheckEvery is the longest sleep between two looks at the clock.
	CheckEvery = 20 * time.Millisecond

	// mostSpins bounds the busy part of a wait, about 20 to 100 µs: what a message
	// to a running peer takes, and less than two context switches of a loaded machine.
	mostSpins   = 1000
	fewestSpins = 20
	pauseEach   = 4
	// A crowded wait yields some times before it sleeps: with eight processes on two
	// processors that halves the time of a barrier. Otherwise sleeping is as quick.
	crowdedYields = 16
	otherYields   = 1
)

// Flag is a number in shared memory that processes can wait on. Its memory must
// begin as zeros.
type Flag struct {
	value   atomic.Uint32
	waiters atomic.Uint32
}

// FlagAt takes the first FlagSize bytes of mem as a Flag.
func FlagAt(mem []byte) (*Flag, error) {
	if len(mem) < FlagSize || uintptr(unsafe.Pointer(&mem[0]))%cacheLine != 0 {
		return nil, fmt.Errorf("a flag needs %d bytes at a multiple of %d, got %d bytes", FlagSize, cacheLine, len(mem))
	}
	return (*Flag)(unsafe.Pointer(&mem[0])), nil
}

// Load reads the number.
func (f *Flag) Load() uint32 { return f.value.Load() }

// Set changes the number and wakes who waits for that. What was written before is
// seen by who sees the number.
func (f *Flag) Set(v uint32) {
	f.value.Store(v)
	if f.waiters.Load() != 0 {
		wake(&f.value)
	}
}

// WaitNot waits until the number is not old, and returns it.
func (f *Flag) WaitNot(old uint32, p *Patience) (uint32, error) {
	n := p.spins()
	for i := range n {
		if v := f.value.Load(); v != old {
			if i > 0 {
				p.spin = min(2*n, mostSpins)
			}
			return v, nil
		}
		Pause(pauseEach)
	}
	p.spin = max(n/2, fewestSpins)
	return f.sleep(old, p)
}

func (p *Patience) spins() int {
	switch {
	case p.Crowded:
		return fewestSpins
	case p.spin == 0:
		return mostSpins
	}
	return p.spin
}

// WaitFor waits until the number, a counter that may wrap around, has reached v.
// A counter that goes backwards is ErrCorrupt.
func (f *Flag) WaitFor(v uint32, p *Patience) error {
	now := f.value.Load()
	var start time.Time
	for int32(now-v) < 0 {
		next, err := f.WaitNot(now, p)
		switch {
		case err != nil:
			return err
		case int32(next-now) < 0:
			return fmt.Errorf("a counter went from %d to %d: %w", now, next, ErrCorrupt)
		case start.IsZero():
			start = time.Now()
		case time.Since(start) > p.limit():
			return p.timeout()
		}
		now = next
	}
	return nil
}

func (p *Patience) limit() time.Duration {
	if p.Limit <= 0 {
		return DefaultLimit
	}
	return p.Limit
}

func (p *Patience) timeout() error {
	return fmt.Errorf("after %v: %w", p.limit(), ErrTimeout)
}

// sleep is the part of WaitNot for peers that are not about to answer.
func (f *Flag) sleep(old uint32, p *Patience) (uint32, error) {
	n := otherYields
	if p.Crowded {
		n = crowdedYields
	}
	for range n {
		runtime.Gosched()
		yield()
		if v := f.value.Load(); v != old {
			return v, nil
		}
	}
	start := time.Now()
	f.waiters.Add(1)
	defer f.waiters.Add(^uint32(0))
	for {
		if v := f.value.Load(); v != old {
			return v, nil
		}
		left := p.limit() - time.Since(start)
		if left <= 0 {
			return old, p.timeout()
		}
		sleepOn(&f.value, old, min(left, CheckEvery))
		if p.Check == nil || f.value.Load() != old {
			continue
		}
		if err := p.Check(); err != nil {
			return old, err
		}
	}
}
