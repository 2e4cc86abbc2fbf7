package bench_test

import (
	"context"
	"fmt"
	"sync"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Two ranks of one process measure an all-reduce of two sizes, and check what it gives.
func ExampleRun() {
	groups, err := engine.Local(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan := bench.Plan{
		Op: coll.Op{Kind: coll.AllReduce, Type: coll.Float}, Sizes: []unit.Bytes{1 * unit.KiB, 64 * unit.KiB}, Iters: 5,
		Check: true,
	}
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			defer g.Close()
			if err := bench.Run(context.Background(), g, plan, func(s *result.Sweep) error {
				p := s.Points[0]
				fmt.Println(p.Size, p.Algo, s.Ranks, "ranks;", p.Out.Runs, "runs,", *p.Out.Wrong, "wrong elements")
				return nil
			}); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	// Output:
	// 1 KiB one_shot 2 ranks; 5 runs, 0 wrong elements
	// 64 KiB direct 2 ranks; 5 runs, 0 wrong elements
}
