package cluster

import "busbar.dev/unit"

// Document is the written form of a cluster, in JSON and in YAML: devices and
// hosts by name instead of by index, hosts as hostlists. Field names carry the
// unit in JSON (rate_GBps: 50); in YAML the value does (rate: 50GB/s). Both carry
// the version; fields are only ever added. docs/format/cluster.md describes it.
type Document struct {
	Version     int              `json:"version" yaml:"version"`
	Name        string           `json:"name,omitempty" yaml:"name,omitempty"`
	Types       []TypeDoc        `json:"types" yaml:"types"`
	Nodes       []NodesDoc       `json:"nodes" yaml:"nodes"`
	Unavailable []UnavailableDoc `json:"unavailable,omitempty" yaml:"unavailable,omitempty"`
	Network     NetworkDoc       `json:"network,omitzero" yaml:"network,omitempty"`
	Records
}

// Records are what a document has beside types, hosts and the network.
type Records struct {
	Identities  []HostIdentityDoc `json:"identities,omitempty" yaml:"identities,omitempty"`
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
	Hosts string `json:"hosts" yaml:"hosts"` // hostlist
	Out
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

// LinkDoc is a Link between devices by name.
type LinkDoc struct {
	A string `json:"a" yaml:"a"`
	B string `json:"b" yaml:"b"`
	Link
}

// PairDoc is a Pair of devices by name.
type PairDoc struct {
	From string `json:"from" yaml:"from"`
	To   string `json:"to" yaml:"to"`
	Pair
}

// NetworkDoc is a Network whose links are between switches and hosts by name.
type NetworkDoc struct {
	Network
	Scheduler []SchedulerSwitchDoc `json:"scheduler,omitempty" yaml:"scheduler,omitempty"`
	Switches  []SwitchDoc          `json:"switches,omitempty" yaml:"switches,omitempty"`
	Links     []NetLinkDoc         `json:"links,omitempty" yaml:"links,omitempty"`
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
	Latency   Fact[unit.Time] `json:"latency_s,omitzero" yaml:"latency,omitempty"`
	Reduction Tri             `json:"reduction,omitempty" yaml:"reduction,omitempty"`
	Domain    bool            `json:"domain,omitempty" yaml:"domain,omitempty"`
	LID       int             `json:"lid,omitempty" yaml:"lid,omitempty"`
}

// NetLinkDoc is a NetLink between switches and hosts by name.
type NetLinkDoc struct {
	A EndDoc `json:"a" yaml:"a"`
	B EndDoc `json:"b" yaml:"b"`
	NetLink
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
	Host string `json:"host" yaml:"host"`
	Identity
}
