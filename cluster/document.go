package cluster

import "busbar.dev/unit"

// Document is the written form of a cluster, in JSON and in YAML: devices and
// hosts by name instead of by index, hosts as hostlists. Field names carry the
// unit in JSON (rate_GBps: 50); in YAML the value does (rate: 50GB/s). Both carry
// the version; fields are only ever added. docs/format/cluster.md describes it.
type Document struct {
	Version     int               `json:"version" yaml:"version"`
	Name        string            `json:"name,omitempty" yaml:"name,omitempty"`
	Types       []TypeDoc         `json:"types" yaml:"types"`
	Nodes       []NodesDoc        `json:"nodes" yaml:"nodes"`
	Unavailable []UnavailableDoc  `json:"unavailable,omitempty" yaml:"unavailable,omitempty"`
	Network     NetworkDoc        `json:"network,omitzero" yaml:"network,omitempty"`
	Identities  []HostIdentityDoc `json:"identities,omitempty" yaml:"identities,omitempty"`
	Benches     []Bench           `json:"benches,omitempty" yaml:"benches,omitempty"`
	Calibration *Calibration      `json:"calibration,omitempty" yaml:"calibration,omitempty"`
	Sources     []string          `json:"sources,omitempty" yaml:"sources,omitempty"`
	Warnings    []Warning         `json:"warnings,omitempty" yaml:"warnings,omitempty"`
}

// NodesDoc is a run of hosts of one type.
type NodesDoc struct {
	Hosts string `json:"hosts" yaml:"hosts"` // hostlist: gpu[001-016]
	Type  string `json:"type,omitempty" yaml:"type,omitempty"`
}

// UnavailableDoc is hosts that a scheduler gave no jobs when its nodes were listed.
type UnavailableDoc struct {
	Hosts  string `json:"hosts" yaml:"hosts"` // hostlist
	State  string `json:"state" yaml:"state"` // drained, down, not responding
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
}

// TypeDoc is a NodeType.
type TypeDoc struct {
	Name    string      `json:"name" yaml:"name"`
	Preset  string      `json:"preset,omitempty" yaml:"preset,omitempty"`
	Trays   int         `json:"trays,omitempty" yaml:"trays,omitempty"`
	Tree    Origin      `json:"tree_from,omitempty" yaml:"tree_from,omitempty"`
	Devices []DeviceDoc `json:"devices" yaml:"devices"`
	Links   []LinkDoc   `json:"links,omitempty" yaml:"links,omitempty"`
	Pairs   []PairDoc   `json:"pairs,omitempty" yaml:"pairs,omitempty"`
	// Matrix is for readers of the document; it is computed, and ignored on input.
	Matrix *Matrix `json:"matrix,omitempty" yaml:"-"`
	// Nearest says which NICs each GPU uses and what it gets; computed as well.
	Nearest []NearDoc `json:"nearest,omitempty" yaml:"-"`
}

// NearDoc is a GPU's way to the network.
type NearDoc struct {
	GPU   string   `json:"gpu"`
	NICs  []string `json:"nics"`  // names; none when no path is known
	Class string   `json:"class"` // ? when no path is known
	// SharedBy is how many GPUs use these NICs, Share what each gets when all send.
	SharedBy int             `json:"shared_by,omitempty"`
	Share    Fact[unit.Rate] `json:"share_GBps,omitzero"`
}

// DeviceDoc is a Device.
type DeviceDoc struct {
	Kind   Kind         `json:"kind" yaml:"kind"`
	Name   string       `json:"name" yaml:"name"`
	Index  *int         `json:"index,omitempty" yaml:"index,omitempty"`
	Label  string       `json:"label,omitempty" yaml:"label,omitempty"`
	PCI    PCI          `json:"pci,omitempty" yaml:"pci,omitempty"`
	Parent string       `json:"parent,omitempty" yaml:"parent,omitempty"`
	Tray   int          `json:"tray,omitempty" yaml:"tray,omitempty"`
	Model  Fact[string] `json:"model,omitzero" yaml:"model,omitempty"`
	PCIID  *PCIID       `json:"pci_id,omitempty" yaml:"pci_id,omitempty"`
	CPU    *CPUInfo     `json:"cpu,omitempty" yaml:"cpu,omitempty"`
	GPU    *GPUInfo     `json:"gpu,omitempty" yaml:"gpu,omitempty"`
	NIC    *NICInfo     `json:"nic,omitempty" yaml:"nic,omitempty"`
}

// LinkDoc is a Link.
type LinkDoc struct {
	A        string          `json:"a" yaml:"a"`
	B        string          `json:"b" yaml:"b"`
	Kind     LinkKind        `json:"kind" yaml:"kind"`
	OneWay   bool            `json:"one_way,omitempty" yaml:"one_way,omitempty"`
	Lanes    int             `json:"lanes,omitempty" yaml:"lanes,omitempty"`
	MaxLanes int             `json:"max_lanes,omitempty" yaml:"max_lanes,omitempty"`
	GTs      float64         `json:"lane_GTps,omitempty" yaml:"gts,omitempty"`
	MaxGTs   float64         `json:"max_lane_GTps,omitempty" yaml:"max_gts,omitempty"`
	Rate     Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty"`
	Duplex   unit.Rate       `json:"duplex_GBps,omitempty" yaml:"duplex,omitempty"`
	Latency  Fact[unit.Time] `json:"latency_us,omitzero" yaml:"latency,omitempty"`
}

