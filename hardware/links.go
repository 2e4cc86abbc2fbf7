package hardware

import (
	"fmt"
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
	Name   string `json:"name" csv:"name"`
	Family string `json:"family" csv:"family"` // pcie, nvlink, nvswitch, xgmi, gaudi, c2c, infiniband, efa, slingshot, omni-path, tcpx, ethernet, smp
	// Scope is what the figures count: a lane, a link, all links of a GPU, a port,
	// a node, a pair of sockets.
	Scope string `json:"scope" csv:"scope"`
	// Lane is one direction of one lane (PCIe, InfiniBand), Link of one link of
	// Lanes lanes (NVLink); Links is how many are bonded. Zero where it makes no sense.
	Lane  unit.Rate `json:"lane_GBps,omitempty" csv:"lane,optional"`
	Lanes int       `json:"lanes,omitempty" csv:"lanes,optional"`
	Link  unit.Rate `json:"link_GBps,omitempty" csv:"link,optional"`
	Links int       `json:"links,omitempty" csv:"links,optional"`
	// OneWay is usable one direction, Duplex the sum of both.
	OneWay unit.Rate `json:"one_direction_GBps" csv:"port,optional"`
	Duplex unit.Rate `json:"duplex_GBps"`
	// Nominal is the one-direction figure that tools print where line coding makes
	// it differ from OneWay: QDR says 40 Gb/s and carries 32.
	Nominal unit.Rate               `json:"nominal_GBps,omitempty"`
	Quoted  Quoted                  `json:"maker_quotes" csv:"quoted"`
	Latency cluster.Fact[unit.Time] `json:"latency_s,omitzero"`
	Source  string                  `json:"source" csv:"source"`
	Note    string                  `json:"note,omitempty" csv:"note,optional"`
}

// linkRow is a row of links.csv or networks.csv.
type linkRow struct {
	Interconnect
	Chips  []string       `csv:"chips,optional"`  // architectures with such links: sm60-69, gfx90a
	Origin cluster.Origin `csv:"origin,optional"` // of the number of links
}

var (
	nodeLinks = sync.OnceValue(func() []linkRow { return loadLinks("links") })
	networks  = sync.OnceValue(func() []linkRow { return loadLinks("networks") })
)

func loadLinks(table string) []linkRow {
	rows := load[linkRow](table)
	for i := range rows {
		r := &rows[i]
		if r.Link > 0 {
			r.OneWay = r.Link * unit.Rate(r.Links)
		}
		r.Duplex = 2 * r.OneWay
	}
	return rows
}

// Interconnects lists the whole catalogue of links and networks: inside a node
// first, then between nodes.
func Interconnects() []Interconnect {
	list := pcieRows()
	for _, r := range nodeLinks() {
		list = append(list, r.Interconnect)
	}
	list = append(list, infinibandRows()...)
	for _, r := range networks() {
		list = append(list, r.Interconnect)
	}
	return list
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

// nodeLink is the row of links.csv of that name; zero where there is none.
func nodeLink(name string) linkRow {
	rows := nodeLinks()
	if i := slices.IndexFunc(rows, func(r linkRow) bool { return r.Name == name }); i >= 0 {
		return rows[i]
	}
	return linkRow{}
}

// NVLinkRate is one direction of one NVLink of a generation, 0 for an unknown one.
func NVLinkRate(gen int) unit.Rate { return nodeLink(fmt.Sprintf("NVLink %d", gen)).Link }

// bridgeRow is the NVLink bridge that joins two cards of compute capability 8.6.
const bridgeRow = "NVLink 3 bridge"

// ChipLink is the catalogue's row of the links between GPUs of an architecture (sm90, gfx942); zero where the chip has
// none.
func ChipLink(chip string) Interconnect {
	for _, r := range nodeLinks() {
		if slices.ContainsFunc(r.Chips, func(pattern string) bool { return isChip(pattern, chip) }) {
			return r.Interconnect
		}
	}
	return Interconnect{}
}

// isChip reports whether a pattern such as gfx90a or sm60-69 stands for a chip.
func isChip(pattern, chip string) bool {
	var from, to, sm int
	if n, _ := fmt.Sscanf(pattern, "sm%d-%d", &from, &to); n == 2 {
		n, _ = fmt.Sscanf(chip, "sm%d", &sm)
		return n == 1 && sm >= from && sm <= to
	}
	return pattern == chip
}

// latencyRow is a row of latencies.csv.
type latencyRow struct {
	Kind   string    `csv:"kind"`
	Of     string    `csv:"of"` // link, inside a node, or adapter
	Time   unit.Time `csv:"latency_ns"`
	Source string    `csv:"source"`
}

var latencyTable = sync.OnceValue(func() map[string]*latencyRow {
	return byName("latencies", func(r *latencyRow) string { return r.Kind })
})

func assumedLatency(kind, of string) (cluster.Fact[unit.Time], bool) {
	r := latencyTable()[kind]
	if r == nil || r.Of != of {
		return cluster.Fact[unit.Time]{}, false
	}
	return cluster.FromAssumed(r.Time, r.Source), true
}

// linkLatency is the time of one traversal of a link inside a node.
func linkLatency(k cluster.LinkKind) (cluster.Fact[unit.Time], bool) {
	return assumedLatency(k.String(), "link")
}

// adapterLatency is the time a network card of a family adds at one end.
func adapterLatency(kind cluster.NetKind, speed string) cluster.Fact[unit.Time] {
	if kind == cluster.InfiniBand {
		if p, err := ParsePortSpeed(speed); err == nil {
			if g, ok := ibByName(p.Gen); ok {
				return g.latencyFact()
			}
		}
	}
	f, _ := assumedLatency(string(kind), "adapter")
	return f
}
