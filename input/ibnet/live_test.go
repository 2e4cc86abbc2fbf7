package ibnet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/unit"
)

// simulator is a running ibsim with a fabric of its own.
type simulator struct {
	t       *testing.T
	console io.Writer
	env     []string
}

// startSimulator runs ibsim on a net file, or skips the test with what to install.
// The process ends with the test.
func startSimulator(t *testing.T, net string) *simulator {
	t.Helper()
	for _, tool := range []string{"ibsim", "ibnetdiscover", "iblinkinfo"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s; install Debian's ibsim-utils and infiniband-diags (and have /usr/sbin in PATH)", tool)
		}
	}
	found, _ := filepath.Glob("/usr/lib/*/umad2sim/libumad2sim.so")
	if len(found) == 0 {
		t.Skip("no libumad2sim.so, which the tools preload to reach the simulator; install Debian's libumad2sim0")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "fabric.net")
	if err := os.WriteFile(file, []byte(net), 0o600); err != nil {
		t.Fatal(err)
	}
	// A name of its own keeps simulators apart that run side by side. It must fit a
	// socket address together with what ibsim appends, so it is not the long path.
	name := fmt.Sprintf("busbar-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	s := &simulator{t: t, env: append(os.Environ(), "IBSIM_SOCKNAME="+name)}

	ctx, cancel := context.WithTimeout(context.Background(), 3*eventually.Limit)
	cmd := exec.CommandContext(ctx, "ibsim", "-s", file)
	cmd.Dir, cmd.Env = dir, s.env
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	console, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.console = console
	s.env = append(s.env, "SIM_HOST=H-"+live.hostGUID(1), "LD_PRELOAD="+found[0])
	t.Cleanup(func() {
		cancel()
		cmd.Wait()
		if t.Failed() {
			t.Logf("ibsim said: %s", said.Bytes())
		}
	})
	return s
}

// run gives a tool's output. Until ibsim answers, a tool finds nothing: it is
// asked again until it sees a cable.
func (s *simulator) run(tool string, args ...string) string {
	s.t.Helper()
	var out []byte
	var err error
	if !eventually.Within(eventually.Limit, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.Env = s.env
		cmd.WaitDelay = time.Second
		out, err = cmd.Output()
		return err == nil && bytes.Contains(out, []byte("leaf1"))
	}) {
		s.t.Fatalf("%s saw no fabric: %v\n%s", tool, err, out)
	}
	return string(out)
}

// live is small, has a slow and a narrow cable, and one host more than its tools
// need.
var live = fatTree{
	leaves: 3, spines: 2, hosts: 3, cables: 2, speed: "HDR",
	slow: map[string]string{"leaf2[4]": "4xEDR", "leaf3[2]": "1xHDR"},
}

// TestIbsimFatTree holds the readers to what Debian's tools print of a fabric
// whose truth is known, because the simulator was told it.
func TestIbsimFatTree(t *testing.T) {
	s := startSimulator(t, live.text())
	whole := 0
	for name, f := range map[string]*cluster.Fragment{
		"ibnetdiscover": readDiscover(t, s.run("ibnetdiscover")),
		"iblinkinfo":    readLinkInfo(t, s.run("iblinkinfo")),
		"iblinkinfo -l": readLinkInfo(t, s.run("iblinkinfo", "-l")),
	} {
		whole = liveFabric(t, name, f)
	}
	report, err := Ports.Read("ibnetdiscover -p", strings.NewReader(s.run("ibnetdiscover", "-p")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, report)
	liveFabric(t, "ibnetdiscover -p", report)

	// A pulled cable: both ends lose it.
	fmt.Fprintf(s.console, "Unlink \"S-%s\"[5]\n", live.leafGUID(1))
	var f *cluster.Fragment
	eventually.Holds(t, "the cable is gone", func() bool {
		f = readDiscover(t, s.run("ibnetdiscover"))
		return linkAt(f, "leaf1", 5) < 0
	})
	if n := cables(f); n != whole-1 || linkAt(f, "leaf1", 5) >= 0 {
		t.Errorf("%d cables after one of %d was pulled", n, whole)
	}
	down := readLinkInfo(t, s.run("iblinkinfo"))
	if i := linkAt(down, "leaf1", 5); i < 0 || down.Network.Links[i].State != cluster.Down || cables(down) != whole-1 {
		t.Errorf("iblinkinfo after the pull: %d cables, link %d", cables(down), i)
	}
}

// liveFabric holds a fragment to the simulated fabric and counts its cables.
func liveFabric(t *testing.T, name string, f *cluster.Fragment) int {
	t.Helper()
	if s := f.Summary(); s.Switches != 5 || s.Nodes != 9 || s.NICs != 9 || cables(f) != 9+12 {
		t.Errorf("%s: %+v, %d cables, %v", name, s, cables(f), f.Warnings)
	}
	for _, sw := range f.Network.Switches {
		want := cluster.Leaf
		if strings.HasPrefix(sw.Name, "spine") {
			want = cluster.Spine
		}
		if sw.Tier != want {
			t.Errorf("%s: %s is a %v", name, sw.Name, sw.Tier)
		}
	}
	for _, c := range []struct {
		leaf string
		port int
		rate unit.Rate
	}{{"leaf2", 4, 100}, {"leaf3", 2, 50}, {"leaf2", 5, 200}, {"leaf1", 1, 200}} {
		i := linkAt(f, c.leaf, c.port)
		if i < 0 || f.Network.Links[i].Rate.Value != c.rate*unit.Gbps {
			t.Errorf("%s: %s[%d] is not at %v", name, c.leaf, c.port, c.rate*unit.Gbps)
		}
	}
	if h := f.HostIndex("node0008"); h < 0 || f.TypeOf(h).Devices[0].NIC.Rate().Value != 50*unit.Gbps {
		t.Errorf("%s: node0008 is not on the narrow cable", name)
	}
	return cables(f)
}

// cables counts the links of which both ends are known.
func cables(f *cluster.Fragment) int {
	n := 0
	for _, l := range f.Network.Links {
		if l.B.Switch >= 0 || len(l.B.Hosts) > 0 {
			n++
		}
	}
	return n
}
