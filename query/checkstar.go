package query

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/result/pairs"
)

// checkOrder is what rank 0 asks of a node.
type checkOrder struct {
	ID    int           `json:"id"`
	Do    string        `json:"do"`   // local, ports, pair, sum, rdma-ports, rdma-serve, rdma-run, rdma-end, end
	Seat  engine.Seat   `json:"seat"` // in the group of a pair or a sum
	Limit time.Duration `json:"limit"`
	RDMA  *rdmaOrder    `json:"rdma,omitempty"`
	// with is the rank whose loss ends the order, where the asking rank itself does it; 0 is none.
	with int
}

// checkReply is what came of it.
type checkReply struct {
	ID     int              `json:"id"`
	Local  *checkLocal      `json:"local,omitempty"`
	Cells  []pairs.Measure  `json:"cells,omitempty"` // of a pair, from its first rank
	By     string           `json:"by,omitempty"`
	Counts engine.TCPCounts `json:"counts"` // of a pair that failed, as the sender
	Wrong  int              `json:"wrong,omitempty"`
	Failed string           `json:"failed,omitempty"`
	Took   time.Duration    `json:"took,omitempty"`
	Ports  []rdmaPort       `json:"ports,omitempty"` // for RDMA
	// Portless tells that RDMA failed for want of an active port, and not of programs.
	Portless bool `json:"portless,omitempty"`
	TCP      int  `json:"tcp,omitempty"` // the port of a server of perftest
}

// checkWorker does what rank 0 asks.
type checkWorker struct {
	q    *Check
	star *engine.Star
	plan bench.PairPlan
	with Programs
	rdma *rdmaWorker // of BenchRDMA
}

// serve does orders until the last.
func (w *checkWorker) serve(ctx context.Context) error {
	defer w.done()
	for {
		body, err := w.star.Next(ctx)
		if err != nil {
			return failure.Cannot(err)
		}
		var o checkOrder
		if err := json.Unmarshal(body, &o); err != nil {
			return failure.Cannot(fmt.Errorf("an order of rank 0 that cannot be read: %w", err))
		}
		if o.Do == "end" {
			return nil
		}
		if err := w.star.Reply(w.do(ctx, o)); err != nil {
			return failure.Cannot(fmt.Errorf("a reply to rank 0: %w", err))
		}
	}
}

// done leaves nothing behind that an order started.
func (w *checkWorker) done() {
	if w.rdma != nil {
		_ = w.rdma.end(true) // rank 0 is gone, and nobody asks
		w.rdma.free()
	}
}

// do does one order. What fails is part of the answer.
func (w *checkWorker) do(ctx context.Context, o checkOrder) checkReply {
	r := checkReply{ID: o.ID}
	begin := time.Now()
	if o.Do == "local" {
		l := w.q.local(ctx, w.with)
		r.Local = &l
		return r
	}
	if o.Do == "ports" {
		r.Local = &checkLocal{}
		r.Local.Ports, _ = checkPorts(w.with.Sys)
		return r
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("no end within %.3g s", o.Limit.Seconds()))
	defer cancel()
	if w.rdma != nil && o.RDMA != nil {
		o.RDMA.Server = w.star.Reached(o.RDMA.Server)
		if err := w.rdma.do(ctx, o.Do, o.RDMA, &r); err != nil {
			r.Failed = err.Error()
		}
		r.Took = time.Since(begin)
		return r
	}
	g, err := w.star.Sit(ctx, o.Seat)
	if err == nil {
		defer g.Close()
		r.By = string(g.Transport())
		if o.Do == "sum" {
			r.Wrong, err = sumOver(ctx, g)
		} else {
			var t *pairs.Table
			if t, err = bench.Pairs(ctx, g, w.plan, nil); t != nil {
				r.Cells = t.Cells
			}
			if err != nil {
				r.Counts = g.TCPCounts(1 - g.Rank())
			}
		}
	}
	if err != nil {
		r.Failed = err.Error()
		if context.Cause(ctx) != nil {
			r.Failed = context.Cause(ctx).Error()
		}
	}
	r.Took = time.Since(begin)
	return r
}

// checkHub is rank 0's side: it gives orders and waits for replies. It is a node as well.
type checkHub struct {
	checkWorker
	own     chan checkReply
	orders  int
	lost    map[int]string // ranks that do not answer any more, and why
	by      string
	members []engine.Member
	first   time.Duration // for a pair of the first round
}

func newCheckHub(w checkWorker) *checkHub {
	h := &checkHub{checkWorker: w, own: make(chan checkReply, 1), lost: map[int]string{}, by: string(engine.TCP), members: w.star.Members(), first: checkFirst}
	for r := range h.members {
		m := &h.members[r]
		if m.Host == "" {
			if m.Host = ranks.HostOf(os.Getenv, r, w.star.Size()); m.Host == "" {
				m.Host = fmt.Sprintf("rank %d", r)
			}
		}
		if m.Pid == 0 {
			h.lost[r] = "it did not come: it was not started, or does not reach " + h.members[0].Host
		}
	}
	return h
}

