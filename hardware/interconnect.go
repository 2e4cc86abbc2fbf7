package hardware

import (
	"slices"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Quoted says which of its two figures a maker advertises.
type Quoted string

// The two ways to quote a rate.
const (
	OneDirection Quoted = "one direction"
	BothWays     Quoted = "duplex"
)

// Interconnect is one row of the catalogue of links and networks.
type Interconnect struct {
	Name   string `json:"name"`
	Family string `json:"family"` // pcie, nvlink, nvswitch, xgmi, gaudi, c2c, infiniband, efa, slingshot, omni-path, tcpx, ethernet, smp
	// Scope is what the figures count: a lane, a link, all links of a GPU, a port,
	// a node, a pair of sockets.
	Scope string `json:"scope"`
	// Lane is one direction of one lane (PCIe, InfiniBand), Link of one link of
	// Lanes lanes (NVLink); Links is how many are bonded. Zero where it makes no sense.
	Lane  unit.Rate `json:"lane_GBps,omitempty"`
	Lanes int       `json:"lanes,omitempty"`
	Link  unit.Rate `json:"link_GBps,omitempty"`
	Links int       `json:"links,omitempty"`
	// OneWay is usable one direction, Duplex the sum of both.
	OneWay unit.Rate `json:"one_direction_GBps"`
	Duplex unit.Rate `json:"duplex_GBps"`
	// Nominal is the one-direction figure that tools print where line coding makes
	// it differ from OneWay: QDR says 40 Gb/s and carries 32.
	Nominal unit.Rate               `json:"nominal_GBps,omitempty"`
	Quoted  Quoted                  `json:"maker_quotes"`
	Latency cluster.Fact[unit.Time] `json:"latency_us,omitzero"`
	Source  string                  `json:"source"`
	Note    string                  `json:"note,omitempty"`
}

// Documents cited in more than one table.
const (
	docNetworking = "S. Bekman, Machine Learning Engineering: Inter-node and Intra-node Networking Hardware, 2024-02-20"
	docNetwork26  = "S. Bekman, Machine Learning Engineering: network chapter, 2026-08"
	docNCCL       = "NVIDIA NCCL 2.8–2.30, src/graph/topo.h"
)

// Interconnects lists the whole catalogue of links and networks: inside a node
// first, then between nodes.
func Interconnects() []Interconnect {
	return slices.Concat(
		pcieRows(), nvlinkRows(), nvswitchRows(), otherGPURows(), smpRows(),
		infinibandRows(), cloudRows(), ethernetRows(),
	)
}

// interconnectTable is the catalogue by lower-case name, built once and never
// changed.
var interconnectTable = sync.OnceValue(func() map[string]Interconnect {
	table := make(map[string]Interconnect)
	for _, r := range Interconnects() {
		table[strings.ToLower(r.Name)] = r
	}
	return table
})

// InterconnectByName finds a row by its name, whatever the case.
func InterconnectByName(name string) (Interconnect, bool) {
	r, ok := interconnectTable()[strings.ToLower(name)]
	return r, ok
}
