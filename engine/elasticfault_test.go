//go:build unix

package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
)

// pause lets a rank be lost at some moment of what it does, within so many milliseconds: a process is killed, and when is
// for chance to say.
func pause(rng *rand.Rand, ms int) { time.Sleep(time.Duration(rng.IntN(ms*1000+1)) * time.Microsecond) }

// TestElasticSeveral ends ranks shortly after each other: at once, while the others agree on
// who is left, and the one that leads them.
func TestElasticSeveral(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, uint64(time.Now().UnixNano())))
	cases := [][]int{{2, 5}, {0, 1}, {0, 1, 2, 3, 4}, {7, 0, 1}}
	for k := range killings(t, len(cases)) {
		victims := cases[k%len(cases)]
		c := newCast(t, 8, 20*time.Second, ways[k%3])
		pause(rng, 100)
		for _, v := range victims {
			c.all[v].cmd.Process.Kill()
			pause(rng, []int{0, 5, 20}[rng.IntN(3)])
		}
		pause(rng, 50)
		line := c.finish(8-len(victims), victims...)
		if t.Failed() {
			t.Fatalf("ranks %v over %s", victims, ways[k%3])
		}
		if testing.Verbose() {
			t.Logf("ranks %v over %s: %s", victims, ways[k%3], line)
		}
		c.end()
	}
}

// TestElasticHang stops a rank; the others go on, and it learns that when it comes back.
func TestElasticHang(t *testing.T) {
	for i, victim := range []int{0, 3} {
		c := newCast(t, 5, 4*time.Second, ways[i])
		c.all[victim].cmd.Process.Signal(syscall.SIGSTOP)
		time.Sleep(6 * time.Second) // a stopped process: longer than the timeout, after which it counts as lost
		c.all[victim].cmd.Process.Signal(syscall.SIGCONT)
		if line := c.line(victim); !strings.Contains(line, "have gone on without this rank") {
			t.Errorf("rank %d that was stopped says %q", victim, line)
		}
		c.finish(4, victim)
		c.end()
	}
}

// TestElasticMinority: those that cannot know whether the others live do not go on.
func TestElasticMinority(t *testing.T) {
	c := newCast(t, 3, 3*time.Second, engine.TCP)
	for _, v := range []int{0, 1} {
		c.all[v].cmd.Process.Signal(syscall.SIGSTOP)
	}
	if line := c.line(2); !strings.Contains(line, "1 of 3 members of epoch 1 can agree") || !strings.Contains(line, "ranks 0, 1") {
		t.Errorf("the one of three says %q", line)
	}
}

// TestElasticMinSize: fewer than the job needs do not go on.
func TestElasticMinSize(t *testing.T) {
	c := newCast(t, 4, 20*time.Second, engine.TCP, "ENGINE_TEST_MIN=3")
	c.all[1].cmd.Process.Kill()
	pause(rand.New(rand.NewPCG(14, uint64(time.Now().UnixNano()))), 300)
	c.all[0].cmd.Process.Kill()
	for _, r := range []int{2, 3} {
		if line := c.line(r); !strings.Contains(line, "the job needs 3") {
			t.Errorf("rank %d says %q", r, line)
		}
	}
}

// TestElasticNewcomers come in at a boundary, before and after rank 0 is lost, and go again.
func TestElasticNewcomers(t *testing.T) {
	for k, how := range ways {
		c := newCast(t, 3, 20*time.Second, how)
		first := c.start(-1)
		c.expect(first, "joined")
		c.all[0].cmd.Process.Kill()
		second := c.start(-1)
		c.expect(second, "joined")
		c.all[first].cmd.Process.Kill()
		third, fourth := c.start(-1), c.start(-1)
		c.expect(third, "joined")
		c.expect(fourth, "joined")
		for _, in := range c.input {
			in.Close()
		}
		ends := map[string]bool{}
		for _, i := range []int{1, 2, second, third, fourth} {
			line := c.line(i)
			words := strings.Fields(line)
			if len(words) < 9 {
				t.Fatalf("actor %d over %s: %s", i, how, line)
			}
			ends[strings.Join(words[:7], " ")] = true // histories began at different times
		}
		if len(ends) != 1 {
			t.Errorf("newcomers over %s: %v", how, ends)
		}
		if k == 0 && testing.Verbose() {
			t.Log(ends)
		}
		c.end()
	}
}

// TestElasticAdmission kills rank 0 about when it lets a newcomer in, who then comes in through
// another.
func TestElasticAdmission(t *testing.T) {
	a := newAuthority(t)
	a.tls(t, "rank")
	rng := rand.New(rand.NewPCG(13, uint64(time.Now().UnixNano())))
	for k := range killings(t, 3) {
		env := []string{"ENGINE_TEST_TLS=" + a.dir}
		c := newCast(t, 4, 20*time.Second, ways[k%3], env[:k%2]...)
		pause(rng, 50)
		c.start(-1)
		pause(rng, 100)
		c.all[0].cmd.Process.Kill()
		c.expect(4, "joined")
		for _, in := range c.input {
			in.Close()
		}
		for _, i := range []int{1, 2, 3, 4} {
			c.expect(i, "end ")
		}
		c.end()
	}
}

// TestElasticTLS: members find each other again under TLS.
func TestElasticTLS(t *testing.T) {
	a := newAuthority(t)
	a.tls(t, "rank")
	c := newCast(t, 4, 20*time.Second, engine.TCP, "ENGINE_TEST_TLS="+a.dir)
	c.all[0].cmd.Process.Kill()
	c.expect(c.start(-1), "joined")
	for _, in := range c.input {
		in.Close()
	}
	for _, i := range []int{1, 2, 3, 4} {
		c.expect(i, "end ")
	}
}

