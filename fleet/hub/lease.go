package hub

import (
	"context"
	"slices"
	"sync"

	"busbar.dev/fleet"
)

// leases let a node be in one part at a time. Who waits longer comes first: a group of many
// nodes is not passed over by pairs for ever.
type leases struct {
	mu      sync.Mutex // guards following
	held    map[fleet.Name]bool
	waiting []*claim
}

// claim is someone who waits for nodes.
type claim struct {
	nodes []fleet.Name
	ready chan struct{} // closed when it has them
}

func newLeases() *leases { return &leases{held: map[fleet.Name]bool{}} }

// take waits until all nodes are free and holds them until the function that it returns is called.
// A claim that is urgent goes before others that wait.
func (l *leases) take(ctx context.Context, urgent bool, nodes ...fleet.Name) (release func(), err error) {
	c := &claim{nodes: nodes, ready: make(chan struct{})}
	l.mu.Lock()
	if urgent {
		l.waiting = slices.Insert(l.waiting, 0, c)
	} else {
		l.waiting = append(l.waiting, c)
	}
	l.grant()
	l.mu.Unlock()
	select {
	case <-c.ready:
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.waiting, c); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		} else {
			l.drop(c) // granted in the same moment
		}
		l.grant()
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.drop(c)
		l.grant()
	}), nil
}

// drop frees the nodes of a claim that was granted.
func (l *leases) drop(c *claim) {
	for _, n := range c.nodes {
		delete(l.held, n)
	}
}

// grant gives to everybody whose nodes are neither held nor wanted by someone before.
func (l *leases) grant() {
	wanted := map[fleet.Name]bool{}
	l.waiting = slices.DeleteFunc(l.waiting, func(c *claim) bool {
		free := !slices.ContainsFunc(c.nodes, func(n fleet.Name) bool { return l.held[n] || wanted[n] })
		for _, n := range c.nodes {
			if free {
				l.held[n] = true
			} else {
				wanted[n] = true
			}
		}
		if free {
			close(c.ready)
		}
		return free
	})
}
