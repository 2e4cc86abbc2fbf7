package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"busbar.dev/measure"
)

// checkLab runs busbar check on the eight nodes of a lab.
type checkLab struct {
	t    *testing.T
	self string
	data string
}

func (l *checkLab) busbar(args ...string) (string, error) {
	cmd := &exec.Cmd{
		Path: l.self, Args: append([]string{"busbar"}, args...),
		Env: append(os.Environ(), "BUSBAR_LAB_DIR="+filepath.Join(l.data, "lab")),
	}
	out, err := cmd.Output()
	return string(out), err
}

// must runs a command of the lab.
func (l *checkLab) must(args ...string) {
	l.t.Helper()
	if out, err := l.busbar(args...); err != nil {
		l.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// on runs a shell command on a node.
func (l *checkLab) on(node, command string) {
	l.t.Helper()
	l.must("lab", "exec", node, "--name", "check", "--", "sh", "-c", command)
}

// check is who is not healthy.
func (l *checkLab) check() (named []string, why string) {
	l.t.Helper()
	out, err := l.busbar("lab", "exec", "all", "--name", "check", "--", filepath.Join(l.data, "busbar"), "check", "--json",
		"-q", "--size", "512K", "--iters", "3", "--warmup", "1", "--meet-timeout", "15s")
	var own []string
	for line := range strings.Lines(out) {
		if x, ok := strings.CutPrefix(line, "node0|"); ok {
			own = append(own, x)
		}
	}
	var d measure.Check
	if e := json.Unmarshal([]byte(strings.Join(own, "")), &d); e != nil {
		l.t.Errorf("no document: %v (%v)\n%s", e, err, out)
		return []string{"none"}, ""
	}
	for _, n := range d.Nodes {
		if n.Verdict != "healthy" {
			named = append(named, n.Host+" "+n.Verdict)
			why += n.Host + ": " + strings.Join(n.Reasons, "; ") + "\n"
		}
	}
	return named, why
}

// TestCheckLab: eight nodes with real packets. In BUSBAR_CHECK_RUNS checks of healthy nodes nobody is blamed, and each
// of six faults is named at its nodes and nowhere else. It measures, so it needs a quiet machine, and is no part of the
// other tests.
func TestCheckLab(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("BUSBAR_CHECK_RUNS"))
	if runs < 1 || os.Geteuid() != 0 {
		t.Skip("needs root and a quiet machine: make test-quiet")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &checkLab{t, self, t.TempDir()}
	if err := os.Symlink(self, filepath.Join(l.data, "busbar")); err != nil {
		t.Fatal(err)
	}
	l.must("lab", "up", "baskerville:8", "-l", "8x1", "--name", "check", "--scale", "1/400", "-q", "--json")
	t.Cleanup(func() { l.must("lab", "down", "--name", "check") })
	const slow = "tc qdisc replace dev mlx5_0 root handle 1: tbf rate %dmbit burst 20kb latency 1s"
	fault := func(what ...string) func() {
		return func() { l.must(append(append([]string{"lab", "fault"}, what...), "--name", "check", "-q")...) }
	}
	heal := func() { l.must("lab", "heal", "--name", "check", "-q") }
	shape := func(node string, mbit int) func() { return func() { l.on(node, fmt.Sprintf(slow, mbit)) } }
	begin, blamed := time.Now(), 0
	for i := range runs {
		if named, why := l.check(); len(named) > 0 {
			blamed++
			t.Logf("healthy check %d: %v\n%s", i+1, named, why)
		}
	}
	t.Logf("%d of %d healthy checks blamed a node; %.0f s", blamed, runs, time.Since(begin).Seconds())
	if blamed > 0 {
		t.Errorf("%d of %d healthy checks blamed a node", blamed, runs)
	}
	found, faults := 0, []struct {
		name       string
		make, heal func()
		want       []string
	}{
		{"NIC at half its rate", fault("link", "node3:mlx5_0", "rate=50%"), heal, []string{"node3 unhealthy"}},
		{"sender at 40%", shape("node4", 200), shape("node4", 500), []string{"node4 unhealthy"}},
		{
			"pair at 20%", func() {
				l.on("node1", "tc qdisc del dev mlx5_0 root; tc qdisc add dev mlx5_0 root handle 9: htb default 1 && tc class add "+
					"dev mlx5_0 parent 9: classid 9:1 htb rate 500mbit && "+
					"tc class add dev mlx5_0 parent 9: classid 9:2 htb rate 100mbit && for k in 0 1 2 3 4; do tc filter add dev "+
					"mlx5_0 parent 9: protocol ip prio 1 u32 match ip dst 10.64.$k.5 flowid 9:2; done 2>/dev/null")
			}, func() { l.on("node1", "tc qdisc del dev mlx5_0 root; "+fmt.Sprintf(slow, 500)) },
			[]string{"node1 suspect", "node4 suspect"},
		},
		{"link down", fault("link", "node7:mlx5_0", "down"), heal, []string{"node7 unreachable"}},
		{"packet loss 2%", fault("link", "node2:mlx5_0", "loss=2%"), heal, []string{"node2 unhealthy"}},
		{
			"MTU 600", func() { l.on("node6", "ip link set mlx5_0 mtu 600") },
			func() { l.on("node6", "ip link set mlx5_0 mtu 4096") },
			[]string{"node6 unhealthy"},
		},
	}
	for _, f := range faults {
		began := time.Now()
		f.make()
		named, why := l.check()
		f.heal()
		if slices.Equal(named, f.want) {
			found++
		} else {
			t.Errorf("%s: named %v, expected %v", f.name, named, f.want)
		}
		t.Logf("%s: %v; %.0f s\n%s", f.name, named, time.Since(began).Seconds(), why)
	}
	t.Logf("%d of %d faults named, each at its nodes alone", found, len(faults))
}
