package hardware

import (
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// A speed without its unit is refused with what may be meant; 25G is 25 Gb/s, as NICs are sold.
func TestBareSpeed(t *testing.T) {
	for _, s := range []string{"25", "25 gbit"} {
		if p, err := ParsePortSpeed(s); err == nil ||
			!strings.Contains(err.Error(), "did you mean 25GbE (Ethernet) or 25Gb/s?") {
			t.Errorf("%s: %v, %v", s, p, err)
		}
	}
	if p, err := ParsePortSpeed("25G"); err != nil || p.Rate.Gbps() != 25 {
		t.Errorf("25G: %v, %v", p, err)
	}
}

// TestCountedGPUs: a machine is also a number of GPUs before or behind their name, in a name that ends in a number too.
func TestCountedGPUs(t *testing.T) {
	for name, gpus := range map[string]int{
		"4xrtx4090": 4, "rtx4090x4": 4, "8xh100": 8, "h100x8": 8, "1xh200": 1, "rtx4090": 1, "4xa100": 4,
	} {
		c, err := Preset(name, 0)
		if err != nil || len(c.Hosts) != 1 || c.TypeOf(0).Count(cluster.GPU) != gpus {
			t.Errorf("%s: %v, %v; want one node with %d GPUs", name, c, err, gpus)
		}
	}
	if c, err := Preset("2x4xrtx4090", 0); err == nil {
		t.Errorf("2x4xrtx4090 is %v; want an error", c)
	}
}
