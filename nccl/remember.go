package nccl

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Planner makes plans. Its zero value works. It remembers what searches found on systems of a shape:
// the communicators of a job mostly differ in how many nodes they have and not in how one looks, and
// the search is most of what a plan costs. Several goroutines may use it.
type Planner struct {
	mu     sync.Mutex
	graphs map[string]Graphs
}

func (f *Planner) graphsOf(key string) (Graphs, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok := f.graphs[key]
	return g, ok
}

func (f *Planner) remember(key string, g Graphs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.graphs == nil {
		f.graphs = map[string]Graphs{}
	}
	f.graphs[key] = g
}

// searchKey is what a search depends on beside the system's shape.
func (c *Comm) searchKey() string {
	b := fmt.Appendf(nil, "%v %t", c.Version, c.CollNet)
	for _, k := range slices.Sorted(maps.Keys(c.Env)) {
		b = fmt.Appendf(b, " %q=%q", k, c.Env[k])
	}
	return string(b)
}
