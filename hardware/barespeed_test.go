package hardware

import (
	"strings"
	"testing"
)

// A speed without its network is refused with what may be meant.
func TestBareSpeed(t *testing.T) {
	for _, s := range []string{"25", "25G", "25 gbit"} {
		if p, err := ParsePortSpeed(s); err == nil ||
			!strings.Contains(err.Error(), "did you mean 25GbE (Ethernet) or 25Gb/s?") {
			t.Errorf("%s: %v, %v", s, p, err)
		}
	}
}
