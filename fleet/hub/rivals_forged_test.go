package hub

import (
	"math"
	"testing"
	"time"

	"busbar.dev/fleet"
)

// TestForgedUptime has a second agent with a node's credentials say that it was there first. The one that was heard for
// long goes on.
func TestForgedUptime(t *testing.T) {
	for _, up := range []float64{1e9, 1e18, math.Inf(1), math.NaN(), -1, 3e8} {
		var r rivals
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var last *fleet.Settled
		beat := func(agent string, up float64) {
			now = now.Add(5 * time.Second)
			if s := r.beat(&fleet.Beat{Node: "n1", Agent: agent, Up: up}, now); s != nil && s.GivesUp != "" {
				last = s
			}
		}
		for i := range 20 {
			beat("honest", float64(5*i))
		}
		for i := range 6 {
			beat("forged", up)
			beat("honest", float64(100+10*i))
		}
		if last == nil || last.GoesOn != "honest" || last.GivesUp != "forged" {
			t.Errorf("up %g: settled %+v; want that honest goes on", up, last)
		}
	}
}
