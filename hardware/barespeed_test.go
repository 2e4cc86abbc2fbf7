package hardware

import (
	"strings"
	"testing"
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
