package board

import (
	"math"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/num"
	"busbar.dev/unit"
)

// Wire is what one end of a PCIe link says about it; zeros are unknown.
type Wire struct {
	Lanes, MaxLanes int
	GTs, MaxGTs     float64
	Rate            unit.Rate // one direction as trained, where the source gives that
}

// With joins the words of both ends, or of two links one behind the other: the
// smaller of what is known.
func (w Wire) With(o Wire) Wire {
	return Wire{
		Lanes:    least(w.Lanes, o.Lanes),
		MaxLanes: least(w.MaxLanes, o.MaxLanes),
		GTs:      least(w.GTs, o.GTs),
		MaxGTs:   least(w.MaxGTs, o.MaxGTs),
		Rate:     least(w.Rate, o.Rate),
	}
}

func least[T int | float64 | unit.Rate](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// resting reports whether a GPU's link runs at the speed of the first or second
// PCIe generation. GPUs let their links fall to that while they have nothing to
// do, so such a figure says nothing about traffic. Those generations encode 8
// bits in 10: their speeds are whole multiples of 0.25 GB/s up to 8, which no
// later generation's is.
func (w Wire) resting() bool {
	quarters := w.Rate.GBps() * 4
	return w.Rate > 0 && quarters <= 32 && math.Abs(quarters-math.Round(quarters)) < 1e-4
}

// link makes the PCIe link between a parent and a child.
func (w Wire) link(parent, child int, source string) cluster.Link {
	return cluster.Link{
		A: parent, B: child, Kind: cluster.PCIe, Rate: Fact(w.Rate, source),
		Lanes: w.Lanes, MaxLanes: w.MaxLanes, GTs: w.GTs, MaxGTs: w.MaxGTs,
	}
}

// ParseGTs reads "16.0 GT/s PCIe" or "8 GT/s"; anything else, such as the
// kernel's "Unknown speed", is 0.
func ParseGTs(s string) float64 {
	num, unit, ok := strings.Cut(strings.TrimSpace(s), " ")
	if !ok || !strings.HasPrefix(unit, "GT/s") {
		return 0
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !(v > 0 && v <= 1024) {
		return 0
	}
	return v
}

// ParseLanes reads a link width. 0 (link down) and 255 (an answer of all ones,
// from a device that is not there) are unknown.
func ParseLanes(s string) int {
	return num.Or(s, 1, 32, 0)
}
