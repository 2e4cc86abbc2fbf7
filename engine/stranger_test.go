package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/test/eventually"
)

// strangers are what may come to a port: nothing, noise, another protocol, a frame that claims
// more than there is memory, half a handshake.
func strangers(addr string, noise []byte) {
	claim := binary.LittleEndian.AppendUint64(make([]byte, 16), 1<<60)
	var wg sync.WaitGroup
	for _, text := range [][]byte{
		nil, noise, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), claim, []byte("busbar\x00\x01"),
		[]byte("busbar\x00\x63" + strings.Repeat("x", 200)),
	} {
		wg.Go(func() {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(eventually.Limit))
			c.Write(text)
			if t, ok := c.(*net.TCPConn); ok {
				t.CloseWrite()
			}
			io.Copy(io.Discard, c)
		})
	}
	wg.Wait()
}

// noise is a mebibyte of it.
func noise() []byte {
	b := make([]byte, 1<<20)
	for i, rng := 0, rand.New(rand.NewPCG(5, 5)); i < len(b); i++ {
		b[i] = byte(rng.Uint32())
	}
	return b
}

func TestStrangers(t *testing.T) {
	const n = 3
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	noise := noise()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // from before the first rank has come until after the last call
		for {
			select {
			case <-stop:
				return
			default:
				strangers(addr, noise)
			}
		}
	})
	// A rank of another job, one with another secret, one of another size, and a second one
	// with the number of a rank that is there.
	for i, cfg := range []engine.Config{{Job: "other", Secret: "s"}, {Secret: "wrong"}, {Secret: ""}} {
		cfg.Rank, cfg.Size, cfg.Meet, cfg.JoinTimeout = 1+i%2, n, addr, time.Minute // until rank 0 has told them
		wg.Go(func() {
			if _, err := engine.Join(context.Background(), cfg); err == nil {
				t.Errorf("a stranger joined: %+v", cfg)
			}
		})
	}
	groups := joined(t, n, func(c *engine.Config) { c.Meet = addr })
	wg.Go(func() {
		// It tries again until it is called off, which it is when it has been refused twice: then
		// it has heard of the first.
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			becomes(t, "a second rank 1 is refused twice",
				func() bool { return ctx.Err() != nil || groups[0].Refused()[engine.Taken] >= 2 })
			cancel()
		}()
		_, err := engine.Join(ctx, engine.Config{Rank: 1, Size: n, Meet: addr, Secret: "s"})
		if err == nil || !strings.Contains(err.Error(), "taken") {
			t.Errorf("a second rank 1: %v", err)
		}
		_, err = engine.Join(context.Background(), engine.Config{Rank: 1, Size: n + 1, Meet: addr, Secret: "s"})
		if err == nil || !strings.Contains(err.Error(), "another size") {
			t.Errorf("a rank of another size: %v", err)
		}
	})
	rng := rand.New(rand.NewPCG(8, 8))
	end := time.Now().Add(2 * time.Second)
	for k := 0; k < 20 || time.Now().Before(end); k++ {
		randomTrial(rng, n).run(t, groups)
	}
	close(stop)
	wg.Wait()
	for _, why := range []engine.Refusal{
		engine.Garbage, engine.OtherMake, engine.WrongSecret, engine.WrongGroup, engine.Taken,
	} {
		becomes(t, "somebody is counted as refused because "+why.String(),
			func() bool { return groups[0].Refused()[why] > 0 })
	}
}

// TestRefusals are calls that cannot be made; the group stays usable.
func TestRefusals(t *testing.T) {
	groups := local(t, 2)
	op := coll.Op{Kind: coll.AllReduce, Bytes: 64}
	s, err := engine.Pick(op, 2, engine.Mem)
	if err != nil {
		t.Fatal(err)
	}
	c, err := groups[0].Prepare(s, op)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "Bind") {
		t.Errorf("a call without buffers: %v", err)
	}
	if err := c.Bind(engine.Buffers{Send: make([]byte, 64), Recv: make([]byte, 63)}); err == nil ||
		!strings.Contains(err.Error(), "63") {
		t.Errorf("short buffers: %v", err)
	}
	b := make([]byte, 100)
	if err := c.Bind(engine.Buffers{Send: b[:64], Recv: b[8:72]}); err == nil ||
		!strings.Contains(err.Error(), "overlaps") {
		t.Errorf("overlapping buffers: %v", err)
	}
	if _, err := groups[0].Prepare(s, coll.Op{Kind: coll.AllGather, Bytes: 64}); err == nil {
		t.Error("a schedule of another collective was taken")
	}
}

// TestAbandon: a context that ends in the middle fails the group of this rank, and the peers
// are told.
func TestAbandon(t *testing.T) {
	groups := joined(t, 3, nil)
	op := coll.Op{Kind: coll.AllReduce, Bytes: 1 << 16}
	errs := each(groups, func(g *engine.Group) error {
		s, err := engine.Pick(op, g.Size(), engine.TCP)
		if err != nil {
			return err
		}
		c, err := g.Prepare(s, op)
		if err != nil {
			return err
		}
		b := make([]byte, op.Bytes)
		if err := c.Bind(engine.Buffers{Send: b, Recv: b}); err != nil {
			return err
		}
		ctx := context.Background()
		switch g.Rank() {
		case 1:
			return fmt.Errorf("rank 1 never calls")
		case 2:
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
		}
		_, err = c.Run(ctx)
		return err
	})
	if errs[2] == nil || !strings.Contains(errs[2].Error(), "deadline") {
		t.Errorf("rank 2: %v", errs[2])
	}
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "rank 2") {
		t.Errorf("rank 0: %v", errs[0])
	}
}

// TestLate: ranks that do not come are named, and those that came hear of it.
func TestLate(t *testing.T) {
	unlessBusy(t, func(timeout time.Duration) error { return late(t, timeout) })
}

// late is how ranks 0 and 2 of four wait for the others.
func late(t *testing.T, timeout time.Duration) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	var wg sync.WaitGroup
	var errs [3]error
	for _, r := range []int{0, 2} {
		wg.Go(func() {
			_, err := engine.Join(context.Background(), engine.Config{Rank: r, Size: 4, Meet: addr, JoinTimeout: timeout})
			if err == nil || r == 0 && !strings.Contains(err.Error(), "ranks 1, 3") {
				errs[r] = fmt.Errorf("rank %d: %v", r, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}
