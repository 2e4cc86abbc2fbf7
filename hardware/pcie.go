package hardware

import (
	"fmt"

	"busbar.dev/unit"
)

// pcieGen is a generation of PCI Express: transfers per second and lane, and the
// share of them that carries data.
type pcieGen struct {
	gen      int
	gts      float64
	coding   string
	num, den float64
	source   string
}

// From 8 GT/s on, 128 of 130 bits are data. From 64 GT/s on, data travels in
// flits of 256 bytes of which 242 remain after error correction and checksum.
func pcieGens() []pcieGen {
	return []pcieGen{
		{1, 2.5, "8b/10b", 8, 10, "PCI Express Base Specification 1.0a, 2003"},
		{2, 5, "8b/10b", 8, 10, "PCI Express Base Specification 2.0, 2006"},
		{3, 8, "128b/130b", 128, 130, "PCI Express Base Specification 3.0, 2010"},
		{4, 16, "128b/130b", 128, 130, "PCI Express Base Specification 4.0, 2017"},
		{5, 32, "128b/130b", 128, 130, "PCI Express Base Specification 5.0, 2019"},
		{6, 64, "242B/256B flit", 242, 256, "PCI Express Base Specification 6.0, 2022"},
		{7, 128, "242B/256B flit", 242, 256, "PCI Express Base Specification 7.0, 2025"},
	}
}

func (g pcieGen) lane() unit.Rate { return unit.Rate(g.gts * 1e9 * g.num / g.den / 8) }

// pcieBySpeed finds the generation that runs at gts, within rounding of what
// tools print (8, 8.0, 7.99).
func pcieBySpeed(gts float64) (pcieGen, bool) {
	for _, g := range pcieGens() {
		if gts > g.gts*0.98 && gts < g.gts*1.02 {
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
		if g.gen == gen {
			return g.gts
		}
	}
	return 0
}

func pcieRows() []Interconnect {
	note := map[int]string{
		4: "the cited table rounds to 31 and 62 GB/s; its cross-comparison lists 62 as one direction, which is the duplex figure",
		5: "the cited table rounds to 63 and 126 GB/s; its cross-comparison lists 126 as one direction, which is the duplex figure",
		6: "the cited table prints 241 GB/s duplex, twice 121 is 242",
	}
	var rows []Interconnect
	for _, g := range pcieGens() {
		if g.gen < 3 {
			continue
		}
		src := g.source
		if g.gen >= 4 {
			src += "; " + docNetworking + ", table PCIe"
		}
		for _, lanes := range []int{1, 16} {
			rate := PCIeRate(g.gts, lanes)
			rows = append(rows, Interconnect{
				Name: fmt.Sprintf("PCIe %d x%d", g.gen, lanes), Family: "pcie", Scope: "slot",
				Lane: g.lane(), Lanes: lanes, OneWay: rate, Duplex: 2 * rate, Quoted: BothWays,
				Source: src, Note: joinNotes(fmt.Sprintf("%g GT/s a lane, %s", g.gts, g.coding), note[g.gen]),
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
