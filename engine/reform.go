package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// attendant watches over the group of an elastic job, and calls for another when it fails.
func (e *Elastic) attendant() {
	for {
		e.mu.Lock()
		g, steady := e.group, e.steady
		e.mu.Unlock()
		if steady {
			select {
			case <-g.doomed:
			case <-e.ctx.Done():
				return
			}
		}
		if err := e.reform(g); err != nil {
			e.fail(err)
			return
		}
	}
}

// absent is what this member knows of those that are lost, by their names.
type absent struct {
	lost map[string]string // with the reason
	out  map[string]bool   // who must not come back though it may answer
}

// blamed is what a group's failure says of its members.
func blamed(err error, members []member, self string) absent {
	a := absent{map[string]string{}, map[string]bool{}}
	var peer *PeerError
	if !errors.As(err, &peer) || peer.Rank >= len(members) || members[peer.Rank].ID == self {
		return a
	}
	id := members[peer.Rank].ID
	why := *peer
	why.Here = ""
	a.lost[id] = "it" + why.reason()
	switch peer.Cause {
	case CutOff, Stuck, Failed, Left: // it would be lost again
		a.out[id] = true
	}
	return a
}

// fruitless is how often members may come together without getting anything done.
const fruitless = 32

// reform brings the members together that are left, until there is a group again.
func (e *Elastic) reform(g *Group) error {
	e.mu.Lock()
	e.steady = false
	a := blamed(g.failure(), e.base.Members, e.id)
	e.mu.Unlock()
	if e.until(e.ctx, func() bool {
		e.quiet = !e.busy
		if e.quiet {
			e.wake()
		}
		return e.quiet
	}) != nil {
		return ErrClosed
	}
	for last := e.View().Epoch; ; {
		e.mu.Lock()
		d, steady, err, idle := e.base, e.steady, e.err, e.idle
		e.mu.Unlock()
		if d.Epoch != last { // what is known of the others is old
			last, a = d.Epoch, blamed(nil, nil, "")
		}
		switch {
		case err != nil:
			return err
		case steady:
			return nil
		case idle > fruitless+len(d.Members):
			return fmt.Errorf("the members came together %d times and lost each other before anything was done; last: %w", idle, g.failure())
		}
		first := 0
		for first < len(d.Members) && d.Members[first].ID != e.id && a.lost[d.Members[first].ID] != "" {
			first++
		}
		yielded := false
		if d.Members[first].ID == e.id {
			if yielded, err = e.lead(d, a); err != nil {
				return err
			}
			first = -1
		}
		if first >= 0 || yielded {
			e.heed(d, first, a)
		}
	}
}

// heed waits for another member to call. Of the one whose turn it is, it looks whether it is
// there; with -1 it is this member's turn, but others may have called.
func (e *Elastic) heed(d *decision, first int, a absent) {
	begun := now()
	pause := 20 * time.Millisecond
	for {
		e.mu.Lock()
		gone := e.orphaned
		e.mu.Unlock()
		ctx, cancel := context.WithTimeout(e.ctx, pause)
		e.until(ctx, func() bool { return e.err != nil || e.steady || e.base != d || e.orphaned != gone })
		cancel()
		e.mu.Lock()
		over, left := e.err != nil || e.steady || e.base != d || e.ctx.Err() != nil, e.orphaned != gone
		since, limit := max(begun, e.heard), e.cfg.Timeout
		if e.heard > begun {
			limit *= 2 // it has to wait for others as well
		}
		if first < 0 && e.promised&(1<<16-1) == uint64(d.at(e.id)) { // nobody has
			limit = min(limit/8, 250*time.Millisecond)
		}
		e.mu.Unlock()
		if over || first < 0 && left {
			return
		}
		pause = min(2*pause, e.cfg.Timeout/4)
		if first >= 0 && e.look(d, first, a) {
			return
		}
		if time.Duration(now()-since) > limit {
			if first >= 0 {
				a.lost[d.Members[first].ID] = "it did not call the others together"
			}
			return
		}
	}
}

// look asks a member what it knows; true when that changes whose turn it is.
func (e *Elastic) look(d *decision, rank int, a absent) bool {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.Timeout/4)
	defer cancel()
	ctl, err := e.visit(ctx, d, rank)
	if errors.Is(err, syscall.ECONNREFUSED) {
		a.lost[d.Members[rank].ID] = "it is dead: nothing listens where it did"
		return true
	}
	if err != nil {
		return false
	}
	defer ctl.c.Close()
	stop := closing(ctx.Done(), ctl.c)
	defer stop()
	if ctl.send(noteAsk, nil) != nil {
		return false
	}
	kind, body, err := ctl.receive(nil)
	switch {
	case err != nil:
		return false
	case kind == noteGone:
		a.lost[d.Members[rank].ID] = "it has left"
		return true
	}
	var last decision
	if kind == noteDecided && json.Unmarshal(body, &last) == nil && last.valid() == nil && last.Epoch > d.Epoch {
		e.catchUp(&last)
		return true
	}
	return false
}

