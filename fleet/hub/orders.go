package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/fleet"
	"busbar.dev/result/pairs"
)

var (
	errUnknown = apiError{http.StatusNotFound, errors.New("no such order")}
	errOver    = apiError{http.StatusConflict, errors.New("the order has already ended")}
)

// Give takes an order. Its id, state and all that follows are the hub's to say.
func (h *Hub) Give(ctx context.Context, o fleet.Order) (s fleet.OrderState, err error) {
	now := h.cfg.Now().UTC()
	o.ID, o.State, o.Why, o.Sweep, o.Since = secret(6), fleet.Waiting, "", 0, now
	o.Ran, o.Lead, o.Over, o.OverWhy, o.Parts, o.Out, o.Reasons, o.FailedParts = time.Time{}, "", "", "", 0, nil, nil, 0
	if err := o.Check(); err != nil {
		return s, refused("%w", err)
	}
	for _, n := range o.Nodes {
		// A check before a job goes on without such a node, and calls it bad: a refusal would say nothing of the others.
		if _, ok := h.Node(n); !ok && o.Job == "" {
			return s, refused("node %s %s; busbar fleet nodes lists the nodes", n, h.absent(n))
		}
	}
	if len(h.active()) >= maxOrders {
		return s, refused("there are %d orders already; cancel some", maxOrders)
	}
	err = h.publishOrder(ctx, o)
	s, _ = h.view.Order(o.ID, now)
	return s, err
}

// Cancel ends an order, whatever state it is in. Parts that run are stopped.
func (h *Hub) Cancel(ctx context.Context, id, by string) (fleet.OrderState, error) {
	now := h.cfg.Now().UTC()
	s, ok := h.view.Order(id, now)
	switch {
	case !ok:
		return s, errUnknown
	case s.Final():
		return s, errOver
	}
	o := s.Order
	o.State, o.Since, o.Why = fleet.Cancelled, now, "by "+cut(by)
	err := h.publishOrder(ctx, o)
	s, _ = h.view.Order(id, now)
	return s, err
}

func (h *Hub) over(id string) bool {
	s, ok := h.view.Order(id, h.cfg.Now())
	return !ok || s.Final()
}

// publishOrder tells a new state of an order.
func (h *Hub) publishOrder(ctx context.Context, o fleet.Order) error {
	return h.publish(ctx, &fleet.Event{Kind: fleet.KindOrder, Order: &o})
}

// carryOut runs an order, once or again and again, until it is over or the context ends. An
// order that was running when the server died goes on with what its sweep has left.
func (h *Hub) carryOut(ctx context.Context, id string) {
	for ctx.Err() == nil {
		s, ok := h.view.Order(id, h.cfg.Now())
		if !ok || s.Final() {
			return
		}
		o := s.Order
		resumed := o.State == fleet.Running
		if !resumed && !h.untilDue(ctx, &o, s.Given) {
			return
		}
		if !h.gather(ctx) {
			return
		}
		if err := h.once(ctx, &o, resumed); err != nil {
			return
		}
	}
}

