package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/device"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/failure"
	"busbar.dev/result/pairs"
)

// order is what rank 0 asks of a member.
type order struct {
	Do    string         `json:"do"`   // look, later, ports, pair, sum, gpus, gpu, verdict, end
	Seat  engine.Seat    `json:"seat"` // in the group of a pair or a sum
	Limit time.Duration  `json:"limit"`
	Job   string         `json:"job,omitempty"` // whose ranks may share RDMA ports
	RDMA  *perftestOrder `json:"rdma,omitempty"`
	// GPU is what one of a member's workers of busbar-gpu is asked; they do so at the same time.
	GPU    *device.Request `json:"gpu,omitempty"`
	Worker int             `json:"worker,omitempty"`
	// Verdict is that on the member's node, for whoever it has to tell.
	Verdict *CheckNode `json:"verdict,omitempty"`
}

// reply is what came of it.
type reply struct {
	Node     *Node           `json:"node,omitempty"`
	Cells    []pairs.Measure `json:"cells,omitempty"` // of a pair, as its ranks 0 and 1
	By       string          `json:"by,omitempty"`
	Wrong    int             `json:"wrong,omitempty"`    // elements of a sum
	Ports    []Port          `json:"ports,omitempty"`    // for RDMA
	Portless bool            `json:"portless,omitempty"` // for want of an active port, and not of programs
	GPUs     int             `json:"gpus,omitempty"`     // workers of busbar-gpu
	GPU      *device.Answer  `json:"gpu,omitempty"`      // the answer of one
	Worker   int             `json:"worker,omitempty"`
	Failed   string          `json:"failed,omitempty"`

	lost bool // there was none
}

// member does what rank 0 asks.
type member struct {
	star *engine.Star
	plan bench.PairPlan // over TCP
	rdma *Perftest      // nil: there is none
	// look looks at the node; nil where perftest alone is run. later reads its ports again.
	look  func(ctx context.Context) *Node
	later func() *Node
	told  func(CheckNode) // of the verdict on this node; nil where nobody waits for it
	gpus  device.Team     // workers of this node
}

// serve does orders until the last.
func (m *member) serve(ctx context.Context) error {
	defer m.rdma.free()
	var busy sync.WaitGroup
	defer busy.Wait()
	defer m.gpus.End() // what waits for a GPU ends first
	for {
		body, err := m.star.Next(ctx)
		var o order
		if err == nil {
			o, err = m.decodeOrder(body)
		}
		switch {
		case err != nil:
			return failure.Cannot(err)
		case o.Do == "end":
			return nil
		}
		if o.GPU != nil {
			busy.Go(func() { _ = m.star.Reply(m.do(ctx, o)) }) // rank 0 may be gone, which Next says
			continue
		}
		if err := m.star.Reply(m.do(ctx, o)); err != nil {
			return failure.Cannot(fmt.Errorf("a reply to rank 0: %w", err))
		}
	}
}

// do does one order. What fails is part of the answer.
func (m *member) do(ctx context.Context, o order) (r reply) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("no end within %.3g s", o.Limit.Seconds()))
	defer cancel()
	var err error
	switch o.Do {
	case "look":
		r.Node = m.look(ctx)
	case "later":
		r.Node = m.later()
	case "verdict":
		if m.told != nil {
			m.told(*o.Verdict)
		}
	case "ports":
		r, err = m.rdma.claim(ctx, o.Job)
	case "gpus":
		r.GPUs = len(m.gpus)
	case "gpu":
		r.GPU, r.Worker = m.askGPU(ctx, o.Worker, *o.GPU), o.Worker
	default:
		r, err = m.seated(ctx, o)
	}
	if err != nil {
		r.Failed = cmp.Or(context.Cause(ctx), err).Error()
	}
	return r
}

