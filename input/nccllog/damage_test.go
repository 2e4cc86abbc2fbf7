package nccllog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/readertest"
)

// A log that is cut anywhere says a part of what the whole one says: one line at most is not understood, and no ring,
// tree, connection or NIC is another than there.
func TestCutLog(t *testing.T) {
	j := job(t, 4, 28)
	text := j.Logs()
	whole := read(t, text)
	conns := map[string]bool{}
	for _, c := range whole.Connections {
		conns[c.Via] = true
	}
	for cut := strings.Index(text, "NCCL INFO ") + len("NCCL INFO "); cut < len(text); cut += 997 {
		l := read(t, text[:cut])
		end := text[max(0, cut-60):cut]
		if l.NotUnderstood > 1 {
			t.Errorf("cut at %q: not understood %v", end, l.Unknown)
		}
		if len(l.Hosts) > len(whole.Hosts) || len(l.NICs) > len(whole.NICs) || len(l.Comms) > 2 {
			t.Errorf("cut at %q: %d hosts, %d NICs, %d communicators", end, len(l.Hosts), len(l.NICs), len(l.Comms))
		}
		for i := range l.Comms {
			for c, r := range l.Comms[i].Rings {
				if want := whole.Comms[0].Rings[c].Ranks; !r.Cut && !slices.Equal(r.Ranks, want) {
					t.Errorf("cut at %q: ring %v, want %v", end, r.Ranks, want)
				}
			}
		}
		for _, c := range l.Connections[:max(0, len(l.Connections)-1)] {
			if !conns[c.Via] {
				t.Errorf("cut at %q: a connection by %s", end, c.Via)
			}
		}
		readertest.Check(t, l.Fragment())
	}
}

// A row of paths that lost its end is not understood; it is no message of a network either, whose names begin alike.
func TestTornPaths(t *testing.T) {
	for text, understood := range map[string]bool{
		"CPU/0-f\ufffdf (1/1/3)":                                                            true,
		"NET/0-0 :GPU/0-6000 (3/12.0/PHB) NET/0-0 (0/5000.0/LOC)":                           true,
		"NET/0 :GPU/A000 (3/12.0/PHB) NET/0 (0/5000.0/LOC)":                                 true, // before 2.21
		"GPU/A000 :GPU/A000 (0/5000.0/LOC)":                                                 true,
		"NET/0-0 :GPU/0-6000 (3/12.0/PHB) NET/0-0 (0":                                       false,
		"NET/0-0 :GPU/0-6000 (3/12.0/PHB) \ufffdPU/0-0 (2/12.0/PHB) NET/0-0 (0/5000.0/LOC)": false,
		"NET/0-0 :GPU/0-6000 (3/12.0WPHB) CPU/0-0 (2/12.0/PHB)":                             false,
		"NET/0-0 :GPU/0-6000 (":                                                             false,
		"NET/efa: 4 devices are there":                                                      true,
		"NET/dpu : a network of its own":                                                    true,
		"NET/Plugin: none was found":                                                        true,
	} {
		if l := read(t, "h:1:2 [0] NCCL INFO "+text+"\n"); (l.NotUnderstood == 0) != understood {
			t.Errorf("%q: not understood %v", text, l.Unknown)
		}
	}
}

// A set-up is complete although other output came between the parts of the message that says so.
func TestMendedMessage(t *testing.T) {
	j := job(t, 4, 28)
	whole := read(t, j.Logs())
	var b strings.Builder
	torn := 0
	for line := range strings.Lines(j.Logs()) {
		at := strings.Index(line, " nranks 8 cudaDev")
		if !strings.Contains(line, "Init COMPLETE") || at < 0 {
			b.WriteString(line)
			continue
		}
		torn++
		b.WriteString(line[:at] + "step 12 loss 1.5\n" + line[at:])
	}
	l := read(t, b.String())
	if torn != j.Ranks() || l.NotUnderstood != torn || len(l.Comms) != 1 {
		t.Fatalf("%d torn, not understood %v", torn, l.Unknown)
	}
	for i, k := range l.Comms[0].Ranks {
		if want := whole.Comms[0].Ranks[i]; k.Rank != want.Rank || k.PCI != want.PCI || k.Host != want.Host ||
			k.Completed.Line == 0 {
			t.Errorf("rank %d: %+v", i, k)
		}
	}
}

