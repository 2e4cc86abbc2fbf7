package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/internal/test/rdmatest"
)

// rdmaAgent is an agent as a process of its own: its name, the server, credentials, a folder, where it is met,
// perftest's folder and its device.
func rdmaAgent() {
	a := os.Args[1:]
	cfg := standIns{Perftest: a[5], Devices: a[6:]}.agent(fleet.Name(a[0]), a[1], a[2], a[3], a[4])
	if err := agent.Run(context.Background(), cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitCannot)
	}
}

// TestOrderRDMAKilled: an agent that is killed while programs hang leaves none behind, neither do its partners, and the
// order ends at once and names its node: not when the program of the other node comes to its limit, which would be
// another reason.
func TestOrderRDMAKilled(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	folder := rdmatest.Install(t, map[string]rdmatest.Device{"a": {Fault: "deaf"}, "b": {Fault: "deaf"}})
	f.joinRDMA(folder, map[fleet.Name][]string{"n0": {"a"}})
	program, err := exec.LookPath("rdma-agent")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "n1", "nats://"+f.bus, f.credentials("n1"), t.TempDir(), freeport.Address(t), folder, "b")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	f.allUp(2)
	part := standIns{Perftest: folder, Devices: []string{"b"}}.child()
	id := f.hangRDMA(folder)
	if processes(part...) != 1 {
		t.Errorf("%d processes measure", processes(part...))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "programs and the process that measures end with the agent",
		func() bool { return programsOf(folder)+processes(part...) == 0 })
	if code, out, errs := f.busbar("fleet", "order", "watch", id, "--json"); code != exitWrong ||
		!strings.Contains(out, `"state": "failed"`) || !strings.Contains(out, "rank 1 (n1") ||
		!strings.Contains(out, "its connection to n0 ended") {
		t.Errorf("an agent that was killed: exit %d, %s%s", code, out, errs)
	}
}
