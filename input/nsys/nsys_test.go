package nsys

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"busbar.dev/result/trace"
)

const list = `Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,GreenCtx,Strm,Name
1000000,60000,1,8,NVIDIA H200 (0),1,,7,sm90_xmma_gemm_bf16
1040000,40000,2,8,NVIDIA H200 (0),1,,9,"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
1080000,10000,3,,NVIDIA H200 (0),1,,7,[CUDA memcpy Host-to-Device]
`

// check compares the parts of a step, in µs.
func check(t *testing.T, tr *trace.Trace, steps int, compute, comm, exposed, copied float64) {
	t.Helper()
	s, groups := tr.Summarize()
	if s.Steps != steps || len(groups) != 1 || groups[0].BusBW != 0 {
		t.Errorf("%+v", s)
	}
	for name, v := range map[string][2]float64{
		"compute": {float64(s.Compute), compute}, "comm": {float64(s.Comm), comm}, "exposed": {float64(s.Exposed), exposed},
		"copies": {float64(s.Copy), copied},
	} {
		if math.Abs(v[0]*1e6-v[1]) > 1e-6 {
			t.Errorf("%s: %g µs, expected %g", name, v[0]*1e6, v[1])
		}
	}
}

func TestLists(t *testing.T) {
	for _, text := range []string{list, "Processing report.\n" + list} {
		if !Match([]byte(text)) {
			t.Errorf("not recognised: %.40s", text)
		}
		traces, err := Read("list", strings.NewReader(text))
		if err != nil || len(traces) != 1 || traces[0].GPU != "NVIDIA H200" {
			t.Fatalf("%v, %v", traces, err)
		}
		check(t, traces[0], 0, 60, 40, 20, 10)
	}
}

// Each GPU is a trace of its own, in the order of their numbers.
func TestGPUs(t *testing.T) {
	rows := strings.SplitAfterN(list, "\n", 2)
	text := rows[0] + strings.ReplaceAll(rows[1], "(0)", "(10)") + strings.ReplaceAll(rows[1], "(0)", "(2)")
	traces, err := Read("list", strings.NewReader(text))
	if err != nil || len(traces) != 2 || traces[0].Device != 2 || traces[1].Device != 10 {
		t.Fatalf("%v, %v", traces, err)
	}
	for _, tr := range traces {
		if tr.GPU != "NVIDIA H200" {
			t.Errorf("%+v", tr)
		}
		check(t, tr, 0, 60, 40, 20, 10)
	}
	if _, err := Read("list", strings.NewReader(rows[0])); err == nil || !strings.Contains(err.Error(), "no kernels") {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(list))
	f.Fuzz(func(t *testing.T, data []byte) {
		traces, _ := Read("x", bytes.NewReader(data))
		for _, tr := range traces {
			tr.Summarize()
		}
	})
}
