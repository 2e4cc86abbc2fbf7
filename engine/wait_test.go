package engine_test

import (
	"testing"

	"busbar.dev/internal/eventually"
)

// becomes waits until something is so. Unlike eventually.Holds it may be called by any goroutine.
func becomes(t testing.TB, what string, so func() bool) {
	t.Helper()
	if !eventually.Within(eventually.Limit, so) {
		t.Errorf("not within %v: %s", eventually.Limit, what)
	}
}
