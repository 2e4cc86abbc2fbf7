package eventually_test

import (
	"testing"
	"testing/synctest"
	"time"

	"busbar.dev/internal/test/eventually"
)

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		after := func(d time.Duration) func() bool { return func() bool { return time.Since(begin) >= d } }
		if !eventually.Within(time.Second, after(0)) || time.Since(begin) != 0 {
			t.Errorf("what is so already took %v", time.Since(begin))
		}
		if !eventually.Within(time.Second, after(300*time.Millisecond)) || time.Since(begin) > 350*time.Millisecond {
			t.Errorf("seen after %v", time.Since(begin))
		}
		if eventually.Within(time.Second, after(time.Hour)) || time.Since(begin) > 2*time.Second {
			t.Errorf("given up after %v", time.Since(begin))
		}
	})
}
