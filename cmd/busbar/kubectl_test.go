//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubectl asks a server as a plug-in of kubectl does, with a kubectl of our own that executes on this machine:
// orders and questions go through it without a token, and what it says of failures is seen.
func TestKubectl(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := `#!/bin/sh
echo "$@" >> ` + log + `
case $1 in
get) printf "$FOUND" ;;
exec) [ -z "$DENIED" ] || { echo "pods/exec is forbidden" >&2; exit 1; }
  exec busbar serve join --data ` + f.data + ` ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func(env []string, args ...string) (int, string) {
		cmd := exec.Command("kubectl-busbar", args...)
		cmd.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), env...)
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	for _, tt := range []struct {
		env  []string
		args string
		code int
		says string
	}{
		{[]string{"FOUND=gpu/fleet-server-0 "}, "fleet nodes --json", exitDone, `"nodes": []`},
		{[]string{"FOUND=gpu/fleet-server-0 "}, "fleet order cancel nothing", exitBad, "no such order"},
		{nil, "fleet nodes --json --server kubectl:gpu/other", exitDone, `"nodes": []`},
		{nil, "fleet nodes --server kubectl:gpu", exitCannot, "expected kubectl:NAMESPACE/POD"},
		{[]string{"FOUND="}, "fleet nodes", exitCannot, "servers of busbar in pods: none; expected one"},
		{[]string{"FOUND=a/b c/d "}, "fleet nodes", exitCannot, "a/b, c/d; expected one"},
		{[]string{"FOUND=gpu/fleet-server-0", "DENIED=1"}, "fleet nodes", exitCannot, "pods/exec is forbidden"},
	} {
		if code, out := ask(tt.env, strings.Fields(tt.args)...); code != tt.code || !strings.Contains(out, tt.says) {
			t.Errorf("%s with %v: exit %d, expected %d and %q:\n%s", tt.args, tt.env, code, tt.code, tt.says, out)
		}
	}
	data, _ := os.ReadFile(log)
	if want := "exec --stdin --namespace gpu --container server other -- /busbar serve join --data /data/server\n"; !strings.Contains(string(data), want) {
		t.Errorf("kubectl was called with\n%s", data)
	}
}

// TestProbe: a server is its own probe.
func TestProbe(t *testing.T) {
	t.Parallel()
	f := newServedFleet(t)
	for server, want := range map[string]int{
		"http://" + f.page: exitDone, "http://" + f.page + "/nowhere": exitCannot, "http://" + f.bus: exitCannot,
		"://": exitBad,
	} {
		if code, out, errs := calledAs(t, "serve probe --server "+server); code != want {
			t.Errorf("%s: exit %d, expected %d: %s%s", server, code, want, out, errs)
		}
	}
}
