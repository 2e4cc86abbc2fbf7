package p2pbw

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// Every sample of the corpus: devices, titles and denials as its index says, and
// figures that a person read off the files.
func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "p2pBandwidthLatencyTest") {
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !P2P.Match(data) {
				t.Error("Match says no")
			}
			runs, err := P2P.runs(e.File, strings.NewReader(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			if len(runs) != 1 {
				t.Fatalf("%d runs", len(runs))
			}
			checkFacts(t, runs[0], e.Facts)
			f := &cluster.Fragment{}
			if runs[0].addNode(f); len(f.Warnings) != 0 {
				t.Errorf("warnings %v", f.Warnings)
			}
			checkFragment(t, f)
		})
	}
}

func checkFacts(t *testing.T, run *run, facts map[string]any) {
	var devices, titles []string
	for _, id := range slices.Sorted(maps.Keys(run.devices)) {
		devices = append(devices, fmt.Sprintf("[%d %s]", id, run.devices[id].Model.Value))
	}
	for i := range run.matrices {
		titles = append(titles, run.matrices[i].Title)
	}
	var wantDevices, wantTitles []string
	for _, d := range facts["devices"].([]any) {
		wantDevices = append(wantDevices, fmt.Sprint(d))
	}
	for _, m := range facts["matrices"].([]any) {
		if title := m.(string); title != "P2P Connectivity Matrix" { // the list of peers says the same
			wantTitles = append(wantTitles, title)
		}
	}
	if !slices.Equal(devices, wantDevices) {
		t.Errorf("devices %v, want %v", devices, wantDevices)
	}
	if !slices.Equal(titles, wantTitles) {
		t.Errorf("matrices %q, want %q", titles, wantTitles)
	}
	cannot := 0
	for _, a := range run.access {
		if !a.can {
			cannot++
		}
	}
	if want := int(facts["cannot_access"].(float64)); cannot != want {
		t.Errorf("%d times no access, want %d", cannot, want)
	}
}

// checkFragment wants one node in which every ordered pair of GPUs has a rate.
func checkFragment(t *testing.T, f *cluster.Fragment) {
	if len(f.Types) != 1 || len(f.Hosts) != 1 || f.Hosts[0].Name != "" {
		t.Fatalf("%d types, hosts %v", len(f.Types), f.Hosts)
	}
	nt := f.Types[0]
	if err := nt.Check(); err != nil {
		t.Fatal(err)
	}
	n := nt.Count(cluster.GPU)
	if len(nt.Pairs) != n*(n-1) {
		t.Errorf("%d pairs among %d GPUs", len(nt.Pairs), n)
	}
	for _, p := range nt.Pairs {
		if !p.Rate.Known() || p.Rate.Origin != cluster.Measured || p.A == p.B {
			t.Errorf("pair %d-%d: rate %v", p.A, p.B, p.Rate)
		}
	}
}

func readCorpus(t *testing.T, file string) *cluster.NodeType {
	t.Helper()
	f, err := P2P.Read(file, strings.NewReader(string(corpus.Open(t, file))))
	if err != nil {
		t.Fatal(err)
	}
	return f.Types[0]
}

func pair(t *testing.T, nt *cluster.NodeType, a, b int) cluster.Pair {
	t.Helper()
	for _, p := range nt.Pairs {
		if p.A == a && p.B == b {
			return p
		}
	}
	t.Fatalf("no pair %d-%d", a, b)
	return cluster.Pair{}
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-6*want }

