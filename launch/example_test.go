package launch_test

import (
	"fmt"
	"log"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/workload"
)

// examplePlan is Llama 2 7B on two DGX H100.
func examplePlan() *launch.Plan {
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
	split, err := workload.Split{TP: 2, ZeRO: 1}.On(len(layout))
	if err != nil {
		log.Fatal(err)
	}
	job := &workload.Job{
		Model: model, Split: split, Precision: workload.BF16, Recompute: workload.None,
		Kernels: workload.Fused,
	}
	job.Complete(len(layout))
	p, err := launch.New(c, layout, nccl.Newest, job, []string{"gpu01", "gpu02"}, false)
	if err != nil {
		log.Fatal(err)
	}
	return p
}

// The files that start a plan, and those that it has no use for.
func ExamplePlan_Files() {
	files, left, err := examplePlan().Files("/home/me/run1")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(f.Name)
	}
	for _, l := range left {
		fmt.Println("no", l.Name)
	}
	// Output:
	// plan.json
	// nccl.env
	// hostfile
	// rankfile
	// torchrun.sh
	// job.sbatch
	// slurm.hosts
	// preflight.sh
	// job.yaml
	// trainjob.yaml
	// megatron.args
	// megatron.sh
	// mesh.py
	// no jobset.yaml
	// no elastic.sh
	// no deepspeed.json
}

// A plan is read back as it was written.
func ExampleRead() {
	var text strings.Builder
	if err := examplePlan().Write(&text); err != nil {
		log.Fatal(err)
	}
	p, err := launch.Read("plan.json", strings.NewReader(text.String()))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Nodes[0].Hosts, p.Job.Parallel)
	// Output: gpu[01-02] dp=8,tp=2,pp=1,zero=1,sp=0
}
