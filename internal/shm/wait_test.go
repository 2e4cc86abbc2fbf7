package shm

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// plain returns zeroed memory at a cache line, without a segment.
func plain(n int) []byte {
	all := make([]byte, n+cacheLine)
	skip := -int(uintptr(unsafe.Pointer(&all[0]))) & (cacheLine - 1)
	return all[skip : skip+n : skip+n]
}

func TestFlagRefuses(t *testing.T) {
	mem := plain(FlagSize + 8)
	if _, err := FlagAt(mem[8:]); err == nil {
		t.Error("a flag across cache lines")
	}
	if _, err := FlagAt(mem[:FlagSize-1]); err == nil {
		t.Error("a flag in too little memory")
	}
	if _, err := NewBarrier(mem, 2, 0); err == nil {
		t.Error("a barrier of 2 in the memory of 1")
	}
}

func TestWaitForIsBounded(t *testing.T) {
	f, err := FlagAt(plain(FlagSize))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.WaitFor(1, &Patience{Limit: time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("nobody counts: %v", err)
	}
	f.Set(10)
	if err := f.WaitFor(9, &Patience{}); err != nil {
		t.Errorf("already there: %v", err)
	}
	var done sync.WaitGroup
	stop := make(chan struct{})
	done.Go(func() {
		for i := uint32(11); ; i++ { // counts, but for ever too slowly
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				f.Set(i)
			}
		}
	})
	if err := f.WaitFor(1<<30, &Patience{Limit: 20 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("counts too slowly: %v", err)
	}
	close(stop)
	done.Wait()
	done.Go(func() {
		time.Sleep(5 * time.Millisecond)
		f.Set(3)
	})
	f.Set(1000)
	if err := f.WaitFor(2000, &Patience{Limit: time.Minute}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("counts backwards: %v", err)
	}
	done.Wait()
}

// TestBarrierOfGoroutines has more ranks than threads that run Go code: a waiting
// rank must not keep the others from running.
func TestBarrierOfGoroutines(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const ranks, rounds = 8, 50
	mem := plain(BarrierSize(ranks))
	count := make([]int, ranks)
	var done sync.WaitGroup
	for self := range ranks {
		done.Go(func() {
			b, err := NewBarrier(mem, ranks, self)
			if err != nil {
				t.Error(err)
				return
			}
			p := &Patience{Limit: 20 * time.Second, Crowded: true}
			for range rounds {
				count[self]++
				if err := b.Wait(p); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done.Wait()
	for self, n := range count {
		if n != rounds {
			t.Errorf("rank %d passed %d times, want %d", self, n, rounds)
		}
	}
}

func TestLateRankIsNamed(t *testing.T) {
	b, err := NewBarrier(plain(BarrierSize(3)), 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.flags[1].Set(1)
	var late *LateError
	if err := b.Wait(&Patience{Limit: time.Millisecond}); !errors.As(err, &late) || late.Rank != 2 {
		t.Errorf("error %v, want rank 2", err)
	}
}
