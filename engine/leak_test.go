package engine_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
)

// descriptors is the number of open files of this process, -1 where that is unknown.
func descriptors() int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(list)
}

// TestNothingLeft: groups that come and go, with and without faults, leave neither goroutines
// nor descriptors behind.
func TestNothingLeft(t *testing.T) {
	use := func(groups []*engine.Group) {
		op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << 18}
		for _, err := range each(groups, func(g *engine.Group) error {
			b, err := g.Alloc(int(op.Bytes))
			if err != nil {
				return err
			}
			_, err = g.Run(context.Background(), nil, op, engine.Buffers{Send: b, Recv: b})
			return err
		}) {
			if err != nil {
				t.Error(err)
			}
		}
		closeAll(groups)
	}
	round := func() {
		for _, how := range []engine.Transport{engine.TCP, engine.Auto} {
			groups, errs := tryJoin(t, 4, func(c *engine.Config) { c.Transport, c.Conns = how, 2 })
			for _, err := range errs {
				if err != nil {
					t.Fatal(err)
				}
			}
			use(groups)
		}
		groups, err := engine.Local(4)
		if err != nil {
			t.Fatal(err)
		}
		use(groups)
		// One that nobody joins.
		if _, err := engine.Join(context.Background(),
			engine.Config{Size: 2, Meet: "127.0.0.1:0", JoinTimeout: time.Millisecond}); err == nil {
			t.Error("one of two ranks joined alone")
		}
	}
	nothingGrows(t, 5, round)
}

// nothingGrows runs rounds and reports descriptors and goroutines that the first did not have.
func nothingGrows(t *testing.T, rounds int, round func()) {
	t.Helper()
	round()
	files, routines := descriptors(), runtime.NumGoroutine()
	for range rounds {
		round()
	}
	// What ends by itself may take a moment.
	becomes(t, "no more descriptors and goroutines than at first",
		func() bool { return descriptors() <= files && runtime.NumGoroutine() <= routines })
	if t.Failed() {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d descriptors and %d goroutines at first, %d and %d later:\n%s", files, routines, descriptors(),
			runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
	}
}
