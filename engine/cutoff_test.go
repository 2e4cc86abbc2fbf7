//go:build unix

package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"busbar.dev/engine"
	"busbar.dev/internal/test/netns"
)

// TestElasticCutOff takes the cable out of the host of ranks 0 and 1: the other three of five
// go on, and those two, who cannot know that the others live, do not.
func TestElasticCutOff(t *testing.T) {
	x, err := netns.New(2, "")
	if errors.Is(err, netns.ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := emptyCast(t, 5, 4*time.Second, engine.Auto)
	for r := range 5 {
		host := min(r/2, 1)
		c.begin(x.Command(t.Context(), host, self), r, "ENGINE_TEST_BIND="+x.Hosts[host].Addr)
	}
	for r := range 5 {
		c.expect(r, "joined")
	}
	if out, err := x.Command(t.Context(), 0, "ip", "link", "set", "eth0", "down").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for r := range 2 {
		if line := c.line(r); !strings.Contains(line, "can agree") {
			t.Errorf("rank %d that was cut off says %q", r, line)
		}
	}
	c.finish(3, 0, 1)
}
