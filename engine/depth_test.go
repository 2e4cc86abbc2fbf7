package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// stored is a program kept in memory, by rank and lane.
type stored [][][]schedule.Op

func (p stored) Len(rank, lane int) int { return len(p[rank][lane]) }

func (p stored) At(rank, lane, i int) schedule.Op { return p[rank][lane][i] }

// deep is a broadcast that only queues which hold whole messages carry through: every rank
// sends first, and takes what it overwrites with only when the others have gone on. No rank's
// receive waits in vain, but sends that waited for their receives would wait for ever.
//
//	0: send a to 1, receive a from 2
//	1: send b to 2, receive c from 2, receive a from 0
//	2: send a' to 0, receive b from 1, send c to 1
func deep() *schedule.Schedule {
	op := func(v schedule.Verb, peer, chunk int32) schedule.Op {
		return schedule.Op{Verb: v, Buf: schedule.Temp, Peer: peer, From: chunk, To: chunk + 1}
	}
	own := func(chunk int32) schedule.Op {
		return schedule.Op{Verb: schedule.Copy, Buf: schedule.Data, To: 1, Dst: schedule.Temp, At: chunk}
	}
	back := schedule.Op{Verb: schedule.Copy, Buf: schedule.Temp, To: 1, Dst: schedule.Out, At: 0}
	return &schedule.Schedule{
		Name: "deep", Kind: coll.SendRecv, Ranks: 3, Lanes: 1, Channels: 1, Depth: 1, Temp: 3,
		Layout: schedule.Layout{Chunks: 1, Blocks: 1, Channels: 1},
		Program: stored{
			{{own(0), op(schedule.Send, 1, 0), op(schedule.Recv, 2, 0), back}},
			{{own(1), op(schedule.Send, 2, 1), op(schedule.Recv, 2, 2), op(schedule.Recv, 0, 0), back}},
			{{own(0), op(schedule.Send, 0, 0), op(schedule.Recv, 1, 0), op(schedule.Send, 1, 0), back}},
		},
	}
}

// TestDepth runs a program that needs its queues to hold messages larger than any socket does.
func TestDepth(t *testing.T) {
	for name, make3 := range map[string]func() []*engine.Group{
		"mem": func() []*engine.Group { return local(t, 3) }, "tcp": func() []*engine.Group { return joined(t, 3, nil) },
		"shm": func() []*engine.Group {
			return joined(t, 3, func(c *engine.Config) { c.Transport = engine.Auto })
		},
	} {
		groups := make3()
		op := coll.Op{Kind: coll.SendRecv, Bytes: 16 << 20, Type: coll.Int8}
		out := make([][]byte, 3)
		errs := each(groups, func(g *engine.Group) error {
			send, err := g.Alloc(int(op.Bytes))
			if err != nil {
				return err
			}
			copy(send, bytes.Repeat([]byte{byte(g.Rank() + 1)}, len(send)))
			out[g.Rank()] = make([]byte, op.Bytes)
			ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
			defer cancel()
			_, err = g.Run(ctx, deep(), op, engine.Buffers{Send: send, Recv: out[g.Rank()]})
			if err == nil {
				g.Free(send)
			}
			return err
		})
		for r, err := range errs {
			if err != nil {
				t.Fatalf("%s: rank %d: %v", name, r, err)
			}
		}
		for r, want := range []byte{3, 1, 2} {
			if got := out[r]; got[0] != want || got[len(got)-1] != want {
				t.Errorf("%s: rank %d holds the data of rank %d; want that of rank %d", name, r, int(got[0])-1, int(want)-1)
			}
		}
		closeAll(groups)
	}
}

// TestStall: a rank that lives and never makes the call is named.
func TestStall(t *testing.T) {
	groups := joined(t, 3, func(c *engine.Config) { c.Stall = 2 * time.Second })
	op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << 10}
	s, err := schedule.Build(op.Kind, "chain", schedule.Params{Ranks: 3})
	if err != nil {
		t.Fatal(err)
	}
	errs := each(groups, func(g *engine.Group) error {
		c, err := g.Prepare(s, op)
		if err != nil {
			return err
		}
		b := make([]byte, op.Bytes)
		if err := c.Bind(engine.Buffers{Send: b, Recv: b}); err != nil || g.Rank() == 2 {
			return err
		}
		_, err = c.Run(context.Background())
		return err
	})
	var peer *engine.PeerError
	if !errors.As(errs[1], &peer) {
		t.Fatalf("rank 1: %v", errs[1])
	}
	if !strings.Contains(errs[0].Error(), "no progress") {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// TestIPv6 joins and runs over IPv6, where the host has it.
func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	addr := l.Addr().String()
	l.Close()
	groups := joined(t, 3, func(c *engine.Config) { c.Meet, c.Bind, c.Conns = addr, "::1", 2 })
	rng := rand.New(rand.NewPCG(6, 6))
	for range 5 {
		randomTrial(rng, 3).run(t, groups)
	}
}

// TestDifferentCalls: ranks that prepare different calls hear of it.
func TestDifferentCalls(t *testing.T) {
	groups := joined(t, 2, nil)
	errs := each(groups, func(g *engine.Group) error {
		op := coll.Op{Kind: coll.AllReduce, Bytes: unit.Bytes(1024 << g.Rank())}
		s, err := engine.Pick(op, 2, engine.TCP)
		if err != nil {
			return err
		}
		b := make([]byte, op.Bytes)
		_, err = g.Run(context.Background(), s, op, engine.Buffers{Send: b, Recv: b})
		return err
	})
	if errs[0] == nil && errs[1] == nil {
		t.Fatal("two ranks ran different calls")
	}
	for r, err := range errs {
		if err != nil && !strings.Contains(err.Error(), "same calls in the same order") &&
			!strings.Contains(err.Error(), "rank") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// TestLongWait: a rank that is late, for longer than the timeout, is waited for, also when
// what was sent to it does not fit into the connection. A machine that stops for a third of a second beside other
// tests stops a rank's sign of life too: then a longer timeout is tried.
func TestLongWait(t *testing.T) {
	unlessBusy(t, func(timeout time.Duration) error { return longWait(t, timeout) })
}

// longWait runs an all-reduce to which rank 1 comes three timeouts late.
func longWait(t *testing.T, timeout time.Duration) error {
	groups := joined(t, 3, func(c *engine.Config) { c.Timeout = timeout })
	op := coll.Op{Kind: coll.AllReduce, Bytes: 32 << 20}
	return errors.Join(each(groups, func(g *engine.Group) error {
		c, err := g.Prepare(nil, op)
		if err != nil {
			return err
		}
		b := make([]byte, op.Bytes)
		if err := c.Bind(engine.Buffers{Send: b, Recv: b}); err != nil {
			return err
		}
		if g.Rank() == 1 {
			time.Sleep(3 * timeout) // over real sockets
		}
		_, err = c.Run(context.Background())
		return err
	})...)
}
