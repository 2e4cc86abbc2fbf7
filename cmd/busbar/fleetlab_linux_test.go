package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/test/eventually"
)

// labFleet is a fleet in a lab: a server on node0, an agent on every node, real packets.
type labFleet struct {
	t    *testing.T
	self string
	data string
	env  []string
}

// command is one of busbar's, on a node of the lab where one is named.
func (f *labFleet) command(node string, args ...string) *exec.Cmd {
	words := append([]string{"busbar"}, args...)
	if node != "" {
		words = append([]string{"busbar", "lab", "exec", "--name", "fleet", node, "--", filepath.Join(f.data, "busbar")},
			args...)
	}
	return &exec.Cmd{Path: f.self, Args: words, Env: f.env}
}

func (f *labFleet) run(node string, args ...string) (code int, stdout string) {
	f.t.Helper()
	cmd := f.command(node, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	if code = cmd.ProcessState.ExitCode(); code > exitWrong {
		f.t.Fatalf("%s %v: exit %d: %s", node, args, code, errs.String())
	}
	return code, string(out)
}

// background starts a command that the lab's end ends.
func (f *labFleet) background(node string, args ...string) {
	f.t.Helper()
	cmd := f.command(node, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended with the lab
		_ = cmd.Wait()
	})
}

func newLabFleet(t *testing.T, nodes int) *labFleet {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	f := &labFleet{t: t, self: self, data: data, env: append(os.Environ(), "BUSBAR_LAB_DIR="+filepath.Join(data, "lab"))}
	if err := os.Symlink(self, filepath.Join(data, "busbar")); err != nil { // the name under which it is the program
		t.Fatal(err)
	}
	f.run("", "lab", "up", fmt.Sprintf("baskerville:%d", nodes), "-l", fmt.Sprintf("%dx1", nodes), "--name", "fleet",
		"--scale", "1/2000", "-q", "--json")
	t.Cleanup(func() { f.run("", "lab", "down", "--name", "fleet") })
	store := filepath.Join(data, "server")
	f.background("node0", "serve", "-q", "--no-agent", "--data", store, "--bus-listen", "0.0.0.0:7642", "--bus-plain")
	for i := range nodes {
		name := fmt.Sprintf("node%d", i)
		creds := filepath.Join(data, name+".creds")
		f.run("", "serve", "token", "node", name, "--data", store, "-o", creds, "-q")
		f.background(name, "agent", "-q", "--join", "nats://node0:7642", "--creds", creds, "--data",
			filepath.Join(data, name), "--bind", "mlx5_0")
	}
	eventually.Holds(f.t, "all nodes are up", func() bool {
		cmd := f.command("node0", "fleet", "nodes", "--json", "--data", store)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		return err == nil && strings.Count(string(out), `"state": "up"`) == nodes
	})
	return f
}

// order measures every pair, and returns what became of it.
func (f *labFleet) order() fleet.OrderReply {
	f.t.Helper()
	_, out := f.run("node0", "fleet", "order", "pairs", "--wait", "--json", "--busy", "any", "--size", "128K", "--iters",
		"5",
		"--warmup", "1", "--data", filepath.Join(f.data, "server"))
	var got fleet.OrderReply
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		f.t.Fatal(err)
	}
	return got
}

// sweep measures every pair and returns who is bad then.
func (f *labFleet) sweep() (bad string, findings int, took time.Duration) {
	f.t.Helper()
	store := filepath.Join(f.data, "server")
	got := f.order()
	if got.State != fleet.Done || got.Measured != got.Parts {
		f.t.Errorf("the sweep: %+v", got)
	}
	time.Sleep(500 * time.Millisecond) // the look of a real server that follows a sweep, which no answer of it tells
	_, bad = f.run("node0", "fleet", "nodes", "--bad", "-q", "--data", store)
	_, out := f.run("node0", "fleet", "nodes", "--json", "--data", store)
	var all struct{ Findings []finding.Finding }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		f.t.Fatal(err)
	}
	for _, x := range all.Findings {
		f.t.Logf("%s, confidence %.2f: %s", x.Severity, x.Confidence, x.Text)
	}
	return strings.TrimSpace(bad), len(all.Findings), got.Since.Sub(got.Ran)
}

// TestFleetLab measures a fleet in the lab. On a quiet machine (make test-quiet) fifty healthy sweeps of eight nodes
// raise no alarm, and a NIC that has half of its rate is found and named within two. Elsewhere rates scatter with what
// else runs: every pair is measured, with the fault and without, and verdicts are left to recorded sweeps
// (fleet/health.TestLab).
func TestFleetLab(t *testing.T) {
	if testing.Short() || !labAllowed(t) {
		t.Skip("needs a lab, and some seconds")
	}
	fault := []string{"lab", "fault", "--name", "fleet", "link", "node3:mlx5_0", "rate=50%"}
	if !quiet() {
		f := newLabFleet(t, 4)
		whole := func() bool { o := f.order(); return o.State == fleet.Done && o.Measured == o.Parts }
		// who has no processor for seconds counts as gone, and the order goes on
		eventually.Holds(t, "every pair is measured", whole)
		f.run("", fault...)
		eventually.Holds(t, "every pair is measured with a slow NIC", whole)
		f.run("node0", "fleet", "nodes", "--json", "--data", filepath.Join(f.data, "server"))
		return
	}
	const sweeps, nodes, patience = 50, 8, 2
	f := newLabFleet(t, nodes)
	alarms := 0
	var all time.Duration
	for range sweeps {
		bad, found, took := f.sweep()
		all += took
		if found > 0 || bad != "" {
			alarms++
		}
	}
	t.Logf("%d healthy sweeps of %d nodes, %v each: %d with a finding", sweeps, nodes,
		(all / sweeps).Round(time.Millisecond), alarms)
	if alarms > 0 {
		t.Errorf("%d false alarms", alarms)
	}
	f.run("", fault...)
	bad, took := "", 0
	for bad == "" && took < patience {
		bad, _, _ = f.sweep()
		took++
	}
	t.Logf("with half the rate of node3: bad %q after %d sweeps", bad, took)
	if bad != "node3" {
		t.Errorf("after %d sweeps with half the rate of node3: bad %q", took, bad)
	}
}