// members joins n elastic members of this process.
func members(t testing.TB, n int, change func(*engine.Config)) []*engine.Elastic {
	t.Helper()
	all, errs := make([]*engine.Elastic, n), make([]error, n)
	meet := filepath.Join(t.TempDir(), "meet")
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			cfg := engine.Config{Rank: r, Size: n, Meet: meet, Bind: "127.0.0.1", Secret: "s", Transport: engine.TCP, Timeout: 20 * time.Second}
			if change != nil {
				change(&cfg)
			}
			all[r], errs[r] = engine.JoinElastic(context.Background(), cfg)
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", r, err)
		}
	}
	return all
}

// everybody lets members do something at once.
func everybody(all []*engine.Elastic, f func(e *engine.Elastic) error) []error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, e := range all {
		wg.Go(func() { errs[i] = f(e) })
	}
	wg.Wait()
	return errs
}

// TestElasticLeave: members that leave, at once or by a context that ends, are no fault of the
// others; the root's loss is theirs to decide on.
func TestElasticLeave(t *testing.T) {
	meet := freeAddress(t)
	all := members(t, 4, func(c *engine.Config) { c.Meet = meet })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x := make([][]int64, 4)
	for r := range x {
		x[r] = []int64{1, 2, 3}
	}
	errs := everybody(all, func(e *engine.Elastic) error {
		r := e.View().Rank
		if r == 3 {
			return e.Close()
		}
		b := engine.Bytes(x[r])
		_, v, err := e.Run(context.Background(), engine.Work{Op: coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: 24}, Buffers: engine.Buffers{Send: b, Recv: b}})
		if err != nil {
			return err
		}
		if v.Size != 3 || x[r][2] != 9 {
			t.Errorf("rank %d: %d members and %v", r, v.Size, x[r])
		}
		switch r {
		case 0:
			_, _, err := e.Run(ctx, engine.Work{Op: coll.Op{Kind: coll.Barrier}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("rank 0 whose context ended: %v", err)
			}
			return nil
		default:
			_, v, err = e.Run(context.Background(), engine.Work{Op: coll.Op{Kind: coll.Broadcast, Type: coll.Int64, Bytes: 24}, Buffers: engine.Buffers{Recv: b}})
			var changed *engine.ChangedError
			if !errors.As(err, &changed) || changed.View.Size != 2 {
				t.Errorf("rank %d lost its root: %v", r, err)
			}
			for _, c := range e.Changes() {
				if len(c.Left) != 1 || c.Left[0].Why == "" || !strings.Contains(c.String(), "left") {
					t.Errorf("rank %d: %v", r, c)
				}
			}
			return e.Finish(context.Background())
		}
	})
	for r, err := range errs {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
		all[r].Close()
	}
	if _, _, err := all[0].Run(context.Background(), engine.Work{Op: coll.Op{Kind: coll.Barrier}}); err == nil {
		t.Error("a member that has left ran an operation")
	}
}

// freeAddress is one at which nobody listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestElasticNoAllocation: operations in the steady state allocate nothing, in place or not.
func TestElasticNoAllocation(t *testing.T) {
	const runs = 50
	for _, how := range []engine.Transport{engine.TCP, engine.Auto} {
		all := members(t, 3, func(c *engine.Config) { c.Transport = how })
		ctx := context.Background()
		var mu sync.Mutex
		errs := everybody(all, func(e *engine.Elastic) error {
			mu.Lock()
			b, err := e.Alloc(1 << 16)
			mu.Unlock()
			if err != nil {
				return err
			}
			op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << 16}
			run := func() {
				if _, _, err := e.Run(ctx, engine.Work{Op: op, Buffers: engine.Buffers{Send: b, Recv: b}}); err != nil {
					t.Error(err)
				}
				if _, err := e.Admit(ctx); err != nil {
					t.Error(err)
				}
			}
			for range runs {
				run()
			}
			if e.View().Rank > 0 {
				for range runs + 1 {
					run()
				}
				return nil
			}
			if n := testing.AllocsPerRun(runs, run); n != 0 {
				t.Errorf("%s: %v allocations an operation", how, n)
			}
			return nil
		})
		errs = append(errs, everybody(all, func(e *engine.Elastic) error { return e.Finish(ctx) })...)
		for _, err := range errs {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestElasticNothingLeft: jobs that change and end leave neither goroutines nor descriptors nor
// files behind.
func TestElasticNothingLeft(t *testing.T) {
	round := func() {
		all := members(t, 4, func(c *engine.Config) { c.Transport = engine.Auto })
		ctx := context.Background()
		for r, err := range everybody(all, func(e *engine.Elastic) error {
			x := make([]byte, 1<<18)
			for k := range 6 {
				if e.View().Rank == 0 && e.View().Epoch == 1 && k == 3 {
					return e.Close()
				}
				if _, _, err := e.Run(ctx, engine.Work{Op: coll.Op{Kind: coll.AllReduce, Bytes: 1 << 18}, Buffers: engine.Buffers{Send: x, Recv: x}}); err != nil {
					return err
				}
			}
			return e.Finish(ctx)
		}) {
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		if _, err := engine.JoinElastic(ctx, engine.Config{Rank: -1, Meet: freeAddress(t), JoinTimeout: 10 * time.Millisecond}); err == nil {
			t.Error("a newcomer joined nobody")
		}
	}
	nothingGrows(t, 3, round)
}