// seated does what a group of some members does: a sum, or the measurement of a pair.
func (m *member) seated(ctx context.Context, o order) (r reply, err error) {
	if o.RDMA != nil {
		if o.RDMA.Peer, err = m.star.Reached(o.RDMA.Peer); err != nil {
			return r, err
		}
	}
	g, err := m.star.Sit(ctx, o.Seat)
	if err != nil {
		return r, err
	}
	defer g.Close()
	r.By = string(g.Transport())
	switch {
	case o.Do == "sum":
		r.Wrong, err = wrongSum(ctx, g)
	case o.RDMA != nil:
		r.Cells, err = m.rdma.pair(ctx, g, o.RDMA)
	default:
		if r.Cells, err = bench.Pair(ctx, g, m.plan); err != nil { // what was lost may be why
			c := g.TCPCounts(1 - g.Rank())
			r.Cells = []pairs.Measure{{
				From: g.Rank(), To: 1 - g.Rank(), Segments: c.Segments, Lost: c.Lost, MSS: c.MSS,
			}}
		}
	}
	return r, err
}

// wrongSum adds a vector over all members of a group and counts what is wrong of it here.
func wrongSum(ctx context.Context, g *engine.Group) (wrong int, err error) {
	values := make([]int32, sumElements)
	for i := range values {
		values[i] = int32(g.Rank() + 1)
	}
	values, err = sum(ctx, g, values)
	for _, v := range values {
		if int(v) != g.Size()*(g.Size()+1)/2 {
			wrong++
		}
	}
	return wrong, err
}

// hub is rank 0's side: it gives orders and waits for replies. It is a member as well.
type hub struct {
	member
	members []engine.Member
	first   time.Duration // for a pair of the first round; 0 is the sweep's
	over    chan struct{}

	mu    sync.Mutex
	by    string             // what the last pair's bytes took
	lost  map[int]string     // ranks that do not answer any more, and why
	waits map[[2]int]waiting // by rank and worker
}

// waiting is who waits for the reply to an order.
type waiting struct {
	order
	reply chan reply
}

func newHub(m member) *hub {
	h := &hub{
		member: m, members: m.star.Members(), over: make(chan struct{}), by: string(engine.TCP), lost: map[int]string{},
		waits: map[[2]int]waiting{},
	}
	for r := range h.members {
		x := &h.members[r]
		x.Host = cmp.Or(x.Host, ranks.HostOf(os.Getenv, r, len(h.members)), fmt.Sprintf("rank %d", r))
		if x.Pid == 0 {
			h.lost[r] = "it did not come: it was not started, or does not reach " + h.members[0].Host
		}
	}
	go h.collect()
	return h
}

// end lets the others go.
func (h *hub) end() {
	close(h.over)
	h.rdma.free()
	for r := range h.members {
		if r > 0 && h.away(r) == "" {
			_ = h.star.Order(r, order{Do: "end"}) // who is lost now ends by itself
		}
	}
}

// away is why a rank does not answer; "" where it does.
func (h *hub) away(rank int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost[rank]
}

// lose remembers why a rank does not answer any more, and tells who waits for it.
func (h *hub) lose(rank int, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost[rank] = cmp.Or(h.lost[rank], why)
	for at, w := range h.waits {
		if at[0] == rank {
			delete(h.waits, at)
			w.reply <- reply{Failed: fmt.Sprintf("%s: %s", h.members[rank].Host, h.lost[rank]), lost: true}
		}
	}
}

// collect takes replies until the end. One that nobody waits for is late.
func (h *hub) collect() {
	for {
		select {
		case x := <-h.star.Replies():
			if err := h.deliver(x); err != nil {
				h.lose(x.Rank, err.Error())
			}
		case <-h.over:
			return
		}
	}
}

