package hardware

import (
	"fmt"

	"busbar.dev/unit"
)

// nvlinkGen is a generation of NVLink on the GPU that carries it.
type nvlinkGen struct {
	gen    int
	lane   unit.Rate // one direction
	lanes  int       // per link
	links  int       // per GPU
	gpus   string
	source string
	note   string
}

func nvlinkGens() []nvlinkGen {
	const lanes = docNetwork26 + ", table NVLink"
	return []nvlinkGen{
		{1, 2.5 * unit.GBps, 8, 4, "P100", "NVIDIA Tesla P100 white paper, 2016, NVLink; " + lanes, ""},
		{
			2, 3.125 * unit.GBps, 8, 6, "V100", "NVIDIA Tesla V100 white paper, 2017, NVLink; " + docNetworking + ", table NVLink",
			"the 2024 table gives 4 lanes of 6.25 GB/s a link for NVLink 2, 3 and 4; the 2026 edition gives 8 of 3.125; both make 25 GB/s a link",
		},
		{3, 6.25 * unit.GBps, 4, 12, "A100", "NVIDIA A100 white paper, 2020, NVLink; " + docNetworking + ", table NVLink", ""},
		{
			4, 12.5 * unit.GBps, 2, 18, "H100, H200, GH200", "NVIDIA H100 white paper, 2022, NVLink; " + docNetworking + ", table NVLink",
			"the 2024 table gives 4 lanes of 6.25 GB/s a link, the 2026 edition 2 of 12.5; both make 25 GB/s a link",
		},
		{
			5, 25 * unit.GBps, 2, 18, "B200, B300, GB200, GB300", "NVIDIA Blackwell architecture brief, 2024, NVLink 5; Distributed communication for GPUs (part 1), 2025-09-09: 1.8 TB/s a GPU over 18 links",
			"",
		},
	}
}

// NVLinkRate is one direction of one NVLink of a generation, 0 for an unknown one.
func NVLinkRate(gen int) unit.Rate {
	for _, g := range nvlinkGens() {
		if g.gen == gen {
			return g.lane * unit.Rate(g.lanes)
		}
	}
	return 0
}

// bridgeLink is one direction of one link of the NVLink bridge that joins two
// cards of compute capability 8.6: four links make 112.5 GB/s duplex.
const bridgeLink = 14.0625 * unit.GBps

// nvlinkBySM is one direction of one link on a GPU of that compute capability,
// with the document that says so; 0 where the chip has no NVLink.
func nvlinkBySM(sm int) (unit.Rate, string) {
	gen := 0
	switch {
	case sm == 86:
		return bridgeLink, "NVIDIA GA102 white paper, 2020: four links, 112.5 GB/s duplex"
	case sm >= 60 && sm < 70:
		gen = 1
	case sm >= 70 && sm < 80:
		gen = 2
	case sm == 80:
		gen = 3
	case sm == 90:
		gen = 4
	case sm >= 100 && sm < 110:
		gen = 5
	}
	for _, g := range nvlinkGens() {
		if g.gen == gen {
			return NVLinkRate(gen), g.source
		}
	}
	return 0, ""
}

func nvlinkRows() []Interconnect {
	var rows []Interconnect
	for _, g := range nvlinkGens() {
		link := NVLinkRate(g.gen)
		rows = append(rows, Interconnect{
			Name: fmt.Sprintf("NVLink %d", g.gen), Family: "nvlink", Scope: "all links of a GPU",
			Lane: g.lane, Lanes: g.lanes, Link: link, Links: g.links,
			OneWay: link * unit.Rate(g.links), Duplex: 2 * link * unit.Rate(g.links), Quoted: BothWays,
			Source: g.source, Note: joinNotes(g.gpus, g.note),
		})
	}
	rows = append(rows, Interconnect{
		Name: "NVLink bridge (sm86)", Family: "nvlink", Scope: "two cards", Link: bridgeLink, Links: 4,
		OneWay: 4 * bridgeLink, Duplex: 8 * bridgeLink, Quoted: BothWays,
		Source: "NVIDIA GA102 white paper, 2020, table A6000 and RTX 3090", Note: "RTX A6000, A40, RTX 3090",
	})
	return rows
}

func nvswitchRows() []Interconnect {
	row := func(gen, nvlink, ports int, total float64, where, source, note string) Interconnect {
		link := NVLinkRate(nvlink)
		links := 0
		for _, g := range nvlinkGens() {
			if g.gen == nvlink {
				links = g.links
			}
		}
		one := link * unit.Rate(links)
		return Interconnect{
			Name: fmt.Sprintf("NVSwitch %d", gen), Family: "nvswitch", Scope: "one GPU behind the switch", Link: link, Links: links,
			OneWay: one, Duplex: 2 * one, Quoted: BothWays, Source: source,
			Note: joinNotes(fmt.Sprintf("%d ports a chip, %g GB/s duplex a chip; %s", ports, total, where), note),
		}
	}
	return []Interconnect{
		row(1, 2, 18, 900, "DGX-2, 12 chips for 16 GPUs", "NVIDIA NVSwitch technical overview, 2018", ""),
		row(2, 3, 36, 1800, "DGX A100, 6 chips, 12 links a GPU", "NVIDIA DGX A100 white paper, 2020; "+docNetworking+", section NVSwitch", ""),
		row(3, 4, 64, 3200, "DGX H100, 4 chips, 18 links a GPU", "NVIDIA Hot Chips 34, The NVLink-Network Switch, 2022; "+docNetworking+", section NVSwitch",
			"3.6 TB/s in the cited section is the bisection of the whole node, not what one GPU gets; in-switch reduction (SHARP) from this generation on"),
		row(4, 5, 72, 7200, "GB200 NVL72, 18 chips in 9 trays; HGX B200, 2 chips", "NVIDIA GB200 NVL72 data sheet, 2024", ""),
	}
}
