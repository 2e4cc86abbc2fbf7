package netns

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Hosts see each other by name, and nothing is left of them.
func TestHosts(t *testing.T) {
	x, err := New(3, "1gbit")
	if errors.Is(err, ErrNotHere) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range x.Hosts {
		out, err := x.Command(t.Context(), i, "sh", "-c",
			"hostname; getent hosts host2; ip -o -4 addr show dev eth0; tc qdisc show dev eth0").CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", h.Name, err, out)
		}
		for _, want := range []string{h.Name + "\n", "10.97.0.3", h.Addr + "/24", "rate 1Gbit"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: no %q in\n%s", h.Name, want, out)
			}
		}
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	for _, h := range x.Hosts {
		if _, err := os.Stat("/run/netns/" + h.space); err == nil {
			t.Errorf("%s is left", h.space)
		}
	}
}
