package hardware

import (
	"fmt"
	"sync"

	"busbar.dev/unit"
)

// pcieGen is a generation of PCI Express: transfers per second and lane, and the
// share of them that carries data.
type pcieGen struct {
	Gen    int     `csv:"generation"`
	GTs    float64 `csv:"GTps"`
	Coding string  `csv:"coding"`
	Data   share   `csv:"data_share"`
	Source string  `csv:"source"`
	Note   string  `csv:"note,optional"`
}

var pcieGens = sync.OnceValue(func() []pcieGen { return load[pcieGen]("pcie") })

func (g pcieGen) lane() unit.Rate { return unit.Rate(g.GTs * 1e9 * g.Data.num / g.Data.den / 8) }

// share is the part of what a link moves that is data: 128/130.
type share struct{ num, den float64 }

// UnmarshalText reads a fraction.
func (s *share) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%g/%g", &s.num, &s.den); n < 2 || err != nil || s.den <= 0 || s.num > s.den {
		return fmt.Errorf("%q; expected a share such as 128/130", text)
	}
	return nil
}

// pcieBySpeed finds the generation that runs at gts, within rounding of what
// tools print (8, 8.0, 7.99).
func pcieBySpeed(gts float64) (pcieGen, bool) {
	for _, g := range pcieGens() {
		if gts > g.GTs*0.98 && gts < g.GTs*1.02 {
			return g, true
		}
	}
	return pcieGen{}, false
}

// PCIeRate is the usable rate of a PCIe link in one direction, line coding taken
// off, packet headers not. It is 0 for a speed that no generation has.
func PCIeRate(gts float64, lanes int) unit.Rate {
	g, ok := pcieBySpeed(gts)
	if !ok || lanes <= 0 {
		return 0
	}
	return g.lane() * unit.Rate(lanes)
}

// PCIeSpeed is the transfer rate of a generation in GT/s per lane, 0 for an
// unknown one.
func PCIeSpeed(gen int) float64 {
	for _, g := range pcieGens() {
		if g.Gen == gen {
			return g.GTs
		}
	}
	return 0
}

func pcieRows() []Interconnect {
	var rows []Interconnect
	for _, g := range pcieGens() {
		if g.Gen < 3 {
			continue // known for links that idle or are old; no machine of interest has them
		}
		for _, lanes := range []int{1, 16} {
			rate := PCIeRate(g.GTs, lanes)
			rows = append(rows, Interconnect{
				Name: fmt.Sprintf("PCIe %d x%d", g.Gen, lanes), Family: "pcie", Scope: "slot",
				Lane: g.lane(), Lanes: lanes, OneWay: rate, Duplex: 2 * rate, Quoted: BothWays,
				Source: g.Source, Note: joinNotes(fmt.Sprintf("%g GT/s a lane, %s", g.GTs, g.Coding), g.Note),
			})
		}
	}
	return rows
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
