package engine_test

import (
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// becomes waits until something is so. Unlike eventually.Holds it may be called by any goroutine.
func becomes(t testing.TB, what string, so func() bool) {
	t.Helper()
	if !eventually.Within(eventually.Limit, so) {
		t.Errorf("not within %v: %s", eventually.Limit, what)
	}
}

// unlessBusy tries something that a machine which stops for a while disturbs: with longer and longer timeouts, until it
// is as it should be.
func unlessBusy(t *testing.T, try func(timeout time.Duration) error) {
	t.Helper()
	var err error
	for _, timeout := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 8 * time.Second, 30 * time.Second} {
		if err = try(timeout); err == nil {
			return
		}
		t.Logf("with a timeout of %v: %v", timeout, err)
	}
	t.Error(err)
}
