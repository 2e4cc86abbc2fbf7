package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"busbar.dev/fleet"
	"busbar.dev/result/pairs"
)

// sweep is one run of an order.
type sweep struct {
	h     *Hub
	o     *fleet.Order
	nodes []fleet.Name

	mu    sync.Mutex // guards following
	out   map[fleet.Name]fleet.Out
	later []group
	busy  map[fleet.Name]bool // in this pass
	last  string              // why the last part failed
	meets meets
	// missed are the parts that were not measured so far, by group.
	missed map[string]missed
}

// group is who does a part together.
type group struct {
	round int
	ranks []fleet.Name
}

// run measures and comes back when every part ended.
func (w *sweep) run(ctx context.Context) {
	if len(w.nodes) < 2 {
		return
	}
	if w.o.What.Measure == fleet.MeasurePairs {
		w.rounds(ctx)
	} else {
		w.do(ctx, group{0, w.nodes})
	}
	// Who was busy is asked again, a few times.
	for _, pause := range w.h.cfg.Again {
		w.mu.Lock()
		again := w.later
		w.later, w.busy = nil, nil
		w.mu.Unlock()
		if len(again) == 0 || !w.h.sleep(ctx, pause) {
			break
		}
		w.all(ctx, again)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, why := range w.meets.blame() {
		if _, left := w.out[n]; !left {
			w.out[n] = fleet.Out{Node: n, Why: why}
		}
	}
	for _, g := range w.later {
		k := max(0, slices.IndexFunc(g.ranks, func(n fleet.Name) bool { return w.busy[n] }))
		w.miss(missed{group: g, left: true, node: g.ranks[k], why: "busy all the time"})
		w.last = fmt.Sprintf("%v and %v were busy all the time", g.ranks[0], g.ranks[1])
		if len(g.ranks) > 2 {
			w.last = fmt.Sprintf("of %d nodes, some were busy all the time", len(g.ranks))
		}
	}
}

// rounds runs over all pairs, or over as many rounds as the order allows, from where the sweep
// before ended.
func (w *sweep) rounds(ctx context.Context) {
	n := len(w.nodes)
	total := pairs.Count(n)
	count, first := total, 0
	if w.o.Rounds > 0 && w.o.Rounds < total {
		count = w.o.Rounds
		first = (w.o.Sweep - 1) % total * count % total
	}
	for i := range count {
		if ctx.Err() != nil {
			return
		}
		r := (first + i) % total
		var list []group
		for _, p := range pairs.Round(n, r) {
			list = append(list, group{r, []fleet.Name{w.nodes[p[0]], w.nodes[p[1]]}})
		}
		w.all(ctx, list)
	}
}

// all does groups, so many at once as the order allows, and waits for them.
func (w *sweep) all(ctx context.Context, list []group) {
	most := len(list)
	if w.o.AtOnce > 0 {
		most = min(most, w.o.AtOnce)
	}
	free := make(chan struct{}, max(most, 1))
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, g := range list {
		if w.skip(g) {
			continue
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		wg.Go(func() {
			w.do(ctx, g)
			<-free
		})
	}
}

// skip passes over pairs that ended before the server died, and those with a node that is left out;
// those with a node that was busy a moment ago come later.
func (w *sweep) skip(g group) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if good, failed := w.h.view.became(w.o.ID, w.o.Sweep, g.ranks); len(g.ranks) == 2 && (good || failed) {
		return true
	}
	for _, n := range g.ranks {
		if out, left := w.out[n]; left {
			w.miss(missed{group: g, left: true, node: n, why: out.Why})
			return true
		}
	}
	if slices.ContainsFunc(g.ranks, func(n fleet.Name) bool { return w.busy[n] }) {
		w.later = append(w.later, g)
		return true
	}
	return false
}

// do has one group measured and notes what became of it.
func (w *sweep) do(ctx context.Context, g group) {
	p := &part{h: w.h, o: w.o, group: g, skip: w.skip, unmet: func(host, partner fleet.Name) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.meets.failed(host, partner)
	}}
	r := p.run(ctx)
	text := r.why
	if r.node != "" {
		text = fmt.Sprintf("%s: %s", r.node, r.why)
	}
	w.h.counts.parts[r.kind].Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.kind {
	case partGood:
		w.meets.met(g.ranks)
	case partMeet:
		w.miss(missed{group: g, left: true, node: r.node, why: r.why})
	case partBusy:
		w.later = append(w.later, g)
		if w.busy == nil {
			w.busy = map[fleet.Name]bool{}
		}
		w.busy[r.node] = true
	case partOut:
		w.out[r.node] = fleet.Out{Node: r.node, Why: r.why}
		w.miss(missed{group: g, left: true, node: r.node, why: r.why})
	case partFailed:
		w.miss(missed{group: g, node: r.node, why: r.why})
	}
	if text != "" {
		w.last = text
	}
}

// left are the nodes that the sweep went without.
func (w *sweep) left() (list []fleet.Out) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range slices.SortedFunc(maps.Keys(w.out), byNumber) {
		list = append(list, w.out[n])
	}
	for _, n := range slices.SortedFunc(maps.Keys(w.busy), byNumber) {
		if _, left := w.out[n]; !left {
			list = append(list, fleet.Out{Node: n, Why: "busy, not measured with all others", Busy: true})
		}
	}
	return list[:min(len(list), 1000)]
}

// why says why nothing was measured.
func (w *sweep) why(n int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case n < 2:
		text := fmt.Sprintf("%d nodes are available; at least 2 are needed", n)
		for _, n := range slices.SortedFunc(maps.Keys(w.out), byNumber) {
			return cut(fmt.Sprintf("%s; %s: %s", text, n, w.out[n].Why))
		}
		return text
	case w.last != "":
		return cut("nothing was measured; last: " + w.last)
	}
	return "nothing was measured"
}
