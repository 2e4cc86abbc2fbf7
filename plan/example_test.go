package plan_test

import (
	"context"
	"fmt"
	"log"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// The best ways to train Llama 2 13B on four DGX H100.
func ExampleSearch() {
	c, err := hardware.Preset("dgx-h100", 4)
	if err != nil {
		log.Fatal(err)
	}
	layout, err := nccl.Block(c, 4, 8)
	if err != nil {
		log.Fatal(err)
	}
	model, err := workload.Find("llama2-13b")
	if err != nil {
		log.Fatal(err)
	}
	chip, _, err := step.SlowestGPU(c, layout)
	if err != nil {
		log.Fatal(err)
	}
	gpu, err := step.NewGPU(chip, step.Default())
	if err != nil {
		log.Fatal(err)
	}
	base := workload.Job{Model: model, Seq: model.Seq, GlobalBatch: 256, Precision: workload.BF16, Kernels: workload.Fused}
	answer, err := plan.Search(context.Background(), &plan.Query{
		Spaces:  []*plan.Space{plan.NewSpace(base, len(layout), 8)},
		Cluster: c, Layout: layout, Version: nccl.Newest, GPU: gpu, Top: 3, Reserve: 0.05,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range answer.Plans {
		fmt.Println(p.Result.Step.Short(), p.Job.Split)
	}
	fmt.Println("nothing in the space is better:", answer.Whole)
	// Output:
	// 4.97 s dp=32,tp=1,pp=1,zero=2
	// 4.98 s dp=32,tp=1,pp=1,zero=3
	// 5.03 s dp=16,tp=1,pp=2,zero=1
	// nothing in the space is better: true
}

// Ranks in the order of the network: hosts of one leaf switch one after another.
func ExampleNetworkOrder() {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		log.Fatal(err)
	}
	layout := nccl.Layout{{Host: 1, GPU: 0}, {Host: 0, GPU: 0}}
	for _, r := range plan.NetworkOrder(c, layout) {
		fmt.Println(c.Hosts[r.Host].Name)
	}
	// Output:
	// node1
	// node0
}

// Where fewer nodes may be better than all, not every number is tried.
func ExampleNodeCounts() {
	fmt.Println(plan.NodeCounts(20))
	// Output: [20 18 16 15 14 13 12 11 10 9 8 7 6 5 4 3 2 1]
}