// checkGrace is how much longer than a limit a reply may take: to notice, and to travel.
const checkGrace = 5 * time.Second

// ask gives orders, one a rank, and waits for all replies. Who does not reply in time is lost.
func (h *checkHub) ask(ctx context.Context, orders map[int]checkOrder, limit time.Duration) map[int]checkReply {
	first := h.orders
	waits := map[int]bool{}
	mine, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for r, o := range orders {
		if h.lost[r] != "" {
			continue
		}
		o.ID, o.Limit = first, limit
		waits[r] = true
		if r == 0 {
			go func() { h.own <- h.do(mine, o) }()
		} else if h.star.Order(r, o) != nil {
			h.gone(r)
			delete(waits, r)
		}
	}
	h.orders++
	replies := map[int]checkReply{}
	end := time.NewTimer(limit + checkGrace)
	defer end.Stop()
	for len(waits) > 0 {
		select {
		case r := <-h.own: // it has a limit of its own
			if why := context.Cause(mine); why != nil && ctx.Err() == nil {
				r.Failed = why.Error()
			}
			replies[0] = r
			delete(waits, 0)
		case x := <-h.star.Replies():
			var r checkReply
			if x.Err == nil {
				x.Err = json.Unmarshal(x.Body, &r)
			}
			if x.Err != nil {
				h.gone(x.Rank)
				delete(waits, x.Rank)
				if orders[0].with == x.Rank { // a program that waits for one that is gone
					cancel(fmt.Errorf("%s: %s", h.members[x.Rank].Host, h.lost[x.Rank]))
				}
			} else if r.ID == first && waits[x.Rank] { // others are late
				replies[x.Rank] = r
				delete(waits, x.Rank)
			}
		case <-end.C:
			for r := range waits {
				if r != 0 {
					h.lost[r] = fmt.Sprintf("it did not answer within %.3g s", (limit + checkGrace).Seconds())
					delete(waits, r)
				}
			}
			if waits[0] {
				replies[0] = <-h.own
			}
			return replies
		}
	}
	return replies
}

// gone is that a rank's connection ended: it was killed, or is cut off.
func (h *checkHub) gone(rank int) {
	if h.lost[rank] == "" {
		h.lost[rank] = "its connection to " + h.members[0].Host + " ended during the check"
	}
}

// turn measures disjoint pairs at once.
func (h *checkHub) turn(ctx context.Context, list [][2]int, limit time.Duration) (cells []pairs.Measure, took []time.Duration) {
	orders := map[int]checkOrder{}
	for _, p := range list {
		seats := h.star.Seats(p[:])
		for i, r := range p {
			orders[r] = checkOrder{Do: "pair", Seat: seats[i]}
		}
	}
	replies := h.ask(ctx, orders, limit)
	for _, p := range list {
		a, okA := replies[p[0]]
		b, okB := replies[p[1]]
		if okA && okB && a.Failed == "" && b.Failed == "" && len(a.Cells) == 2 {
			for _, m := range a.Cells {
				m.From, m.To = p[m.From&1], p[m.To&1]
				cells = append(cells, m)
			}
			h.by = a.By
			took = append(took, max(a.Took, b.Took))
			continue
		}
		took = append(took, 0)
		why := a.Failed
		for i, ok := range []bool{okA, okB} {
			if !ok {
				why = fmt.Sprintf("%s: %s", h.members[p[i]].Host, h.lost[p[i]])
			}
		}
		why = cmp.Or(why, b.Failed)
		for i, c := range []engine.TCPCounts{a.Counts, b.Counts} {
			cells = append(cells, pairs.Measure{From: p[i], To: p[1-i], Failed: why, Segments: c.Segments, Lost: c.Lost, MSS: c.MSS})
		}
	}
	return cells, took
}

// sum adds a vector over some ranks; why is empty where it came to an end.
func (h *checkHub) sum(ctx context.Context, list []int, limit time.Duration) (wrong map[int]int, why string) {
	orders := map[int]checkOrder{}
	for i, seat := range h.star.Seats(list) {
		orders[list[i]] = checkOrder{Do: "sum", Seat: seat}
	}
	wrong = map[int]int{}
	replies := h.ask(ctx, orders, limit)
	for _, r := range list {
		x, ok := replies[r]
		switch {
		case !ok:
			why = fmt.Sprintf("%s: %s", h.members[r].Host, h.lost[r])
		case x.Failed != "" && why == "":
			why = x.Failed
		}
		wrong[r] = x.Wrong
	}
	return wrong, why
}

// end lets the others go.
func (h *checkHub) end() {
	h.done()
	for r := 1; r < len(h.members); r++ {
		if h.lost[r] == "" {
			_ = h.star.Order(r, checkOrder{Do: "end"}) // who is lost now ends by itself
		}
	}
}
