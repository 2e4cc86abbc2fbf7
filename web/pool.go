package web

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
)

// pool lets about as many computations run as there are cores, and as many wait as
// can hope to be served. Heavy ones leave room for others.
type pool struct {
	slots   chan struct{}
	heavy   chan struct{}
	waiting atomic.Int64
}

// maxWaiting is how many may wait; a browser that asks again is better off.
const maxWaiting = 64

// leastPlaces keeps a quick question from waiting behind slow ones where there are few
// cores: they share them.
const leastPlaces = 4

var errBusy = errors.New("the server is busy with other questions; try again in a moment")

func newPool() *pool {
	n := max(leastPlaces, runtime.GOMAXPROCS(0))
	return &pool{slots: make(chan struct{}, n), heavy: make(chan struct{}, max(1, n/4))}
}

// enter waits for a place. leave gives it back.
func (p *pool) enter(ctx context.Context, heavy bool) (leave func(), err error) {
	if p.waiting.Add(1) > maxWaiting {
		p.waiting.Add(-1)
		return nil, errBusy
	}
	defer p.waiting.Add(-1)
	queues := []chan struct{}{p.slots}
	if heavy {
		queues = []chan struct{}{p.heavy, p.slots}
	}
	var held []chan struct{}
	leave = func() {
		for _, q := range held {
			<-q
		}
	}
	for _, q := range queues {
		select {
		case q <- struct{}{}:
			held = append(held, q)
		case <-ctx.Done():
			leave()
			return nil, context.Cause(ctx)
		}
	}
	return leave, nil
}
