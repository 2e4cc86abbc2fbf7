package hardware

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// ibGen is a generation of InfiniBand: what a lane is said to do, and what it
// carries after line coding.
type ibGen struct {
	name          string
	nominal, data float64 // Gb/s a lane
	latency       float64 // µs, adapter; 0 not published
	coding        string
	source        string
}

const docIBTA = "InfiniBand Trade Association roadmap, 2021"

func ibGens() []ibGen {
	const wiki = "Wikipedia, InfiniBand, table of performance, 2024"
	return []ibGen{
		{"SDR", 2.5, 2, 5, "8b/10b", wiki},
		{"DDR", 5, 4, 2.5, "8b/10b", wiki},
		{"QDR", 10, 8, 1.3, "8b/10b", wiki},
		{"FDR10", 10.3125, 10, 0.7, "64b/66b", wiki},
		{"FDR", 14.0625, 14.0625 * 64 / 66, 0.7, "64b/66b", wiki},
		{"EDR", 25, 25, 0.5, "64b/66b", docNetworking + ", table InfiniBand"},
		{"HDR", 50, 50, 0.6, "PAM4 with error correction", docNetworking + ", table InfiniBand"},
		{"NDR", 100, 100, 0, "PAM4 with error correction", docNetworking + ", table InfiniBand; " + docIBTA},
		{"XDR", 200, 200, 0, "PAM4 with error correction", docNetworking + ", table InfiniBand; " + docIBTA},
		{"GDR", 400, 400, 0, "", docNetworking + ", table InfiniBand; " + docIBTA},
	}
}

func ibByName(gen string) (ibGen, bool) {
	for _, g := range ibGens() {
		if strings.EqualFold(g.name, strings.TrimSpace(gen)) {
			return g, true
		}
	}
	return ibGen{}, false
}

// InfiniBandRate is what lanes of a generation carry in one direction, line
// coding taken off (4xQDR: 32 Gb/s); 0 for an unknown generation or width.
func InfiniBandRate(gen string, lanes int) unit.Rate {
	g, ok := ibByName(gen)
	if !ok || !ibWidth(lanes) {
		return 0
	}
	return unit.Rate(g.data*float64(lanes)) * unit.Gbps
}

// InfiniBandNominal is the rate that tools print for it (4xQDR: 40 Gb/s). From
// EDR on it equals InfiniBandRate.
func InfiniBandNominal(gen string, lanes int) unit.Rate {
	g, ok := ibByName(gen)
	if !ok || !ibWidth(lanes) {
		return 0
	}
	return unit.Rate(g.nominal*float64(lanes)) * unit.Gbps
}

func ibWidth(lanes int) bool {
	return lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 12
}

// latencyFact is the published adapter latency, or the newest published one for
// a generation that has none.
func (g ibGen) latencyFact() cluster.Fact[unit.Time] {
	if g.latency > 0 {
		return cluster.FromSpec(unit.Micros(g.latency), g.source+", latency")
	}
	return cluster.FromAssumed(unit.Micros(0.6), "not published for "+g.name+"; taken as HDR's 0.6 µs")
}

func infinibandRows() []Interconnect {
	var rows []Interconnect
	for _, g := range ibGens() {
		for _, lanes := range []int{1, 2, 4, 8, 12} {
			data, nominal := InfiniBandRate(g.name, lanes), InfiniBandNominal(g.name, lanes)
			r := Interconnect{
				Name: fmt.Sprintf("InfiniBand %dx%s", lanes, g.name), Family: "infiniband", Scope: "port",
				Lane: data / unit.Rate(lanes), Lanes: lanes, OneWay: data, Duplex: 2 * data, Quoted: OneDirection, Source: g.source,
			}
			if g.latency > 0 {
				r.Latency = g.latencyFact()
			} else {
				r.Note = "latency not published"
			}
			if nominal != data {
				r.Nominal = nominal
				r.Note = joinNotes(r.Note, fmt.Sprintf("%s signalling at %s, %s", g.name, nominal.Bits(), g.coding))
			}
			switch {
			case g.name == "GDR":
				r.Note = joinNotes(r.Note, "roadmap, no product")
			case lanes == 8 || lanes == 12:
				r.Note = joinNotes(r.Note, "lane arithmetic; ports on sale are 4x, or 2x by splitting")
			}
			rows = append(rows, r)
		}
	}
	return rows
}
