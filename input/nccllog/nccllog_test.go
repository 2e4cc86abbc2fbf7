package nccllog

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

func read(t *testing.T, text string) *Log {
	t.Helper()
	l, err := ReadLog("f", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Prefixes as launchers, releases and accidents make them.
func TestRecords(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"info", "h:1:2 [0] NCCL INFO text", "h 1 2 0 INFO false text"},
		{"warn", "h:1:2 [0] init.cc:3 NCCL WARN text", "h 1 2 0 WARN false text"},
		{
			"warn 2.30", "[2026-01-02 03:04:05] h:1:2 [0] init.cc:3 (func) NCCL WARN text",
			"h 1 2 0 WARN false text",
		},
		{"fraction", "[2026-01-02 03:04:05.123] h:1:2 [7] NCCL INFO text", "h 1 2 7 INFO false text"},
		{"call", "h:1:2 NCCL CALL ncclGroupStart()", "h 1 2 -1 CALL false ncclGroupStart()"},
		{"mpirun", "[1,3]<stdout>:h:1:2 [0] NCCL INFO text", "h 1 2 0 INFO false text"},
		{"srun", " 12: h:1:2 [0] NCCL INFO text", "h 1 2 0 INFO false text"},
		{"ray", "(Worker pid=3, ip=1.2.3.4) h:1:2 [0] NCCL INFO text", "h 1 2 0 INFO false text"},
		{"without a process", "  NCCL WARN text", " 0 0 -1 WARN false text"},
		{"empty", "h:1:2 [0] NCCL INFO", "h 1 2 0 INFO false "},
		{
			"two", "h:1:2 [0] NCCL INFO one g:3:4 [1] x.cc:5 NCCL WARN two",
			"h 1 2 0 INFO false one|g 3 4 1 WARN true two",
		},
		{"run together", "rank 0h:1:2 [0] NCCL INFO text", "0h 1 2 0 INFO true text"},
		{"cut process", "859 [2] NCCL INFO text", " 0 0 2 INFO false text"},
		{"no level", "NCCL version 2.30", ""},
		{"other words", "NCCL INFORMATION and MYNCCL INFO", ""},
		{"process beyond reason", "h:99999999999999999999:2 [0] NCCL INFO x", " 0 0 0 INFO false x"},
	} {
		var got []string
		for _, r := range records(nil, lines.Bare(tc.in), Pos{}) {
			got = append(got, fmt.Sprintf("%s %d %d %d %s %v %s", r.Host, r.PID, r.TID, r.Dev, r.Level, r.glued, r.Text))
		}
		if s := strings.Join(got, "|"); s != tc.want {
			t.Errorf("%s:\n got %q\nwant %q", tc.name, s, tc.want)
		}
	}
}

// A list of lines that is used again keeps nothing of chunks before: its texts are parts of them.
func TestParseForgets(t *testing.T) {
	parse := func(list []Line, text string) []Line {
		for made := range lines.NewAhead[[]Line](strings.NewReader(text)).All(func() func(*lines.Chunk, *[]Line) {
			return func(c *lines.Chunk, out *[]Line) { *out = new(Parser).Parse(list[:0], "x", c) }
		}) {
			list = *made
		}
		return list
	}
	const record = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"
	list := parse(nil, strings.Repeat(record+" "+record+"\n", 9))
	list = parse(list, record+"\nplain\n")
	if len(list) != 2 || len(list[0].Records) != 1 || len(list[1].Records) != 0 {
		t.Fatalf("%+v", list)
	}
	for i, l := range list[:cap(list)] {
		if i >= 2 && (l.Text != "" || len(l.Records) > 0) {
			t.Errorf("line %d holds %q", i, l.Text)
		}
		for j, r := range l.Records[:cap(l.Records)] {
			if (i > 0 || j > 0) && (r.Text != "" || r.Message != nil) {
				t.Errorf("record %d of line %d holds %q", j, i, r.Text)
			}
		}
	}
}

