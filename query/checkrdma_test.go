package query

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/rdmatest"
	"busbar.dev/unit"
)

// checkRDMAHosts checks hosts of this process, each with its own devices.
func checkRDMAHosts(t *testing.T, q Check, sys []fs.FS) (doc *CheckDoc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	if err := prepare(&q); err != nil {
		t.Fatal(err)
	}
	meet := filepath.Join(t.TempDir(), "meet")
	var wg sync.WaitGroup
	for r := range sys {
		wg.Go(func() {
			s, err := engine.JoinStar(ctx, engine.Config{
				Rank: r, Size: len(sys), Meet: meet, Bind: "127.0.0.1", Host: fmt.Sprintf("n%d", r), Transport: engine.TCP,
				JoinTimeout: eventually.Limit,
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			with := Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: sys[r]}
			run, err := q.rdmaInCheck(with)
			if err != nil {
				t.Error(err)
				return
			}
			w := checkWorker{
				q: &q, star: s, with: with, rdma: run, plan: bench.PairPlan{Warm: 1, Iters: 3, Small: 8, Large: 64 * unit.KiB},
			}
			if r > 0 {
				_ = w.serve(ctx)
				return
			}
			h := newCheckHub(w)
			defer h.end()
			if doc, err = q.lead(ctx, Env{}, h, expectation{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if doc == nil {
		t.FailNow()
	}
	return doc
}

// TestCheckRDMA: pairs are measured by perftest where hosts have it, a bad port is a reason against its host alone, and
// where RDMA cannot be measured the check says why and takes TCP.
func TestCheckRDMA(t *testing.T) {
	for name, tt := range map[string]struct {
		odd    map[string]rdmatest.Device
		edit   func(sys []fs.FS)
		none   bool // no perftest
		by     string
		why    string // beside by
		bad    string
		reason string
	}{
		"healthy": {by: "rdma"},
		"slow port": {
			odd: map[string]rdmatest.Device{"n2b": {Gbps: 80}}, by: "rdma", bad: "n2", reason: "40% of the others' bandwidth",
		},
		"dead port": {
			odd: map[string]rdmatest.Device{"n1a": {Fault: "gid"}}, by: "rdma", bad: "n1", reason: "Failed to modify QP",
		},
		"all slow": {odd: map[string]rdmatest.Device{
			"n0a": {Gbps: 50}, "n1a": {Gbps: 50}, "n2a": {Gbps: 50}, "n3a": {Gbps: 50},
		}, by: "rdma", reason: "the prediction for links of 25.0 GB/s and a PCIe slot that is not known says 23"},
		"port down": {
			edit: func(sys []fs.FS) { sys[3] = rdmatest.Sys("n3a!", "n3b!") }, by: "rdma", bad: "n3",
			reason: "no active RDMA port below /sys/class/infiniband (n3a/1 is DOWN",
		},
		"one port": {
			edit: func(sys []fs.FS) { sys[3] = rdmatest.Sys("n3a", "n3b!") }, by: "rdma", bad: "n3",
			reason: "has 1 active RDMA ports; most hosts have 2",
		},
		"no RDMA": {edit: func(sys []fs.FS) {
			clear(sys)
			for i := range sys {
				sys[i] = rdmatest.Sys()
			}
		}, by: "tcp", why: "0 of 4 nodes have an active RDMA port"},
		"no perftest": {none: true, by: "tcp", why: "RDMA is not measured: n0: ib_write_bw of perftest is not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			sys, devices := rdmaFleet(4, tt.odd)
			if tt.edit != nil {
				tt.edit(sys)
			}
			q := Check{Perftest: t.TempDir()}
			if !tt.none {
				q.Perftest = rdmatest.Install(t, devices)
			}
			d := checkRDMAHosts(t, q, sys)
			text := fmt.Sprintf("%+v", d.Nodes)
			if d.By != tt.by || !strings.HasPrefix(d.ByWhy, tt.why) || tt.why == "" && d.ByWhy != "" || d.Hostlist != tt.bad ||
				!strings.Contains(text, tt.reason) || d.Wrong() != (tt.reason != "") || len(d.Nodes) != 4 {
				t.Errorf("by %q (%s), bad %q, %s, %+v", d.By, d.ByWhy, d.Hostlist, text, d.Findings)
			}
		})
	}
}
