package step_test

import (
	"strings"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/step"
)

// TestVary checks that every key changes the cluster in all its spellings, and that what cannot be set says what can.
func TestVary(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 2)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		gbps  float64
		count int
	}{
		"nic=100G": {100, 8}, "nic=100GbE": {100, 8}, "network.gbps=100": {100, 8}, "nics=2": {400, 2},
		"nics_per_node=2,nic=HDR": {200, 2},
	} {
		n, err := step.Vary(c, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if rate, count := step.NodePorts(n.TypeOf(0)); rate.Gbps() != want.gbps || count != want.count {
			t.Errorf("%s: %d ports of %g Gb/s; want %d of %g", text, count, rate.Gbps(), want.count, want.gbps)
		}
	}
	for text, want := range map[string]string{
		"nic=fast": "such as nic=400G", "gdr=on": "already", "gdr=maybe": "expected gdr=on", "color=red": "cannot be set",
	} {
		if _, err := step.Vary(c, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
}
