// Package eventually is how tests wait for what other goroutines, processes and machines bring about. Where time itself
// is the subject, testing/synctest is better: it waits for nothing.
package eventually

import (
	"testing"
	"time"
)

// Limit is when a wait has failed. It is long because machines that test may be busy, and nobody waits for it when all
// is well.
const Limit = 8 * time.Minute

// Holds returns when something is so, and ends the test if that does not come true in time. It must be called by the
// goroutine that runs the test.
func Holds(t testing.TB, what string, so func() bool) {
	t.Helper()
	if !Within(Limit, so) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// Within is whether something comes true in time. It looks often at first, and ever less often: to look may itself be
// work, such as the start of a program.
func Within(limit time.Duration, so func() bool) bool {
	end := time.Now().Add(limit)
	for pause := time.Millisecond; !so(); pause = min(pause*3/2, 50*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause) // the one wait of tests for other processes
	}
	return true
}