// visit connects to a member to speak about who goes on. The error is ECONNREFUSED only where
// the member's host refuses at every address, so that it is certainly dead.
func (e *Elastic) visit(ctx context.Context, d *decision, rank int) (*control, error) {
	m := d.Members[rank]
	last := fmt.Errorf("rank %d has no address", rank)
	for _, addr := range m.Addrs {
		c, err := e.door.dial(ctx, 0, addr, e.cfg.Timeout)
		if err != nil {
			if last == nil || !errors.Is(err, syscall.ECONNREFUSED) || errors.Is(last, syscall.ECONNREFUSED) || addr == m.Addrs[0] {
				last = err
			}
			continue
		}
		stop := closing(ctx.Done(), c)
		err = e.door.introduce(c, hello{purpose: forReform, epoch: d.Epoch, rank: uint32(d.at(e.id)), size: uint32(len(d.Members))})
		stop()
		if err != nil {
			c.Close()
			return nil, err
		}
		return &control{c: c, limit: e.cfg.Timeout}, nil
	}
	return nil, last
}

// catchUp takes over what others have decided without this member, or with it before it heard
// of that. No operation may be under way.
func (e *Elastic) catchUp(d *decision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.adopt(d)
}

// adopt makes a decision the last one. The caller holds the lock.
func (e *Elastic) adopt(d *decision) {
	defer e.wake()
	var old decision
	if e.base != nil {
		old = *e.base
	}
	if e.err != nil || d.Epoch <= old.Epoch {
		return
	}
	if d.at(e.id) < 0 {
		left := LeftBehindError{Epoch: d.Epoch, Why: "it was not heard of in time"}
		for _, l := range d.Left {
			if l.ID == e.id {
				left.Why = l.Why
			}
		}
		e.err = &left
		return
	}
	if e.base != nil && (d.Committed < e.committed || d.Committed > e.done) {
		e.err = fmt.Errorf("the others count %d operations; this rank knows of %d and has finished %d", d.Committed, e.committed, e.done)
		return
	}
	if e.base != nil {
		e.changes = append(e.changes, old.change(d))
	} else if d.Admitted != nil {
		e.admitted = d.Admitted.Epoch
	}
	if was := old.Admitted; d.Admitted != nil && (was == nil || was.Epoch < d.Admitted.Epoch) {
		// The boundary is used up, even where its group does not come into being: some have heard
		// of it already, and would take another admission for that of the next boundary.
		e.planned = false
	}
	e.base, e.seen = d, d.view(e.id)
	e.done, e.committed, e.waiting = d.Committed, d.Committed, d.Waiting
	e.promised, e.rival, e.accepted, e.proposal = 0, 0, 0, nil
}

// form makes the group of a decision, on the connection to its rank 0, or as rank 0 on those to
// the others; false when it is too late for that.
func (e *Elastic) form(d *decision, up *control, to []*control) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.adopt(d)
	if e.base != nil && e.base.Epoch == d.Epoch { // which others may have told of before rank 0 did
		d = e.base
	}
	if e.err != nil || e.base != d || e.promised != 0 || e.group != nil && e.group.net.epoch >= d.Epoch {
		return false
	}
	g, n, err := e.newGroup(d.at(e.id), len(d.Members), d.Epoch)
	if err != nil {
		e.err = err
		e.wake()
		return false
	}
	for i, m := range d.Members {
		m.Rank, m.Addrs = i, append([]string(nil), m.Addrs...)
		n.members = append(n.members, m)
	}
	if up == nil {
		n.center = newCenter(n)
		close(n.tabled)
		n.center.take(n.members, to)
		e.announce(n)
	} else {
		n.up = up
		n.begin(up.c)
		e.dismiss()
	}
	if old := e.group; old != nil {
		old.arenaMu.Lock()
		g.arenas, old.arenas = old.arenas, nil
		old.arenaMu.Unlock()
		e.tasks.Go(func() { old.Close() })
	}
	e.group, e.steady, e.quiet, e.planned = g, true, false, false
	e.idle++
	e.wake()
	return true
}
