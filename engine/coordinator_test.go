package engine

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestGoneIsNotLeft: between the end of a dead rank's control connection and the word about it,
// somebody else's suspicion must not make its death a goodbye.
func TestGoneIsNotLeft(t *testing.T) {
	for _, x := range []struct {
		name string
		bye  bool
		want Cause
	}{{"dead", false, Died}, {"left", true, Left}} {
		t.Run(x.name, func(t *testing.T) {
			c := near(t, 3)[0].net.coordinator
			c.mu.Lock()
			c.ranks[1].gone, c.ranks[1].bye = true, x.bye
			c.mu.Unlock()
			c.suspected(2, verdict{Rank: 1, Cause: Died, Text: "its connection closed"})
			var peer *PeerError
			if err := c.n.g.failure(); !errors.As(err, &peer) || peer.Rank != 1 || peer.Cause != x.want {
				t.Errorf("rank 1 is gone: %v; expected that it %s", err, x.want)
			}
		})
	}
}

// TestSuspectedIsAsked: a rank that another cannot reach is asked whether it lives, however long its answer or its end
// takes.
func TestSuspectedIsAsked(t *testing.T) {
	for _, x := range []struct {
		name string
		do   func(*control) error
		want Cause
	}{
		{"it died", func(c *control) error { return c.c.Close() }, Died},
		{"it leaves", func(c *control) error { return c.send(noteBye, nil) }, Left},
		{"it lives", func(c *control) error { return c.send(noteHere, nil) }, CutOff},
	} {
		t.Run(x.name, func(t *testing.T) {
			g := newGroup(Config{Size: 3, Timeout: 50 * time.Millisecond}, newNotifier())
			n := newNetwork(g.cfg, nil, g)
			g.net = n
			c := n.coordinator
			c.started = true
			here, there := net.Pipe()
			mine := &control{c: here, peer: 1, size: 3, limit: time.Minute}
			theirs := &control{c: there, size: 3, limit: time.Minute}
			c.ranks[1] = follower{c: mine, state: idleState}
			n.tasks.Go(func() { c.listen(1, mine) })
			n.tasks.Go(func() { c.suspected(2, verdict{Rank: 1, Cause: CutOff, Text: "its connection broke"}) })
			if m, err := theirs.receive(noteAsk); err != nil {
				t.Fatalf("it hears %+v, %v", m, err)
			}
			go func() { // what it is told in the end
				for {
					if _, err := theirs.receive(noteVerdict); err != nil {
						return
					}
				}
			}()
			if err := x.do(theirs); err != nil {
				t.Fatal(err)
			}
			<-g.ending.doomed
			there.Close()
			n.tasks.Wait()
			g.driver.stop()
			var peer *PeerError
			if err := g.failure(); !errors.As(err, &peer) || peer.Rank != 1 || peer.Cause != x.want {
				t.Errorf("%v; expected that it %s", err, x.want)
			}
		})
	}
}
