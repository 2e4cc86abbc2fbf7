package trace

import (
	"math"
	"math/rand/v2"
	"testing"

	"busbar.dev/coll"
)

func TestFromKernel(t *testing.T) {
	for name, want := range map[string]Call{
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)": {Op: coll.AllReduce},
		"ncclKernel_AllReduce_TREE_LL128_Sum_float(ncclDevComm*, unsigned long, ncclWork*)": {
			Op: coll.AllReduce, Algo: "tree",
		},
		"ncclDevKernel_ReduceScatter_Sum_f32_NVLS(ncclDevKernelArgsStorage<4096ul>)": {Op: coll.ReduceScatter},
		"ncclDevKernel_AllGather_RING_SIMPLE(ncclDevComm*)":                          {Op: coll.AllGather},
		"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)":                   {Op: coll.SendRecv, P2P: true},
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*)":             {Op: coll.None},
		"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)":   {Op: coll.Reduce},
	} {
		if got, ok := FromKernel(name); !ok || got.Op != want.Op || got.P2P != want.P2P || got.Algo != want.Algo {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	for _, name := range []string{
		"ampere_bf16_s16816gemm", "void at::native::reduce_kernel<512, 1>", "vectorized_gather_kernel",
	} {
		if c, ok := FromKernel(name); ok {
			t.Errorf("%s was taken for %+v", name, c)
		}
	}
}

// Parts add up to the step, and a nanosecond-by-nanosecond count agrees, whatever overlaps.
func TestSummaryAgainstCounting(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		tr := &Trace{Calls: []Call{{Op: coll.AllReduce, Bytes: 1 << 20, Size: 4}}}
		for range 1 + r.IntN(30) {
			a := r.Int64N(300)
			e := Event{Interval: Interval{a, a + r.Int64N(60)}, Kind: Kind(r.IntN(3)), Call: -1, Seq: -1}
			if e.Kind == Comm {
				e.Call = 0
			}
			tr.Events = append(tr.Events, e)
		}
		if r.IntN(2) == 0 {
			tr.Steps = []Interval{{50, 150}, {150, 260}}
		}
		tr.Sort()
		w := tr.Window()
		s, _ := tr.Summarize()
		var compute, comm, exposed, copied, idle float64
		for at := w.Start; at < w.End; at++ {
			var on [3]bool
			for _, e := range tr.Events {
				on[e.Kind] = on[e.Kind] || e.Start <= at && at < e.End
			}
			switch {
			case on[Compute]:
				compute++
			case on[Comm]:
				exposed++
			case on[Copy]:
				copied++
			default:
				idle++
			}
			if on[Comm] {
				comm++
			}
		}
		per := 1e9 * math.Max(1, float64(len(tr.Steps)))
		for name, v := range map[string][2]float64{
			"step": {float64(s.Step), float64(w.End - w.Start)}, "compute": {float64(s.Compute), compute},
			"comm":    {float64(s.Comm), comm},
			"exposed": {float64(s.Exposed), exposed}, "copy": {float64(s.Copy), copied}, "idle": {float64(s.Idle), idle},
		} {
			if math.Abs(v[0]*per-v[1]) > 1e-3 {
				t.Fatalf("seed %d: %s is %g ns, counted %g", seed, name, v[0]*per, v[1])
			}
		}
	}
}
