package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/engine/bench/rdma/rdmatest"
	"busbar.dev/engine/ranks"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/internal/eventually"
	"busbar.dev/query"
)

// rdmaAgent is an agent as a process of its own: its name, the server, credentials, a folder, where it is met, perftest's folder and its device.
func rdmaAgent() {
	a := os.Args[1:]
	sys := rdmatest.Sys(a[6])
	node := &query.FleetNode{With: query.Programs{Find: ranks.FindProgram, Run: ranks.Program, Sys: sys}, Name: fleet.Name(a[0]), Bind: "127.0.0.1", Perftest: a[5]}
	cfg := agent.Config{
		Name: node.Name, Bus: bus.Config{URLs: []string{a[1]}, Creds: a[2]}, Dir: a[3], Meet: a[4], Bind: "127.0.0.1", Beat: 100 * time.Millisecond, Version: "test", Sys: sys,
		Means: map[fleet.Transport]agent.Means{fleet.RDMA: {Lacks: node.LacksRDMA, Measure: node.RDMA}},
	}
	if err := agent.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCannot)
	}
}

// TestOrderRDMAKilled: an agent that is killed while programs hang leaves none behind, neither do its partners, and the order ends and names its node.
func TestOrderRDMAKilled(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	folder := rdmatest.Install(t, map[string]rdmatest.Device{"a": {Fault: "deaf"}, "b": {Fault: "deaf"}})
	f.joinRDMA(folder, map[fleet.Name]fs.FS{"n0": rdmatest.Sys("a")})
	program, err := exec.LookPath("rdma-agent")
	if err != nil {
		t.Fatal(err)
	}
	creds := filepath.Join(t.TempDir(), "node.creds")
	if code, _, errs := f.busbar("serve", "token", "node", "n1", "-o", creds); code != exitDone {
		t.Fatal(errs)
	}
	cmd := exec.Command(program, "n1", "nats://"+f.bus, creds, t.TempDir(), freeAddress(t), folder, "b")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	eventually.Holds(t, "both nodes are up", func() bool {
		_, out, _ := f.busbar("nodes", "--json")
		return strings.Count(out, `"state": "up"`) == 2
	})
	runs := func() (n int) {
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range list {
			data, _ := os.ReadFile(name) // it may have ended
			if strings.HasPrefix(string(data), folder) {
				n++
			}
		}
		return n
	}
	_, out, errs := f.busbar("order", "rdma", "--nodes", "n[0-1]", "--busy", "any")
	id := strings.TrimSpace(out)
	eventually.Holds(t, "programs run on both nodes: "+errs, func() bool { return runs() >= 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "programs end with the agent", func() bool { return runs() == 0 })
	if code, out, errs := f.busbar("order", "watch", id, "--json"); code != exitWrong || !strings.Contains(out, `"state": "failed"`) || !strings.Contains(out, "rank 1 (n1") {
		t.Errorf("an agent that was killed: exit %d, %s%s", code, out, errs)
	}
}
