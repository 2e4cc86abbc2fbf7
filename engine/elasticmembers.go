package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// membership is who is in an elastic job, as one of its members knows it: what was decided last,
// the group that runs operations among those members, and what they are agreeing on. It watches
// over the group; when that fails, it agrees with those who are left on the next one.
type membership struct {
	cfg       Config
	id        string
	endpoint  *endpoint
	joinQueue joinQueue

	mu        sync.Mutex
	moved     chan struct{} // closed and replaced when something below changes
	waiters   int           // who wait for that
	base      *decision     // the last that was decided
	seen      View          // base, for users
	changes   []Change
	group     *Group // the last that was formed
	steady    bool   // group is that of base, as far as is known
	busy      bool   // an operation is under way on group
	quiet     bool   // members are being called together; no operation may begin
	planned   bool   // at a boundary, and not because of a fault
	done      uint64 // operations that this member has finished
	committed uint64 // and of which it knows that all have
	waiting   bool   // newcomers wait, as of the last commit
	admitted  uint32 // the epoch of the last admission that Admit has returned
	idle      int    // times the group was formed since an operation was done
	votes     votes
	orphaned  int   // times that a leader hung up
	err       error // why there are no more operations

	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	closed atomic.Bool
}

func newMembership(cfg Config) (*membership, error) {
	d, err := newEndpoint(&cfg)
	if err != nil {
		return nil, err
	}
	var id [12]byte
	rand.Read(id[:])
	m := &membership{cfg: cfg, id: hex.EncodeToString(id[:]), endpoint: d, moved: make(chan struct{})}
	m.joinQueue.m = m
	m.ctx, m.cancel = context.WithCancel(context.Background())
	d.receive = m.receive
	return m, nil
}

// meet is how the first members find each other, as those of any job do.
func (m *membership) meet(ctx context.Context) error {
	g, n, err := m.newGroup(m.cfg.Rank, m.cfg.Size, 1)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.group = g
	m.mu.Unlock()
	if err := n.join(ctx); err != nil {
		n.left.Store(true)
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joinQueue.published = m.cfg.Rank == 0 && m.cfg.meetsInFile()
	m.joinQueue.atMeeting = m.cfg.Rank == 0
	m.base, m.steady = &decision{Epoch: 1, Members: n.members}, true
	m.seen = m.base.view(m.id)
	return m.base.valid()
}

// newGroup is the group of an epoch, without its connections.
func (m *membership) newGroup(rank, size int, epoch uint32) (*Group, *network, error) {
	cfg := m.cfg
	cfg.Rank, cfg.Size = rank, size
	w, err := newPoller()
	if err != nil {
		return nil, nil, err
	}
	g := newGroup(cfg, w)
	g.driver.spin, g.driver.yields = spin, true
	n := newNetwork(g, m.endpoint)
	n.borrowed, n.epoch, n.id = true, epoch, m.id
	return g, n, nil
}

// catchUp takes over what others have decided without this member, or with it before it heard
// of that. No operation may be under way.
func (m *membership) catchUp(d *decision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopt(d)
}

// adopt makes a decision the last one. The caller holds the lock.
func (m *membership) adopt(d *decision) {
	defer m.wake()
	var old decision
	if m.base != nil {
		old = *m.base
	}
	if m.err != nil || d.Epoch <= old.Epoch {
		return
	}
	if d.at(m.id) < 0 {
		left := LeftBehindError{Epoch: d.Epoch, Why: "it was not heard of in time"}
		for _, l := range d.Left {
			if l.ID == m.id {
				left.Why = l.Why
			}
		}
		m.err = &left
		return
	}
	if m.base != nil && (d.Committed < m.committed || d.Committed > m.done) {
		m.err = fmt.Errorf("the others count %d operations; this rank knows of %d and has finished %d", d.Committed, m.committed, m.done)
		return
	}
	if m.base != nil {
		m.changes = append(m.changes, old.change(d))
	} else if d.Admitted != nil {
		m.admitted = d.Admitted.Epoch
	}
	if was := old.Admitted; d.Admitted != nil && (was == nil || was.Epoch < d.Admitted.Epoch) {
		// The boundary is used up, even where its group does not come into being: some have heard
		// of it already, and would take another admission for that of the next boundary.
		m.planned = false
	}
	m.base, m.seen = d, d.view(m.id)
	m.done, m.committed, m.waiting = d.Committed, d.Committed, d.Waiting
	m.votes.promised, m.votes.rival, m.votes.accepted, m.votes.proposal = 0, 0, 0, nil
}

// form makes the group of a decision, on the connection to its rank 0, or as rank 0 on those to
// the others; false when it is too late for that.
func (m *membership) form(d *decision, up *control, to []*control) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adopt(d)
	if m.base != nil && m.base.Epoch == d.Epoch { // which others may have told of before rank 0 did
		d = m.base
	}
	if m.err != nil || m.base != d || m.votes.promised != 0 || m.group != nil && m.group.net.epoch >= d.Epoch {
		return false
	}
	g, n, err := m.newGroup(d.at(m.id), len(d.Members), d.Epoch)
	if err != nil {
		m.err = err
		m.wake()
		return false
	}
	for i, x := range d.Members {
		x.Rank, x.Addrs = i, slices.Clone(x.Addrs)
		n.members = append(n.members, x)
	}
	if up == nil {
		n.coordinator = newCoordinator(n)
		close(n.tabled)
		n.coordinator.take(n.members, to)
		m.joinQueue.announce(n)
	} else {
		n.up = up
		n.begin(up.c)
		m.joinQueue.dismiss()
	}
	if old := m.group; old != nil {
		g.memory.takeOver(&old.memory)
		m.tasks.Go(func() { old.Close() })
	}
	m.group, m.steady, m.quiet, m.planned = g, true, false, false
	m.idle++
	m.wake()
	return true
}

