package engine

import (
	"context"
	"fmt"
	"sync"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Sizes of buckets as PyTorch's DistributedDataParallel has them: the first is small, so that
// it is under way early.
const (
	FirstBucket = 1 * unit.MiB
	BucketCap   = 25 * unit.MiB
)

// Bucketing is how gradients are gathered into calls.
type Bucketing struct {
	// Params are the bytes of each parameter's gradient, in the order of the forward pass.
	Params []unit.Bytes
	// First and Cap are when the first bucket and the others are full; 0 is FirstBucket and
	// BucketCap.
	First, Cap unit.Bytes
	Type       coll.Dtype
	Reduce     coll.Redop // the zero value is the sum; training wants coll.Avg
	// Pick is the schedule of a bucket; nil is the engine's choice by size.
	Pick func(coll.Op) (*schedule.Schedule, error)
}

// Plan divides the parameters into buckets, each a list of indices in the order in which a
// backward pass has their gradients: the last parameter comes first. A bucket is full when it
// has reached its size, so it may exceed it by a part of one parameter; a parameter is never
// divided.
func (b Bucketing) Plan() [][]int {
	limit, next := b.First, b.Cap
	if limit <= 0 {
		limit = FirstBucket
	}
	if next <= 0 {
		next = BucketCap
	}
	var all [][]int
	var list []int
	var size unit.Bytes
	for i := len(b.Params) - 1; i >= 0; i-- {
		list = append(list, i)
		if size += b.Params[i]; size >= limit {
			all = append(all, list)
			list, size, limit = nil, 0, next
		}
	}
	if list != nil {
		all = append(all, list)
	}
	return all
}

// Buckets are gradients that are reduced while the rest of the backward pass goes on. A step
// fills Grad(i) and calls Ready(i) for every parameter, in any order, and Wait at its end; then
// Grad(i) holds the result. The calls go on by themselves in between.
//
// All methods but Wait may be called from several goroutines.
type Buckets struct {
	grads [][]byte // by parameter
	in    []int    // bucket of each parameter

	mu      sync.Mutex
	list    []bucket
	here    []bool // by parameter: Ready was called
	started int    // buckets, from the first on
	err     error  // of a start
}

// bucket is one call.
type bucket struct {
	call    *Call
	params  []int
	bytes   unit.Bytes
	missing int
	run     *result.Run
}

// Buckets prepares a call for every bucket. All ranks must ask for the same.
func (g *Group) Buckets(how Bucketing) (*Buckets, error) {
	size := unit.Bytes(how.Type.Size())
	for i, n := range how.Params {
		if n < 0 || n%size != 0 {
			return nil, fmt.Errorf("parameter %d has %d bytes; expected a multiple of %d, the size of %s", i, n, size, how.Type)
		}
	}
	n := len(how.Params)
	b := &Buckets{grads: make([][]byte, n), in: make([]int, n), here: make([]bool, n)}
	for k, params := range how.Plan() {
		x := bucket{params: params, missing: len(params)}
		for _, i := range params {
			x.bytes += how.Params[i]
			b.in[i] = k
		}
		mem, err := g.Alloc(int(x.bytes))
		if err != nil {
			return nil, err
		}
		if x.call, err = g.bucketCall(how, x.bytes, mem); err != nil {
			return nil, fmt.Errorf("bucket %d of %v: %w", k, x.bytes, err)
		}
		for _, i := range params {
			n := how.Params[i]
			b.grads[i], mem = mem[:n:n], mem[n:]
		}
		b.list = append(b.list, x)
	}
	return b, nil
}

func (g *Group) bucketCall(how Bucketing, size unit.Bytes, mem []byte) (*Call, error) {
	op := coll.Op{Kind: coll.AllReduce, Bytes: size, Type: how.Type, Reduce: how.Reduce}
	var s *schedule.Schedule
	if how.Pick != nil {
		var err error
		if s, err = how.Pick(op); err != nil {
			return nil, err
		}
	}
	c, err := g.Prepare(s, op)
	if err != nil {
		return nil, err
	}
	return c, c.Bind(Buffers{Send: mem, Recv: mem, Factor: 1})
}

// Len is the number of buckets.
func (b *Buckets) Len() int { return len(b.list) }

// Params are the parameters of a bucket, in the order of its memory.
func (b *Buckets) Params(k int) []int { return b.list[k].params }

// Bytes is the size of a bucket.
func (b *Buckets) Bytes(k int) unit.Bytes { return b.list[k].bytes }

// Grad is the memory of a parameter's gradient.
func (b *Buckets) Grad(i int) []byte { return b.grads[i] }

// Ready says that the gradient of a parameter is there. It must not be touched until Wait has
// returned. A bucket that is full is started, after those before it: ranks whose gradients come
// in different orders then still send in one order, and nobody has to put messages aside.
func (b *Buckets) Ready(i int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case i < 0 || i >= len(b.in):
		return fmt.Errorf("parameter %d of %d", i, len(b.in))
	case b.here[i]:
		return fmt.Errorf("parameter %d is ready already; Wait ends a step", i)
	}
	b.here[i] = true
	b.list[b.in[i]].missing--
	for b.err == nil && b.started < len(b.list) && b.list[b.started].missing == 0 {
		if b.err = b.list[b.started].call.Start(); b.err == nil {
			b.started++
		}
	}
	return b.err
}

// Wait waits until all buckets are reduced, and begins the next step. Parameters that are not
// ready are an error, which starts nothing and ends nothing.
func (b *Buckets) Wait(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	for i, here := range b.here {
		if !here {
			return fmt.Errorf("the gradient of parameter %d (bucket %d) is not ready; call Ready(%d) before Wait", i, b.in[i], i)
		}
	}
	for k := range b.list {
		x := &b.list[k]
		if x.run != nil { // an earlier Wait, whose context ended, has seen its end
			continue
		}
		run, err := x.call.Wait(ctx)
		if err != nil {
			return err
		}
		x.run = run
	}
	for k := range b.list {
		b.list[k].missing, b.list[k].run = len(b.list[k].params), nil
	}
	clear(b.here)
	b.started = 0
	return nil
}

// Run is the record of a bucket's last call, from its start to its end on this rank.
func (b *Buckets) Run(k int) *result.Run { return &b.list[k].call.run }
