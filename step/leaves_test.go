package step_test

import (
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Where leaves have less upward than their hosts can send, groups of all hosts of a leaf share that:
// stages of a pipeline on different leaves wait for it, those of one leaf do not.
func TestLeavesAreShared(t *testing.T) {
	gpu, _ := hardware.GPUByName("a100-80")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.Find("llama2-13b")
	if err != nil {
		t.Fatal(err)
	}
	price := func(ratio float64, order workload.Order) map[step.Group]unit.Span {
		c, err := hardware.Preset("dgx-a100", 16)
		if err != nil {
			t.Fatal(err)
		}
		if err := hardware.Describe(hardware.Description{Kind: c.Network.Kind, NodesPerLeaf: 4, Oversubscription: ratio},
			c); err != nil {
			t.Fatal(err)
		}
		l, err := nccl.Block(c, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		j := &workload.Job{
			Model: m, Split: workload.Split{DP: 4, TP: 8, PP: 4, CP: 1, EP: 1, Chunks: 1, Shard: 4, Order: order}, Seq: 4096,
			MicroBatch: 1, GlobalBatch: 256, Precision: workload.BF16, Recompute: workload.None, Kernels: workload.Fused,
		}
		r, err := step.Step(j, g, step.NewFabric(c, l, j.Split, nccl.Newest))
		if err != nil {
			t.Fatal(err)
		}
		took := map[step.Group]unit.Span{}
		for _, x := range r.Traffic {
			took[x.Group] = x.Time
		}
		return took
	}
	wide, far, near := price(1, workload.TensorDataPipeline), price(8, workload.TensorDataPipeline),
		price(8, workload.TensorPipelineData)
	// Four hosts send through an eighth of what they have: half of a host's for all of them.
	if far[step.Next] < 3*wide[step.Next] || far[step.Data] > 1.01*wide[step.Data] {
		t.Errorf("stages on different leaves: messages take %g s, %g s without oversubscription; gradients %g and %g s",
			far[step.Next], wide[step.Next], far[step.Data], wide[step.Data])
	}
	if near[step.Data] < 2*wide[step.Data] || near[step.Next] > 1.01*wide[step.Next] {
		t.Errorf("replicas on different leaves: gradients take %g s, %g s without oversubscription; messages %g and %g s",
			near[step.Data], wide[step.Data], near[step.Next], wide[step.Next])
	}
}