// gather waits for the beats of nodes that joined before this server began: without them they
// would all be left out.
func (h *Hub) gather(ctx context.Context) bool {
	for slices.ContainsFunc(h.Nodes(), func(n fleet.NodeState) bool { return n.State == fleet.NodeStarting }) {
		if !h.sleep(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return ctx.Err() == nil
}

// once carries out one sweep and says how it went.
func (h *Hub) once(ctx context.Context, o *fleet.Order, resumed bool) error {
	now := h.cfg.Now().UTC()
	if !resumed {
		o.Sweep++
		o.Ran, o.Why = now, ""
	}
	nodes, out := h.choose(o, resumed)
	parts := partsOf(o, len(nodes))
	if resumed {
		parts = max(parts, o.Parts) // those with nodes that are gone by now are left out
	}
	o.State, o.Since, o.Out, o.Parts, o.Reasons, o.FailedParts = fleet.Running, now, out, parts, nil, 0
	if o.Lead = ""; o.What.Measure == fleet.MeasureCollective && len(nodes) > 0 {
		o.Lead = nodes[0] // its rank 0
	}
	if err := h.publishOrder(ctx, *o); err != nil {
		return err
	}
	w := &sweep{h: h, o: o, nodes: nodes, out: map[fleet.Name]fleet.Out{}}
	for _, x := range out {
		w.out[x.Node] = x
	}
	w.run(ctx)
	end := h.cfg.Now().UTC()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s, _ := h.view.Order(o.ID, end)
	o.State, o.Since, o.Out, o.Why = fleet.Done, end, w.left(), ""
	o.Reasons, o.FailedParts = w.reasons(s)
	if s.Measured == 0 {
		o.State, o.Why = fleet.Failed, w.why(o.Reasons)
	}
	if o.Every > 0 {
		o.State = fleet.Waiting
	}
	err := h.publishOrder(ctx, *o)
	h.lookNow()
	return err
}

// partsOf is how many parts a sweep over so many nodes has.
func partsOf(o *fleet.Order, nodes int) int {
	switch {
	case nodes < 2:
		return 0
	case o.What.Measure != fleet.MeasurePairs:
		return 1
	case o.Rounds > 0 && o.Rounds < pairs.Count(nodes):
		return o.Rounds * (nodes / 2)
	}
	return nodes * (nodes - 1) / 2
}

// choose is who takes part, and who does not and why. It sets over what, unless the sweep has begun.
func (h *Hub) choose(o *fleet.Order, begun bool) (nodes []fleet.Name, out []fleet.Out) {
	for _, n := range h.view.asked(o) {
		if why := h.absent(n); why != "" {
			out = append(out, fleet.Out{Node: n, Why: why})
			continue
		}
		nodes = append(nodes, n)
	}
	if o.What.By != fleet.Best {
		o.Over = o.What.By
	} else if !begun {
		o.Over, o.OverWhy = h.best(nodes)
	}
	nodes = slices.DeleteFunc(nodes, func(n fleet.Name) bool {
		why := h.view.joined(n).Lacks(o.Over)
		if why != "" {
			out = append(out, fleet.Out{
				Node: n, Why: cut("cannot be measured by " + o.Over.Text() + ": " + why), Lacks: o.Nodes == nil,
			})
		}
		return why != ""
	})
	return nodes, out
}

// best is the best transport that all nodes have, and who lacks a better one and why. Figures of a sweep are compared
// with each other, so that all pairs are measured alike.
func (h *Hub) best(nodes []fleet.Name) (by fleet.Transport, why string) {
	var reasons []string
	for _, by := range slices.Backward(fleet.Transports()) {
		var lack []string
		first := ""
		for _, n := range nodes {
			if w := h.view.joined(n).Lacks(by); w != "" {
				lack, first = append(lack, string(n)), cmp.Or(first, w)
			}
		}
		if lack == nil {
			return by, strings.Join(reasons, "; ")
		}
		reasons = append(reasons, cut(fmt.Sprintf("not by %s: %s: %s", by.Text(), cluster.FormatHosts(lack), first)))
	}
	return fleet.TCP, strings.Join(reasons, "; ")
}

// absent says why a node cannot be asked, or nothing.
func (h *Hub) absent(n fleet.Name) string {
	s, ok := h.Node(n)
	switch {
	case !ok && h.view.forgotten(string(n)):
		return "was removed and has not rejoined"
	case !ok:
		return fleet.NeverJoined
	case s.State == fleet.NodeLeft:
		return "left"
	case s.State == fleet.NodeStarting:
		return "has not joined yet"
	case s.State == fleet.NodeUnreachable && s.Age >= 0:
		return fmt.Sprintf("silent for %v", s.Age.Round(time.Second))
	case s.State == fleet.NodeUnreachable:
		since := s.UnreachableSince
		if since.IsZero() {
			since = h.began
		}
		return "unreachable since " + since.UTC().Format(time.RFC3339)
	case s.Meet == "":
		return "announces no address for measurements"
	}
	return ""
}
