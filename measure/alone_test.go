package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"busbar.dev/engine/ranks"
	"busbar.dev/internal/test/rdmatest"
)

// TestPortsAlone: ports of a host are measured for one job at a time, by all of its ranks there; a second job is told,
// has taken none of them, and gets them when the first ends.
func TestPortsAlone(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are no RDMA ports but on Linux")
	}
	alone := &PortsAlone{Prefix: fmt.Sprintf("busbar-test-%d/", os.Getpid())}
	devices := map[string]rdmatest.Device{"a": {}, "b": {}, "c": {}}
	folder := rdmatest.Install(t, devices)
	worker := func(ports ...string) *Perftest {
		p := NewPerftest(Programs{
			Find: ranks.FindProgram, Run: ranks.Program, Sys: rdmatest.Sys(ports...), Alone: alone,
		}, folder)
		t.Cleanup(p.free)
		return p
	}
	asks := func(p *Perftest, job string) (int, error) {
		r, err := p.claim(t.Context(), job)
		return len(r.Ports), err
	}
	first, same, second, third := worker("b", "c"), worker("b", "c"), worker("a", "b"), worker("a")
	for _, w := range []*Perftest{first, same, first} {
		if n, err := asks(w, "one"); n != 2 || err != nil {
			t.Fatalf("the first job: %d ports, %v", n, err)
		}
	}
	if n, err := asks(second, "two"); n != 0 || err == nil ||
		!strings.Contains(err.Error(), "b/1 is being measured by another busbar on this host") {
		t.Errorf("a second job: %d ports, %v", n, err)
	}
	if n, err := asks(third, "three"); n != 1 || err != nil {
		t.Errorf("a port that nobody has: %d ports, %v", n, err)
	}
	third.free()
	first.free()
	if n, err := asks(second, "two"); n != 2 || err != nil {
		t.Errorf("after the first job: %d ports, %v", n, err)
	}
}