// Figures read off the files by eye.
func TestFigures(t *testing.T) {
	nt := readCorpus(t, "p2p-bandwidth/threadripper-x2.txt")
	p := pair(t, nt, 0, 1)
	if !near(p.Rate.Value.GBps(), 26.32) || !near(p.Both.Value.GBps(), 52.11) || !near(p.Latency.Value.Micros(), 1.12) ||
		p.P2P != cluster.Yes {
		t.Errorf("threadripper 0-1: %+v", p)
	}
	if d := nt.Devices[1]; d.PCI != "0000:c2:00.0" || d.Index != 1 || d.Model.Value != "NVIDIA RTX 6000 Ada Generation" {
		t.Errorf("threadripper gpu1: %+v", d)
	}

	// The old sample copied from the column's device to the row's: row 3, column 1
	// is 1→3.
	nt = readCorpus(t, "p2p-bandwidth/7gforce-v2.txt")
	if p := pair(t, nt, 1, 3); !near(p.Rate.Value.GBps(), 0.36) || p.P2P != cluster.No {
		t.Errorf("7gforce-v2 1-3: %+v", p)
	}
	if p := pair(t, nt, 3, 1); !near(p.Rate.Value.GBps(), 0.42) {
		t.Errorf("7gforce-v2 3-1: %+v", p)
	}
	if p := pair(t, nt, 3, 4); p.P2P != cluster.Yes {
		t.Errorf("7gforce-v2 3-4: %+v", p)
	}
	if nt.Devices[4].PCI != "0000:82:00.0" {
		t.Errorf("7gforce-v2 gpu4 at %s", nt.Devices[4].PCI)
	}

	nt = readCorpus(t, "p2p-bandwidth/az-2x-m60.txt")
	if nt.Devices[0].PCI != "d463:00:00.0" || pair(t, nt, 0, 1).P2P != cluster.No {
		t.Errorf("m60: %+v", nt.Devices[0])
	}

	for file, want := range map[string]struct {
		gpus     int
		low, hig float64
	}{
		"p2p-bandwidth/a100-x8-writes-only.txt":  {8, 270, 277},
		"p2p-bandwidth/gb200-x4-writes-only.txt": {4, 743, 751},
	} {
		nt := readCorpus(t, file)
		if n := nt.Count(cluster.GPU); n != want.gpus {
			t.Errorf("%s: %d GPUs", file, n)
		}
		for _, p := range nt.Pairs {
			if r := p.Rate.Value.GBps(); r < want.low || r > want.hig || p.P2P != cluster.Maybe {
				t.Errorf("%s: %d-%d %v %v", file, p.A, p.B, r, p.P2P)
			}
		}
	}
	if p := pair(t, readCorpus(t, "p2p-bandwidth/a100-x8-writes-only.txt"), 0, 1); !near(p.Rate.Value.GBps(), 274.55) {
		t.Errorf("a100 0-1: %v", p.Rate)
	}
}

// synthetic imitates the tool's present output inside an mpirun log, with a
// "(P2P Reads)" matrix, which the tool prints with --p2p_read.
const synthetic = "[1,0]<stdout>:[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\r\n" +
	"[1,0]<stdout>:Device: 0, Fake GPU, pciBusID: 1b, pciDeviceID: 0, pciDomainID:0\r\n" +
	"[1,0]<stdout>:Device: 1, Fake GPU, pciBusID: 1c, pciDeviceID: 0, pciDomainID:0\r\n" +
	"[1,0]<stdout>:Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\r\n" +
	"[1,0]<stdout>:   D\\D     0      1 \r\n" +
	"[1,0]<stdout>:     0 800.00  11.00 \r\n" +
	"[1,0]<stdout>:     1  22.00 800.00 \r\n"

func TestReads(t *testing.T) {
	f, err := P2P.Read("log", strings.NewReader(synthetic))
	if err != nil {
		t.Fatal(err)
	}
	if p := pair(t, f.Types[0], 0, 1); !near(p.Rate.Value.GBps(), 22) {
		t.Errorf("row 1 reads from column 0, so 0→1 is 22 GB/s; got %v", p.Rate)
	}
}

// Peer access that is slower than copies through host memory is a fault.
func TestPeerSlower(t *testing.T) {
	const table = "Unidirectional P2P=%s Bandwidth %sMatrix (GB/s)\n   D\\D 0 1\n 0 911.0 %g\n 1 %[3]g 920.0\n"
	for peer, want := range map[float64]int{9.9: 1, 21: 0, 26: 0} {
		f, err := P2P.Read("x", strings.NewReader(fmt.Sprintf(table, "Disabled", "", 22.1)+
			fmt.Sprintf(table, "Enabled", "(P2P Writes) ", peer)))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Warnings) != want || want > 0 && f.Warnings[0].ID != "p2p-slow" {
			t.Errorf("%g: %v", peer, f.Warnings)
		}
	}
}

