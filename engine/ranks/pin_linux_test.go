package ranks

import (
	"math/bits"
	"runtime"
	"testing"
)

// pinThread takes one processor after the other, each of those that the thread may use once, and
// gives all of them back.
func TestPinThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func(c cores) (n int) {
		for _, x := range c {
			n += bits.OnesCount64(x)
		}
		return n
	}
	all := threadCores()
	seen := map[cores]bool{}
	for k := range count(all) {
		undo := pinThread(k)
		now := threadCores()
		undo()
		if count(now) != 1 || seen[now] {
			t.Errorf("processor %d: %d of them, seen before: %v", k, count(now), seen[now])
		}
		seen[now] = true
		if threadCores() != all {
			t.Fatalf("processor %d: not given back", k)
		}
	}
}
