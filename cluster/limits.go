package cluster

import "fmt"

// Bounds of what readers take. What is asked of a node is asked for every pair of
// its GPUs and NICs, and a switch costs as much as a host while a line of text can
// name a million of them.
const (
	MaxEnds     = 1024    // GPUs and NICs of one node, together
	MaxSwitches = 1 << 17 // of one source

	maxLanes = 1024 // of a link; PCIe has 32, an NVSwitch's share of NVLinks 18
	maxGTs   = 1024 // a lane; PCIe 7 has 128
)

// checkWidth refuses lanes and transfer rates that no link has.
func (l *Link) checkWidth() error {
	for _, v := range []struct {
		what  string
		value float64
		most  float64
	}{
		{"lanes", float64(l.Lanes), maxLanes},
		{"max_lanes", float64(l.MaxLanes), maxLanes},
		{"gts", l.GTs, maxGTs},
		{"max_gts", l.MaxGTs, maxGTs},
	} {
		if !(v.value >= 0 && v.value <= v.most) {
			return fmt.Errorf("%s: %g; expected more than zero and at most %g, or nothing when unknown", v.what, v.value, v.most)
		}
	}
	return nil
}

// CheckSize reports what a fragment has more of than can be handled.
func (f *Fragment) CheckSize() error { return (*Budget)(nil).Keep(f) }
