package measure

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/internal/test/rdmatest"
	"busbar.dev/unit"
)

func TestMain(m *testing.M) {
	rdmatest.Main()
	os.Exit(m.Run())
}

// perftestOf is how perftest is run where a test says nothing else.
func perftestOf(folder string) Perftest {
	p := *NewPerftest(Programs{}, folder)
	p.Iters = 1000
	return p
}

// rdmaHosts measures between hosts of this process, each with its own devices.
func rdmaHosts(t *testing.T, p Perftest, sys []fs.FS, first time.Duration) (doc *RDMA, err error) {
	t.Helper()
	inStar(t, len(sys), func(ctx context.Context, s *engine.Star) {
		own := p
		own.With = Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: sys[s.Rank()]}
		m := member{star: s, rdma: &own}
		if s.Rank() > 0 {
			_ = m.serve(ctx)
			return
		}
		h := newHub(m)
		defer h.end()
		h.first = first
		doc, err = h.measureRDMA(ctx, func(string) {})
	})
	return doc, err
}

// rdmaFleet is n hosts with two ports each, n0a, n0b, n1a …, of which some are as given.
func rdmaFleet(n int, odd map[string]rdmatest.Device) (sys []fs.FS, devices map[string]rdmatest.Device) {
	devices = map[string]rdmatest.Device{}
	for r := range n {
		a, b := fmt.Sprintf("n%da", r), fmt.Sprintf("n%db", r)
		devices[a], devices[b] = odd[a], odd[b]
		sys = append(sys, rdmatest.Sys(a, b))
	}
	return sys, devices
}

// TestBenchRDMA: healthy hosts show what their devices do, on every rail and in all directions, and nobody is blamed.
func TestBenchRDMA(t *testing.T) {
	sys, devices := rdmaFleet(4, nil)
	for _, verb := range []string{"write", "read", "send"} {
		p := perftestOf(rdmatest.Install(t, devices))
		p.Verb = verb
		d, err := rdmaHosts(t, p, sys, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Rails) != 2 || len(d.Pairs) != 2*4*3 || d.Rounds < 2*3 || len(d.Findings) > 0 || len(d.Hosts) != 4 ||
			len(d.Results) != 3*len(d.Pairs) {
			t.Fatalf("%s: %+v", verb, d)
		}
		for _, p := range d.Pairs {
			if p.Rate < 24.7e9 || p.Rate > 24.8e9 || p.Both < 23.9e9 || p.Both > 24.1e9 || p.Latency != unit.Micros(2) ||
				p.Failed != "" ||
				p.From[5] != "ab"[p.Rail] || p.To[5] != "ab"[p.Rail] || p.From == p.To {
				t.Errorf("%s: %+v", verb, p)
			}
		}
		for _, s := range d.Results {
			if err := s.Check(); err != nil || s.Transport != "rdma" || !strings.HasPrefix(s.Tool, "perftest ib_"+verb) ||
				s.OnGPUs() {
				t.Fatalf("%s: %+v %v", verb, s, err)
			}
		}
	}
}

// TestBenchRDMAFaults: what is wrong with a port is named at that port, and programs that hang or are killed are no end
// of the rest.
func TestBenchRDMAFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		odd   map[string]rdmatest.Device
		gid   int    // index; 0 is perftest's choice
		want  string // in a finding's text
		where string // ports that may be named
	}{
		"slow port": {
			odd:  map[string]rdmatest.Device{"n2b": {Gbps: 80}},
			want: "n2/n2b/1 is slow with all others: 40% of the others' bandwidth", where: "n2/n2b/1",
		},
		"slow link": {
			odd:  map[string]rdmatest.Device{"n1a": {Latency: 40}},
			want: "n1/n1a/1 is slow with all others: 20.0 times the others' latency", where: "n1/n1a/1",
		},
		"no device": {
			odd:  map[string]rdmatest.Device{"n3a": {Fault: "missing"}},
			want: "IB device n3a not found; Unable to find the Infiniband/RoCE device", where: "n3/n3a/1",
		},
		"GID": {
			odd: map[string]rdmatest.Device{"n0b": {Fault: "gid"}}, want: "Failed to modify QP 187 to RTR", where: "n0/n0b/1",
		},
		"refused": {
			odd: map[string]rdmatest.Device{"n1b": {Fault: "refused"}}, want: "Couldn't connect to 127.0.0.1:",
			where: "n1/n1b/1",
		},
		"killed": {
			odd: map[string]rdmatest.Device{"n2a": {Fault: "killed"}}, want: "n2/n2a/1, with 3 of 3 partners,",
			where: "n2/n2a/1",
		},
		"no table": {
			odd: map[string]rdmatest.Device{"n2a": {Fault: "silent"}}, want: "it printed no row of the size that was asked for",
			where: "n2/n2a/1",
		},
		"every GID": {gid: 9, want: "Failed to modify QP 187 to RTR", where: "n"},
		"slow fabric": {
			odd: map[string]rdmatest.Device{
				"n0a": {Gbps: 90}, "n1a": {Gbps: 90}, "n2a": {Gbps: 90}, "n3a": {Gbps: 90},
			},
			want: "the median pair of rail 0 moves 11.1 GB/s; the prediction for links of 25.0 GB/s and a PCIe slot that is " +
				"not known says 22.2", where: "n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys, devices := rdmaFleet(4, tt.odd)
			p := perftestOf(rdmatest.Install(t, devices))
			if tt.gid > 0 {
				p.GID = tt.gid
			}
			d, err := rdmaHosts(t, p, sys, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Wrong() ||
				!slices.ContainsFunc(d.Findings, func(f finding.Finding) bool { return strings.Contains(f.Text, tt.want) }) {
				t.Errorf("no finding says %q: %+v", tt.want, d.Findings)
			}
			for _, f := range d.Findings {
				if f.Severity != finding.Note && !strings.Contains(f.Text, tt.where) {
					t.Errorf("another is blamed: %s", f.Text)
				}
			}
		})
	}
}

