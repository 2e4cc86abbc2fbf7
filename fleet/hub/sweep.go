package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/result/pairs"
)

// again is when nodes that were busy are asked again, one pass after the other, at the end of a sweep.
var again = []time.Duration{time.Second, 5 * time.Second, 15 * time.Second}

// witnesses is how many must agree before a node is blamed: each of them, and the node itself, may be in the wrong
// hands, and says itself where it is met.
const witnesses = 2

// sweep is one run of an order.
type sweep struct {
	h     *Hub
	o     *fleet.Order
	nodes []fleet.Name

	mu    sync.Mutex // guards following
	out   map[fleet.Name]fleet.Out
	later []group
	busy  map[fleet.Name]bool // in this pass
	met   map[fleet.Name]bool // was measured with somebody
	// missed are the parts that were not measured so far, by group.
	missed map[string]missed
}

// group is who does a part together.
type group struct {
	round int
	ranks []fleet.Name
}

// missed is a part that was not measured, and how it ended.
type missed struct {
	group
	ended
}

// run measures and comes back when every part ended.
func (w *sweep) run(ctx context.Context) {
	if len(w.nodes) < 2 {
		return
	}
	w.busy, w.met, w.missed = map[fleet.Name]bool{}, map[fleet.Name]bool{}, map[string]missed{}
	if w.o.What.Measure == fleet.MeasurePairs {
		w.rounds(ctx)
	} else {
		w.do(ctx, group{0, w.nodes})
	}
	for _, pause := range again {
		w.mu.Lock()
		list := w.later
		w.later, w.busy = nil, map[fleet.Name]bool{}
		w.mu.Unlock()
		if len(list) == 0 || !w.h.sleep(ctx, pause) {
			break
		}
		w.all(ctx, list)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, others := range w.lost() {
		if _, left := w.out[n]; !left && others >= witnesses {
			w.out[n] = fleet.Out{Node: n, Lost: true, Why: fmt.Sprintf(
				"could not be reached: not measured with any of %d nodes that others were measured with", others)}
		}
	}
}

// lost counts, for nodes that were measured with nobody, with how many that were measured their parts failed. Whose
// fault one such part is, nobody can say.
func (w *sweep) lost() map[fleet.Name]int {
	count := map[fleet.Name]int{}
	for _, m := range w.missed {
		if m.kind != partFailed || len(m.ranks) != 2 {
			continue
		}
		for i, n := range m.ranks {
			if !w.met[n] && w.met[m.ranks[1-i]] {
				count[n]++
			}
		}
	}
	return count
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

// skip passes over pairs that were measured before the server died, and those with a node that is left out; those with
// a node that was busy a moment ago come later.
func (w *sweep) skip(g group) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.h.view.isMeasured(w.o, g.ranks) {
		w.note(g, ended{})
		return true
	}
	for _, n := range g.ranks {
		if out, left := w.out[n]; left {
			w.note(g, ended{partOut, n, out.Why})
			return true
		}
		if w.busy[n] {
			w.note(g, ended{partBusy, n, "busy all the time"})
			return true
		}
	}
	return false
}

// do has one group measured and notes what became of it.
func (w *sweep) do(ctx context.Context, g group) {
	r := (&part{sweep: w, group: g}).run(ctx)
	w.h.counts.parts[r.kind].Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(g, r)
}

// note takes how a part ended. The caller holds mu.
func (w *sweep) note(g group, r ended) {
	key := fmt.Sprint(g.ranks)
	switch r.kind {
	case partEnded: // the order, or it was passed over
		return
	case partGood:
		for _, n := range g.ranks {
			w.met[n] = true
		}
		delete(w.missed, key)
		return
	case partBusy:
		w.later = append(w.later, g)
		w.busy[r.node] = true
	case partOut:
		if _, left := w.out[r.node]; !left {
			w.out[r.node] = fleet.Out{Node: r.node, Why: r.why}
		}
	}
	w.missed[key] = missed{g, r}
}

// left are the nodes that the sweep went without.
func (w *sweep) left() (list []fleet.Out) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range sortedNames(w.out) {
		list = append(list, w.out[n])
	}
	for _, n := range sortedNames(w.busy) {
		if _, left := w.out[n]; !left {
			list = append(list, fleet.Out{Node: n, Why: "busy, not measured with all others", Busy: true})
		}
	}
	return list[:min(len(list), 1000)]
}

// mostNamed is how many nodes a reason names.
const mostNamed = 32

// reasons are the commonest of why parts were not measured, and how many failed.
func (w *sweep) reasons(s fleet.OrderState) (list []fleet.Reason, failed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	by := map[ended]*fleet.Reason{}
	rest := s.Parts - s.Measured
	for _, m := range w.missed {
		if rest == 0 || w.h.view.isMeasured(w.o, m.ranks) {
			continue // it was told late
		}
		rest--
		k := ended{kind: m.kind, why: cut(m.why)}
		if by[k] == nil {
			by[k] = &fleet.Reason{LeftOut: m.kind != partFailed, Why: k.why}
		}
		r := by[k]
		r.Parts++
		if m.node != "" && len(r.Nodes) < mostNamed && !slices.Contains(r.Nodes, m.node) {
			r.Nodes = append(r.Nodes, m.node)
		}
	}
	if rest > 0 {
		by[ended{}] = &fleet.Reason{Parts: rest, LeftOut: true, Why: "their nodes were gone when this server started"}
	}
	for _, r := range by {
		if !r.LeftOut {
			failed += r.Parts
		}
		slices.SortFunc(r.Nodes, byNumber)
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b fleet.Reason) int {
		return cmp.Or(cmp.Compare(b.Parts, a.Parts), cmp.Compare(a.Why, b.Why))
	})
	return list[:min(len(list), fleet.MaxReasons)], failed
}

// why says why nothing was measured.
func (w *sweep) why(reasons []fleet.Reason) string {
	text := "nothing was measured"
	if len(w.nodes) < 2 {
		text = fmt.Sprintf("nodes that are available: %d; at least 2 are needed", len(w.nodes))
		for _, o := range w.left() {
			return cut(fmt.Sprintf("%s; %s: %s", text, o.Node, o.Why))
		}
	}
	if len(reasons) > 0 {
		text = fmt.Sprintf("%s: %v %s", text, reasons[0].Nodes, reasons[0].Why)
	}
	return cut(text)
}
