package step_test

import (
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// One slow NIC costs the same in whichever stage of the pipeline its node is, and for whichever GPU: all wait for it.
// NCCL then takes a faster NIC that is farther from the GPU, and stages what goes through it.
func TestSlowNICInAnyStage(t *testing.T) {
	gpu, _ := hardware.GPUByName("h100")
	g, err := step.NewGPU(gpu, step.Default())
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.Find("llama2-13b")
	if err != nil {
		t.Fatal(err)
	}
	split := workload.Split{DP: 4, TP: 8, PP: 4, CP: 1, EP: 1, Chunks: 1, Shard: 4, ZeRO: 1}
	price := func(host, nic int) map[step.Group]unit.Span {
		c, err := hardware.Preset("dgx-h100", 16)
		if err != nil {
			t.Fatal(err)
		}
		if host >= 0 {
			slow := *c.Types[0]
			slow.Devices = append([]cluster.Device(nil), slow.Devices...)
			d := &slow.Devices[slow.Rails()[nic]]
			info := *d.NIC
			info.Ports = append([]cluster.Port(nil), info.Ports...)
			info.Ports[0].Rate.Value /= 2
			d.NIC = &info
			c.Types = append(c.Types, &slow)
			c.Hosts[host].Type = len(c.Types) - 1
		}
		l, err := nccl.Block(c, 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		j := &workload.Job{
			Model: m, Split: split, Seq: 4096, MicroBatch: 1, GlobalBatch: 256, Precision: workload.BF16,
			Recompute: workload.None, Kernels: workload.Fused,
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
	healthy := price(-1, 0)
	for _, at := range [][2]int{{0, 0}, {2, 4}, {6, 0}, {6, 4}, {15, 7}} {
		slow := price(at[0], at[1])
		for _, group := range []step.Group{step.Data, step.Shards, step.Next} {
			if ratio := slow[group] / healthy[group]; ratio < 1.4 || ratio > 3.6 {
				t.Errorf("half-rate NIC %d of node %d: %s takes %.2f times as long; expected about 1.5 to 3.4", at[1], at[0], group,
					ratio)
			}
		}
	}
}
