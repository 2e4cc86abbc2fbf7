package query

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"busbar.dev/engine"
	"busbar.dev/engine/bench/rdma"
	"busbar.dev/engine/ranks"
	"busbar.dev/finding"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/rdmatest"
)

func TestMain(m *testing.M) {
	rdmatest.Main()
	os.Exit(m.Run())
}

// rdmaHosts measures between hosts of this process, each with its own devices.
func rdmaHosts(t *testing.T, q BenchRDMA, sys []fs.FS, first time.Duration) (*BenchRDMADoc, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	if err := prepare(&q); err != nil {
		t.Fatal(err)
	}
	bw, lat, err := q.tests()
	if err != nil {
		return nil, err
	}
	meet := filepath.Join(t.TempDir(), "meet")
	var wg sync.WaitGroup
	var doc *BenchRDMADoc
	for r := range sys {
		wg.Go(func() {
			s, joinErr := engine.JoinStar(ctx, engine.Config{
				Rank: r, Size: len(sys), Meet: meet, Bind: "127.0.0.1", Host: fmt.Sprintf("n%d", r), Transport: engine.TCP,
				JoinTimeout: eventually.Limit,
			})
			if joinErr != nil {
				t.Error(joinErr)
				return
			}
			defer s.Close()
			with := Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: sys[r]}
			w := checkWorker{star: s, with: with, rdma: &rdmaWorker{q: &q, with: with, bw: bw, lat: lat}}
			if r > 0 {
				_ = w.serve(ctx)
				return
			}
			h := newCheckHub(w)
			defer h.end()
			h.first = first
			doc, err = q.lead(ctx, Env{}, h)
		})
	}
	wg.Wait()
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
		d, err := rdmaHosts(t, BenchRDMA{Verb: verb, Perftest: rdmatest.Install(t, devices)}, sys, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.Rails) != 2 || len(d.Pairs) != 2*4*3 || d.Rounds != 2*3 || len(d.Findings) > 0 || len(d.Hosts) != 4 ||
			len(d.Results) != 3*len(d.Pairs) {
			t.Fatalf("%s: %+v", verb, d)
		}
		for _, p := range d.Pairs {
			if p.Rate < 24.7 || p.Rate > 24.8 || p.Both < 23.9 || p.Both > 24.1 || p.Latency != 2 || p.Failed != "" ||
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
		q     BenchRDMA
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
		"every GID": {q: BenchRDMA{GID: 9}, want: "Failed to modify QP 187 to RTR", where: "n"},
		"slow fabric": {
			odd: map[string]rdmatest.Device{
				"n0a": {Gbps: 90}, "n1a": {Gbps: 90}, "n2a": {Gbps: 90}, "n3a": {Gbps: 90},
			},
			want: "the median pair of rail 0 moves 11.1 GB/s; the prediction for links of 25.0 GB/s and a PCIe slot that is " +
				"not known says 23", where: "n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sys, devices := rdmaFleet(4, tt.odd)
			q := tt.q
			q.Perftest = rdmatest.Install(t, devices)
			d, err := rdmaHosts(t, q, sys, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if !d.Wrong() ||
				!slices.ContainsFunc(d.Findings, func(f finding.Finding) bool { return strings.Contains(f.Text, tt.want) }) {
				t.Errorf("no finding says %q: %+v", tt.want, d.Findings)
			}
			for _, f := range d.Findings {
				for _, r := range f.Ranks {
					if n := d.Table.Names[r]; f.Severity != finding.Note && !strings.HasPrefix(n, tt.where) {
						t.Errorf("%s is blamed: %s", n, f.Text)
					}
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
			d, err := rdmaHosts(t, BenchRDMA{Perftest: dir}, sys, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(d.Findings, func(f finding.Finding) bool {
				return strings.HasPrefix(f.Text, "n1/n1a/1, with") && strings.Contains(f.Text, "no end within")
			}) {
				t.Errorf("%+v", d.Findings)
			}
			for _, f := range d.Findings {
				if len(f.Ranks) == 1 && d.Table.Names[f.Ranks[0]] != "n1/n1a/1" {
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
		q    BenchRDMA
		sys  []fs.FS
		want string
	}{
		"no perftest": {BenchRDMA{Perftest: t.TempDir()}, sys, "ib_write_bw of perftest is not installed: stat "},
		"no devices": {
			BenchRDMA{},
			[]fs.FS{rdmatest.Sys(), rdmatest.Sys()},
			"n0: no active RDMA port below /sys/class/infiniband; n1: no active",
		},
		"all down": {
			BenchRDMA{}, []fs.FS{rdmatest.Sys("n0a!"), rdmatest.Sys("n1a!")}, "/sys/class/infiniband (n0a/1 is DOWN)",
		},
		"other name": {BenchRDMA{Devices: []string{"n0a"}}, sys, "no active RDMA port n0a/1 below"},
		"no CUDA":    {BenchRDMA{Cuda: true}, sys, "was built without CUDA: its --help has no --use_cuda"},
	} {
		q := tt.q
		if q.Perftest == "" {
			q.Perftest = rdmatest.Install(t, map[string]rdmatest.Device{"n0a": {NoGPU: true}})
		}
		if _, err := rdmaHosts(t, q, tt.sys, time.Minute); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; expected %q", name, err, tt.want)
		}
	}
	// A host with fewer ports than the others is named, and the others are measured; GPUs' memory is asked for where it
	// can be.
	sys[1] = rdmatest.Sys("n1a", "n1b!")
	sys = append(sys, rdmatest.Sys("n2a", "n2b"))
	devices["n2a"], devices["n2b"] = rdmatest.Device{}, rdmatest.Device{}
	d, err := rdmaHosts(t, BenchRDMA{Perftest: rdmatest.Install(t, devices), Cuda: true}, sys, time.Minute)
	if err != nil || len(d.Findings) != 1 || d.Findings[0].Text != "n1: has 1 active RDMA ports; most hosts have 2" ||
		len(d.Rails[1].Ports) != 2 || !d.Wrong() {
		t.Errorf("%+v %v", d, err)
	}
}

// TestRDMAOrders: a rank 0 in the wrong hands has no other programs run, nor options that it chose.
func TestRDMAOrders(t *testing.T) {
	_, devices := rdmaFleet(1, nil)
	w := &rdmaWorker{
		q:    &BenchRDMA{Verb: "write", Perftest: rdmatest.Install(t, devices)},
		with: Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: rdmatest.Sys("n0a")},
	}
	own := rdma.End{Device: "n0a", Port: 1, GPU: -1}
	server := netip.MustParseAddrPort("127.0.0.1:1")
	if err := w.do(t.Context(), "rdma-run", &rdmaOrder{End: own, Server: server, TCP: 1},
		&checkReply{}); err == nil || !strings.Contains(err.Error(), "no such port") {
		t.Errorf("before ports were asked for: %v", err)
	}
	if err := w.do(t.Context(), "rdma-ports", &rdmaOrder{}, &checkReply{}); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]rdmaOrder{
		"another device": {End: rdma.End{Device: "--output=x", Port: 1, GPU: -1}, Server: server},
		"another port":   {End: rdma.End{Device: "n0a", Port: 2, GPU: -1}, Server: server},
	} {
		if err := w.do(t.Context(), "rdma-run", &o, &checkReply{}); err == nil || strings.Contains(err.Error(), "ib_write") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