func TestBadInput(t *testing.T) {
	head := "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D 0 1\n"
	for _, tc := range []struct {
		name, in, wantErr, wantWarn string
	}{
		{"nothing", "", "no device line and no matrix", ""},
		{"noise", strings.Repeat("\x00\xff\x1b[", 1000), "no device line and no matrix", ""},
		{"title only", "P2P=Enabled Latency (P2P Writes) Matrix (us)\n", "no device line and no matrix", ""},
		{"cut rows", head + " 0 9 1\n", "", "no row for 1"},
		{"cut columns", head + " 0 9 1\n 1 1\n", "", "row 1 has 1 cells; the header has 2 columns"},
		{"zero", head + " 0 9 0.00\n 1 1 9\n", "", "zero, negative or no rate"},
		{"negative", head + " 0 9 -4\n 1 1 9\n", "", "zero, negative or no rate"},
		{"twice", head + " 0 9 1\n 0 9 2\n 1 1 9\n", "", "stands here again"},
		{"foreign row", head + " 0 9 1\n 7 9 2\n", "", "row 7 has no column"},
		{"one address", "Device: 0, A, pciBusID: 1, pciDeviceID: 0, pciDomainID:0\nDevice: 1, A, pciBusID: 1, pciDeviceID: " +
			"0, pciDomainID:0\n", "", "belongs to another device"},
		{"many runs", strings.Repeat("Device: 0, A\n", 2000), "more than 1024 runs", ""},
	} {
		f, err := P2P.Read("f", strings.NewReader(tc.in))
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

// Two machines quoted in one document are two nodes.
func TestTwoRuns(t *testing.T) {
	one := "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D 0 1\n 0 9 1\n 1 1 9\n[...]\n"
	f, err := P2P.Read("f", strings.NewReader(one+"text\n"+one))
	if err != nil || len(f.Types) != 2 {
		t.Fatalf("%v: %d types", err, len(f.Types))
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, s := range []string{
		"", "GPU0 GPU1 X NV12", "P2P=Enabled", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
		"# Avg bus bandwidth    : 41.7",
	} {
		if P2P.Match([]byte(s)) {
			t.Errorf("Match(%q)", s)
		}
	}
}

// A matrix for more devices than any machine has is read within bounds.
func TestHuge(t *testing.T) {
	var b strings.Builder
	b.WriteString("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n D\\D")
	for i := range 5000 {
		b.WriteString(" " + strconv.Itoa(i))
	}
	b.WriteString("\n 0 1 2 3\n")
	if _, err := P2P.Read("f", strings.NewReader(b.String())); err == nil {
		t.Error("5000 columns were taken")
	}
}

func FuzzRead(f *testing.F) {
	seeds := []string{
		synthetic,
		"Device: 0, A\nDevice=0 CAN Access Peer Device=1\nP2P=Disabled Latency Matrix (us)\n GPU 0 1\n 0 1 2\n 1 2 1\n\n " +
			"CPU 0 1\n 0 1 " +
			"2\n",
	}
	if os.Getenv("BUSBAR_SHARED") != "" {
		for _, e := range corpus.Index(f, "p2pBandwidthLatencyTest") {
			seeds = append(seeds, string(corpus.Open(f, e.File)))
		}
	}
	readertest.Reader{Match: P2P.Match, Read: P2P.Read}.Fuzz(f, nil, seeds...)
}

// The table of who may access whom counts where no list of peers stands above it.
func TestConnectivity(t *testing.T) {
	f, err := P2P.Read("x",
		strings.NewReader("P2P Connectivity Matrix\n     D\\D     0     1     2\n     0       1     0     1\n"+
			"     1       0     1     0\n     2       1     0     1\nUnidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix "+
			"(GB/s)\n"+
			"   D\\D     0      1      2\n     0 900.1  11.20  25.30\n     1  11.21 901.0  11.19\n     2  25.31  11.20 900.7\n"))
	if err != nil || len(f.Warnings) > 0 {
		t.Fatal(err, f)
	}
	if nt := f.Types[0]; pair(t, nt, 0, 1).P2P != cluster.No || pair(t, nt, 2, 0).P2P != cluster.Yes ||
		len(nt.Pairs) != 6 {
		t.Error(nt.Pairs)
	}
}
