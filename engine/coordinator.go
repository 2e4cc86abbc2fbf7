package engine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"
)

// coordinator is rank 0's side of all control connections.
type coordinator struct {
	n *network
	// listen reads what a rank says until its connection ends.
	listen func(rank int, ctl *control)

	mu      sync.Mutex
	ranks   []follower
	come    int
	full    chan struct{} // closed when all have come
	changed chan struct{} // somebody left
	judged  bool
	started bool // all have come, or nobody is let in any more
}

// follower is a rank as rank 0 sees it.
type follower struct {
	c     *control
	m     member
	heard time.Time
	state uint64
	lost  bool          // it has reported a connection that broke
	gone  bool          // left as it should, or was declared dead
	bye   bool          // left as it should
	asked chan struct{} // closed when it has answered noteAsk, or is gone; nil where nobody asked
}

func newCoordinator(n *network) *coordinator {
	c := &coordinator{
		n: n, ranks: make([]follower, n.cfg.Size), full: make(chan struct{}), changed: make(chan struct{}, 1),
	}
	c.listen, c.come = c.follow, 1
	if n.cfg.Size == 1 {
		close(c.full)
	}
	return c
}

// admit takes a control connection. The handshake ends here, so that only one of two that
// claim a rank is let in.
func (c *coordinator) admit(conn net.Conn, h hello, answer func(Refusal) error) Refusal {
	c.mu.Lock()
	f := &c.ranks[h.rank]
	why := Refusal(0)
	switch {
	case f.c != nil:
		why = Taken
	case c.started:
		why = Late
	}
	if why != 0 {
		c.mu.Unlock()
		answer(why)
		return why
	}
	ctl := &control{c: conn, peer: h.rank, size: c.n.cfg.Size, limit: c.n.cfg.Timeout}
	f.c = ctl
	c.mu.Unlock()
	stop := closing(c.n.quit, conn)
	defer stop()
	var m message
	err := answer(0)
	if err == nil {
		conn.SetReadDeadline(time.Now().Add(patience))
		m, err = ctl.receive(noteMember)
		conn.SetReadDeadline(time.Time{})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || m.member.Rank != h.rank || c.started {
		f.c = nil
		return Garbage
	}
	f.m, f.heard, f.state = m.member, time.Now(), idleState
	if c.come++; c.come == c.n.cfg.Size {
		c.started = true
		close(c.full)
	}
	c.n.tasks.Go(func() { c.listen(h.rank, ctl) })
	return 0
}

// follow is what a rank of a group says.
func (c *coordinator) follow(rank int, ctl *control) {
	for {
		m, err := ctl.receive(noteAlive, noteSuspect, noteVerdict, noteBye, noteHere)
		if err == nil && m.kind == noteSuspect && m.verdict.Rank == rank {
			err = &protocolError{rank, "it reports that it lost a connection to itself"}
		}
		if c.comesAgain(rank) {
			return
		}
		if err != nil {
			c.lost(rank, err)
			return
		}
		c.mu.Lock()
		f := &c.ranks[rank]
		f.heard = time.Now()
		first := !f.lost
		switch m.kind {
		case noteAlive:
			f.state = m.state
		case noteSuspect:
			f.lost = true
		case noteHere:
			f.settle()
		case noteBye:
			f.bye = true
			c.goneNow(f)
		}
		c.mu.Unlock()
		switch {
		case m.kind == noteVerdict:
			c.broadcastFailure(m.verdict)
		case m.kind == noteSuspect && first: // the first ends the group: no more need be looked into
			go c.suspected(rank, m.verdict)
		}
	}
}

// comesAgain lets a rank go whose connection ended, or that spoke, before all had come: it may come again.
func (c *coordinator) comesAgain(rank int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		return false
	}
	c.ranks[rank].c.c.Close()
	c.ranks[rank] = follower{}
	c.come--
	return true
}

// lost is the end of a rank's control connection.
func (c *coordinator) lost(rank int, err error) {
	c.mu.Lock()
	f := &c.ranks[rank]
	left, doing := f.gone, stateText(f.state)
	c.goneNow(f)
	c.mu.Unlock()
	if left {
		return
	}
	v := endOf(rank, "its control connection", err)
	v.Doing = doing
	c.broadcastFailure(v)
}

