package ibnet

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/eventually"
)

// startManager runs OpenSM in the simulated fabric and waits until it has
// configured the ports. It ends before the simulator does, without which it hangs.
func (s *simulator) startManager() {
	s.t.Helper()
	if _, err := exec.LookPath("opensm"); err != nil {
		s.t.Skip("no opensm; install Debian's opensm (and have /usr/sbin in PATH)")
	}
	dir := s.t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 3*eventually.Limit)
	cmd := exec.CommandContext(ctx, "opensm", "-f", filepath.Join(dir, "log"), "-g", "0x"+live.portGUID(1))
	cmd.Dir = dir
	cmd.Env = append(s.env, "OSM_CACHE_DIR="+dir, "OSM_TMP_DIR="+dir)
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cancel()
		cmd.Wait()
	})
	eventually.Holds(s.t, "OpenSM brings the ports up", func() bool {
		out := s.run("iblinkinfo")
		return strings.Contains(out, "Active/") && !strings.Contains(out, "Initialize/")
	})
}

// TestIbsimCounters plants errors on one port and finds them by both tools.
func TestIbsimCounters(t *testing.T) {
	if testing.Short() {
		t.Skip("OpenSM takes seconds to start")
	}
	s := startSimulator(t, live.text())
	s.startManager()
	s.env = append(s.env, "SIM_HOST=H-"+live.hostGUID(2))
	up := readLinkInfo(t, s.run("iblinkinfo"))
	if i := linkAt(up, "leaf3", 2); up.Network.Links[i].State != cluster.Up {
		t.Errorf("%+v", up.Network.Links[i])
	}
	fmt.Fprintf(s.console, "PerformanceSet \"S-%s\"[2] PortCounters.SymbolErrorCounter=1234\n", live.leafGUID(3))
	fmt.Fprintf(s.console, "PerformanceSet \"S-%s\"[4] PortCounters.LinkDownedCounter=7\n", live.leafGUID(2))

	found, err := Errors.Read("ibqueryerrors", strings.NewReader(s.tryErrors()))
	if err != nil {
		t.Fatal(err)
	}
	check(t, found)
	for port, want := range map[int]map[string]uint64{2: {"A.SymbolErrorCounter": 1234}, 4: {"A.LinkDownedCounter": 7}} {
		leaf := map[int]string{2: "leaf3", 4: "leaf2"}[port]
		if i := linkAt(found, leaf, port); i < 0 || !maps.Equal(found.Network.Links[i].Counters, want) {
			t.Errorf("%s[%d] not found with %v: %+v", leaf, port, want, found.Network.Links)
		}
	}
	// The LID is the one the net file gives leaf3.
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "perfquery", "3", "2")
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	perf, err := Perf.Read("perfquery", strings.NewReader(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if i := linkAt(perf, "lid3", 2); i < 0 || perf.Network.Links[i].Counters["A.SymbolErrorCounter"] != 1234 {
		t.Errorf("perfquery: %+v", perf.Network.Links)
	}
}

// tryErrors runs ibqueryerrors until both planted counters show; its exit status
// is not zero when it finds any.
func (s *simulator) tryErrors() string {
	var text string
	if !eventually.Within(eventually.Limit, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "ibqueryerrors")
		cmd.Env = s.env
		out, _ := cmd.Output()
		text = string(out)
		return strings.Contains(text, "SymbolErrorCounter") && strings.Contains(text, "LinkDownedCounter")
	}) {
		s.t.Fatalf("ibqueryerrors shows no planted counters:\n%s", text)
	}
	return text
}
