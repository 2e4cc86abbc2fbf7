package nccl_test

import (
	"runtime"
	"strconv"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
)

// BenchmarkPlan is the whole decision for eight-GPU nodes, up to a million ranks.
func BenchmarkPlan(b *testing.B) {
	for _, nodes := range []int{1, 16, 512, 4096, 131072} {
		b.Run(strconv.Itoa(nodes*8)+" GPUs", func(b *testing.B) {
			t, err := hardware.Node("dgx-h100")
			if err != nil {
				b.Fatal(err)
			}
			c := hosts(t, nodes)
			l, err := nccl.Block(c, nodes, 8)
			if err != nil {
				b.Fatal(err)
			}
			v := nccl.Newest
			for b.Loop() {
				p, err := new(nccl.Planner).Plan(c, l, v, nil)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Choose(nccl.Call{Op: nccl.AllReduce, Bytes: 1 << 30}); err != nil {
					b.Fatal(err)
				}
				runtime.KeepAlive(p)
			}
		})
	}
}
