package p2pbw

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// Every sample of the corpus: titles as its index says, each under a test it names.
func TestNVBandwidthCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "nvbandwidth") {
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !NVBandwidth.Match(data) {
				t.Error("Match says no")
			}
			runs, err := NVBandwidth.runs(e.File, strings.NewReader(string(data)))
			if err != nil || len(runs) != 1 {
				t.Fatalf("%v: %d runs", err, len(runs))
			}
			var titles []string
			named := fact(e, "tests")
			for _, x := range runs[0].matrices {
				if !slices.Contains(titles, x.Title) {
					titles = append(titles, x.Title)
				}
				if !slices.Contains(named, x.test) {
					t.Errorf("test %q is none of %q", x.test, named)
				}
			}
			want := slices.DeleteFunc(fact(e, "headers"), func(s string) bool { return strings.Contains(s, "CPU(") })
			if !slices.Equal(titles, want) {
				t.Errorf("headers:\n got %q\nwant %q", titles, want)
			}
			f := &cluster.Fragment{}
			runs[0].addNode(f)
			if err := f.Types[0].Check(); err != nil || len(f.Warnings) > 0 {
				t.Errorf("%v, warnings %v", err, f.Warnings)
			}
		})
	}
}

func fact(e corpus.Entry, key string) (list []string) {
	for _, v := range e.Facts[key].([]any) {
		list = append(list, v.(string))
	}
	return list
}

// Figures read off the files by eye.
func TestNVBandwidthFigures(t *testing.T) {
	name := "p2p-bandwidth/nvbandwidth-h100-x8-v0.4.txt"
	f, err := NVBandwidth.Read(name, strings.NewReader(string(corpus.Open(t, name))))
	if err != nil {
		t.Fatal(err)
	}
	nt := f.Types[0]
	if nt.Count(cluster.GPU) != 8 || len(nt.Pairs) != 56 || len(f.Warnings) != 0 {
		t.Fatalf("%d GPUs, %d pairs, warnings %v", nt.Count(cluster.GPU), len(nt.Pairs), f.Warnings)
	}
	for _, p := range nt.Pairs {
		if r := p.Rate.Value.GBps(); r < 370 || r > 373 {
			t.Errorf("%d-%d: %v", p.A, p.B, r)
		}
	}
	if p := nt.Pairs[7*1+0]; p.A != 1 || p.B != 0 || p.Rate.Value.GBps() != 370.90 || p.Rate.Origin != cluster.Measured {
		t.Errorf("pair %+v", p)
	}
	if p := nt.Pairs[7*2+0]; p.A != 2 || p.B != 0 || p.Rate.Value.GBps() != 372.05 {
		t.Errorf("the arrow points from row to column: %+v", p)
	}
	if nt.Devices[0].Model.Value != "NVIDIA H100 80GB HBM3" {
		t.Errorf("gpu0 %v", nt.Devices[0].Model)
	}

	name = "p2p-bandwidth/nvbandwidth-superbench.log"
	runs, err := NVBandwidth.runs(name, strings.NewReader(string(corpus.Open(t, name))))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v: %d runs", err, len(runs))
	}
	p := runs[0]
	if d := p.devices[0]; p.host != "" || d.Model.Value != "NVIDIA GH200 480GB" || d.PCI != "0009:01:00.0" {
		t.Errorf("host %q, device %+v", p.host, d)
	}
	if len(p.matrices) != 0 {
		t.Errorf("tables between the host and its GPU were read: %+v", p.matrices)
	}
}

// nvbandwidth imitates v0.8 on two GPUs: host name, both unidirectional arrows, a
// bidirectional test in three tables, a latency test.
const nvbandwidth = `nvbandwidth Version: v0.8
Driver Version: 570.1

node7
Device 0: Fake GPU (00000000:18:00)
Device 1: Fake GPU (00000000:2A:00)

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A     10.00
 1     20.00       N/A

SUM device_to_device_memcpy_read_ce 30.00

Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0      0.00     25.00
 1      9.00      0.00

SUM device_to_device_memcpy_write_ce 34.00

Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A      8.00
 1      8.00       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_read1 16.00

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A     16.00
 1     17.00       N/A

SUM device_to_device_bidirectional_memcpy_read_ce_total 33.00

Running device_to_device_latency_sm.
Device to Device Latency SM GPU(row) <-> GPU(column) (ns)
           0         1
 0       N/A    700.00
 1    710.00       N/A
`

