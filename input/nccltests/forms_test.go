package nccltests

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Tables of the ml-engineering book's benchmarks.
func TestPayloads(t *testing.T) {
	const text = `The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|    32KB |   0.92GBps |   0.52GBps |
|    1GiB | 420.00GBps | 240.00GBps |
`
	if !Match([]byte(text)) {
		t.Fatal("not recognised")
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != 1 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []struct {
		ranks, points int
		size          unit.Bytes
		micros        float64
	}{{8, 2, unit.GiB, 1 << 30 / 240e3}} {
		s := out.Tables[i].Sweeps[0]
		last := s.Points[len(s.Points)-1]
		if s.Op != coll.AllReduce || s.Ranks != want.ranks || len(s.Points) != want.points || last.Size != want.size ||
			math.Abs(last.Out.Time.Mean.Micros()/want.micros-1) > 1e-3 {
			t.Errorf("%d: %v of %d ranks, %d points, %v in %v", i, s.Op, s.Ranks, len(s.Points), last.Size, last.Out.Time.Mean)
		}
	}
}

// readTables reads a text that is recognised and has so many.
func readTables(t *testing.T, text string, n int) *Output {
	t.Helper()
	if !Match([]byte(text)) {
		t.Fatal("not recognised")
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != n {
		t.Fatalf("%d tables, %v", len(out.Tables), err)
	}
	return out
}

// Tables that scripts and people print: nccl-tests in four columns.
func TestScriptTables(t *testing.T) {
	const text = "$ ./build/all_reduce_perf -b 32k -e 16G -f 2 -g 8 -n 50\n" +
		"size (B)\ttime (us)\talgbw (GB/s)\tbusbw (GB/s)\n" + `32_768	43.83	0.75	1.31
17_179_869_184	127997	134.22	234.89
`
	out := readTables(t, text, 1)
	for i, want := range []struct {
		op            coll.Kind
		ranks, points int
		size          unit.Bytes
		micros, bus   float64 // of the last point
		tool          string  // and how calls were made
	}{
		{coll.AllReduce, 8, 2, 17_179_869_184, 127997, 234.89, "nccl-tests -g 8"},
	} {
		s := out.Tables[i].Sweeps[0]
		if s.Tool != want.tool {
			t.Errorf("table %d: by %q, want %q", i, s.Tool, want.tool)
		}
		last := s.Points[len(s.Points)-1]
		if s.Op != want.op || s.Ranks != want.ranks || len(s.Points) != want.points || last.Size != want.size ||
			math.Abs(last.Out.Time.Mean.Micros()/want.micros-1) > 1e-3 ||
			math.Abs(last.Out.PrintedBus.GBps()/want.bus-1) > 1e-3 {
			t.Errorf("%d: %v of %d ranks, %d points, %v in %v, %v", i, s.Op, s.Ranks, len(s.Points), last.Size,
				last.Out.Time.Mean,
				last.Out.PrintedBus)
		}
	}
	if Match([]byte("--------- 3x faster GB ---------\n")) {
		t.Error("prose is taken for a table")
	}
}

// Speeds of transfer in a text: bytes that all ranks of an all-reduce send over the time. The text says how much is
// summed, a row where and by which algorithm.
func TestTransferSpeeds(t *testing.T) {
	const text = `The script sums a model in BF16 precision (2.00 GB) over all GPUs.

| run | Nodes | GPUs per Node | Measured Transfer speed (GB/s) | Time (s) |
| --- | ----- | ------------- | ------------------------------ | -------- |
| a-1 | 1     | 4             | 600.0                          | 0.020    |
| a-2 | 2     | 2             | 24.0                           | 0.500    |

| run | Nodes | GPUs per Node | Topology | Measured Transfer speed (GB/s) | Time (s) |
| --- | ----- | ------------- | -------- | ------------------------------ | -------- |
| b-1 | 2     | 2             | Ring     | 12.0                           | 1.0      |
| b-2 | 2     | 2             | Tree     | 24.0                           | 0.5      |
`
	out := readTables(t, text, 4)
	for i, want := range []struct {
		nodes, per int
		algo       string
		millis     float64
	}{{1, 4, "auto", 20}, {2, 2, "auto", 500}, {2, 2, "ring", 1000}, {2, 2, "tree", 500}} {
		s := out.Tables[i].Sweeps[0]
		nodes, per, said := out.Tables[i].Layout()
		p := s.Points[0]
		if !said || nodes != want.nodes || per != want.per || s.Nodes != want.nodes || s.Op != coll.AllReduce ||
			s.Dtype != "bfloat16" || p.Size != 2e9 || p.Algo != want.algo ||
			math.Abs(p.Out.Time.Mean.Micros()-1e3*want.millis) > 0.1 {
			t.Errorf("%d: %v of %d×%d, %v of %v by %s in %v", i, s.Op, nodes, per, s.Dtype, p.Size, p.Algo, p.Out.Time.Mean)
		}
	}
	if out, err := ReadOutput("x", strings.NewReader(strings.ReplaceAll(text, "(2.00 GB)", ""))); err != nil ||
		out.Unused != 4 || len(out.Tables[0].Sweeps) > 0 {
		t.Errorf("%+v, %v; expected no times of a size that nothing says", out, err)
	}
}

// TestSaidBefore reads what stands before tables: the release, the GPUs, and the layout of a launcher's command line.
func TestSaidBefore(t *testing.T) {
	const text = `$ ./build/all_reduce_perf -b 32k -e 16G -f 2 -g 8
| size (B) | time (us) | algbw (GB/s) | busbw (GB/s) |
| -------: | --------: | -----------: | -----------: |
| 1048576  | 50.0      | 20.97        | 36.70        |

- software: torch=2.7.0, cuda=12.8, nccl=(2, 26, 2)
- hardware: _CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9)
$ torchrun --nproc_per_node=8 --nnodes=2 bench.py
The average bandwidth of all_reduce over 16 ranks (5 warmups / 20 trials):
| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|    1GiB | 375.00GBps | 200.00GBps |
`
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []string{"1x8 nccl-tests -g 8  ", "2x8 torch.distributed 2.26.2 NVIDIA H100 80GB HBM3"} {
		s := out.Tables[i].Sweeps[0]
		if have := strings.Join([]string{s.Layout(), s.Tool, s.Library, s.GPU()}, " "); have != want {
			t.Errorf("%q, expected %q", have, want)
		}
	}
}

// A run for each size: the small ones, whose rates tell nothing, are of the collective that the large ones are of.
func TestRunsOfSizes(t *testing.T) {
	run := func(size int, rest string) string {
		return fmt.Sprintf("# nThread 2 nGpus 1 minBytes %d maxBytes %d step: 2(factor) warmup iters: 2 iters: 5 "+
			"validation: 0\n"+
			"# Using devices\n#   Rank  0 Pid 11 on n1 device  0 [0x0f] NVIDIA A10\n"+
			"#   Rank  1 Pid 12 on n2 device  0 [0x0f] NVIDIA A10\n#   Rank  2 Pid 13 on n3 device  0 [0x0f] NVIDIA A10\n"+
			"#\n#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"+
			"%12d %12d     float     sum %s    N/A\n", size, size, size, size/4, rest)
	}
	small, large := run(64, "55.57    0.00    0.00"), run(1<<28, "129055    2.08    2.77")
	for text, want := range map[string]coll.Kind{small + large: coll.AllReduce, small: coll.None} {
		out, err := ReadOutput("f", strings.NewReader(text))
		if err != nil || len(out.Tables) == 0 || out.Tables[0].Op != want {
			t.Errorf("%v %+v", err, out)
		}
	}
}
