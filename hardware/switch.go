package hardware

import (
	"slices"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// SwitchModel is one row of the catalogue of network switches: how many ports a
// box has at its own speed and how long a packet takes through it.
type SwitchModel struct {
	Name      string                  `json:"name" csv:"name"`
	Kind      cluster.NetKind         `json:"kind" csv:"kind"`
	Rate      unit.Rate               `json:"port_GBps" csv:"port_Gbps"`
	Ports     int                     `json:"ports" csv:"ports"`
	Latency   cluster.Fact[unit.Time] `json:"latency_s,omitzero"`
	Reduction cluster.Tri             `json:"reduction,omitempty" csv:"reduction"` // can reduce in the switch (SHARP)
	Source    string                  `json:"source" csv:"source"`
}

// switchRow is a row of switches.csv: a latency has an origin and a source of its own.
type switchRow struct {
	SwitchModel
	Time   unit.Time      `csv:"latency_ns"`
	Origin cluster.Origin `csv:"latency_origin"`
	From   string         `csv:"latency_source"`
}

var switchTable = sync.OnceValue(func() []SwitchModel {
	var list []SwitchModel
	for _, r := range load[switchRow]("switches") {
		r.Latency = cluster.Fact[unit.Time]{Value: r.Time, Origin: r.Origin, Source: r.From}
		list = append(list, r.SwitchModel)
	}
	return list
})

// Switches lists the network switches of the catalogue.
func Switches() []SwitchModel { return slices.Clone(switchTable()) }

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
	for _, s := range switchTable() {
		if s.Kind != family {
			continue
		}
		if best.Ports == 0 || best.Rate < rate*0.999 && s.Rate > best.Rate || s.Rate >= rate*0.999 && s.Rate < best.Rate {
			best = s
		}
	}
	return best, best.Ports > 0
}
