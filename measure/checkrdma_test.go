package measure

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/ranks"
	"busbar.dev/internal/test/rdmatest"
	"busbar.dev/unit"
)

// checkRDMAHosts checks hosts of this process, each with its own devices.
func checkRDMAHosts(t *testing.T, perftest string, sys []fs.FS) (doc *Check) {
	t.Helper()
	inStar(t, len(sys), func(ctx context.Context, s *engine.Star) {
		c := Checker{
			With: Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: sys[s.Rank()]}, Perftest: perftest,
			Plan: bench.PairPlan{Warm: 1, Iters: 3, Small: 8, Large: 64 * unit.KiB}, Show: func(string) {},
		}
		if d, err := c.Ranks(ctx, s); s.Rank() == 0 {
			if doc = d; err != nil {
				t.Error(err)
			}
		}
	})
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
		}, by: "rdma", reason: "the prediction for links of 25.0 GB/s and a PCIe slot that is not known says 22.2"},
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
			folder := t.TempDir()
			if !tt.none {
				folder = rdmatest.Install(t, devices)
			}
			d := checkRDMAHosts(t, folder, sys)
			text := fmt.Sprintf("%+v", d.Nodes)
			if d.By != tt.by || !strings.HasPrefix(d.ByWhy, tt.why) || tt.why == "" && d.ByWhy != "" || d.Hostlist != tt.bad ||
				!strings.Contains(text, tt.reason) || d.Wrong() != (tt.reason != "") || len(d.Nodes) != 4 {
				t.Errorf("by %q (%s), bad %q, %s, %+v", d.By, d.ByWhy, d.Hostlist, text, d.Findings)
			}
		})
	}
}
