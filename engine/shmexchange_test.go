package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// near joins ranks of this process through shared memory.
func near(t *testing.T, n int) []*Group {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	meet := filepath.Join(t.TempDir(), "meet")
	groups := make([]*Group, n)
	together(n, func(r int) error {
		g, err := Join(context.Background(), Config{
			Rank: r, Size: n, Meet: meet, Bind: "127.0.0.1", Transport: Shm, Timeout: 20 * time.Second,
		})
		if err != nil {
			t.Error(err)
			t.FailNow()
		}
		groups[r] = g
		return nil
	})
	t.Cleanup(func() { together(n, func(r int) error { return groups[r].Close() }) })
	return groups
}

func together(n int, f func(r int) error) (first error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return nil
}

func vectors(t *testing.T, g *Group, size int, shared bool) []float32 {
	t.Helper()
	b := make([]byte, size)
	if shared {
		var err error
		if b, err = g.Alloc(size); err != nil {
			t.Error(err)
		}
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), size/4)
}

// Many runs of exchanges follow each other with other values each time, in place and not, with
// vectors that others can map and ones that they cannot, and with a rank that takes no part.
func TestBoards(t *testing.T) {
	for _, tt := range []struct {
		name  string
		n     int
		size  int
		algo  string
		plain int // rank whose memory others cannot map; -1 is none
		alone int // rank that takes no part; -1 is none
	}{
		{"short", 2, 8, "one_shot", -1, -1},
		{"the longest beside its word", 3, 56, "one_shot", -1, -1},
		{"the longest in a line of its own", 4, 64, "one_shot", -1, -1},
		{"too long for that", 2, 68, "one_shot", -1, -1},
		{"short of plain memory", 4, 1000, "one_shot", 2, -1},
		{"one number", 5, 4, "direct", -1, -1},
		{"odd", 3, 100012, "direct", -1, -1},
		{"several pieces", 2, 3 << 20, "direct", -1, -1},
		{"some plain memory", 4, 70000, "direct", 3, -1},
		{"one cannot", 3, 40000, "direct", -1, 1},
		{"one cannot, short", 3, 64, "one_shot", -1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			groups := near(t, tt.n)
			if tt.alone >= 0 {
				groups[tt.alone].alone = true
			}
			if err := together(tt.n,
				func(r int) error { return boardRuns(t, groups[r], tt.algo, tt.size, tt.plain != r) }); err != nil {
				t.Fatal(err)
			}
			for r, g := range groups {
				for _, c := range g.driver.calls {
					if b := c.exchange; b != nil && b.on != (tt.alone < 0) {
						t.Errorf("rank %d goes by shared memory: %v", r, b.on)
					}
				}
			}
		})
	}
}

func boardRuns(t *testing.T, g *Group, algo string, size int, shared bool) error {
	s, err := schedule.Build(coll.AllReduce, algo, schedule.Params{Ranks: g.size})
	if err != nil {
		return err
	}
	c, err := g.Prepare(s, coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: unit.Bytes(size)})
	if err != nil {
		return err
	}
	send, recv := vectors(t, g, size, shared), vectors(t, g, size, shared)
	for run := range 200 {
		if size > 50000 && run >= 20 || testing.Short() && run >= 10 {
			break
		}
		in := send
		if run%3 == 0 { // in place
			in = recv
		}
		for i := range in {
			in[i] = float32(run + i%7 + 10*g.rank)
		}
		if err := c.Bind(Buffers{Send: Bytes(in), Recv: Bytes(recv)}); err != nil {
			return err
		}
		if _, err := c.Run(context.Background()); err != nil {
			return err
		}
		for i, x := range recv {
			if want := float32(g.size*(run+i%7) + 5*g.size*(g.size-1)); x != want {
				return fmt.Errorf("run %d, element %d is %v; want %v", run, i, x, want)
			}
		}
	}
	return nil
}

// Calls that ranks start in different orders do not wait for each other, and a rank that
// sleeps is woken.
func TestBoardsInAnyOrder(t *testing.T) {
	groups := near(t, 3)
	err := together(3, func(r int) error {
		g := groups[r]
		var calls []*Call
		for range 6 {
			c, err := g.Prepare(nil, coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: 256})
			if err != nil {
				return err
			}
			b := vectors(t, g, 256, true)
			if err := c.Bind(Buffers{Send: Bytes(b), Recv: Bytes(b)}); err != nil {
				return err
			}
			calls = append(calls, c)
		}
		for round := range 5 {
			for k := range calls {
				if r == 1 && k == 3 {
					time.Sleep(3 * time.Millisecond) // long enough for the others to sleep in the kernel, which nothing shows
				}
				if err := calls[(k+2*r+round)%6].Start(); err != nil {
					return err
				}
			}
			for _, c := range calls {
				if _, err := c.Wait(context.Background()); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What a rank was last seen doing is said in words.
func TestDescribe(t *testing.T) {
	for x, want := range map[uint64]string{
		idleState:           "between calls",
		4:                   "at step 5 of channel 0 of call 1, counted as they were prepared",
		7<<40 | 2<<24 | 0x1: "at step 2 of channel 2 of call 8, counted as they were prepared",
	} {
		if got := stateText(x); got != want {
			t.Errorf("%x: %q; expected %q", x, got, want)
		}
	}
}

// A rank learns whether others want its processor, and forgets it again.
func TestLooks(t *testing.T) {
	d := &driver{spins: maxSpins}
	for range 10 {
		d.adaptSpin(10 * aloneYield)
	}
	if d.spins != 0 {
		t.Errorf("%d looks where others want the processor; want none", d.spins)
	}
	for range 2 * maxSpins {
		d.adaptSpin(aloneYield / 10)
	}
	if d.spins != maxSpins {
		t.Errorf("%d looks where nobody wants the processor; want %d", d.spins, maxSpins)
	}
}

// A call that begins while its group is closed ends with that, and touches nothing that others
// have given back.
func TestBoardClosed(t *testing.T) {
	for _, started := range []bool{false, true} {
		groups := near(t, 2)
		calls := make([]*Call, 2)
		if err := together(2, func(r int) (err error) {
			x := make([]float32, 2)
			if calls[r], err = groups[r].Prepare(nil, coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: 8}); err != nil {
				return err
			}
			if err := calls[r].Bind(Buffers{Send: Bytes(x), Recv: Bytes(x)}); err != nil {
				return err
			}
			_, err = calls[r].Run(context.Background())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		c, err := calls[0], calls[0].begin()
		if err != nil {
			t.Fatal(err)
		}
		together(2, func(r int) error { return groups[r].Close() })
		if started {
			c.d.submit(c, true)
			_, err = c.Wait(context.Background())
		} else {
			err = c.d.complete(context.Background(), c)
		}
		if !errors.Is(err, ErrClosed) {
			t.Errorf("started: %v: %v; want %v", started, err, ErrClosed)
		}
	}
}
