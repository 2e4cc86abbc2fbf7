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

// receive takes a connection that has proven to belong to the job.
func (e *Elastic) receive(c net.Conn, h hello, answer func(Refusal) error) Refusal {
	switch h.purpose {
	case forControl, forData:
		n := e.network(h.epoch)
		if n == nil {
			answer(WrongGroup)
			return WrongGroup
		}
		return n.receive(c, h, answer)
	case forReform, forGuest:
		if answer(0) != nil {
			return Garbage
		}
		if h.purpose == forGuest {
			e.receiveGuest(c)
		} else {
			e.attend(c)
		}
		return 0
	}
	answer(WrongGroup)
	return WrongGroup
}

// network is that of an epoch. A peer may have heard of an epoch a moment before this member
// has; one that is over is nil.
func (e *Elastic) network(epoch uint32) (n *network) {
	ctx, cancel := context.WithTimeout(e.ctx, patience)
	defer cancel()
	e.until(ctx, func() bool {
		n = nil
		if e.group != nil && e.group.net.epoch == epoch {
			n = e.group.net
		}
		return n != nil || e.err != nil || e.base != nil && e.base.Epoch > epoch
	})
	return n
}

// attend is a conversation with a member that calls the others together.
func (e *Elastic) attend(c net.Conn) {
	ctl := &control{c: c, limit: e.cfg.Timeout}
	stop := closing(e.ctx.Done(), c)
	taken := false
	defer func() {
		stop()
		if !taken {
			c.Close()
		}
		e.mu.Lock()
		e.orphaned++
		e.wake()
		e.mu.Unlock()
	}()
	for {
		c.SetReadDeadline(time.Now().Add(3 * e.cfg.Timeout))
		kind, body, err := ctl.receive(nil)
		if err != nil {
			return
		}
		switch kind {
		case noteAsk:
			err = e.report(ctl)
		case noteCollect:
			var q collect
			if json.Unmarshal(body, &q) != nil || q.Base.valid() != nil {
				return
			}
			err = e.promise(ctl, q)
		case noteAccept:
			var p proposal
			if json.Unmarshal(body, &p) != nil || p.Decision.valid() != nil {
				return
			}
			err = e.accept(ctl, p)
		case noteSorry:
			var few QuorumError
			if json.Unmarshal(body, &few) == nil {
				e.fail(&few)
			}
			return
		case noteDecide:
			var p proposal
			if json.Unmarshal(body, &p) != nil || p.Decision.valid() != nil {
				return
			}
			if p.Formed && p.Decision.at(e.id) > 0 {
				c.SetReadDeadline(time.Time{})
				taken = e.form(&p.Decision, ctl, nil)
				return
			}
			e.catchUp(&p.Decision)
			return
		}
		if err != nil {
			return
		}
	}
}

// report says what was decided last.
func (e *Elastic) report(ctl *control) error {
	e.mu.Lock()
	base, err := e.base, e.err
	e.mu.Unlock()
	if base == nil || err != nil {
		return ctl.send(noteGone, nil)
	}
	return ctl.sendJSON(noteDecided, base)
}

// errCalled ends the group of an epoch because another member has lost somebody.
var errCalled = errors.New("another member calls the others together")

// promise answers a leader. What this member was doing ends first.
func (e *Elastic) promise(ctl *control, q collect) error {
	e.mu.Lock()
	if e.base == nil || e.err != nil {
		e.mu.Unlock()
		return ctl.send(noteGone, nil)
	}
	e.heard = now()
	e.wake()
	if q.Base.Epoch < e.base.Epoch {
		e.mu.Unlock()
		return e.report(ctl)
	}
	g := e.group
	e.mu.Unlock()
	g.end(errCalled)
	ctx, cancel := context.WithTimeout(e.ctx, 2*e.cfg.Timeout)
	defer cancel()
	if err := e.until(ctx, func() bool { return e.quiet || e.err != nil || e.base.Epoch > q.Base.Epoch }); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.adopt(&q.Base)
	switch {
	case e.err != nil:
		return ctl.send(noteGone, nil)
	case e.base.Epoch > q.Base.Epoch:
		return ctl.sendJSON(noteDecided, e.base)
	case q.Ballot <= e.promised:
		return ctl.send(noteNay, binary.LittleEndian.AppendUint64(nil, e.promised))
	}
	e.promised, e.heard = q.Ballot, now()
	e.wake()
	return ctl.sendJSON(noteStatus, e.status())
}

// status is where this member stands. The caller holds the lock.
func (e *Elastic) status() status {
	return status{Accepted: e.accepted, Proposal: e.proposal, Committed: e.committed, Waiting: e.waiting}
}

// accept agrees to a proposal, unless a later leader was promised to.
func (e *Elastic) accept(ctl *control, p proposal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return ctl.send(noteGone, nil)
	case e.base.Epoch+1 != p.Decision.Epoch || p.Ballot < e.promised:
		return ctl.send(noteNay, binary.LittleEndian.AppendUint64(nil, e.promised))
	}
	e.promised, e.accepted, e.proposal, e.heard = p.Ballot, p.Ballot, &p.Decision, now()
	return ctl.send(noteAccepted, nil)
}