func TestArrows(t *testing.T) {
	f, err := NVBandwidth.Read("x", strings.NewReader(nvbandwidth))
	if err != nil {
		t.Fatal(err)
	}
	if f.Hosts[0].Name != "node7" || f.Types[0].Devices[1].PCI != "0000:2a:00.0" {
		t.Errorf("host %q, device %+v", f.Hosts[0].Name, f.Types[0].Devices[1])
	}
	want := []string{"0-1 10 16 0.7µs", "1-0 25 17 0.71µs"}
	var got []string
	for _, p := range f.Types[0].Pairs {
		got = append(got, fmt.Sprintf("%d-%d %g %g %gµs", p.A, p.B, p.Rate.Value.GBps(), p.Both.Value.GBps(),
			p.Latency.Value.Micros()))
	}
	if !slices.Equal(got, want) {
		t.Errorf("pairs %q, want %q", got, want)
	}
	if len(f.Warnings) != 0 { // zeros on the diagonal are how old releases print N/A
		t.Errorf("warnings %v", f.Warnings)
	}
}

// Processes of MPI on two hosts: a matrix is of processes, and each host has its own devices.
func TestNVBandwidthOnHosts(t *testing.T) {
	text := "nvbandwidth Version: v0.7\n\n"
	for i := range 4 {
		text += fmt.Sprintf("Process %d (pod-%d): device %d: Fake GB (0000000%d:01:00)\n", i, i/2, i%2, i%2+1)
	}
	text += "\nRunning multinode_device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n" +
		" 0 1 2 3\n0 N/A 11 12 13\n1 21 N/A 23 24\n2 31 32 N/A 34\n3 41 42 43 N/A\n"
	f, err := NVBandwidth.Read("x", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, h := range f.Hosts {
		nt := f.Types[h.Type]
		got = append(got, fmt.Sprintf("%s %d %d %s", h.Name, nt.Count(cluster.GPU), nt.Devices[1].Index,
			nt.Devices[1].Model.Value))
		for _, p := range nt.Pairs {
			got = append(got, fmt.Sprint(i, p.A, p.B, p.Rate.Value.GBps()))
		}
	}
	want := []string{"pod-0 2 1 Fake GB", "0 0 1 11", "0 1 0 21", "pod-1 2 1 Fake GB", "1 0 1 34", "1 1 0 43"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if w := fmt.Sprint(f.Warnings); len(f.Warnings) != 1 || !strings.Contains(w, "only rates within one are kept") {
		t.Errorf("warnings %v", w)
	}
}

func TestNVBandwidthBadInput(t *testing.T) {
	head := "Running x.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n"
	for _, tc := range []struct {
		name, in, wantErr, wantWarn string
	}{
		{"nothing", "", "no device line and no matrix of nvbandwidth", ""},
		{"binary", "\x00\xff\xfe", "no device line and no matrix of nvbandwidth", ""},
		{"cut", "Running x.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n", "no device line and no matrix", ""},
		{"short row", head + "0 N/A 2\n1 2\n", "", "row 1 has 1 cells; the header has 2 columns"},
		{"negative", head + "0 N/A -2\n1 2 N/A\n", "", "zero, negative"},
		{"twice", head + "0 N/A 2\n0 N/A 3\n", "", "stands here again"},
	} {
		f, err := NVBandwidth.Read("f", strings.NewReader(tc.in))
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.wantErr)
			}
			continue
		}
		if err != nil || !strings.Contains(fmt.Sprint(f.Warnings), tc.wantWarn) {
			t.Errorf("%s: error %v, warnings %v, want %q", tc.name, err, f.Warnings, tc.wantWarn)
		}
	}
}

func FuzzNVBandwidth(f *testing.F) {
	seeds := []string{nvbandwidth, "Process 1 (pod-0): device 0: Fake GB (00000001:01:00)\n"}
	if os.Getenv("BUSBAR_SHARED") != "" {
		for _, e := range corpus.Index(f, "nvbandwidth") {
			seeds = append(seeds, string(corpus.Open(f, e.File)))
		}
	}
	readertest.Reader{Match: NVBandwidth.Match, Read: NVBandwidth.Read}.Fuzz(f, nil, seeds...)
}
