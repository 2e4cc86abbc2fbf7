//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/query"
)

// TestPrologInSlurm has a real Slurm run what check --emit slurm writes, as its prolog and as its health check, with a
// program that exits as it is told to: only exit code 1 drains, with a reason beside those of others.
func TestPrologInSlurm(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"slurmctld", "slurmd", "srun", "munged"} {
		needsTool(t, tool, "slurm-wlm (and munge)")
	}
	dir, err := os.MkdirTemp("", "busbar-prolog-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o755)
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(at(name+".new"), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at(name+".new"), at(name)); err != nil { // while Slurm runs it
			t.Fatal(err)
		}
	}
	put("busbar", `#!/bin/sh
who=prolog
case "$*" in *--no-load*) who=health ;; esac
echo "$who $SLURM_JOB_ID $(cat `+dir+`/$who)" >> `+dir+`/called
code=$(cat `+dir+`/$who)
[ "$code" != hang ] || sleep 60
echo "h: unhealthy"; echo "  GPU 6 has 8 PCIe lanes of 16"
exit "$code"
`)
	text, err := query.CheckFile(t.Context(), query.Env{}, "slurm", at("busbar"), query.Check{})
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "\nlimit=")
	seconds, _, _ := strings.Cut(rest, " ")
	put("prolog", "0")
	put("health", "0")
	x := hosts(t, 2)
	conf := &slurmCluster{x: x}
	c := startController(t, x, conf.nodes()+"Prolog="+at("check")+"\nPrologFlags=Alloc\nHealthCheckProgram="+at("check")+
		"\nHealthCheckInterval=2\nHealthCheckNodeState=ANY\nMessageTimeout=60\n", "")
	put("check", strings.Replace(text, "\nlimit="+seconds, "\nexport SLURM_CONF="+c.conf+"\nlimit=2", 1))
	for i, h := range x.Hosts {
		os.MkdirAll(filepath.Join(c.dir, "spool", h.Name), 0o755)
		c.daemon(t, i, "slurmd", "-D", "-N", h.Name, "-f", c.conf)
	}
	c.await(t)
	node := x.Hosts[1].Name
	ask := func(words ...string) (string, error) {
		cmd := c.x.Command(limit(t), 0, words...)
		cmd.Env = append(os.Environ(), "SLURM_CONF="+c.conf)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	reason := func() string {
		out, _ := ask("sinfo", "-h", "-N", "-n", node, "-o", "%T|%E")
		return strings.TrimSpace(out)
	}
	holds := func(what, want string) {
		t.Helper()
		last := ""
		if !eventually.Within(eventually.Limit, func() bool { last = reason(); return last == want }) {
			called, _ := os.ReadFile(at("called"))
			t.Fatalf("%s: %q, want %q; called:\n%s", what, last, want, called)
		}
	}
	resume := func() {
		t.Helper()
		ask("scontrol", "update", "NodeName="+node, "State=RESUME")
		holds("resumed", "idle|none")
	}
	for _, code := range []string{"0", "3", "2", "hang"} {
		put("prolog", code)
		if out, err := ask("srun", "-w", node, "true"); err != nil || strings.HasPrefix(reason(), "drain") {
			t.Errorf("exit code %s: the job: %v %s; the node: %s", code, err, out, reason())
		}
		holds("exit code "+code, "idle|none")
	}
	put("prolog", "1")
	const ours = "[HC] busbar: GPU 6 has 8 PCIe lanes of 16"
	if out, err := ask("timeout", "10", "srun", "-w", node, "true"); err == nil {
		t.Errorf("a job ran on a node that failed its prolog: %s", out)
	}
	holds("the prolog fails", "drained|"+ours)
	ask("scancel", "--quiet", "--state=PENDING", "-u", "root")
	put("prolog", "0")
	resume()
	// Each state is held over some rounds of the health check.
	for _, code := range []string{"3", "2", "hang"} {
		put("health", code)
		time.Sleep(3 * time.Second)
		holds("health check exits with "+code, "idle|none")
	}
	put("health", "1")
	holds("the health check fails", "drained|"+ours)
	put("health", "0")
	resume()
	ask("scontrol", "update", "NodeName="+node, "State=DRAIN", "Reason=[HC] nvsentinel: XID 79; bad disk")
	put("health", "1")
	holds("beside others", "drained|[HC] nvsentinel: XID 79; bad disk; "+ours)
	called, _ := os.ReadFile(at("called"))
	if n := strings.Count(string(called), "health"); n < 5 || strings.Contains(string(called), "prolog  ") {
		t.Errorf("called:\n%s", called)
	}
}
