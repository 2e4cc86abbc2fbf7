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

// proposer is a member that calls the others together: the leader of one ballot.
type proposer struct {
	m       *membership
	d       *decision // the epoch that ends
	self    int
	ballot  uint64
	ctls    []*control // to those who have answered, by rank
	states  []status
	votes   map[int]bool // who has answered
	dead    map[int]bool // who is certainly dead
	joiners []joiner     // newcomers that are there
	mine    bool         // the proposal is the leader's own
	kept    bool         // the connections are somebody else's now
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
func (m *membership) lead(d *decision, a absent) (yielded bool, err error) {
	m.mu.Lock()
	if m.base != d {
		m.mu.Unlock()
		return false, nil
	}
	self, n := d.at(m.id), len(d.Members)
	p := &proposer{m: m, d: d, self: self, ctls: make([]*control, n), states: make([]status, n), votes: map[int]bool{self: true}, dead: map[int]bool{}}
	p.ballot = (max(m.votes.promised, m.votes.rival)>>16+1)<<16 | uint64(self)
	m.votes.promised = p.ballot
	p.states[self] = m.status()
	planned := m.planned
	m.mu.Unlock()
	defer p.close()
	ahead, yielded := p.collect(a)
	if ahead != nil {
		m.catchUp(ahead)
		return false, nil
	}
	if yielded || m.ctx.Err() != nil {
		return true, nil
	}
	if !quorum(n, p.votes, p.dead) {
		return false, p.giveUp(&QuorumError{Epoch: d.Epoch, Have: len(p.votes), Of: n, Unreached: p.unreached(), Dead: p.ranksOf(p.dead)})
	}
	next := p.accepted()
	if p.mine = next == nil; p.mine {
		if planned {
			p.joiners = m.joinQueue.invite()
		}
		next = p.propose(a, planned)
		if len(next.Members) < m.cfg.MinSize {
			return false, p.giveUp(&QuorumError{Epoch: d.Epoch, Have: len(next.Members), Of: n, Min: m.cfg.MinSize, Dead: p.ranksOf(p.dead), Unreached: p.unreached()})
		}
	}
	return p.decide(next), nil
}

// collect asks all members where they stand, and waits for those who are not lost.
func (p *proposer) collect(a absent) (ahead *decision, yielded bool) {
	m := p.m
	ctx, cancel := context.WithTimeout(m.ctx, 2*m.cfg.Timeout)
	defer cancel()
	replies := make(chan reply, len(p.d.Members))
	pending, asked := map[int]bool{}, sync.WaitGroup{}
	for r := range p.d.Members {
		if r != p.self {
			pending[r] = true
			asked.Go(func() { replies <- p.ask(ctx, r) })
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
				m.mu.Lock()
				m.votes.rival = max(m.votes.rival, x.nay)
				m.mu.Unlock()
				return nil, true
			case x.dead:
				p.dead[x.rank] = true
			case x.ctl != nil:
				p.votes[x.rank], p.ctls[x.rank], p.states[x.rank] = true, x.ctl, x.st
			}
			continue
		case <-ctx.Done():
			return nil, false
		case <-tick.C:
		}
		if p.overtaken() {
			return nil, true
		}
		waits := false // for somebody of whom nothing bad is known
		for r := range pending {
			waits = waits || a.lost[p.d.Members[r].ID] == ""
		}
		if quorum(len(p.d.Members), p.votes, p.dead) && (!waits && time.Since(begun) > grace || time.Since(begun) > m.cfg.Timeout) {
			return nil, false
		}
	}
	return nil, false
}

// grace is what somebody gets who is believed lost, to show that it is dead or alive.
const grace = 50 * time.Millisecond

// overtaken reports whether another leader has taken over.
func (p *proposer) overtaken() bool {
	m := p.m
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.votes.promised != p.ballot || m.base != p.d || m.err != nil
}