// Lines of releases that no sample has, synthetic after the facts about them.
func TestOtherReleases(t *testing.T) {
	l := read(t, `h:1:2 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/IPC
h:1:2 [0] NCCL INFO Ring 00 : 1 -> 2 [send] via NET/IB/0
h:1:2 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[1c000] via direct shared memory
h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 9[1] [send] via NET/IB/3(7)/GDRDMA(PCI)/Shared
h:1:2 [0] NCCL INFO Channel 01/1 : 0[0] -> 1[1] via P2P/indirect/2[2]/read
h:1:2 [0] NCCL INFO CollNet 00/1 : 3 [receive] via COLLNET/SHARP/2/GDRDMA
h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1:2:3/RoCE [2]={[2] mlx5_2:1/IB, [3] mlx5_3:1/IB} [RO]; OOB eth0:10.0.0.1<0>
h:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 2/3/-1->0->1
h:1:2 [0] NCCL INFO [Rank 0] ncclCommSplit comm 0xa rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 1b000 parent 0xb splitCount 1 color 0 key 0- Init START
h:1:2 [0] NCCL INFO Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |
h:1:2 [0] NCCL INFO  Max NThreads |            512 |            640 |            256 |
h:1:2 [0] NCCL INFO     AllReduce |     9.9/   3.0 |    16.0/   8.0 |    40.0/  12.0 |
h:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo 1 proto 2 time 12.5
h:1:2 [0] NCCL INFO AllGather [Symmetric]: 4096 Bytes -> Kernel AllGather_ST nchannels 4 nthreads 512 nWorks 1
h:1:2 [0] NCCL INFO comm 0xa rank 0 nranks 8 cudaDev 0 busId 1b000 - Abort COMPLETE
`)
	if l.NotUnderstood != 0 {
		t.Errorf("not understood: %v", l.Unknown)
	}
	var conns []string
	for _, c := range l.Connections {
		conns = append(conns, fmt.Sprintf("%d/%d %d-%d %s %s:%s:%d:%d %v", c.Channel, c.Index, c.From, c.To, c.Dir,
			c.Transport, c.Net, c.NetDev, c.Proxy, c.GDR))
	}
	want := []string{
		"0/-1 0-1  P2P::-1:-1 false", "0/-1 1-2 send NET:IB:0:-1 false", "0/-1 0-1  SHM::-1:-1 false",
		"1/0 0-9 send NET:IB:3:7 true", "1/1 0-1  P2P::-1:-1 false",
	}
	if !slices.Equal(conns, want) {
		t.Errorf("connections\n got %q\nwant %q", conns, want)
	}
	var nics []string
	for _, n := range l.NICs {
		nics = append(nics, fmt.Sprintf("%d %s %d %s", n.Index, n.Name, n.Port, n.Layer))
	}
	if !slices.Equal(nics, []string{"0 mlx5_0 1 IB", "1 mlx5_1 1 RoCE", "2 mlx5_2 1 IB", "3 mlx5_3 1 IB"}) {
		t.Errorf("NICs %q", nics)
	}
	m := &l.Comms[0]
	if len(l.Comms) != 1 || m.NRanks != 8 || fmt.Sprint(m.Trees[1].Nodes) != "[{1 0 1 [2 3]}]" ||
		!m.Ranks[0].Ended || m.Ranks[0].PCI != "0000:1b:00.0" {
		t.Errorf("%+v", m)
	}
}

// A name that ran together with text before it is the host's, whether the host
// came before or after.
func TestGluedHost(t *testing.T) {
	for _, in := range []string{
		"x 0node7:1:2 [0] NCCL INFO a\nnode7:1:2 [0] NCCL INFO b\n",
		"node7:1:2 [0] NCCL INFO b\nx 0node7:1:2 [0] NCCL INFO a\n",
	} {
		if l := read(t, in); len(l.Hosts) != 1 || l.Hosts[0] != "node7" {
			t.Errorf("%q: hosts %+v", in, l.Hosts)
		}
	}
	if l := read(t, "gpunode7:1:2 [0] NCCL INFO a\nnode7:1:2 [0] NCCL INFO b\n"); len(l.Hosts) != 2 {
		t.Errorf("two hosts became %+v", l.Hosts)
	}
}

// Two runs of one program in one file are two communicators.
func TestTwoRuns(t *testing.T) {
	run := func(pid int) string {
		var b strings.Builder
		for r := range 2 {
			fmt.Fprintf(&b, "h:%d:1 [%d] NCCL INFO Trees [0] -1/-1/-1->%d->-1\nh:%d:1 [%d] NCCL INFO comm 0xa rank %d nranks "+
				"2 cudaDev %d busId %d000 - Init COMPLETE\n", pid+r, r, r, pid+r, r, r, r, r+1)
		}
		return b.String()
	}
	l := read(t, run(10)+run(20))
	if len(l.Comms) != 2 || len(l.Comms[0].Ranks) != 2 || len(l.Comms[1].Trees) != 1 {
		t.Errorf("%+v", l.Comms)
	}
	if f := l.Fragment(); len(f.Types) != 1 || f.Types[0].Count(cluster.GPU) != 2 {
		t.Errorf("%+v", f.Types)
	}
}

