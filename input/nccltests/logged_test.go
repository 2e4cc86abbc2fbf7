package nccltests

import (
	"strings"
	"testing"
)

// What NCCL's log says of its release between the lines of a table is the table's.
func TestLoggedRelease(t *testing.T) {
	out, err := ReadOutput("x", strings.NewReader(`# Collective test starting: all_reduce_perf
# nThread 1 nGpus 4 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#  Rank  0 Group  0 Pid  16629 on n1 device  0 [0000:06:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid  16629 on n1 device  1 [0000:07:00] NVIDIA H100 80GB HBM3
n1:16629:16629 [0] NCCL INFO NCCL version 2.26.2+cuda12.8
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
           8             2     float     sum      -1    26.08    0.00    0.00      0    24.37    0.00    0.00      0
`))
	if err != nil || len(out.Tables) != 1 {
		t.Fatal(out, err)
	}
	list, err := out.Sweeps()
	if err != nil || len(list) != 1 || list[0].Library != "2.26.2" {
		t.Errorf("%+v, %v", list, err)
	}
}
