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
	partFailed          // nothing came out, or its nodes do not meet
	partBusy            // somebody may be asked again
	partOut             // a node refuses or does not answer
	partEnded           // it was stopped
)

func (k partKind) String() string {
	return [...]string{"good", "failed", "busy", "left_out", "stopped"}[k]
}

// ended is how a part ended: what, about whom, why.
type ended struct {
	kind partKind
	node fleet.Name
	why  string
}

// part is one group of a sweep that measures.
type part struct {
	*sweep
	group
	id string
}

// Patience with nodes: how long one may take to answer, how long a node that has just ended a part
// may still be busy with it, how long stopping may take, and how long a part is waited for beyond its own bound.
const (
	answerTime = 5 * time.Second
	tidyTime   = time.Second
	tidyStep   = 100 * time.Millisecond
	stopTime   = 3 * time.Second
	slackTime  = 5 * time.Second
)

// run takes the nodes, asks them, and waits for what comes out.
func (p *part) run(ctx context.Context) ended {
	release, err := p.h.leases.take(ctx, p.o.Job != "", p.ranks...)
	if err != nil {
		return ended{kind: partEnded}
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
	p.id = fmt.Sprintf("%s/%d/%d/%s", p.o.ID, p.o.Sweep, p.round, secret(4))
	outcomes, end := p.h.expect(p.id, 2*len(p.ranks))
	defer end()
	r := p.begin(ctx)
	if r.kind == partGood {
		r = p.wait(ctx, outcomes)
	}
	if r.kind != partGood {
		p.stop()
	}
	return r
}

// wait is for what comes out of a part that began.
func (p *part) wait(ctx context.Context, outcomes <-chan outcome) ended {
	caps := p.o.Bounds()
	limit := caps.Bound() + slackTime
	bound := time.After(limit)
	for {
		select {
		case <-ctx.Done():
			return ended{kind: partEnded}
		case <-bound:
			return ended{kind: partFailed, why: fmt.Sprintf("no answer within %v", limit)}
		case out := <-outcomes:
			switch {
			case out.m.Failed == "" && out.by == p.ranks[0]:
				return ended{}
			case out.m.Failed != "" && slices.Contains(p.ranks, out.by):
				return ended{partFailed, out.by, cut(out.m.Failed)}
			}
		}
	}
}

// begin asks all ranks at once: a node looks at its traffic for a moment before it answers. One that
// begins waits for the others, and is stopped where one of them does not.
func (p *part) begin(ctx context.Context) (worst ended) {
	order := fleet.Part{
		ID: p.id, Order: p.o.ID, Sweep: p.o.Sweep, Round: p.round, Ranks: p.ranks, Meet: p.h.view.joined(p.ranks[0]).Meet,
		Secret: secret(24), What: p.o.What, Caps: p.o.Bounds(),
	}
	order.What.By = p.o.Over
	for _, n := range p.ranks {
		host, _, _ := net.SplitHostPort(p.h.view.joined(n).Meet) // nobody connects to what is no address
		order.Hosts = append(order.Hosts, host)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for k := range p.ranks {
		wg.Go(func() {
			r := p.ask(ctx, order, k)
			mu.Lock()
			defer mu.Unlock()
			if r.kind > worst.kind {
				worst = r
			}
		})
	}
	wg.Wait()
	return worst
}

// ask asks one rank. One that is busy is given a moment: it may be tidying up after the part before.
func (p *part) ask(ctx context.Context, order fleet.Part, rank int) ended {
	order.Rank = rank
	node := p.ranks[rank]
	until := time.Now().Add(tidyTime)
	for {
		within, cancel := context.WithTimeout(ctx, answerTime)
		a, err := p.h.cfg.Bus.Ask(within, node, &order)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ended{kind: partEnded}
		case err != nil:
			return ended{partOut, node, cut("does not answer: " + err.Error())}
		case a.Begins:
			return ended{}
		case a.Meet && rank > 0:
			return ended{partFailed, p.ranks[0], cut(fmt.Sprintf("%s does not reach it: %s; give its agent --bind INTERFACE "+
				"or ADDRESS", node, a.Why))}
		case !a.Busy:
			return ended{partOut, node, cut("refuses: " + a.Why)}
		case time.Now().After(until) || !p.h.sleep(ctx, tidyStep):
			return ended{partBusy, node, cut(a.Why)}
		}
	}
}

// stop ends the part on nodes that may have begun it, also when the order's own time is over.
func (p *part) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, n := range p.ranks {
		wg.Go(func() {
			_, _ = p.h.cfg.Bus.Ask(ctx, n, &fleet.Part{ID: p.id, Order: p.o.ID, Stop: true}) // a node that is gone needs none
		})
	}
	wg.Wait()
}

// secret is random bytes in hexadecimal.
func secret(bytes int) string {
	data := make([]byte, bytes)
	rand.Read(data)
	return hex.EncodeToString(data)
}

// expect makes ready to hear of a part, until it ended.
func (h *Hub) expect(id string, most int) (outcomes <-chan outcome, end func()) {
	c := make(chan outcome, most)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts[id] = c
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.parts, id)
	}
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
