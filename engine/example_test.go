package engine_test

import (
	"context"
	"fmt"
	"sync"

	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/reduce"
	"busbar.dev/unit"
)

// Four ranks of one process add up their vectors. Across processes, Join takes the place of Local.
func Example() {
	groups, err := engine.Local(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	sums := make([][]float32, len(groups))
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			defer g.Close()
			r := float32(g.Rank())
			x := []float32{r, 10 * r, 100 * r, 1000 * r}
			op := coll.Op{Kind: coll.AllReduce, Type: coll.Float, Bytes: unit.Bytes(4 * len(x))}
			if _, err := g.Run(context.Background(), nil, op,
				engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)}); err != nil {
				fmt.Println(err)
			}
			sums[g.Rank()] = x
		})
	}
	wg.Wait()
	fmt.Println(sums[0], sums[3])
	// Output: [6 60 600 6000] [6 60 600 6000]
}

// A call that is prepared once is run often, and then allocates nothing.
func ExampleGroup_Prepare() {
	groups, err := engine.Local(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			defer g.Close()
			x := []int64{int64(g.Rank() + 1)}
			call, err := g.Prepare(nil, coll.Op{Kind: coll.AllReduce, Type: coll.Int64, Bytes: 8})
			if err == nil {
				err = call.Bind(engine.Buffers{Send: engine.Bytes(x), Recv: engine.Bytes(x)})
			}
			for range 3 {
				if err == nil {
					_, err = call.Run(context.Background())
				}
			}
			if err != nil || g.Rank() == 0 {
				fmt.Println(x[0], err) // 1+2, then 3+3, then 6+6
			}
		})
	}
	wg.Wait()
	// Output: 12 <nil>
}

// Gradients are averaged in buckets while a backward pass goes on.
func ExampleGroup_Buckets() {
	groups, err := engine.Local(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	means := make([]float64, 2)
	var wg sync.WaitGroup
	for _, g := range groups {
		wg.Go(func() {
			defer g.Close()
			b, err := g.Buckets(engine.Bucketing{Params: []unit.Bytes{8, 4, 4}, Type: coll.Float, Reduce: coll.Avg})
			for i := 2; i >= 0 && err == nil; i-- { // the last parameter's gradient comes first
				reduce.Put(b.Grad(i), coll.Float, float64(10*i+g.Rank()))
				err = b.Ready(i)
			}
			if err == nil {
				err = b.Wait(context.Background())
			}
			if err != nil {
				fmt.Println(err)
				return
			}
			means[g.Rank()] = reduce.Element(b.Grad(2), coll.Float)
		})
	}
	wg.Wait()
	fmt.Println(means)
	// Output: [20.5 20.5]
}

// Pick is the algorithm that a group takes for a size where none is named.
func ExamplePick() {
	for _, size := range []unit.Bytes{unit.KiB, unit.MiB, 64 * unit.MiB} {
		s, err := engine.Pick(coll.Op{Kind: coll.AllReduce, Bytes: size}, 8, engine.TCP)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(size, s.Name)
	}
	// Output:
	// 1 KiB recursive_doubling
	// 1 MiB rabenseifner
	// 64 MiB ring
}
