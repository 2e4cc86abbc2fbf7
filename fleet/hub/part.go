package hub

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"busbar.dev/fleet"
)

// partKind is what became of a part.
type partKind int

const (
	partGood   partKind = iota
	partFailed          // it began, and nothing came out
	partBusy            // somebody may be asked again
	partOut             // a node refuses or does not answer
	partMeet            // the place to meet is no place for a partner
	partEnded           // it was stopped
)

func (k partKind) String() string {
	return [...]string{"good", "failed", "busy", "left_out", "not_met", "stopped"}[k]
}

// ended is how a part ended: what, about whom, why.
type ended struct {
	kind partKind
	node fleet.Name
	why  string
}

// part is one group that measures.
type part struct {
	group
	h    *Hub
	skip func(group) bool
	// unmet is told of a partner that does not meet rank 0.
	unmet func(host, partner fleet.Name)
	o     *fleet.Order
	id    string
}

// Patience with nodes: how long one may take to answer, how long a node that has just ended a part
// may still be busy with it, and how long stopping may take.
const (
	answerTime = 5 * time.Second
	tidyTime   = time.Second
	tidyStep   = 100 * time.Millisecond
	stopTime   = 3 * time.Second
)

// run takes the nodes, asks them, and waits for what comes out.
func (p *part) run(ctx context.Context) ended {
	release, err := p.h.leases.take(ctx, p.o.Job != "", p.ranks...)
	if err != nil {
		return ended{kind: partEnded, why: err.Error()}
	}
	defer release()
	if p.skip(p.group) { // things have changed while the nodes were waited for
		return ended{kind: partEnded}
	}
	for _, n := range p.ranks {
		if why := p.h.absent(n); why != "" {
			return ended{partOut, n, why}
		}
	}
	var id [16]byte
	rand.Read(id[:])
	p.id = fmt.Sprintf("%s/%d/%d/%s", p.o.ID, p.o.Sweep, p.round, hex.EncodeToString(id[:4]))
	outcomes := p.h.expect(p.id, 2*len(p.ranks))
	defer p.h.forget(p.id)
	defer func() {
		for _, n := range p.ranks {
			p.h.live.done(n, p.id)
		}
	}()
	if r, ok := p.begin(ctx); !ok {
		p.stop(p.ranks)
		return r
	}
	caps := p.o.Bounds()
	limit := caps.Bound() + p.h.cfg.Slack
	bound := time.NewTimer(limit)
	defer bound.Stop()
	for {
		select {
		case <-ctx.Done():
			p.stop(p.ranks)
			return ended{kind: partEnded, why: context.Cause(ctx).Error()}
		case <-bound.C:
			p.stop(p.ranks)
			return ended{kind: partFailed, why: fmt.Sprintf("no answer within %v", limit)}
		case out := <-outcomes:
			switch {
			case out.m.Failed == "" && out.by == p.ranks[0]:
				return ended{kind: partGood}
			case out.m.Failed != "" && slices.Contains(p.ranks, out.by):
				p.stop(p.ranks)
				return ended{partFailed, out.by, cut(out.m.Failed)}
			}
		}
	}
}

// begin asks all ranks at once: a node looks at its traffic for a moment before it answers. One that
// begins waits for the others, and is stopped where one of them does not.
func (p *part) begin(ctx context.Context) (ended, bool) {
	var secret [24]byte
	rand.Read(secret[:])
	meet := p.h.view.meet(p.ranks[0])
	if meet == "" {
		return ended{partOut, p.ranks[0], "announces no address for measurements"}, false
	}
	if partner, why := p.h.unmeetable(p.ranks, meet); why != "" {
		p.unmet(p.ranks[0], partner)
		return ended{partMeet, p.ranks[0], why}, false
	}
	hosts := make([]string, len(p.ranks))
	for i, n := range p.ranks {
		hosts[i], _, _ = net.SplitHostPort(p.h.view.meet(n)) // nobody connects to a node that announces none
	}
	order := fleet.Part{
		ID: p.id, Order: p.o.ID, Sweep: p.o.Sweep, Round: p.round, Ranks: p.ranks, Hosts: hosts,
		Meet: meet, Secret: hex.EncodeToString(secret[:]), What: p.o.What, Caps: p.o.Bounds(),
	}
	order.What.By = p.o.Over
	var mu sync.Mutex
	var worst *ended
	var wg sync.WaitGroup
	for k := range p.ranks {
		wg.Go(func() {
			if r, ok := p.ask(ctx, order, k); !ok {
				mu.Lock()
				defer mu.Unlock()
				if worst == nil || r.kind > worst.kind {
					worst = &r
				}
			}
		})
	}
	wg.Wait()
	if worst != nil {
		return *worst, false
	}
	return ended{}, true
}

// ask asks one rank. One that is busy is given a moment: it may be tidying up after the part before.
func (p *part) ask(ctx context.Context, order fleet.Part, rank int) (ended, bool) {
	order.Rank = rank
	node := p.ranks[rank]
	until := time.Now().Add(tidyTime)
	for {
		within, cancel := context.WithTimeout(ctx, answerTime)
		a, err := p.h.cfg.Bus.Ask(within, node, &order)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ended{kind: partEnded, why: context.Cause(ctx).Error()}, false
		case err != nil:
			return ended{partOut, node, cut("does not answer: " + err.Error())}, false
		case a.Begins:
			return ended{}, true
		case a.Meet && rank > 0:
			p.unmet(p.ranks[0], node)
			return ended{partMeet, p.ranks[0], cut(fmt.Sprintf("%s does not reach it: %s", node, a.Why))}, false
		case !a.Busy:
			return ended{partOut, node, cut("refuses: " + a.Why)}, false
		case time.Now().After(until) || !p.h.sleep(ctx, tidyStep):
			return ended{partBusy, node, cut(a.Why)}, false
		}
	}
}

// stop ends the part on nodes that may have begun it, also when the order's own time is over.
func (p *part) stop(nodes []fleet.Name) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range nodes {
		wg.Go(func() {
			_, _ = p.h.cfg.Bus.Ask(ctx, n, &fleet.Part{ID: p.id, Order: p.o.ID, Stop: true}) // a node that is gone needs none
		})
	}
	wg.Wait()
}

// expect makes ready to hear of a part.
func (h *Hub) expect(id string, most int) <-chan outcome {
	c := make(chan outcome, most)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts[id] = c
	return c
}

func (h *Hub) forget(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.parts, id)
}

// lacks says why a node cannot be measured by a transport, or nothing.
func (v *View) lacks(n fleet.Name, by fleet.Transport) string {
	j := v.joined(n)
	if j == nil {
		return "it has not joined"
	}
	return j.Lacks(by)
}

// meet is where a node is found when it is measured, empty where it does not say.
func (v *View) meet(n fleet.Name) string {
	if j := v.joined(n); j != nil {
		return j.Meet
	}
	return ""
}

// joined is what a node says that it has, nil where it never did.
func (v *View) joined(n fleet.Name) *fleet.Joined {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if s := v.nodes[n]; s != nil {
		return s.joined
	}
	return nil
}
