package engine

import (
	"errors"
	"testing"
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
