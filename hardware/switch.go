package hardware

import (
	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// SwitchModel is one row of the catalogue of network switches: how many ports a
// box has at its own speed and how long a packet takes through it.
type SwitchModel struct {
	Name      string                  `json:"name"`
	Kind      cluster.NetKind         `json:"kind"`
	Rate      unit.Rate               `json:"port_GBps"`
	Ports     int                     `json:"ports"`
	Latency   cluster.Fact[unit.Time] `json:"latency_us,omitzero"`
	Reduction cluster.Tri             `json:"reduction,omitempty"` // can reduce in the switch (SHARP)
	Source    string                  `json:"source"`
}

// Switches lists the network switches of the catalogue.
func Switches() []SwitchModel {
	spec := func(ns unit.Time, src string) cluster.Fact[unit.Time] {
		return cluster.FromSpec(ns*unit.Nanosecond, src)
	}
	guess := func(ns unit.Time, why string) cluster.Fact[unit.Time] {
		return cluster.FromAssumed(ns*unit.Nanosecond, why)
	}
	const (
		sx6036   = "Mellanox SX6036 product brief, 2012"
		sb7800   = "Mellanox SB7800 product brief, 2016"
		qm8700   = "NVIDIA Quantum QM8700 data sheet, 2020"
		qm9700   = "NVIDIA Quantum-2 QM9700 data sheet, 2021"
		q3400    = "NVIDIA Quantum-X800 Q3400 data sheet, 2024"
		rosetta  = "D. De Sensi et al., An in-depth analysis of the Slingshot interconnect, SC20"
		opa      = "Intel Omni-Path edge switch 100 series product brief, 2016"
		spectrum = "store and forward in some hundred ns; taken as 500"
		ib       = cluster.InfiniBand
		eth      = cluster.Ethernet
	)
	g := unit.Gbps
	yes, no := cluster.Yes, cluster.No
	return []SwitchModel{
		{"QDR 36-port", ib, 32 * g, 36, guess(170, "as FDR"), no, "Mellanox InfiniScale IV product brief, 2010"},
		{"SX6036", ib, 56 * g, 36, spec(170, sx6036), no, sx6036},
		{"SB7800", ib, 100 * g, 36, spec(90, sb7800), yes, sb7800},
		{"QM8700", ib, 200 * g, 40, spec(130, qm8700), yes, qm8700},
		{"QM9700", ib, 400 * g, 64, guess(200, "not published; a little above HDR's 130 ns"), yes, qm9700},
		{"Q3400", ib, 800 * g, 144, guess(200, "not published; taken as NDR's"), yes, q3400},
		{"Slingshot Rosetta", cluster.Slingshot, 200 * g, 64, spec(350, rosetta), no, rosetta},
		{"Omni-Path edge 48", cluster.OmniPath, 100 * g, 48, spec(110, opa), no, opa},
		{"Omni-Path CN5000 48", cluster.OmniPath, 400 * g, 48, guess(200, "not published"), no, "Cornelis CN5000 data sheet, 2025"},
		{"Ethernet 1G 48-port", eth, 1 * g, 48, guess(3000, spectrum), no, "usual access switch"},
		{"Ethernet 10G 48-port", eth, 10 * g, 48, guess(500, spectrum), no, "usual top-of-rack switch"},
		{"SN2410", eth, 25 * g, 48, spec(300, "NVIDIA SN2000 series data sheet, 2020"), no, "NVIDIA SN2000 series data sheet, 2020"},
		{"SN2700", eth, 100 * g, 32, spec(300, "NVIDIA SN2000 series data sheet, 2020"), no, "NVIDIA SN2000 series data sheet, 2020"},
		{"SN3700", eth, 200 * g, 32, spec(425, "NVIDIA SN3000 series data sheet, 2021"), no, "NVIDIA SN3000 series data sheet, 2021"},
		{"SN5400", eth, 400 * g, 64, guess(500, spectrum), no, "NVIDIA SN5000 series data sheet, 2024"},
		{"SN5600", eth, 800 * g, 64, guess(500, spectrum), no, "NVIDIA SN5000 series data sheet, 2024"},
	}
}

// defaultSwitch picks the box a described network is built from: the slowest one
// of the family whose ports are fast enough. EFA and TCPX publish nothing; they
// and RoCE count as Ethernet.
func defaultSwitch(kind cluster.NetKind, rate unit.Rate) (SwitchModel, bool) {
	family := kind
	switch kind {
	case cluster.EFA, cluster.TCPX, cluster.TCPXO, cluster.RoCE:
		family = cluster.Ethernet
	}
	var best SwitchModel
	for _, s := range Switches() {
		if s.Kind != family {
			continue
		}
		if best.Ports == 0 || best.Rate < rate*0.999 && s.Rate > best.Rate || s.Rate >= rate*0.999 && s.Rate < best.Rate {
			best = s
		}
	}
	return best, best.Ports > 0
}
