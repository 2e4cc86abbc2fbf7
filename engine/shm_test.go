package engine_test

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"busbar.dev/engine"
)

func TestRandomCallsOverSharedMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory needs Linux")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 2; n <= 9; n++ {
		groups := joined(t, n, func(c *engine.Config) { c.Transport = engine.Shm })
		var shared sync.Map
		for k := range trialsOf() {
			x := randomTrial(rng, n)
			if k%2 == 0 {
				x.shared = &shared
			}
			x.run(t, groups)
		}
		shared.Range(func(g, p any) bool {
			g.(*engine.Group).Free(p.(*pool).all)
			return true
		})
		closeAll(groups)
	}
}
