package pipeline_test

import (
	"fmt"
	"log"

	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

// What the last of four ranks does of one forward and one backward pass in turn.
func ExampleShape_Order() {
	s := pipeline.Shape{Schedule: pipeline.Alternate, Ranks: 4, Chunks: 1, Micros: 3}
	for _, p := range s.Order(3) {
		fmt.Print(p.Kind, " ", p.Micro, "; ")
	}
	fmt.Println("at most", s.Held(0), "micro-batches are held")
	// Output: forward 0; backward 0; forward 1; backward 1; forward 2; backward 2; at most 3 micro-batches are held
}

// The bubble of four stages and eight micro-batches, by two schedules.
func ExamplePlan_Simulate() {
	for _, schedule := range []pipeline.Schedule{pipeline.Alternate, pipeline.ZeroBubble} {
		p, err := pipeline.NewPlan(pipeline.Shape{Schedule: schedule, Ranks: 4, Chunks: 1, Micros: 8})
		if err != nil {
			log.Fatal(err)
		}
		each := []unit.Span{1, 1, 1, 1}
		t := p.Simulate(&pipeline.Times{Forward: each, Backward: each, Weight: each}, nil)
		fmt.Printf("%s: %v for %v of work\n", schedule, t, unit.Span(3*8))
	}
	// Output:
	// 1f1b: 33 s for 24 s of work
	// zero-bubble: 27 s for 24 s of work
}
