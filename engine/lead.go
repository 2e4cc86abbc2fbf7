package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// meeting is what a member does that calls the others together.
type meeting struct {
	e      *Elastic
	d      *decision // the epoch that ends
	self   int
	ballot uint64
	ctls   []*control // to those who have answered, by rank
	states []status
	votes  map[int]bool // who has answered
	dead   map[int]bool // who is certainly dead
	guests []guest      // newcomers that are there
	mine   bool         // the proposal is the leader's own
	kept   bool         // the connections are somebody else's now
}

// reply is what came of asking a member.
type reply struct {
	rank  int
	ctl   *control
	st    status
	dead  bool
	nay   uint64 // the ballot that it has promised to
	ahead *decision
}

// lead calls the members together, and makes the next group with them. Others may do so as
// well; this one yields to whoever has the greater ballot, and tries again if nothing comes of
// that.
func (e *Elastic) lead(d *decision, a absent) (yielded bool, err error) {
	e.mu.Lock()
	if e.base != d {
		e.mu.Unlock()
		return false, nil
	}
	self, n := d.at(e.id), len(d.Members)
	m := &meeting{e: e, d: d, self: self, ctls: make([]*control, n), states: make([]status, n), votes: map[int]bool{self: true}, dead: map[int]bool{}}
	m.ballot = (max(e.promised, e.rival)>>16+1)<<16 | uint64(self)
	e.promised = m.ballot
	m.states[self] = e.status()
	planned := e.planned
	e.mu.Unlock()
	defer m.close()
	ahead, yielded := m.collect(a)
	if ahead != nil {
		e.catchUp(ahead)
		return false, nil
	}
	if yielded || e.ctx.Err() != nil {
		return true, nil
	}
	if !quorum(n, m.votes, m.dead) {
		return false, m.giveUp(&QuorumError{Epoch: d.Epoch, Have: len(m.votes), Of: n, Unreached: m.unreached(), Dead: m.those(m.dead)})
	}
	next := m.accepted()
	if m.mine = next == nil; m.mine {
		if planned {
			m.guests = e.invite()
		}
		next = m.propose(a, planned)
		if len(next.Members) < e.cfg.MinSize {
			return false, m.giveUp(&QuorumError{Epoch: d.Epoch, Have: len(next.Members), Of: n, Min: e.cfg.MinSize, Dead: m.those(m.dead), Unreached: m.unreached()})
		}
	}
	return m.decide(next), nil
}

// collect asks all members where they stand, and waits for those who are not lost.
func (m *meeting) collect(a absent) (ahead *decision, yielded bool) {
	e := m.e
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.cfg.Timeout)
	defer cancel()
	replies := make(chan reply, len(m.d.Members))
	pending, asked := map[int]bool{}, sync.WaitGroup{}
	for r := range m.d.Members {
		if r != m.self {
			pending[r] = true
			asked.Go(func() { replies <- m.ask(ctx, r) })
		}
	}
	defer func() { // who answers too late is not waited for
		cancel()
		asked.Wait()
		close(replies)
		for x := range replies {
			if x.ctl != nil {
				x.ctl.c.Close()
			}
		}
	}()
	begun := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for len(pending) > 0 {
		select {
		case x := <-replies:
			delete(pending, x.rank)
			switch {
			case x.ahead != nil:
				return x.ahead, false
			case x.nay != 0: // to a leader who may be dead; the next ballot will be greater
				e.mu.Lock()
				e.rival = max(e.rival, x.nay)
				e.mu.Unlock()
				return nil, true
			case x.dead:
				m.dead[x.rank] = true
			case x.ctl != nil:
				m.votes[x.rank], m.ctls[x.rank], m.states[x.rank] = true, x.ctl, x.st
			}
			continue
		case <-ctx.Done():
			return nil, false
		case <-tick.C:
		}
		if e.overtaken(m) {
			return nil, true
		}
		waits := false // for somebody of whom nothing bad is known
		for r := range pending {
			waits = waits || a.lost[m.d.Members[r].ID] == ""
		}
		if quorum(len(m.d.Members), m.votes, m.dead) && (!waits && time.Since(begun) > grace || time.Since(begun) > e.cfg.Timeout) {
			return nil, false
		}
	}
	return nil, false
}

// grace is what somebody gets who is believed lost, to show that it is dead or alive.
const grace = 50 * time.Millisecond

// overtaken reports whether another leader has taken over.
func (e *Elastic) overtaken(m *meeting) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.promised != m.ballot || e.base != m.d || e.err != nil
}