// PairDoc is a Pair.
type PairDoc struct {
	From    string          `json:"from" yaml:"from"`
	To      string          `json:"to" yaml:"to"`
	Rate    Fact[unit.Rate] `json:"rate_GBps,omitzero" yaml:"rate,omitempty"`
	Both    Fact[unit.Rate] `json:"both_ways_GBps,omitzero" yaml:"both_ways,omitempty"`
	Latency Fact[unit.Time] `json:"latency_us,omitzero" yaml:"latency,omitempty"`
	P2P     Tri             `json:"p2p,omitempty" yaml:"p2p,omitempty"`
	Why     string          `json:"why,omitempty" yaml:"why,omitempty"`
}

// NetworkDoc is a Network.
type NetworkDoc struct {
	Name       string  `json:"name,omitempty" yaml:"name,omitempty"`
	Kind       NetKind `json:"kind,omitempty" yaml:"kind,omitempty"`
	Rails      int     `json:"rails,omitempty" yaml:"rails,omitempty"`
	Topology   string  `json:"topology,omitempty" yaml:"topology,omitempty"`
	BlockSizes []int   `json:"block_sizes,omitempty" yaml:"block_sizes,omitempty"`
	// Scheduler are the switches of a scheduler's own topology, where the cables are known beside it.
	Scheduler        []SchedulerSwitchDoc `json:"scheduler,omitempty" yaml:"scheduler,omitempty"`
	Routing          string               `json:"routing,omitempty" yaml:"routing,omitempty"`
	Oversubscription Fact[float64]        `json:"oversubscription,omitzero" yaml:"oversubscription,omitempty"`
	Reduction        Tri                  `json:"reduction,omitempty" yaml:"reduction,omitempty"`
	Switches         []SwitchDoc          `json:"switches,omitempty" yaml:"switches,omitempty"`
	Links            []NetLinkDoc         `json:"links,omitempty" yaml:"links,omitempty"`
}

// SchedulerSwitchDoc is a SchedulerSwitch.
type SchedulerSwitchDoc struct {
	Name  string `json:"name" yaml:"name"`
	Up    string `json:"up,omitempty" yaml:"up,omitempty"`
	Hosts string `json:"hosts,omitempty" yaml:"hosts,omitempty"` // hostlist
}

// SwitchDoc is a Switch.
type SwitchDoc struct {
	Name      string          `json:"name" yaml:"name"`
	Label     string          `json:"label,omitempty" yaml:"label,omitempty"`
	GUID      string          `json:"guid,omitempty" yaml:"guid,omitempty"`
	Model     string          `json:"model,omitempty" yaml:"model,omitempty"`
	Tier      Tier            `json:"tier" yaml:"tier"`
	Rail      *int            `json:"rail,omitempty" yaml:"rail,omitempty"`
	Ports     int             `json:"ports,omitempty" yaml:"ports,omitempty"`
	Count     int             `json:"count,omitempty" yaml:"count,omitempty"`
	Latency   Fact[unit.Time] `json:"latency_us,omitzero" yaml:"latency,omitempty"`
	Reduction Tri             `json:"reduction,omitempty" yaml:"reduction,omitempty"`
	Domain    bool            `json:"domain,omitempty" yaml:"domain,omitempty"`
	LID       int             `json:"lid,omitempty" yaml:"lid,omitempty"`
}

// NetLinkDoc is a NetLink.
type NetLinkDoc struct {
	A        EndDoc            `json:"a" yaml:"a"`
	B        EndDoc            `json:"b" yaml:"b"`
	Count    int               `json:"count,omitempty" yaml:"count,omitempty"`
	Lanes    int               `json:"lanes,omitempty" yaml:"lanes,omitempty"`
	Speed    string            `json:"speed,omitempty" yaml:"speed,omitempty"`
	Rate     Fact[unit.Rate]   `json:"rate_GBps,omitzero" yaml:"rate,omitempty"`
	Max      Fact[unit.Rate]   `json:"max_GBps,omitzero" yaml:"max,omitempty"`
	Latency  Fact[unit.Time]   `json:"latency_us,omitzero" yaml:"latency,omitempty"`
	State    State             `json:"state,omitempty" yaml:"state,omitempty"`
	Counters map[string]uint64 `json:"counters,omitempty" yaml:"counters,omitempty"`
}

// EndDoc is an End: a switch, or hosts and the position of their NIC.
type EndDoc struct {
	Switch string `json:"switch,omitempty" yaml:"switch,omitempty"`
	Hosts  string `json:"hosts,omitempty" yaml:"hosts,omitempty"`
	NIC    *int   `json:"nic,omitempty" yaml:"nic,omitempty"`
	Port   int    `json:"port,omitempty" yaml:"port,omitempty"`
}

// HostIdentityDoc is an Identity with its host.
type HostIdentityDoc struct {
	Host     string            `json:"host" yaml:"host"`
	Device   string            `json:"device" yaml:"device"`
	UUID     string            `json:"uuid,omitempty" yaml:"uuid,omitempty"`
	Port     int               `json:"port,omitempty" yaml:"port,omitempty"`
	GUID     string            `json:"guid,omitempty" yaml:"guid,omitempty"`
	LID      int               `json:"lid,omitempty" yaml:"lid,omitempty"`
	Counters map[string]uint64 `json:"counters,omitempty" yaml:"counters,omitempty"`
}
