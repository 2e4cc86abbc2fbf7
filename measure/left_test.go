package measure

import (
	"context"
	"fmt"
	"testing"
	"time"

	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// TestMemberLeft: a rank that is killed during the check is slow with all others while it ends. That is no finding, and
// nothing is measured again for it.
func TestMemberLeft(t *testing.T) {
	var names []string
	for r := range 6 {
		names = append(names, fmt.Sprintf("n%d", r))
	}
	gone := func(r int) bool { return r == 2 }
	s := &Sweep{
		Names: names, Hosts: names, Show: func(string) {}, Away: func(int) bool { return false },
		Turn: Concurrently(func(_ context.Context, p [2]int, _ time.Duration) (got [2]pairs.Measure) {
			for i := range got {
				got[i] = pairs.Measure{Rate: 1e9, Both: 1e9, Latency: 20 * unit.Microsecond}
				if gone(p[0]) || gone(p[1]) {
					got[i].Rate, got[i].Both = 1e8, 1e8
				}
			}
			return got
		}),
	}
	rounds := Rounds(len(names), 0)
	table, err := s.Measure(t.Context(), rounds)
	if err != nil || s.Passes < 2 || len(s.Findings(table)) == 0 {
		t.Fatalf("%v: %d passes, %v: a slow rank is measured again", err, s.Passes, s.Findings(table))
	}
	s.Passes = 0
	s.Away = func(r int) bool { return gone(r) && s.Passes > 0 } // it left after the first pass
	if table, err = s.Measure(t.Context(), rounds); err != nil || s.Passes != 1 || len(s.Findings(table)) != 0 {
		t.Errorf("%v: %d passes, %v", err, s.Passes, s.Findings(table))
	}
}