// A call is told from what nearly is one.
func TestCall(t *testing.T) {
	const call = "AllReduce: opCount 5 sendbuff 0x1 recvbuff 0x2 count 16 datatype 7 op 0 root 0 comm 0xa [nranks=32] " +
		"stream 0x3"
	for text, want := range map[string]bool{call: true, call[:50]: false, "Some" + call: false} {
		l := new(Parser).ParseLine("h:1:2 [0] NCCL INFO "+text, Pos{"f", 1})
		if _, ok := l.Records[0].Message.(Call); ok != want {
			t.Errorf("%q: %+v", text, l.Records[0].Message)
		}
	}
}

// Errors on their way up are understood, and tell nothing we use.
func TestReturns(t *testing.T) {
	for _, text := range []string{"transport/net.cc:1153 -> 6", "proxy.cc:699 -> 6 [Progress Thread]"} {
		if l := new(Parser).ParseLine("h:1:2 [0] NCCL INFO "+text, Pos{"f", 1}); l.Records[0].Message != note("") {
			t.Errorf("%q: %+v", text, l.Records[0].Message)
		}
	}
}

// Interfaces are NICs where nothing better is named, and only those of cards; RCCL's GPUs are AMD's.
func TestFragmentOfSockets(t *testing.T) {
	const pre = "h:1:2 [0] NCCL INFO "
	text := pre + "RCCL version : 2.22.3-synthetic\n" + pre +
		"NET/Socket : Using [0]eth0:10.77.0.1<0> [1]docker0:172.17.0.1<0> [2]ib0:10.78.0.1<0>\n" +
		pre + "comm 0xa rank 0 nranks 1 cudaDev 0 busId c1000 - Init COMPLETE\n"
	f := read(t, text).Fragment()
	if f.Types[0].Count(cluster.NIC) != 2 || f.Types[0].Devices[0].GPU.Vendor != "amd" ||
		f.Types[0].Devices[1].NIC.Kind != cluster.Ethernet || f.Types[0].Devices[2].NIC.Kind == cluster.Ethernet {
		t.Errorf("%+v", f.Types[0].Devices)
	}
	f = read(t, text+pre+"NET/IB : Using [0]hfi1_0:1/IB [1]mlx5_1:1/IB/SHARP [RO]; OOB eth0:10.77.0.1<0>\n").Fragment()
	if f.Types[0].Count(cluster.NIC) != 2 || f.Types[0].Devices[1].NIC.Kind != cluster.OmniPath ||
		f.Types[0].Devices[2].NIC.Reduction != cluster.Yes {
		t.Errorf("%+v", f.Types[0].Devices)
	}
}

// A line from within another format is read like one of a file, and errors of reading name their place.
func TestLineAndError(t *testing.T) {
	j := job(t, 0, 28)
	at := Pos{"f.json", 7}
	l := new(Parser).ParseLine(strings.TrimSuffix(j.Info(9, "Using network IB"), "\n"), at)
	if len(l.Records) != 1 || l.Records[0].Host != j.HostOf(9) || l.Records[0].At != at ||
		l.Records[0].Message != note("") {
		t.Errorf("%+v", l)
	}
	r := NewReader()
	if r.Begin("f.json"); !r.Empty() {
		t.Error("a reader that took nothing is not empty")
	}
	if r.Take(&l); r.Empty() || len(r.Log().Hosts) != 1 {
		t.Error("the line was not taken")
	}
	if _, err := Read("f", iotest.ErrReader(errors.New("the disk is gone"))); err == nil ||
		!strings.HasPrefix(err.Error(), "f:") || !strings.HasSuffix(err.Error(), "the disk is gone") {
		t.Errorf("%v", err)
	}
	f, err := Read("f", strings.NewReader(j.Logs()))
	if err != nil || len(f.Hosts) != j.Nodes {
		t.Errorf("%v: %+v", err, f)
	}
}
