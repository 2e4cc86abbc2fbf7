package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"time"
)

// collect is a leader's question: where does a member stand? Base is what the leader builds on,
// for members that have not heard of it.
type collect struct {
	Ballot uint64   `json:"ballot"`
	Base   decision `json:"base"`
}

// status is the answer: the member will not listen to earlier leaders, does nothing more in
// this epoch, and says what it has agreed to before and what it has done.
type status struct {
	Accepted  uint64    `json:"accepted,omitempty"`
	Proposal  *decision `json:"proposal,omitempty"`
	Committed uint64    `json:"committed"`
	Waiting   bool      `json:"waiting,omitempty"`
}

// proposal is what a leader asks members to agree to, and then tells them.
type proposal struct {
	Ballot   uint64   `json:"ballot"`
	Decision decision `json:"decision"`
	Formed   bool     `json:"formed,omitempty"` // the group is there, on this connection
}

// votes is what a member has promised and agreed to since the last decision, as in Paxos. The
// membership's lock guards it.
type votes struct {
	promised uint64 // the last leader that was promised to
	rival    uint64 // the greatest ballot that another member has promised to
	accepted uint64 // the leader whose proposal was accepted
	proposal *decision
	heard    int64 // when a leader was last heard
}

// receive takes a connection that has proven to belong to the job.
func (m *membership) receive(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	switch h.purpose {
	case forControl, forData:
		n := m.network(h.epoch)
		if n == nil {
			answer(WrongGroup)
			return WrongGroup
		}
		return n.receive(c, h, answer)
	case forReform, forJoin:
		if answer(0) != nil {
			return Garbage
		}
		if h.purpose == forJoin {
			m.joinQueue.receive(c)
		} else {
			m.answerProposer(c)
		}
		return 0
	}
	answer(WrongGroup)
	return WrongGroup
}

// network is that of an epoch. A peer may have heard of an epoch a moment before this member
// has; one that is over is nil.
func (m *membership) network(epoch uint32) (n *network) {
	ctx, cancel := context.WithTimeout(m.ctx, patience)
	defer cancel()
	m.until(ctx, func() bool {
		n = nil
		if m.group != nil && m.group.net.epoch == epoch {
			n = m.group.net
		}
		return n != nil || m.err != nil || m.base != nil && m.base.Epoch > epoch
	})
	return n
}

// answerProposer is a conversation with a member that calls the others together.
func (m *membership) answerProposer(c net.Conn) {
	ctl := &control{c: c, limit: m.cfg.Timeout}
	stop := closing(m.ctx.Done(), c)
	taken := false
	defer func() {
		stop()
		if !taken {
			c.Close()
		}
		m.mu.Lock()
		m.orphaned++
		m.wake()
		m.mu.Unlock()
	}()
	for {
		c.SetReadDeadline(time.Now().Add(3 * m.cfg.Timeout))
		kind, body, err := ctl.receive(nil)
		if err != nil {
			return
		}
		switch kind {
		case noteAsk:
			err = m.report(ctl)
		case noteCollect:
			var q collect
			if json.Unmarshal(body, &q) != nil || q.Base.valid() != nil {
				return
			}
			err = m.promise(ctl, q)
		case noteAccept:
			var p proposal
			if json.Unmarshal(body, &p) != nil || p.Decision.valid() != nil {
				return
			}
			err = m.accept(ctl, p)
		case noteAbort:
			var few QuorumError
			if json.Unmarshal(body, &few) == nil {
				m.fail(&few)
			}
			return
		case noteDecide:
			var p proposal
			if json.Unmarshal(body, &p) != nil || p.Decision.valid() != nil {
				return
			}
			if p.Formed && p.Decision.at(m.id) > 0 {
				c.SetReadDeadline(time.Time{})
				taken = m.form(&p.Decision, ctl, nil)
				return
			}
			m.catchUp(&p.Decision)
			return
		}
		if err != nil {
			return
		}
	}
}

// report says what was decided last.
func (m *membership) report(ctl *control) error {
	m.mu.Lock()
	base, err := m.base, m.err
	m.mu.Unlock()
	if base == nil || err != nil {
		return ctl.send(noteGone, nil)
	}
	return ctl.sendJSON(noteDecided, base)
}

// errCalled ends the group of an epoch because another member has lost somebody.
var errCalled = errors.New("another member calls the others together")

// promise answers a leader. What this member was doing ends first.
func (m *membership) promise(ctl *control, q collect) error {
	m.mu.Lock()
	if m.base == nil || m.err != nil {
		m.mu.Unlock()
		return ctl.send(noteGone, nil)
	}
	m.votes.heard = now()
	m.wake()
	if q.Base.Epoch < m.base.Epoch {
		m.mu.Unlock()
		return m.report(ctl)
	}
	g := m.group
	m.mu.Unlock()
	g.end(errCalled)
	ctx, cancel := context.WithTimeout(m.ctx, 2*m.cfg.Timeout)
	defer cancel()
	if err := m.until(ctx, func() bool { return m.quiet || m.err != nil || m.base.Epoch > q.Base.Epoch }); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopt(&q.Base)
	switch {
	case m.err != nil:
		return ctl.send(noteGone, nil)
	case m.base.Epoch > q.Base.Epoch:
		return ctl.sendJSON(noteDecided, m.base)
	case q.Ballot <= m.votes.promised:
		return ctl.send(noteReject, binary.LittleEndian.AppendUint64(nil, m.votes.promised))
	}
	m.votes.promised, m.votes.heard = q.Ballot, now()
	m.wake()
	return ctl.sendJSON(noteStatus, m.status())
}

// status is where this member stands. The caller holds the lock.
func (m *membership) status() status {
	return status{Accepted: m.votes.accepted, Proposal: m.votes.proposal, Committed: m.committed, Waiting: m.waiting}
}

// accept agrees to a proposal, unless a later leader was promised to.
func (m *membership) accept(ctl *control, p proposal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.err != nil:
		return ctl.send(noteGone, nil)
	case m.base.Epoch+1 != p.Decision.Epoch || p.Ballot < m.votes.promised:
		return ctl.send(noteReject, binary.LittleEndian.AppendUint64(nil, m.votes.promised))
	}
	m.votes = votes{promised: p.Ballot, rival: m.votes.rival, accepted: p.Ballot, proposal: &p.Decision, heard: now()}
	return ctl.send(noteAccepted, nil)
}
