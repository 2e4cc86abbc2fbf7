package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Group is a rank's membership in a job: its number, and its connections to the others. The
// ranks of a group stay who they are: when one is lost the group has failed.
//
// Methods may be called from several goroutines, but calls must be prepared in one order.
type Group struct {
	cfg        Config
	rank, size int
	pid        int
	net        *network // nil where all ranks are in one process
	locals     []*Group // of Local
	driver     driver
	memory     arenas
	alone      bool // takes part in no exchange; set by tests

	prepare sync.Mutex // one Prepare at a time
	cacheMu sync.Mutex
	cached  map[callKey]*Call

	ending ending
	closed atomic.Bool
}

// callKey is what makes two calls of Run the same.
type callKey struct {
	s      *schedule.Schedule
	kind   coll.Kind
	bytes  unit.Bytes
	dtype  coll.Dtype
	reduce coll.Redop
	root   int
}

func newGroup(cfg Config, w waiter) *Group {
	g := &Group{
		cfg: cfg, rank: cfg.Rank, size: cfg.Size, pid: os.Getpid(),
		cached: map[callKey]*Call{}, ending: ending{doomed: make(chan struct{})},
	}
	g.driver.init(g, w)
	go g.driver.background()
	return g
}

// Local makes a group of n ranks within this process, over plain memory. Each rank should be
// used by a goroutine of its own.
func Local(n int) ([]*Group, error) {
	cfg := Config{Size: n, Meet: "memory", Transport: Mem}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	groups := make([]*Group, n)
	for r := range groups {
		cfg.Rank = r
		groups[r] = newGroup(cfg, newNotifier())
		groups[r].driver.spin, groups[r].driver.yields = 20*time.Microsecond, true
		groups[r].locals = groups
	}
	return groups, nil
}

// Rank is this rank's number.
func (g *Group) Rank() int { return g.rank }

// Broken is closed when the group has failed, say because a rank was lost.
func (g *Group) Broken() <-chan struct{} { return g.ending.doomed }

// Size is the number of ranks.
func (g *Group) Size() int { return g.size }

// Run runs a schedule once; nil is the engine's choice by size. Calls that are alike are prepared once, so that repeats
// cost no memory; the record holds until the next run of that call.
func (g *Group) Run(ctx context.Context, s *schedule.Schedule, op coll.Op, b Buffers) (*result.Run, error) {
	c, err := g.cachedCall(s, op)
	if err != nil {
		return nil, err
	}
	if err := c.Bind(b); err != nil {
		return nil, err
	}
	return c.Run(ctx)
}

// cachedCall is the call of a schedule and an operation, prepared when it is first asked for.
func (g *Group) cachedCall(s *schedule.Schedule, op coll.Op) (*Call, error) {
	if op.Sizes != nil {
		return g.Prepare(s, op)
	}
	key := callKey{s, op.Kind, op.Bytes, op.Type, op.Reduce, op.Root}
	g.cacheMu.Lock()
	c := g.cached[key]
	g.cacheMu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := g.Prepare(s, op)
	if err != nil {
		return nil, err
	}
	g.cacheMu.Lock()
	g.cached[key] = c
	g.cacheMu.Unlock()
	return c, nil
}

// Forget gives back what a call holds. It must not be under way, and its number is not used
// again.
func (g *Group) Forget(c *Call) error {
	if c.busy.Load() {
		return fmt.Errorf("%s: the call is under way", c.name)
	}
	g.cacheMu.Lock()
	for k, x := range g.cached {
		if x == c {
			delete(g.cached, k)
		}
	}
	g.cacheMu.Unlock()
	d := &g.driver
	d.mu.Lock()
	delete(d.calls, c.id)
	c.closeExchange()
	d.mu.Unlock()
	c.ready = false
	return nil
}

// Close leaves the job. Calls that are under way fail.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	if g.net != nil {
		g.net.leave()
	}
	g.end(ErrClosed)
	d := &g.driver
	d.stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.close()
	g.memory.settle()
	if g.net != nil {
		g.net.close()
	}
	d.waiter.close()
	return nil
}