func TestBadInput(t *testing.T) {
	for _, in := range []string{"", "hello\n", "\x00\x01\xff\xfe", strings.Repeat("NCCL ", 1000)} {
		if _, err := ReadLog("f", strings.NewReader(in)); err == nil ||
			!strings.Contains(err.Error(), "f: no record of NCCL") {
			t.Errorf("%.20q: %v", in, err)
		}
	}
	// None of these may be taken for what it nearly is.
	for _, in := range []string{
		"Channel", "Channel 00", "Channel x/y : 1", "Channel 00/02 : a b", "Channel 00/0 : 0[0] -> 1[0] via",
		"Channel 00/0 : 0[0] -> via P2P/IPC",
		"Channel 00/0 : 0[0] -> 1[1] [send] via NET/3", "Channel 00/0 : 0[0] -> 1[1] [send] via NET/",
		"Channel 00/0 : 0[0] -> 1[1] via NET",
		"Trees [0]", "Trees [0] 1->2", "Trees [x] 1/1/1->2->3", "comm 0xa rank x nranks y - Init COMPLETE",
		"comm 0xa rank 1 nranks 99999999999 - Init START",
		"coll channels, p2p channels", " Bytes -> ", "x Bytes -> Algo 1", "4 Bytes -> Algo 77 proto 3", "AllReduce: opCount ",
		"Pattern , nChannels",
	} {
		l := read(t, "h:1:2 [0] NCCL INFO "+in+"\n")
		if l.NotUnderstood != 1 || len(l.Comms) != 0 || len(l.Connections) != 0 {
			t.Errorf("%q was understood: %+v", in, l)
		}
	}
	// Claims of size cost nothing.
	l := read(t, "h:1:2 [0] NCCL INFO comm 0xa rank 1 nranks 2147483647 cudaDev 0 busId zz - Init COMPLETE\nh:1:2 [0] "+
		"NCCL INFO Trees [2147483647] 1/1/1->2->3\n")
	if l.Comms[0].NRanks != 2147483647 || l.Comms[0].Ranks[0].PCI != "" {
		t.Errorf("%+v", l.Comms)
	}
}

// repeat yields a text again and again until enough bytes came.
type repeat struct {
	text string
	at   int
	left int64
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.at:])
	if int64(n) > r.left {
		n = int(r.left)
	}
	r.at = (r.at + n) % len(r.text)
	r.left -= int64(n)
	return n, nil
}

// A long log is not held in memory.
func TestMemory(t *testing.T) {
	text := strings.Repeat("h:1:2 [0] NCCL INFO AllReduce: 8 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}\n"+
		"h:1:2 [0] init.cc:3 NCCL WARN a warning that comes again\nstep 7 loss 1.25\n", 100) +
		"h:1:2 [0] NCCL INFO one line that nobody knows\n"
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l, err := ReadLog("f", &repeat{text: text, left: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 6<<20 {
		t.Errorf("16 MiB of log left %d KiB on the heap", grown>>10)
	}
	if len(l.Dropped) != 0 || len(l.Unknown) > 2 || l.Unknown[0].N < l.NotUnderstood-1 { // the last line is cut
		t.Errorf("dropped %v, unknown %v", l.Dropped, l.Unknown)
	}
}

func TestMatchRefuses(t *testing.T) {
	for _, s := range []string{"", "NCCL_DEBUG=INFO", "NCCL version 2.30", "export NCCL INFORMATION"} {
		if Match([]byte(s)) {
			t.Errorf("Match(%q)", s)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("h:1:2 [0] NCCL INFO comm 0xa rank 1 nranks 2 cudaDev 0 busId 1b000 - Init COMPLETE\nh:1:2 [0] NCCL INFO " +
		"Trees [0] 1/-1/-1->0->-1\n")
	f.Add("h:1:2 [0] NCCL INFO Enabled NCCL Func/Proto/Algo Matrix:\n Function | LL | Tree\n AllReduce | 1 | 2\n")
	f.Add("h:1:2 [0] NCCL INFO Algorithm | Tree | Ring |\nh:1:2 [0] NCCL INFO AllReduce | 1.0/ 2.0 | 3.0/4.0\n")
	f.Add("h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB x:1<0>\nh:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> " +
		"1[1] [send] via NET/IB/0(1)/GDRDMA\n")
	f.Add("h:1:2 [0] NCCL INFO comm 0xa rankNOISE\n 1 nranks 2 cudaDev 0 - Init COMPLETE\n")
	f.Add(job(f, 4, 12).Log(0))
	f.Add(job(f, 4, 30).Log(0))
	if os.Getenv("BUSBAR_SHARED") != "" {
		for _, e := range corpus.Index(f, "NCCL_DEBUG log") {
			if data := corpus.Open(f, e.File); len(data) < 25000 {
				f.Add(string(data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		Match([]byte(s))
		l, err := ReadLog("f", strings.NewReader(s))
		if err != nil {
			return
		}
		if l.NotUnderstood > l.Records || l.NotUnderstood < 0 {
			t.Errorf("%d records, %d not understood", l.Records, l.NotUnderstood)
		}
		readertest.Check(t, l.Fragment())
	})
}

func BenchmarkRead(b *testing.B) {
	data := corpus.Open(b, "nccl-log/rccl-2.22.3-mi300x-x16-2node.log")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := ReadLog("f", strings.NewReader(string(data))); err != nil {
			b.Fatal(err)
		}
	}
}

// Who stops early leaves no goroutine behind that reads on.
func TestLinesStop(t *testing.T) {
	in := strings.NewReader(strings.Repeat("h:1:2 [0] NCCL INFO Using network IB\n", 50000))
	chunks := lines.NewAhead[[]Line](in)
	for range chunks.All(func() func(*lines.Chunk, *[]Line) {
		return func(c *lines.Chunk, out *[]Line) { *out = new(Parser).Parse((*out)[:0], "f", c) }
	}) {
		break
	}
	left := in.Len()
	runtime.Gosched()
	if left == 0 || in.Len() != left {
		t.Errorf("%d bytes were left, now %d", left, in.Len())
	}
}
