package nccltests

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/unit"
)

// Tables of the ml-engineering book's benchmarks, whole and of one payload, behind the labels of a launcher.
func TestPayloads(t *testing.T) {
	const text = `The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):

| payload |    busbw   |    algbw   |
| ------: | ---------: | ---------: |
|    32KB |   0.92GBps |   0.52GBps |
|    1GiB | 420.00GBps | 240.00GBps |

(head, rank=0, pid=7) [n1:0]:The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 16 ranks):
(head, rank=0, pid=7) [n1:0]: algbw: 11.135 GBps (89.1 Gbps)
(head, rank=0, pid=7) [n1:0]: busbw: 20.878 GBps (167.0 Gbps)
`
	if !Match([]byte(text)) {
		t.Fatal("not recognised")
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != 2 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []struct {
		ranks, points int
		size          unit.Bytes
		micros        float64
	}{{8, 2, unit.GiB, 1 << 30 / 240e3}, {16, 1, 4 * unit.GiB, 4 << 30 / 11.135e3}} {
		s := out.Tables[i].Sweeps[0]
		last := s.Points[len(s.Points)-1]
		if s.Op != coll.AllReduce || s.Ranks != want.ranks || len(s.Points) != want.points || last.Size != want.size ||
			math.Abs(last.Out.Time.Mean.Micros()/want.micros-1) > 1e-3 {
			t.Errorf("%d: %v of %d ranks, %d points, %v in %v", i, s.Op, s.Ranks, len(s.Points), last.Size, last.Out.Time.Mean)
		}
	}
}

// Tables of benchmarks on torch.distributed: IBM's, whose ranks follow from its rates, and PARAM's.
func TestTorchTables(t *testing.T) {
	const text = `NCCL version :  (2, 27, 3)
 size(MB)   tavg(usec)    tmin(usec)    tmax(usec)  avgbw(GB/sec)  maxbw(GB/sec)  minbw(GB/sec)
    1.00        52.3          50.1          60.2         33.46          34.93          29.07
 1000.00      4200.0        4190.0        4300.0        416.67         417.66         406.98

world size:  16
	COMMS-RES                    size (B)  nElementsPerRank   Latency(us):p50         p75         p95         Min         Max    AlgBW(GB/s) BusBW(GB/s)
	COMMS-RES-all_reduce-float32           1048576            262144              58.0        58.3        60.2        57.0        61.0         18.079      33.898
	COMMS-RES-all_gather_base-float32           1048576            16384              58.0        58.3        60.2        57.0        61.0         18.079      16.949
`
	if !Match([]byte(text)) {
		t.Fatal("not recognised")
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []struct {
		op            coll.Kind
		ranks, points int
		micros        float64
	}{{coll.AllReduce, 8, 2, 4200}, {coll.AllReduce, 16, 1, 58}, {coll.AllGather, 16, 1, 58}} {
		s := out.Tables[i].Sweeps[0]
		if last := s.Points[len(s.Points)-1]; s.Op != want.op || s.Ranks != want.ranks || len(s.Points) != want.points ||
			math.Abs(last.Out.Time.Mean.Micros()-want.micros) > 0.1 {
			t.Errorf("%d: %v of %d ranks, %d points, %v in %v", i, s.Op, s.Ranks, len(s.Points), last.Size, last.Out.Time.Mean)
		}
	}
}

// Rows without a header: the factor between the rates says what was measured, and on how many ranks.
func TestRowsAlone(t *testing.T) {
	for text, want := range map[string]struct {
		op    coll.Kind
		ranks int
	}{
		"  1073741824     268435456     float     sum      -1   4474.0  240.00  420.00      0   4470.1  240.21  420.36     " +
			" 0\n": {coll.AllReduce, 8},
		"  1073741824     268435456     float     sum      -1   4474.0  240.00  225.00      0   4470.1  240.21  225.20     " +
			" 0\n": {coll.ReduceScatter, 16},
		"  1073741824     268435456     float     sum      -1   4474.0  0.24  0.42      0   4470.1  0.24  0.42      0\n": {coll.None, 1},
	} {
		if !Match([]byte(text)) {
			t.Errorf("%q is not recognised", text)
			continue
		}
		out, err := ReadOutput("x", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if s := out.Tables[0].Sweeps[0]; s.Op != want.op || s.Ranks != want.ranks {
			t.Errorf("%q: %v of %d ranks", text, s.Op, s.Ranks)
		}
	}
	if Match([]byte("total 12 files 340 MB in 3.2 s, and some more words here to fill it\n")) {
		t.Error("prose is taken for a row")
	}
}

// Tables that scripts and people print: nccl-tests in four columns, one payload against a thousand small ones, and
// EleutherAI's.
func TestScriptTables(t *testing.T) {
	const text = "$ ./build/all_reduce_perf -b 32k -e 16G -f 2 -g 8 -n 50\n" +
		"size (B)\ttime (us)\talgbw (GB/s)\tbusbw (GB/s)\n" + `32_768	43.83	0.75	1.31
17_179_869_184	127997	134.22	234.89

$ python -u -m torch.distributed.run --nproc_per_node=8 all_reduce_latency_comp.py

----- 1x 4.0GB -----
busbw: 1257.165 Gbps

----- 1000x 0.004GB -----
busbw: 374.391 Gbps

---- Performance of all_reduce on 16 devices ---------------------------------------------------------
Size (Bytes)         Description               Duration             Throughput (Gbps)    BusBW (Gbps)
----------------------------------------------------------------------------------------------------
128.0 KB             65536x2                   105.740 us           19.835               18.595
1.0 GB               536870912x2               8.590 ms             2000.000             1875.000
---- Performance of all_gather on 4 devices ----
Size (Bytes)         Description               Duration (us)        Throughput (GBps)    BusBW (GBps)
1048576              262144x4                  100.000              41.943               31.457
`
	if !Match([]byte(text)) {
		t.Fatal("not recognised")
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil || len(out.Tables) != 4 {
		t.Fatalf("%d tables, %v", len(out.Tables), err)
	}
	for i, want := range []struct {
		op            coll.Kind
		ranks, points int
		size          unit.Bytes
		micros, bus   float64 // of the last point
		tool          string  // and how calls were made
	}{
		{coll.AllReduce, 8, 2, 17_179_869_184, 127997, 234.89, "nccl-tests -g 8"},
		{coll.AllReduce, 8, 2, 4_000_000, 4e6 * 1.75 / (374.391e3 / 8), 374.391 / 8, "torch.distributed"},
		{coll.AllReduce, 16, 2, unit.GiB, 8590, 1875.0 / 8, "torch.distributed"},
		{coll.AllGather, 4, 1, 4 * unit.MiB, 100, 31.457, "torch.distributed"},
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