// suspected is a rank that lost its connection to another. Whether that one lives is not a matter of time, which says
// little on a busy machine: it is asked, and answers, or leaves, or its control connection ends.
func (c *coordinator) suspected(by int, v verdict) {
	if v.Rank > 0 {
		select {
		case <-c.n.g.ending.doomed:
			return
		case <-c.ask(v.Rank):
		}
	}
	c.mu.Lock()
	f := c.ranks[v.Rank]
	c.mu.Unlock()
	switch {
	case f.bye:
		v.Cause, v.Text = Left, "while others still needed it"
	case f.gone:
		v.Cause, v.Text = Died, "its connections closed"
	default:
		v.Text += fmt.Sprintf(" at rank %d", by)
	}
	c.broadcastFailure(v)
}

// ask asks a rank whether it lives; the channel is closed when that is known.
func (c *coordinator) ask(rank int) <-chan struct{} {
	c.mu.Lock()
	f := &c.ranks[rank]
	first := f.asked == nil
	if first {
		f.asked = make(chan struct{})
	}
	asked, ctl := f.asked, f.c
	if f.gone {
		f.settle()
	}
	c.mu.Unlock()
	if first {
		ctl.send(noteAsk, nil) // an error is the end of the connection, which its reader sees
	}
	return asked
}

// settle says that it is known whether the rank lives. The caller holds the lock.
func (f *follower) settle() {
	if f.asked == nil {
		return
	}
	select {
	case <-f.asked:
	default:
		close(f.asked)
	}
}

// goneNow notes that a rank is gone. The caller holds the lock.
func (c *coordinator) goneNow(f *follower) {
	f.gone = true
	f.settle()
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// broadcastFailure tells everybody why the group has failed. The first verdict counts.
func (c *coordinator) broadcastFailure(v verdict) {
	c.mu.Lock()
	first := !c.judged
	c.judged = true
	if v.Doing == "" && v.Rank > 0 {
		v.Doing = stateText(c.ranks[v.Rank].state)
	}
	c.mu.Unlock()
	if !first {
		return
	}
	if b, err := json.Marshal(v.short()); err == nil {
		c.broadcast(noteVerdict, b)
	}
	c.n.g.fail(c.n.errorOf(v))
}

// broadcast sends to all ranks that are still there.
func (c *coordinator) broadcast(kind note, body []byte) {
	c.mu.Lock()
	var to []*control
	for i := range c.ranks {
		if f := &c.ranks[i]; f.c != nil && !f.gone {
			to = append(to, f.c)
		}
	}
	c.mu.Unlock()
	for _, ctl := range to {
		ctl.send(kind, body) // whoever cannot hear it will be missed soon enough
	}
}

// watch looks for ranks that have fallen silent, and says that rank 0 lives.
func (c *coordinator) watch() {
	defer c.n.tasks.Done()
	limit := time.Duration(float64(c.n.cfg.Timeout) * silence)
	away := absence{every: c.n.cfg.Timeout / heartbeatsPerTimeout / 2}
	every := time.NewTicker(away.every)
	defer every.Stop()
	var body [8]byte
	for beat := 0; ; beat++ {
		select {
		case <-c.n.quit:
			return
		case <-every.C:
		}
		var bad *verdict
		c.mu.Lock()
		missed := away.since()
		for i := range c.ranks {
			f := &c.ranks[i]
			if f.c == nil || f.gone {
				continue
			}
			if f.heard = f.heard.Add(missed); f.heard.After(away.last) {
				f.heard = away.last
			}
			if quiet := time.Since(f.heard); quiet > limit && bad == nil {
				bad = &verdict{Rank: i, Cause: Silent, Doing: stateText(f.state), Seconds: quiet.Seconds()}
				f.gone = true
			}
		}
		c.mu.Unlock()
		if bad != nil {
			c.broadcastFailure(*bad)
		}
		if beat%2 == 0 {
			c.alive(body[:])
		}
	}
}

// alive tells everybody that rank 0 lives. A rank whose buffers are full does not hold up the
// others for long.
func (c *coordinator) alive(body []byte) {
	binary.LittleEndian.PutUint64(body, c.n.g.driver.state.Load())
	for i := 1; i < len(c.ranks); i++ {
		c.mu.Lock()
		f := c.ranks[i]
		c.mu.Unlock()
		if f.c != nil && !f.gone {
			f.c.send(noteAlive, body)
		}
	}
}

// waitForLeaving waits until all others have left.
func (c *coordinator) waitForLeaving(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		c.mu.Lock()
		here := 0
		for i := 1; i < len(c.ranks); i++ {
			if !c.ranks[i].gone {
				here++
			}
		}
		c.mu.Unlock()
		if here == 0 {
			return
		}
		select {
		case <-c.changed:
		case <-c.n.g.ending.doomed:
			return
		case <-timer.C:
			return
		}
	}
}

func (c *coordinator) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	for i := range c.ranks {
		if f := &c.ranks[i]; f.c != nil {
			f.c.c.Close()
		}
	}
}
