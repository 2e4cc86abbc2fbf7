package step_test

import (
	"fmt"
	"log"

	"busbar.dev/coll"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// exampleJob is Llama 2 7B with ZeRO 3 on two DGX H100.
func exampleJob() (*workload.Job, *step.GPU, *step.Fabric) {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		log.Fatal(err)
	}
	layout, err := nccl.Block(c, 2, 8)
	if err != nil {
		log.Fatal(err)
	}
	model, err := workload.Find("llama2-7b")
	if err != nil {
		log.Fatal(err)
	}
	split, err := workload.Split{ZeRO: 3}.On(len(layout))
	if err != nil {
		log.Fatal(err)
	}
	job := &workload.Job{
		Model: model, Split: split, Precision: workload.BF16, Recompute: workload.None,
		MicroBatch: 2, GlobalBatch: 32, Kernels: workload.Fused,
	}
	job.Complete(len(layout))
	chip, err := step.GPUOf(c, layout)
	if err != nil {
		log.Fatal(err)
	}
	gpu, err := step.NewGPU(chip, step.Default())
	if err != nil {
		log.Fatal(err)
	}
	return job, gpu, step.NewFabric(c, layout, split, nccl.Newest)
}

// How long a step takes, and what limits it.
func ExampleStep() {
	job, gpu, fabric := exampleJob()
	r, err := step.Step(job, gpu, fabric)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Ranks, "ranks, global batch", job.GlobalBatch)
	fmt.Printf("%.0f ms, of which %.0f ms wait for the network; %.0f%% MFU\n", r.Step.Seconds()*1e3,
		r.Exposed.Seconds()*1e3, 100*r.MFU)
	fmt.Printf("%.0f of %.0f GiB\n", r.Memory.Total().GiB(), unit.Volume(gpu.Model.Memory).GiB())
	fmt.Println("limited by:", r.Limit(job).Kind)
	// Output:
	// 16 ranks, global batch 32
	// 678 ms, of which 15 ms wait for the network; 56% MFU
	// 49 of 79 GiB
	// limited by: compute
}

// What would help a job that computes all activations again, tried one by one.
func ExamplePrepared_Changes() {
	job, gpu, fabric := exampleJob()
	job.Recompute = workload.Full
	p := step.Prepare(job, fabric)
	r, err := p.Price(gpu)
	if err != nil {
		log.Fatal(err)
	}
	changes, err := p.Changes(gpu, r, false)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range changes {
		fmt.Printf("%+.0f%% tokens per second: %s\n", 100*c.Gain, c.Setting)
	}
	// Output:
	// +31% tokens per second: --recompute none
	// +27% tokens per second: --recompute selective
}

// One collective of the job: the gathering of a gigabyte of parameters among all ranks.
func ExampleFabric_Time() {
	_, _, fabric := exampleJob()
	took, limit, err := fabric.Time(step.Shards, coll.AllGather, 1e9)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(took.Short()+":", limit)
	// Output: 2.73 ms: each GPU's own 400 Gb/s port is full
}

// The same cluster with a slower network.
func ExampleVary() {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		log.Fatal(err)
	}
	slower, err := step.Vary(c, "network.gbps=100,nics_per_node=4")
	if err != nil {
		log.Fatal(err)
	}
	rate, ports := step.NodePorts(slower.TypeOf(0))
	fmt.Println(ports, "ports of", rate.Bits())
	// Output: 4 ports of 100 Gb/s
}
