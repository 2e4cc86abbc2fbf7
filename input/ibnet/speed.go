package ibnet

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// speed is a lane's signalling generation.
type speed uint8

const (
	noSpeed speed = iota
	sdr
	ddr
	qdr
	fdr10
	fdr
	edr
	hdr
	ndr
	xdr
)

// lane is what one lane carries, after 8b/10b (to QDR) or 64b/66b encoding. Source: InfiniBand
// Architecture Specification volume 1, PortInfo LinkSpeedActive and
// LinkSpeedExtActive; HDR and later are quoted by their net rate.
var lane = [...]struct {
	name string
	gbps float64
}{
	sdr: {"SDR", 2}, ddr: {"DDR", 4}, qdr: {"QDR", 8}, fdr10: {"FDR10", 10}, fdr: {"FDR", 13.64}, edr: {"EDR", 25},
	hdr: {"HDR", 50}, ndr: {"NDR", 100}, xdr: {"XDR", 200},
}

// speeds are what the tools call a lane's speed: its name; iblinkinfo the signalling rate in Gb/s; ibdiagnet a rounded
// one. Source of the last: ibutils, ibdm/datamodel/Fabric.h, IBLinkSpeed.
var speeds = map[string]speed{
	"SDR": sdr, "DDR": ddr, "QDR": qdr, "FDR10": fdr10, "FDR": fdr, "EDR": edr, "HDR": hdr, "NDR": ndr, "XDR": xdr,
	"2.5": sdr, "5.0": ddr, "10.0": qdr, "10.3125": fdr10, "14.0625": fdr, "25.78125": edr, "53.125": hdr, "106.25": ndr,
	"212.5": xdr, "5": ddr, "10": qdr, "14": fdr, "25": edr, "50": hdr, "100": ndr, "200": xdr,
}

// width is a number of lanes and their speed; zero parts are unknown.
type width struct {
	lanes uint8
	speed speed
}

func (w width) known() bool { return w.lanes > 0 && w.speed != noSpeed }

func (w width) rate() unit.Rate {
	return unit.Rate(float64(w.lanes)*lane[w.speed].gbps) * unit.Gbps
}

// String is "4xHDR", or "" when a part is unknown.
func (w width) String() string {
	if !w.known() {
		return ""
	}
	return fmt.Sprintf("%dx%s", w.lanes, lane[w.speed].name)
}

func (w width) fact(source string) cluster.Fact[unit.Rate] { return board.Fact(w.rate(), source) }

// slower reports whether w carries less than v, both known.
func (w width) slower(v width) bool {
	return w.known() && v.known() && w.rate() < v.rate()
}

// or is what two ends of a cable say together: the slower, where one knows more
// the better known.
func (w width) or(v width) width {
	if v.slower(w) || !w.known() && (v.known() || w.lanes == 0) {
		return v
	}
	return w
}

// parseWidth reads "4xHDR", "4x53.125", or "4x" and "4X" alone. Unknown
// parts ("4x???") stay zero.
func parseWidth(s string) (width, bool) {
	x := strings.IndexAny(s, "xX")
	if x < 1 {
		return width{}, false
	}
	n, err := strconv.Atoi(s[:x])
	if err != nil || n < 1 || n > 12 {
		return width{}, false
	}
	return width{uint8(n), speeds[s[x+1:]]}, true
}