// ask asks one member, until it answers or is certainly dead.
func (m *meeting) ask(ctx context.Context, rank int) reply {
	e, x := m.e, reply{rank: rank}
	for ctx.Err() == nil {
		ctl, err := e.visit(ctx, m.d, rank)
		if errors.Is(err, syscall.ECONNREFUSED) {
			x.dead = true
			return x
		}
		if err == nil {
			stop := closing(ctx.Done(), ctl.c)
			err = ctl.sendJSON(noteCollect, collect{m.ballot, *m.d})
			var kind note
			var body []byte
			if err == nil {
				kind, body, err = ctl.receive(nil)
			}
			stop()
			if err == nil && x.take(kind, body, m.d) {
				if x.ctl = ctl; kind != noteStatus {
					ctl.c.Close()
				}
				return x
			}
			ctl.c.Close()
		}
		select { // it may be about to die
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return x
}

// take reads an answer.
func (x *reply) take(kind note, body []byte, d *decision) bool {
	switch kind {
	case noteStatus:
		if json.Unmarshal(body, &x.st) != nil {
			return false
		}
		p := x.st.Proposal
		return (x.st.Accepted == 0) == (p == nil) && (p == nil || p.valid() == nil && p.Epoch == d.Epoch+1)
	case noteGone:
		x.dead = true
		return true
	case noteNay:
		if len(body) == 8 {
			x.nay = binary.LittleEndian.Uint64(body)
		}
		return x.nay != 0
	case noteDecided:
		var last decision
		if json.Unmarshal(body, &last) != nil || last.valid() != nil || last.Epoch <= d.Epoch {
			return false
		}
		x.ahead = &last
		return true
	}
	return false
}

// accepted is the proposal of an earlier leader that may have counted; it must be kept to.
func (m *meeting) accepted() *decision {
	var last uint64
	var d *decision
	for r := range m.votes {
		if s := &m.states[r]; s.Accepted > last {
			last, d = s.Accepted, s.Proposal
		}
	}
	return d
}

// propose is the leader's own proposal: itself, those who have answered, and newcomers at a
// boundary. An operation counts if one of them has returned it.
func (m *meeting) propose(a absent, planned bool) *decision {
	next := &decision{Epoch: m.d.Epoch + 1, Members: []member{m.d.Members[m.self]}, Admitted: m.d.Admitted}
	for r, x := range m.d.Members {
		switch {
		case r == m.self:
		case m.votes[r] && !a.out[x.ID]:
			next.Members = append(next.Members, x)
		default:
			why := a.lost[x.ID]
			switch {
			case why != "":
			case m.dead[r]:
				why = "it is dead: nothing listens where it did"
			default:
				why = fmt.Sprintf("it did not answer within %v", m.e.cfg.Timeout)
			}
			next.Left = append(next.Left, loss{x.ID, why})
		}
	}
	for r := range m.votes {
		next.Committed = max(next.Committed, m.states[r].Committed)
	}
	for r := range m.votes {
		next.Waiting = next.Waiting || !planned && m.states[r].Waiting && m.states[r].Committed == next.Committed
	}
	if planned {
		next.Admitted = &admission{Epoch: next.Epoch}
		for _, x := range m.guests {
			x.m.Rank = len(next.Members)
			next.Members = append(next.Members, x.m)
			next.Admitted.Joined = append(next.Admitted.Joined, x.m)
		}
	}
	return next
}

// decide lets the members agree, and makes the group.
func (m *meeting) decide(next *decision) (yielded bool) {
	e := m.e
	e.mu.Lock()
	if e.promised != m.ballot || e.base != m.d {
		e.mu.Unlock()
		return true
	}
	e.accepted, e.proposal = m.ballot, next
	e.mu.Unlock()
	agreed := m.agree(next)
	if !quorum(len(m.d.Members), agreed, m.dead) {
		return true // somebody else leads, or some have died just now
	}
	to := make([]*control, len(next.Members))
	formed := m.mine
	for r := range m.d.Members {
		if i := next.at(m.d.Members[r].ID); i > 0 {
			to[i] = m.ctls[r]
			formed = formed && agreed[r]
		}
	}
	for _, x := range m.guests {
		to[next.at(x.m.ID)] = x.ctl
	}
	if formed {
		if !e.form(next, nil, to) {
			return true
		}
		m.kept = true
	} else {
		e.catchUp(next) // and call together those who are in it
	}
	for r, ctl := range m.ctls {
		if ctl == nil || r == m.self {
			continue
		}
		ctl.sendJSON(noteDecide, proposal{m.ballot, *next, formed})
		if next.at(m.d.Members[r].ID) < 0 {
			ctl.c.Close()
		}
	}
	for _, x := range m.guests {
		x.ctl.sendJSON(noteDecide, proposal{m.ballot, *next, formed})
	}
	return false
}

// agree sends a proposal to those who have answered, and returns who agrees.
func (m *meeting) agree(next *decision) map[int]bool {
	agreed := map[int]bool{m.self: true}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r, ctl := range m.ctls {
		if ctl == nil {
			continue
		}
		wg.Go(func() {
			stop := closing(m.e.ctx.Done(), ctl.c)
			defer stop()
			ctl.c.SetReadDeadline(time.Now().Add(m.e.cfg.Timeout))
			defer ctl.c.SetReadDeadline(time.Time{})
			if ctl.sendJSON(noteAccept, proposal{Ballot: m.ballot, Decision: *next}) != nil {
				return
			}
			if kind, _, err := ctl.receive(nil); err == nil && kind == noteAccepted {
				mu.Lock()
				agreed[r] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return agreed
}

// giveUp tells those who have answered that there are too few.
func (m *meeting) giveUp(err *QuorumError) error {
	for _, ctl := range m.ctls {
		if ctl != nil {
			ctl.sendJSON(noteSorry, err)
		}
	}
	return err
}

// those are ranks of a set, in order.
func (m *meeting) those(set map[int]bool) (list []int) {
	for r := range m.d.Members {
		if set[r] {
			list = append(list, r)
		}
	}
	return list
}

// unreached are the ranks that may be alive, but have not answered.
func (m *meeting) unreached() (list []int) {
	for r := range m.d.Members {
		if !m.votes[r] && !m.dead[r] {
			list = append(list, r)
		}
	}
	return list
}

// close ends the connections that nobody has taken over.
func (m *meeting) close() {
	if m.kept {
		return
	}
	for _, ctl := range m.ctls {
		if ctl != nil {
			ctl.c.Close()
		}
	}
	for _, x := range m.guests {
		x.ctl.c.Close()
	}
}
