package shm

import "fmt"

// Barrier is a point that nobody passes before all ranks have reached it.
type Barrier struct {
	flags []*Flag
	self  int
	round uint32
}

// BarrierSize is the memory of a barrier of so many ranks.
func BarrierSize(ranks int) int { return ranks * FlagSize }

// NewBarrier makes this rank's view of the barrier in mem, which must begin as
// zeros.
func NewBarrier(mem []byte, ranks, self int) (*Barrier, error) {
	if ranks < 1 || self < 0 || self >= ranks || len(mem) < BarrierSize(ranks) {
		return nil, fmt.Errorf("rank %d of a barrier of %d in %d bytes: want %d bytes", self, ranks, len(mem), BarrierSize(ranks))
	}
	b := &Barrier{self: self}
	for r := range ranks {
		f, err := FlagAt(mem[r*FlagSize:])
		if err != nil {
			return nil, err
		}
		b.flags = append(b.flags, f)
	}
	return b, nil
}

// LateError says which rank did not come.
type LateError struct {
	Rank int
	Err  error
}

func (e *LateError) Error() string {
	return fmt.Sprintf("rank %d did not reach the barrier: %v", e.Rank, e.Err)
}

func (e *LateError) Unwrap() error { return e.Err }

// Wait waits for all others; after an error, which is a *LateError, the barrier
// is of no more use.
func (b *Barrier) Wait(p *Patience) error {
	b.round++
	b.flags[b.self].Set(b.round)
	for i := 1; i < len(b.flags); i++ {
		r := (b.self + i) % len(b.flags)
		if err := b.flags[r].WaitFor(b.round, p); err != nil {
			return &LateError{Rank: r, Err: err}
		}
	}
	return nil
}