// ask asks one member, until it answers or is certainly dead.
func (p *proposer) ask(ctx context.Context, rank int) reply {
	m, x := p.m, reply{rank: rank}
	for ctx.Err() == nil {
		ctl, err := m.visit(ctx, p.d, rank)
		if errors.Is(err, syscall.ECONNREFUSED) {
			x.dead = true
			return x
		}
		if err == nil {
			stop := closing(ctx.Done(), ctl.c)
			err = ctl.sendJSON(noteCollect, collect{p.ballot, *p.d})
			var kind note
			var body []byte
			if err == nil {
				kind, body, err = ctl.receive(nil)
			}
			stop()
			if err == nil && x.take(kind, body, p.d) {
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
	case noteReject:
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
func (p *proposer) accepted() *decision {
	var last uint64
	var d *decision
	for r := range p.votes {
		if s := &p.states[r]; s.Accepted > last {
			last, d = s.Accepted, s.Proposal
		}
	}
	return d
}

// propose is the leader's own proposal: itself, those who have answered, and newcomers at a
// boundary. An operation counts if one of them has returned it.
func (p *proposer) propose(a absent, planned bool) *decision {
	next := &decision{Epoch: p.d.Epoch + 1, Members: []member{p.d.Members[p.self]}, Admitted: p.d.Admitted}
	for r, x := range p.d.Members {
		switch {
		case r == p.self:
		case p.votes[r] && !a.out[x.ID]:
			next.Members = append(next.Members, x)
		default:
			why := a.lost[x.ID]
			switch {
			case why != "":
			case p.dead[r]:
				why = "it is dead: nothing listens where it did"
			default:
				why = fmt.Sprintf("it did not answer within %v", p.m.cfg.Timeout)
			}
			next.Left = append(next.Left, loss{x.ID, why})
		}
	}
	for r := range p.votes {
		next.Committed = max(next.Committed, p.states[r].Committed)
	}
	for r := range p.votes {
		next.Waiting = next.Waiting || !planned && p.states[r].Waiting && p.states[r].Committed == next.Committed
	}
	if planned {
		next.Admitted = &admission{Epoch: next.Epoch}
		for _, x := range p.joiners {
			x.m.Rank = len(next.Members)
			next.Members = append(next.Members, x.m)
			next.Admitted.Joined = append(next.Admitted.Joined, x.m)
		}
	}
	return next
}

// decide lets the members agree, and makes the group.
func (p *proposer) decide(next *decision) (yielded bool) {
	m := p.m
	m.mu.Lock()
	if m.votes.promised != p.ballot || m.base != p.d {
		m.mu.Unlock()
		return true
	}
	m.votes.accepted, m.votes.proposal = p.ballot, next
	m.mu.Unlock()
	agreed := p.agree(next)
	if !quorum(len(p.d.Members), agreed, p.dead) {
		return true // somebody else leads, or some have died just now
	}
	to := make([]*control, len(next.Members))
	formed := p.mine
	for r := range p.d.Members {
		if i := next.at(p.d.Members[r].ID); i > 0 {
			to[i] = p.ctls[r]
			formed = formed && agreed[r]
		}
	}
	for _, x := range p.joiners {
		to[next.at(x.m.ID)] = x.ctl
	}
	if formed {
		if !m.form(next, nil, to) {
			return true
		}
		p.kept = true
	} else {
		m.catchUp(next) // and call together those who are in it
	}
	for r, ctl := range p.ctls {
		if ctl == nil || r == p.self {
			continue
		}
		ctl.sendJSON(noteDecide, proposal{p.ballot, *next, formed})
		if next.at(p.d.Members[r].ID) < 0 {
			ctl.c.Close()
		}
	}
	for _, x := range p.joiners {
		x.ctl.sendJSON(noteDecide, proposal{p.ballot, *next, formed})
	}
	return false
}

// agree sends a proposal to those who have answered, and returns who agrees.
func (p *proposer) agree(next *decision) map[int]bool {
	agreed := map[int]bool{p.self: true}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for r, ctl := range p.ctls {
		if ctl == nil {
			continue
		}
		wg.Go(func() {
			stop := closing(p.m.ctx.Done(), ctl.c)
			defer stop()
			ctl.c.SetReadDeadline(time.Now().Add(p.m.cfg.Timeout))
			defer ctl.c.SetReadDeadline(time.Time{})
			if ctl.sendJSON(noteAccept, proposal{Ballot: p.ballot, Decision: *next}) != nil {
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
func (p *proposer) giveUp(err *QuorumError) error {
	for _, ctl := range p.ctls {
		if ctl != nil {
			ctl.sendJSON(noteAbort, err)
		}
	}
	return err
}

// ranksOf are ranks of a set, in order.
func (p *proposer) ranksOf(set map[int]bool) (list []int) {
	for r := range p.d.Members {
		if set[r] {
			list = append(list, r)
		}
	}
	return list
}

// unreached are the ranks that may be alive, but have not answered.
func (p *proposer) unreached() (list []int) {
	for r := range p.d.Members {
		if !p.votes[r] && !p.dead[r] {
			list = append(list, r)
		}
	}
	return list
}

// close ends the connections that nobody has taken over.
func (p *proposer) close() {
	if p.kept {
		return
	}
	for _, ctl := range p.ctls {
		if ctl != nil {
			ctl.c.Close()
		}
	}
	for _, x := range p.joiners {
		x.ctl.c.Close()
	}
}