// deliver gives a reply to who waits for it; an error is why there are no more of the rank.
func (h *hub) deliver(x engine.StarReply) error {
	if x.Err != nil { // it was killed, or is cut off
		return errors.New(h.ended())
	}
	var r reply
	err := json.Unmarshal(x.Body, &r)
	h.mu.Lock()
	defer h.mu.Unlock()
	w, waited := h.waits[[2]int{x.Rank, r.Worker}]
	if !waited && err == nil {
		return nil
	}
	if err == nil {
		err = w.checkReply(&r)
	}
	if err != nil {
		return fmt.Errorf("its reply cannot be: %w", err)
	}
	delete(h.waits, [2]int{x.Rank, r.Worker})
	w.reply <- r
	return nil
}

// ended says that a connection did.
func (h *hub) ended() string {
	return "its connection to " + h.members[0].Host + " ended during the check"
}

// replyGrace is how much longer than a limit a reply may take: to notice, and to travel.
const replyGrace = 5 * time.Second

// ask has a rank do an order within a limit. Who does not reply in time is lost.
func (h *hub) ask(ctx context.Context, rank int, o order, limit time.Duration) reply {
	o.Limit = limit
	if rank == 0 {
		return h.do(ctx, o)
	}
	w := waiting{o, make(chan reply, 1)}
	h.mu.Lock()
	h.waits[[2]int{rank, o.Worker}] = w
	h.mu.Unlock()
	if h.away(rank) != "" || h.star.Order(rank, o) != nil {
		h.lose(rank, h.ended())
	}
	end := time.NewTimer(limit + replyGrace)
	defer end.Stop()
	select {
	case r := <-w.reply:
		return r
	case <-ctx.Done():
		return reply{Failed: context.Cause(ctx).Error(), lost: true}
	case <-end.C:
		h.lose(rank, fmt.Sprintf("it did not answer within %.3g s", (limit+replyGrace).Seconds()))
		return <-w.reply
	}
}

// askAll has ranks do an order at once, each what of says.
func (h *hub) askAll(ctx context.Context, ranks []int, limit time.Duration, of func(i int) order) []reply {
	replies := make([]reply, len(ranks))
	var all sync.WaitGroup
	for i, r := range ranks {
		all.Go(func() { replies[i] = h.ask(ctx, r, of(i), limit) })
	}
	all.Wait()
	return replies
}

// together has ranks do an order in a group of their own; why is empty where all came to its end. That one of them is
// lost explains what the others say.
func (h *hub) together(ctx context.Context, ranks []int, limit time.Duration,
	of func(i int) order,
) (replies []reply, why string) {
	seats := h.star.Seats(ranks)
	replies = h.askAll(ctx, ranks, limit, func(i int) order {
		o := of(i)
		o.Seat = seats[i]
		return o
	})
	for _, r := range replies {
		switch {
		case r.lost:
			return replies, r.Failed
		case why != "" && r.Failed != "" && r.Failed != why:
			why += "; at the other side: " + r.Failed
		default:
			why = cmp.Or(why, r.Failed)
		}
	}
	return replies, why
}

// pair measures two ranks, which do what of says.
func (h *hub) pair(ctx context.Context, ranks [2]int, limit time.Duration, of func(i int) order) [2]pairs.Measure {
	var got [2]pairs.Measure
	replies, why := h.together(ctx, ranks[:], limit, of)
	for _, r := range replies {
		for _, m := range r.Cells {
			got[m.From].Better(m)
		}
	}
	if got[0].Failed, got[1].Failed = why, why; why == "" {
		h.mu.Lock()
		h.by = replies[0].By
		h.mu.Unlock()
	}
	return got
}

// overTCP is a sweep over the members by what the engine carries.
func (h *hub) overTCP(show func(string)) *Sweep {
	hosts := hostsOf(h.members)
	return &Sweep{
		Names: rankNames(hosts), Hosts: hosts, Show: show, First: h.first, Away: func(r int) bool { return h.away(r) != "" },
		Turn: Concurrently(func(ctx context.Context, p [2]int, limit time.Duration) [2]pairs.Measure {
			return h.pair(ctx, p, limit, func(int) order { return order{Do: "pair"} })
		}),
	}
}