// admit lets newcomers in at a boundary, and returns who came.
func (m *membership) admit(ctx context.Context) (joined []Member, err error) {
	err = m.until(ctx, func() bool {
		if a := m.base.Admitted; a != nil && a.Epoch > m.admitted {
			m.admitted = a.Epoch
			for _, x := range a.Joined { // though one may be lost already: all must hear the same
				joined = append(joined, x.public(x.Rank))
			}
			return true
		}
		if m.steady && !m.planned && m.waiting && m.seen.Rank == 0 {
			m.planned = true
			m.group.end(errBoundary)
		}
		return m.err != nil || m.steady && !m.waiting
	})
	return joined, err
}

// errBoundary ends the group of an epoch because newcomers are let in.
var errBoundary = errors.New("newcomers are let in")

// close leaves the job, together with all others or before them.
func (m *membership) close(together bool) {
	if m.closed.Swap(true) {
		return
	}
	m.fail(ErrClosed)
	m.cancel()
	m.tasks.Wait()
	m.mu.Lock()
	m.joinQueue.clear()
	g, published := m.group, m.joinQueue.published
	m.mu.Unlock()
	switch {
	case g == nil:
	case g.net.left.Load(): // it never came into being
		g.net.abandon()
	default:
		if !together { // they must not wait for it
			g.fail(g.peerError(g.rank, Left, ""))
		}
		g.Close()
	}
	m.endpoint.close()
	if published {
		g.net.withdraw(g.net.members[0].Addrs)
	}
}

// fail ends the membership. The first reason counts.
func (m *membership) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
		m.wake()
	}
}

func (m *membership) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// leave ends the membership because this rank will not wait any longer.
func (m *membership) leave(err error) error {
	m.fail(fmt.Errorf("this rank has left the job: %w", err))
	m.mu.Lock()
	g := m.group
	m.mu.Unlock()
	g.fail(err)
	return err
}

// wake lets those look again who wait. The caller holds the lock.
func (m *membership) wake() {
	if m.waiters > 0 {
		close(m.moved)
		m.moved = make(chan struct{})
	}
}

// until waits until something holds, which is asked under the lock.
func (m *membership) until(ctx context.Context, holds func() bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !holds() {
		moved := m.moved
		m.waiters++
		m.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		m.mu.Lock()
		m.waiters--
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
