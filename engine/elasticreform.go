package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// watch looks after the group of an elastic job, and calls for another when it fails.
func (m *membership) watch() {
	for {
		m.mu.Lock()
		g, steady := m.group, m.steady
		m.mu.Unlock()
		if steady {
			select {
			case <-g.ending.doomed:
			case <-m.ctx.Done():
				return
			}
		}
		if err := m.reform(g); err != nil {
			m.fail(err)
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
func (m *membership) reform(g *Group) error {
	m.mu.Lock()
	m.steady = false
	a := blamed(g.failure(), m.base.Members, m.id)
	m.mu.Unlock()
	if m.until(m.ctx, func() bool {
		m.quiet = !m.busy
		if m.quiet {
			m.wake()
		}
		return m.quiet
	}) != nil {
		return ErrClosed
	}
	for last := m.epoch(); ; {
		m.mu.Lock()
		d, steady, err, idle := m.base, m.steady, m.err, m.idle
		m.mu.Unlock()
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
		for first < len(d.Members) && d.Members[first].ID != m.id && a.lost[d.Members[first].ID] != "" {
			first++
		}
		yielded := false
		if d.Members[first].ID == m.id {
			if yielded, err = m.lead(d, a); err != nil {
				return err
			}
			first = -1
		}
		if first >= 0 || yielded {
			m.awaitCall(d, first, a)
		}
	}
}

func (m *membership) epoch() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.base.Epoch
}

// awaitCall waits for another member to call. Of the one whose turn it is, it looks whether it is
// there; with -1 it is this member's turn, but others may have called.
func (m *membership) awaitCall(d *decision, first int, a absent) {
	begun := now()
	pause := 20 * time.Millisecond
	for {
		m.mu.Lock()
		gone := m.orphaned
		m.mu.Unlock()
		ctx, cancel := context.WithTimeout(m.ctx, pause)
		m.until(ctx, func() bool { return m.err != nil || m.steady || m.base != d || m.orphaned != gone })
		cancel()
		m.mu.Lock()
		over, left := m.err != nil || m.steady || m.base != d || m.ctx.Err() != nil, m.orphaned != gone
		since, limit := max(begun, m.votes.heard), m.cfg.Timeout
		if m.votes.heard > begun {
			limit *= 2 // it has to wait for others as well
		}
		if first < 0 && m.votes.promised&(1<<16-1) == uint64(d.at(m.id)) { // nobody has
			limit = min(limit/8, 250*time.Millisecond)
		}
		m.mu.Unlock()
		if over || first < 0 && left {
			return
		}
		pause = min(2*pause, m.cfg.Timeout/4)
		if first >= 0 && m.query(d, first, a) {
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

// query asks a member what it knows; true when that changes whose turn it is.
func (m *membership) query(d *decision, rank int, a absent) bool {
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.Timeout/4)
	defer cancel()
	ctl, err := m.visit(ctx, d, rank)
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
		m.catchUp(&last)
		return true
	}
	return false
}

// visit connects to a member to speak about who goes on. The error is ECONNREFUSED only where
// the member's host refuses at every address, so that it is certainly dead.
func (m *membership) visit(ctx context.Context, d *decision, rank int) (*control, error) {
	addrs := d.Members[rank].Addrs
	last := fmt.Errorf("rank %d has no address", rank)
	for _, addr := range addrs {
		c, err := m.endpoint.dial(ctx, 0, addr, m.cfg.Timeout)
		if err != nil {
			if last == nil || !errors.Is(err, syscall.ECONNREFUSED) || errors.Is(last, syscall.ECONNREFUSED) || addr == addrs[0] {
				last = err
			}
			continue
		}
		stop := closing(ctx.Done(), c)
		err = m.endpoint.introduce(c, hello{purpose: forReform, epoch: d.Epoch, rank: uint32(d.at(m.id)), size: uint32(len(d.Members))})
		stop()
		if err != nil {
			c.Close()
			return nil, err
		}
		return &control{c: c, limit: m.cfg.Timeout}, nil
	}
	return nil, last
}
