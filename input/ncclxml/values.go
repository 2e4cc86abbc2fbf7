package ncclxml

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
)

// upTo is an attribute that is a number from 1 to most; 0 for any other.
func upTo(most int, e *element, key string) int { return num.Or(e.Get(key), 1, most, 0) }

// devOf is the dev attribute, -1 when absent or no index.
func devOf(e *element) int { return num.Or(e.Get("dev"), 0, 1<<20-1, -1) }

// bits are how the format writes what may be unknown.
var bits = map[cluster.Tri]string{cluster.Yes: "1", cluster.No: "0"}

// tri reads 0 or 1; anything else is unknown.
func tri(s string) cluster.Tri {
	for t, bit := range bits {
		if s == bit {
			return t
		}
	}
	return cluster.Maybe
}

// hexText is a PCI id without 0x, empty when it is no number.
func hexText(s string) string {
	s = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "0x")
	if len(s) > 8 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

// speeds are the spellings of link_speed that NCCL knows, each a prefix of the
// value it finds; everything else it counts as 8 GT/s.
var speeds = strings.Split("2.5 GT/s,5 GT/s,8 GT/s,16 GT/s,32 GT/s,5.0 GT/s PCIe,8.0 GT/s PCIe,16.0 GT/s PCIe,32.0 "+
	"GT/s PCIe,"+
	"64.0 GT/s PCIe", ",")

// speed reads link_speed in GT/s, 0 when unknown, and warns where NCCL itself
// would misread it.
func (b *builder) speed(e *element) float64 {
	s := e.Get("link_speed")
	if s == "" || strings.HasPrefix(s, "Unknown") {
		return 0
	}
	v := board.ParseGTs(s)
	if v == 0 {
		b.f.Warnf(e.Line, e.Get("busid"), "link_speed %.60q; expected such as \"16.0 GT/s PCIe\": left unknown", s)
		return 0
	}
	if v != 8 && !slices.ContainsFunc(speeds, func(known string) bool { return strings.HasPrefix(s, known) }) {
		b.f.Warnf(e.Line, e.Get("busid"),
			"NCCL does not know link_speed %.60q and counts the link as 8 GT/s; write \"%.1f GT/s PCIe\"", s, v)
	}
	return v
}
