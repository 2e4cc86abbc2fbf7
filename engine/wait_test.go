package engine_test

import (
	"testing"
	"time"
)

// eventually waits until something holds that other goroutines or processes bring about. The limit
// is there so that a hang fails the test.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look, limit := time.NewTicker(2*time.Millisecond), time.After(20*time.Second)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-limit:
			t.Errorf("not in 20 s: %s", what)
			return
		}
	}
}
