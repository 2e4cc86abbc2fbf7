package query_test

import (
	"context"
	"fmt"
	"log"

	"busbar.dev/query"
)

// A training step: how long, where the time goes, whether it fits.
func ExampleStep() {
	q := query.Step{Job: query.Job{Cluster: "dgx-h100:2", Model: "llama2-7b", Parallel: "zero=3", Global: 32, Micro: 2}}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	row := doc.Rows[0]
	fmt.Println(row.Ranks, "GPUs,", row.Step.Short(), "per step, limited by", row.Bottleneck.Kind+", fits:", row.Fits)
	// Output: 16 GPUs, 714 ms per step, limited by compute, fits: true
}

// Layouts side by side.
func ExampleStep_compare() {
	q := query.Step{Job: query.Job{
		Cluster: "baskerville", Model: "gpt2-large", Compare: "1x4,2x2,4x1", Global: 32, Micro: 8,
	}}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range doc.Rows {
		fmt.Println(row.Layout, row.Step.Short())
	}
	// Output:
	// 1x4 325 ms
	// 2x2 354 ms
	// 4x1 354 ms
}

// Which network a job needs.
func ExampleNeed() {
	q := query.Need{Job: query.Job{Cluster: "dgx-h100:4", Model: "llama2-7b", Parallel: "zero=3"}, Within: new(10.0)}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("at least", doc.Slowest.Gbps(), "Gb/s per NIC, or", doc.Fewest, "of the", doc.Now.NICs, "NICs")
	// Output: at least 200 Gb/s per NIC, or 4 of the 8 NICs
}

// How a job scales.
func ExampleScale() {
	q := query.Scale{Job: query.Job{Cluster: "dgx-h100", Model: "llama2-7b", Parallel: "zero=1"}, Nodes: "1-8"}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range doc.Rows {
		fmt.Printf("nodes %d: %.0f%%\n", row.Nodes, 100*row.Efficiency)
	}
	// Output:
	// nodes 1: 100%
	// nodes 2: 99%
	// nodes 4: 99%
	// nodes 8: 98%
}

// The best plan, and the files that start it.
func ExamplePlan() {
	q := query.Plan{Cluster: "dgx-h100:2", Model: "llama2-7b", Global: 64, Top: 3, Emit: "run1", Hosts: "gpu[01-02]"}
	doc, err := q.Run(context.Background(), query.Env{})
	if err != nil {
		log.Fatal(err)
	}
	best := doc.Plans[0]
	fmt.Println(best.Parallel, "with a micro-batch of", best.Micro, "takes", best.Step.Short())
	for _, f := range doc.Emitted.Texts {
		if f.Run {
			fmt.Println(f.Name)
		}
	}
	// Output:
	// dp=16,tp=1,pp=1,zero=2 with a micro-batch of 2 takes 1.38 s
	// torchrun.sh
	// job.sbatch
	// preflight.sh
	// elastic.sh
	// fsdp.sh
}
