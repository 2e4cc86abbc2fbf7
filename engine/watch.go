package engine

import (
	"encoding/binary"
	"errors"
	"time"
)

// Parts of the timeout: how often a rank says that it lives, and after which silence it counts
// as gone. The rest is for telling everybody.
const (
	heartbeatsPerTimeout = 6
	silence              = 0.75
)

// absence is how much of the time passed while this process did not run: the machine was suspended or somebody else had
// its processors. What is silent on it was likely stopped with it, so nobody is blamed for that time.
type absence struct {
	every time.Duration // how often since is called
	last  time.Time
}

// since is what was missed since the last call, beyond one turn of it.
func (a *absence) since() time.Duration {
	begun := a.last
	a.last = time.Now()
	if begun.IsZero() {
		return 0
	}
	return max(a.last.Sub(begun)-2*a.every, 0)
}

// now is a time that can be kept in an atomic.
func now() int64 { return time.Now().UnixNano() }

// readControl is the life of a rank other than 0 on its control connection.
func (n *network) readControl() {
	defer n.tasks.Done()
	for {
		m, err := n.up.receive(noteAlive, noteVerdict, noteAsk, noteParting, noteBye)
		if err != nil {
			n.lostCoordinator(err)
			return
		}
		n.heard.Store(now())
		switch m.kind {
		case noteVerdict:
			n.g.fail(n.errorOf(m.verdict))
		case noteAsk:
			n.up.send(noteHere, nil) // an error will come again
		case noteParting:
			n.parting.Store(true)
			n.g.driver.waiter.wake()
		case noteBye:
			n.lostCoordinator(nil)
			return
		}
	}
}

// lostCoordinator is the end of the connection to rank 0.
func (n *network) lostCoordinator(err error) {
	select {
	case <-n.quit:
		return
	default:
	}
	v := endOf(0, "its control connection", err)
	switch {
	case n.left.Load():
		return
	case err == nil:
		v.Cause, v.Text = Left, ""
	}
	n.g.fail(n.errorOf(v))
}

// endOf is what the end of a connection says of the rank at its other end.
func endOf(rank int, connection string, err error) verdict {
	var bad *protocolError
	switch {
	case errors.As(err, &bad):
		return verdict{Rank: rank, Cause: Failed, Text: bad.text}
	case err == nil || closedError(err):
		return verdict{Rank: rank, Cause: Died, Text: connection + " closed"}
	}
	return verdict{Rank: rank, Cause: Died, Text: connection + " broke: " + err.Error()}
}

// heartbeat says that this rank lives, and looks whether rank 0 does.
func (n *network) heartbeat() {
	defer n.tasks.Done()
	away := absence{every: n.cfg.Timeout / heartbeatsPerTimeout}
	every := time.NewTicker(away.every)
	defer every.Stop()
	var body [8]byte
	for {
		select {
		case <-n.quit:
			return
		case <-every.C:
		}
		if missed := away.since(); missed > 0 {
			n.heard.Store(min(n.heard.Load()+int64(missed), now()))
		}
		binary.LittleEndian.PutUint64(body[:], n.g.driver.state.Load())
		if n.up.send(noteAlive, body[:]) != nil {
			continue // the reader will notice
		}
		if quiet := time.Duration(now() - n.heard.Load()); quiet.Seconds() > n.cfg.Timeout.Seconds()*silence &&
			!n.left.Load() {
			n.g.fail(n.errorOf(verdict{Rank: 0, Cause: Silent, Seconds: quiet.Seconds()}))
		}
	}
}

// errorOf makes a verdict an error.
func (n *network) errorOf(v verdict) *PeerError {
	e := n.g.peerError(v.Rank, v.Cause, v.Text)
	e.Doing, e.After = v.Doing, time.Duration(v.Seconds*float64(time.Second))
	return e
}

// suspect is a broken connection to a peer. Whether the peer is dead, or closed its
// connections because of somebody else's death, is for rank 0 to say; only when it does not
// say anything, the peer itself is named.
func (n *network) suspect(peer int, err error) {
	v := endOf(peer, "its connection", err)
	if !closedError(err) {
		v.Cause = CutOff
	}
	if n.coordinator != nil {
		n.coordinator.suspected(n.cfg.Rank, v)
	} else {
		n.up.sendJSON(noteSuspect, v.short())
	}
	select {
	case <-n.g.ending.doomed:
	case <-time.After(n.cfg.Timeout / 2):
		n.g.fail(n.errorOf(v))
	}
}

// tell lets the others know why this rank has failed.
func (n *network) reportFailure(err error) {
	if n.left.Load() {
		return
	}
	var peer *PeerError
	v := verdict{Rank: n.cfg.Rank, Cause: Failed, Text: err.Error()}
	if errors.As(err, &peer) {
		v = verdict{Rank: peer.Rank, Cause: peer.Cause, Text: peer.Text, Doing: peer.Doing, Seconds: peer.After.Seconds()}
	}
	if n.coordinator != nil {
		n.coordinator.broadcastFailure(v)
		return
	}
	n.up.sendJSON(noteVerdict, v.short())
}

// leave says that this rank leaves as it should. Rank 0 stays until the others have left,
// for without it they could not hear of each other's end.
func (n *network) leave() {
	healthy := !n.g.ending.broken.Load()
	n.left.Store(true)
	if n.coordinator == nil {
		n.up.send(noteBye, nil)
		return
	}
	if healthy {
		n.coordinator.broadcast(noteParting, nil)
		n.coordinator.waitForLeaving(n.cfg.Timeout)
	}
	n.coordinator.broadcast(noteBye, nil)
}
