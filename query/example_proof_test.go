package query_test

import (
	"context"
	"fmt"
	"log"

	"busbar.dev/query"
)

// A collective as a program, round by round.
func ExampleSched() {
	doc, err := query.Sched{
		Op: "all_reduce", Algo: "hierarchical", Layout: "2x8",
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(doc.Schedule.Name, "on", doc.Schedule.Ranks, "ranks, rounds:", len(doc.Rounds))
	// Output: hierarchical on 16 ranks, rounds: 16
}

// How far off predictions of measured points are.
func ExampleValidate() {
	doc, err := query.Validate{
		Files: []string{"../docs/examples/points.jsonl"}, MaxMedian: new(0.5),
	}.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("median error below 50%:", !doc.Wrong())
	// Output: median error below 50%: true
}
