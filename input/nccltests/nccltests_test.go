package nccltests

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
	"busbar.dev/result"
	"busbar.dev/unit"
)

func readFile(t *testing.T, file string) *Output {
	t.Helper()
	data := corpus.Open(t, file)
	if !Match(data) {
		t.Errorf("%s: Match says no", file)
	}
	res, err := ReadOutput(file, strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, nt := range res.Fragment(file).Types {
		if err := nt.Check(); err != nil {
			t.Error(err)
		}
	}
	return res
}

// points are the rows of a table.
func points(t *Table) []result.Point {
	var list []result.Point
	for _, s := range t.Sweeps {
		list = append(list, s.Points...)
	}
	return list
}

// line prints a row as the tool does, without count, type, reduction and root, words separated
// by one blank; -1 stands for a check that was not made.
func line(p *result.Point) string {
	f := []string{fmt.Sprint(int64(p.Size))}
	for _, h := range []*result.Timing{p.Out, p.In} {
		if h == nil {
			continue
		}
		wrong := int64(-1)
		if h.Wrong != nil {
			wrong = *h.Wrong
		}
		f = append(f, fmt.Sprintf("%g %.2f %.2f %d", h.Time.Mean.Micros(), h.PrintedAlg.GBps(), h.PrintedBus.GBps(), wrong))
	}
	return strings.Join(f, " ")
}

// plain prints a row of the index in the same way; in tables with differences instead of counts
// of wrong values, nothing is known about those.
func plain(s string, delta bool) string {
	f := strings.Fields(s)
	out, rest := f[:1:1], f[3:]
	for len(rest)%4 != 0 || strings.ContainsAny(rest[0], "abcdefghijklmnopqrstuvwxyz") {
		rest = rest[1:]
	}
	for i, s := range rest {
		switch {
		case s == "N/A" || i%4 == 3 && delta:
			s = "-1"
		case i%4 == 0:
			s = fmt.Sprintf("%g", figureOf(s))
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

// Every sample of the corpus: ranks, hosts, models and rows as its index says.
func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "nccl-tests output") {
		t.Run(e.File, func(t *testing.T) {
			res := readFile(t, e.File)
			var rows []result.Point
			hosts, models := map[string]bool{}, map[string]bool{}
			ranks, tables := 0, 0
			ended := 0
			for i := range res.Tables {
				tab := &res.Tables[i]
				rows = append(rows, points(tab)...)
				for _, r := range tab.Ranks {
					hosts[r.Host], models[r.Model] = true, true
				}
				ranks += len(tab.Ranks)
				if len(tab.Sweeps) > 0 {
					tables++
				}
				if tab.ended {
					ended++
				}
			}
			want := func(key string, got any) {
				t.Helper()
				if w := fmt.Sprint(e.Facts[key]); fmt.Sprint(got) != w {
					t.Errorf("%s: got %v, want %v", key, got, w)
				}
			}
			want("ranks_listed", ranks)
			want("hosts", len(hosts))
			want("data_rows", len(rows))
			want("first_size", jsonNumber(int64(rows[0].Size)))
			want("last_size", jsonNumber(int64(rows[len(rows)-1].Size)))
			names := slices.Sorted(maps.Keys(models))
			want("gpu_model", names)
			if got, w := line(&rows[len(rows)-1]),
				plain(e.Facts["last_row"].(string), res.Tables[len(res.Tables)-1].delta); got != w {
				t.Errorf("last row\n got %s\nwant %s", got, w)
			}
			if e.File == "nccl-tests/gcp-a3mega-h100x16.md" {
				// The average stands once under the table and once in the prose, which is
				// no second table. The document lost the # before the parameters.
				if tables != 1 || ended != 1 || res.Tables[0].GPUs != 1 {
					t.Errorf("%d tables, %d with an end, %+v", tables, ended, res.Tables[0].GPUs)
				}
				return
			}
			want("n_tables", tables)
			q := res.Tables[0]
			if text := fmt.Sprint(e.Facts["params"]); !strings.Contains(text, fmt.Sprintf(" nGpus %d", q.GPUs)) ||
				!strings.Contains(text, fmt.Sprintf(" iters: %d", q.Iters)) {
				t.Errorf("%d GPUs, %d iterations, want %s", q.GPUs, q.Iters, text)
			}
			if list, ok := e.Facts["avg_busbw"].([]any); ok && ended < len(list) {
				t.Errorf("%d tables have an end, want %v", ended, list)
			}
			if res.Unused != 0 || len(res.Warnings) != 0 {
				t.Errorf("%d pieces unused, warnings %v", res.Unused, res.Warnings)
			}
		})
	}
}

// jsonNumber prints a number as the index does after decoding.
func jsonNumber(n int64) string { return fmt.Sprint(float64(n)) }

// What each sample measured, and how the reader knows.
func TestOps(t *testing.T) {
	for file, want := range map[string]string{
		"superbench-allreduce.log":            "all_reduce columns",
		"superbench-allgather.log":            " ",
		"superbench-alltoall.log":             " ",
		"superbench-broadcast.log":            "broadcast columns",
		"superbench-reduce.log":               "reduce columns",
		"superbench-reducescatter.log":        "reduce_scatter columns",
		"supermicro-h100-preflight.log":       "all_reduce command",
		"gcp-a3mega-h100x16.md":               "all_reduce command",
		"socket-thread-validation.md":         "all_reduce header",
		"panlichen-4host-allreduce.txt":       "all_reduce columns",
		"panlichen-v100-x8-reducescatter.txt": "reduce_scatter columns",
	} {
		res := readFile(t, "nccl-tests/"+file)
		tab := &res.Tables[len(res.Tables)-1]
		if file == "socket-thread-validation.md" {
			tab = &res.Tables[0]
			if last := res.Tables[len(res.Tables)-1]; last.Op != coll.AllGather {
				t.Errorf("%s: last table is %v", file, last.Op)
			}
			if tab.Version != "2.18.0" || tab.Library != "22907" || tab.Test != "all_reduce_perf_mpi" {
				t.Errorf("%s: %q %q %q", file, tab.Version, tab.Library, tab.Test)
			}
		}
		op := ""
		if tab.Op != coll.None {
			op = tab.Op.String()
		}
		if got := op + " " + tab.OpFrom; got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// Where each rank sees one GPU alone, all have the number 0, and their buses may be alike in PCI domains of their own.
func TestRanksOfOneGPUEach(t *testing.T) {
	text := ""
	for i := range 4 {
		text += fmt.Sprintf("0: #  Rank  %d Group  0 Pid 28577%d on  nid007567 device  0 [0x01] NVIDIA GH200 120GB\n", i, i)
	}
	out, err := ReadOutput("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if nt := out.Fragment("x").Types[0]; nt.Count(cluster.GPU) != 4 || nt.Devices[0].PCI != "" || nt.Check() != nil {
		t.Errorf("%+v", nt.Devices)
	}
}

func TestFragment(t *testing.T) {
	f := readFile(t, "nccl-tests/gcp-a3mega-h100x16.md").Fragment("x")
	if len(f.Hosts) != 2 || len(f.Types) != 1 || f.Hosts[1].Name != "ztan-mig-gq73" {
		t.Fatalf("hosts %v, %d types", f.Hosts, len(f.Types))
	}
	nt := f.Types[0]
	if nt.Count(cluster.GPU) != 8 || nt.Devices[2].PCI != "0000:0b:00.0" ||
		nt.Devices[2].Model.Value != "NVIDIA H100 80GB HBM3" {
		t.Errorf("%d GPUs, gpu2 %+v", nt.Count(cluster.GPU), nt.Devices[2])
	}

	// Bus alone: 0x1a is 0000:1a:00.0, and eight times 0x00 is no address.
	f = readFile(t, "nccl-tests/supermicro-h100-preflight.log").Fragment("x")
	if nt := f.Types[0]; nt.Count(cluster.GPU) != 8 || nt.Devices[0].PCI != "0000:1a:00.0" || nt.Devices[0].Index != -1 {
		t.Errorf("%+v", nt.Devices)
	}
	f = readFile(t, "nccl-tests/superbench-allreduce.log").Fragment("x")
	if nt := f.Types[0]; nt.Count(cluster.GPU) != 8 || nt.Devices[3].PCI != "" || nt.Devices[3].Index != 3 {
		t.Errorf("%+v", nt.Devices)
	}
	// Two ranks on one GPU are one GPU.
	f = readFile(t, "nccl-tests/socket-thread-validation.md").Fragment("x")
	if nt := f.Types[0]; nt.Count(cluster.GPU) != 1 || len(f.Hosts) != 1 {
		t.Errorf("%+v, %+v", nt, f.Hosts)
	}
	// 25 runs on four equal hosts.
	f = readFile(t, "nccl-tests/panlichen-4host-allreduce.txt").Fragment("x")
	if len(f.Hosts) != 4 || len(f.Types) != 1 {
		t.Errorf("%d hosts, %d types", len(f.Hosts), len(f.Types))
	}
}

// Rows that NCCL's log tears apart, in the logs that are also samples of it.
func TestTornRows(t *testing.T) {
	res := readFile(t, "nccl-log/2.27.7-2rank-healthy.log")
	tab := &res.Tables[0]
	rows := points(tab)
	if len(res.Tables) != 1 || len(rows) != 11 || res.Unused != 0 || !tab.ended || tab.Op != coll.AllReduce {
		t.Fatalf("%d tables, %d rows, %d unused", len(res.Tables), len(rows), res.Unused)
	}
	if got := line(&rows[0]); got != "8388608 83.33 100.66 100.66 0 80.98 103.59 103.59 0" ||
		tab.Sweeps[0].Dtype != "float" {
		t.Errorf("first row %s", got)
	}
	if got := line(&rows[10]); got != "8589934592 39658 216.60 216.60 0 39657 216.61 216.61 0" {
		t.Errorf("last row %s", got)
	}
	if res := readFile(t, "nccl-log/2.27.7-2rank-nvlink-fault.log"); !res.Tables[0].ended ||
		len(points(&res.Tables[0])) != 11 {
		t.Errorf("fault: %d rows", len(points(&res.Tables[0])))
	}

	res = readFile(t, "nccl-log/2.12.12-4host-panlichen-cut.log")
	rows = nil
	for i := range res.Tables {
		rows = append(rows, points(&res.Tables[i])...)
	}
	if len(rows) != 27 || res.Unused != 2 {
		t.Errorf("4host: %d rows, %d unused of %d tables", len(rows), res.Unused, len(res.Tables))
	}
	if got := line(&rows[0]); got != "64 413.6 0.00 0.00 -1" || res.Tables[0].Sweeps[0].Redop != "sum" {
		t.Errorf("4host: first row %s", got)
	}

	res = readFile(t, "nccl-log/2.9.9-p4d-efa-eks.log")
	if tab := res.Tables[0]; len(tab.Ranks) != 16 || len(tab.Sweeps) == 0 || !tab.delta {
		t.Errorf("p4d: %d ranks, %d rows", len(tab.Ranks), len(points(&tab)))
	}
	// Two GPUs of a virtual machine share a bus number; their addresses are unknown.
	if nt := res.Fragment("x").Types[0]; nt.Count(cluster.GPU) != 8 || nt.Devices[0].PCI != "" {
		t.Errorf("p4d: %+v", nt.Devices)
	}
}

const head = "# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 " +
	"validation: 1 graph: 0\n" +
	"#  Rank  0 Group  0 Pid  1 on  n1 device  0 [0000:1b:00] Fake GPU\n#  Rank  1 Group  0 Pid  1 on  n1 device  1 " +
	"[0000:1c:00] Fake GPU\n" +
	"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw " +
	"#wrong\n"

// Layouts that no sample has; synthetic after the tool's source.
func TestLayouts(t *testing.T) {
	for _, tc := range []struct{ name, rows, want string }{
		{"plain", " 8 2 float sum -1 1.5 2.00 2.00 0 1.6 3.00 3.00 0\n", "8 1.5 2.00 2.00 0 1.6 3.00 3.00 0"},
		{
			"timestamp", " 8 2 float sum -1 1.5 2.00 2.00 0 1.6 3.00 3.00 0 2026-01-02 03:04:05\n",
			"8 1.5 2.00 2.00 0 1.6 3.00 3.00 0",
		},
		{
			"in place unchecked", " 8 2 float none -1 1.5 2.00 2.00 0 1.6 3.00 3.00 N/A\n", "8 1.5 2.00 2.00 0 1.6 3.00 3.00 -1",
		},
		{
			"wide numbers", " 8 2 bfloat16 sum 3 1e+05 2.00 2.00 4 1.2e+06 3.00 3.00 0\n",
			"8 100000 2.00 2.00 4 1.2e+06 3.00 3.00 0",
		},
		{"nan", " 0 0 float sum -1 1.5 nan -nan 0 1.6 inf 0.00 0\n", "0 1.5 0.00 0.00 0 1.6 0.00 0.00 0"},
		{"torn after the root", " 8 2 float sum -1n1:1:1 [0] NCCL INFO x\n 1.5 2.00 2.00 0\nn1:1:1 [0] NCCL INFO y\n 1.6 " +
			"3.00 3.00 0\n", "8 1.5 2.00 2.00 0 1.6 3.00 3.00 0"},
		{
			"torn after the first half", " 8 2 float sum -1 1.5 2.00 2.00 0n1:1:1 [0] NCCL INFO x\n 1.6 3.00 3.00 0\n",
			"8 1.5 2.00 2.00 0 1.6 3.00 3.00 0",
		},
	} {
		res, err := ReadOutput("f", strings.NewReader(head+tc.rows+"# Avg bus bandwidth    : 1.0\n"))
		if err != nil || len(res.Tables) != 1 || len(points(&res.Tables[0])) != 1 || res.Unused != 0 {
			t.Errorf("%s: %v %+v", tc.name, err, res)
			continue
		}
		if got := line(&points(&res.Tables[0])[0]); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	res, err := ReadOutput("f",
		strings.NewReader(strings.Replace(head, "busbw #wrong     time", "busbw #wrong i_min i_max i_p99 i_cv% time", 1)+
			" 8 2 float sum -1 1.5 2.00 2.00 0 1 2 3 4 1.6 3.00 3.00 0 1 2 3 4\n"))
	if err != nil || len(points(&res.Tables[0])) != 1 || points(&res.Tables[0])[0].In.PrintedBus.GBps() != 3 {
		t.Errorf("per iteration: %v %+v", err, res)
	}
}

// A run of several types is a sweep for each; what stands before the rows is said of all.
func TestSeveralTypes(t *testing.T) {
	out, err := ReadOutput("f", strings.NewReader("# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n# "+
		"Collective test starting: all_reduce_perf\n"+head+
		" 8 2 float sum -1 1.5 2.00 2.00 0 1.6 3.00 3.00 N/A\n 16 4 float sum -1 1.7 2.00 2.00 0 0.00 inf inf 0\n 8 4 half "+
		"sum -1 1.4 2.00 2.00 1 1.6 3.00 3.00 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := out.Sweeps()
	if err != nil || len(list) != 2 || out.Untimed != 1 {
		t.Fatalf("%d sweeps, %d untimed, %v", len(list), out.Untimed, err)
	}
	var got []string
	for _, r := range list.Rows() {
		got = append(got, fmt.Sprint(r.Op, " ", r.Dtype, " ", int64(r.Size), " ", r.InPlace, " ", r.Time.Mean.Micros(), " ",
			r.Wrong != nil))
	}
	want := []string{
		"all_reduce float 8 false 1.5 true", "all_reduce float 8 true 1.6 false", "all_reduce float 16 false 1.7 true",
		"all_reduce half 8 false 1.4 true", "all_reduce half 8 true 1.6 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if s := list[1]; s.Ranks != 2 || s.Layout() != "1x2" || s.Hosts != "n1" || s.GPU() != "Fake GPU" ||
		s.Library != "2.28.9" || s.Tool != "nccl-tests 2.17.1 -g 2" || !s.OnGPUs() {
		t.Errorf("%+v", s)
	}
}

func TestBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in, wantErr string
		rows, unused      int
	}{
		{"nothing", "", "no output of nccl-tests", 0, 0},
		{"binary", "\x00\x01\xff\xfe", "no output of nccl-tests", 0, 0},
		{"cut row", head + " 8 2 float sum -1 1.5 2.00\n", "", 0, 1},
		{"cut half", head + " 8 2 float sum -1 1.5 2.00 2.00 0 1.6\n", "", 1, 1},
		{"negative time", head + " 8 2 float sum -1 -1.5 2.00 2.00 0\n", "", 0, 0},
		{"lost head", head + " 1.5 2.00 2.00 0\n", "", 0, 1},
		{"words", head + " 8 2 float sum -1 a b c d\n", "", 0, 0},
		{"huge size", head + " 99999999999999999999 2 float sum -1 1 1 1 0\n", "", 0, 0},
		{"failure", "n1: Test NCCL failure common.cu:210 'invalid usage'\n", "", 0, 0},
	} {
		res, err := ReadOutput("f", strings.NewReader(tc.in))
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.wantErr)
			}
			continue
		}
		rows := 0
		if err == nil {
			for i := range res.Tables {
				rows += len(points(&res.Tables[i]))
			}
		}
		if err != nil || rows != tc.rows || res.Unused != tc.unused {
			t.Errorf("%s: %v, %d rows, %d unused, want %d and %d", tc.name, err, rows, res.Unused, tc.rows, tc.unused)
		}
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, s := range []string{"", "busbw: 1001.8878  Gbps", "all_reduce_perf -b 8 -e 1G", "algbw   busbw"} {
		if Match([]byte(s)) {
			t.Errorf("Match(%q)", s)
		}
	}
}

func FuzzRead(f *testing.F) {
	seeds := []string{
		head + " 8 2 float sum -1n1:1:1 [0] NCCL INFO x\n 1.5 2.00 2.00 0\n# Avg bus bandwidth    : 1.0\n",
		"all_reduce_perf -b 8\n" + head + " 8 2 float sum 1.5 2.00 2.00 0\n" + head,
	}
	if os.Getenv("BUSBAR_SHARED") != "" {
		for _, e := range corpus.Index(f, "nccl-tests output") {
			if data := corpus.Open(f, e.File); len(data) < 6000 {
				seeds = append(seeds, string(data))
			}
		}
	}
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, nil, seeds...)
}

// A table that lists no ranks says nothing of what it ran on.
func TestUnknownRanks(t *testing.T) {
	const text = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw " +
		"  " +
		"busbw #wrong\n  1073741824     268435456     float    none      -1   4474.0  240.00  210.00      0   4470.1  " +
		"240.21  210.20      0\n"
	if f, err := Read("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "# Rank 0") {
		t.Errorf("%+v, %v", f, err)
	}
}

// What of a table is not used is said, and where its columns count in other units they are read so.
func TestRowsLeftOut(t *testing.T) {
	table := func(units, row string) string {
		return "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   " +
			"busbw " +
			"#wrong\n#        " + units + "\n  1048576        262144     float     sum      -1  " + row + "\n"
	}
	const units = "(B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"
	for text, want := range map[string]struct {
		micros  float64
		warning string
	}{
		table(units, "45.1 23.25 40.69 0 44.9 23.35 40.87 0"): {45.1, ""},
		table(units, "45.1 23.25 40.69 0 nan nan nan 0"):      {45.1, "x:3: 1 figure without a time"},
		table(units, "45.1 23.25 40.69 0 44.9"):               {45.1, "x: 1 pieces of torn rows"},
		table(units, "45100 23.25 40.69 0 44900 23.35 40.87 0"): {
			0, "x:3: 2 figures of another unit than the heading says, in time or in rate, the first: 1 MiB in 45.1 ms is",
		},
		table(strings.ReplaceAll(units, "us", "ms"), "0.0451 23.25 40.69 0 0.0449 23.35 40.87 0"): {45.1, ""},
		strings.Replace(table(strings.Replace(units, "(B)", "(KB)", 1), "45.1 23.25 40.69 0 44.9 23.35 40.87 0"), " 1048576",
			" 1024", 1): {45.1, ""},
		table(strings.ReplaceAll(units, "us", "days"), "45.1 23.25 40.69 0 44.9 23.35 40.87 0"): {
			45.1, "x:2: a column counts in (days), which is not known",
		},
	} {
		out, err := ReadOutput("x", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, w := range out.Warnings {
			said += w.Source + ": " + w.Text + "\n"
		}
		if !strings.HasPrefix(said, want.warning) || (want.warning == "") != (said == "") {
			t.Errorf("%s: said %q, want %q", text, said, want.warning)
		}
		if p := points(&out.Tables[0])[0]; p.Size != unit.MiB ||
			(p.Out == nil) != (want.micros == 0) || p.Out != nil && math.Abs(p.Out.Time.Mean.Seconds()*1e6-want.micros) > 0.01 {
			t.Errorf("%s: %+v", text, p)
		}
	}
}