// TestBenchRDMAHangs: a program that comes to no end is ended after its time, also one that does not listen, and
// nothing of it is left.
func TestBenchRDMAHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for time limits: not in -short")
	}
	for _, fault := range []string{"hang", "deaf"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			sys, devices := rdmaFleet(3, map[string]rdmatest.Device{"n1a": {Fault: fault}})
			dir := rdmatest.Install(t, devices)
			d, err := rdmaHosts(t, perftestOf(dir), sys, 15*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(d.Findings, func(f finding.Finding) bool {
				return strings.HasPrefix(f.Text, "n1/n1a/1, with") && strings.Contains(f.Text, "no end within")
			}) {
				t.Errorf("%+v", d.Findings)
			}
			for _, f := range d.Findings {
				if len(f.Ranks) == 1 && !strings.HasPrefix(f.Text, "n1/n1a/1") {
					t.Errorf("blamed: %s", f.Text)
				}
			}
			if left := processesOf(t, dir); len(left) > 0 {
				t.Errorf("still running: %v", left)
			}
		})
	}
}

// processesOf are the processes whose program is in a folder.
func processesOf(t *testing.T, dir string) (list []string) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if data, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(data), dir) {
			list = append(list, name+" "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return list
}

// TestBenchRDMARefusals: what cannot be measured is said, with what was looked for and where.
func TestBenchRDMARefusals(t *testing.T) {
	sys, devices := rdmaFleet(2, nil)
	for name, tt := range map[string]struct {
		edit func(*Perftest)
		sys  []fs.FS
		want string
	}{
		"no perftest": {func(p *Perftest) { p.Folder = t.TempDir() }, sys, "ib_write_bw of perftest is not installed: stat "},
		"no devices": {
			func(*Perftest) {},
			[]fs.FS{rdmatest.Sys(), rdmatest.Sys()},
			"n0: no active RDMA port below /sys/class/infiniband; n1: no active",
		},
		"all down": {
			func(*Perftest) {}, []fs.FS{rdmatest.Sys("n0a!"), rdmatest.Sys("n1a!")}, "/sys/class/infiniband (n0a/1 is DOWN)",
		},
		"other name": {func(p *Perftest) { p.Devices = []string{"n0a"} }, sys, "no active RDMA port n0a/1 below"},
		"no CUDA":    {func(p *Perftest) { p.Cuda = true }, sys, "was built without CUDA: its --help has no --use_cuda"},
	} {
		p := perftestOf(rdmatest.Install(t, map[string]rdmatest.Device{"n0a": {NoGPU: true}}))
		tt.edit(&p)
		if _, err := rdmaHosts(t, p, tt.sys, time.Minute); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; expected %q", name, err, tt.want)
		}
	}
	// A host with fewer ports than the others is named, and the others are measured; GPUs' memory is asked for where it
	// can be.
	sys[1] = rdmatest.Sys("n1a", "n1b!")
	sys = append(sys, rdmatest.Sys("n2a", "n2b"))
	devices["n2a"], devices["n2b"] = rdmatest.Device{}, rdmatest.Device{}
	p := perftestOf(rdmatest.Install(t, devices))
	p.Cuda = true
	d, err := rdmaHosts(t, p, sys, time.Minute)
	if err != nil || len(d.Findings) != 1 || d.Findings[0].Text != "n1: has 1 active RDMA ports; most hosts have 2" ||
		len(d.Rails[1].Ports) != 2 || !d.Wrong() {
		t.Errorf("%+v %v", d, err)
	}
}

// TestPerftestOrders: a rank 0 in the wrong hands has no other ports measured than those that were told.
func TestPerftestOrders(t *testing.T) {
	_, devices := rdmaFleet(1, nil)
	p := perftestOf(rdmatest.Install(t, devices))
	p.With = Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: rdmatest.Sys("n0a")}
	if _, err := p.pair(t.Context(), nil, &perftestOrder{Port: "n0a/1"}); err == nil ||
		!strings.Contains(err.Error(), "no such port") {
		t.Errorf("before ports were asked for: %v", err)
	}
	if _, err := p.claim(t.Context(), "job"); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"--output=x/1", "n0a/2", "n0a", ""} {
		if _, err := p.pair(t.Context(), nil, &perftestOrder{Port: port}); err == nil ||
			!strings.Contains(err.Error(), "no such port") {
			t.Errorf("%q: %v", port, err)
		}
	}
}
