package hardware

import (
	"fmt"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// ibGen is a generation of InfiniBand: what tools print for a lane, and the share
// of it that is data after line coding.
type ibGen struct {
	Name    string    `csv:"name"`
	Lane    float64   `csv:"lane_Gbps"`
	Data    share     `csv:"data_share"`
	Latency unit.Time `csv:"latency_us,optional"` // of an adapter; 0 not published
	Coding  string    `csv:"coding,optional"`
	Source  string    `csv:"source"`
	Note    string    `csv:"note,optional"`
}

var ibGens = sync.OnceValue(func() []ibGen { return load[ibGen]("infiniband") })

// data is what a lane carries, in Gb/s.
func (g ibGen) data() float64 { return g.Lane * g.Data.num / g.Data.den }

func ibByName(gen string) (ibGen, bool) {
	for _, g := range ibGens() {
		if strings.EqualFold(g.Name, strings.TrimSpace(gen)) {
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
	return unit.Rate(g.data()*float64(lanes)) * unit.Gbps
}

// infiniBandNominal is the rate that tools print for it (4xQDR: 40 Gb/s). From
// EDR on it equals InfiniBandRate.
func infiniBandNominal(gen string, lanes int) unit.Rate {
	g, ok := ibByName(gen)
	if !ok || !ibWidth(lanes) {
		return 0
	}
	return unit.Rate(g.Lane*float64(lanes)) * unit.Gbps
}

func ibWidth(lanes int) bool {
	return lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 12
}

// latencyFact is the published adapter latency, or the newest published one for
// a generation that has none.
func (g ibGen) latencyFact() cluster.Fact[unit.Time] {
	if g.Latency > 0 {
		return cluster.FromSpec(g.Latency, g.Source+", latency")
	}
	return cluster.FromAssumed(unit.Micros(0.6), "not published for "+g.Name+"; taken as HDR's 0.6 µs")
}

func infinibandRows() []Interconnect {
	var rows []Interconnect
	for _, g := range ibGens() {
		for _, lanes := range []int{1, 2, 4, 8, 12} {
			data, nominal := InfiniBandRate(g.Name, lanes), infiniBandNominal(g.Name, lanes)
			r := Interconnect{
				Name: fmt.Sprintf("InfiniBand %dx%s", lanes, g.Name), Family: "infiniband", Scope: "port",
				Lane: data / unit.Rate(lanes), Lanes: lanes, OneWay: data, Duplex: 2 * data, Quoted: OneDirection, Source: g.Source,
			}
			if g.Latency > 0 {
				r.Latency = g.latencyFact()
			} else {
				r.Note = "latency not published"
			}
			if nominal != data {
				r.Nominal = nominal
				r.Note = joinNotes(r.Note, fmt.Sprintf("%s signalling at %s, %s", g.Name, nominal.Bits(), g.Coding))
			}
			switch {
			case g.Note != "":
				r.Note = joinNotes(r.Note, g.Note)
			case lanes == 8 || lanes == 12:
				r.Note = joinNotes(r.Note, "lane arithmetic; ports on sale are 4x, or 2x by splitting")
			}
			rows = append(rows, r)
		}
	}
	return rows
}
