package clusterfile

import (
	"busbar.dev/cluster"
)

// file is the YAML form. Types are keyed by name.
type file struct {
	Version     int                      `yaml:"version,omitempty"`
	Name        string                   `yaml:"name,omitempty"`
	Types       map[string]*typeForm     `yaml:"types,omitempty"`
	Nodes       []nodesForm              `yaml:"nodes"`
	Unavailable []cluster.UnavailableDoc `yaml:"unavailable,omitempty"`
	Network     networkForm              `yaml:"network,omitempty"`
	cluster.Records
}

// nodesForm is a run of hosts, by name or by number.
type nodesForm struct {
	cluster.NodesDoc
	Count int `yaml:"count,omitempty"` // without hosts: node0…
}

// typeForm is a node type: a preset, a short description, or devices and links.
type typeForm struct {
	Preset string `yaml:"preset,omitempty"`

	GPUs          string `yaml:"gpus,omitempty"`    // "8 x H100"
	NVLink        string `yaml:"nvlink,omitempty"`  // switch, mesh, pairs, none
	NICs          string `yaml:"nics,omitempty"`    // "8 x 400Gb/s infiniband"
	Sockets       int    `yaml:"sockets,omitempty"` // default 2
	CoresPer      int    `yaml:"cores_per_socket,omitempty"`
	GPUsPerSwitch int    `yaml:"gpus_per_switch,omitempty"` // PCIe switches; default: beside NICs
	MTU           int    `yaml:"mtu,omitempty"`

	Trays   int                 `yaml:"trays,omitempty"`
	Tree    cluster.Origin      `yaml:"tree_from,omitempty"`
	Devices []cluster.DeviceDoc `yaml:"devices,omitempty"`
	Links   []cluster.LinkDoc   `yaml:"links,omitempty"`
	Pairs   []cluster.PairDoc   `yaml:"pairs,omitempty"`
}

// networkForm is the network: described in a few words, or switch by switch.
type networkForm struct {
	cluster.NetworkDoc
	Speed        string `yaml:"speed,omitempty"` // NDR, 400Gb/s, 100GbE; default: the NICs'
	NodesPerLeaf int    `yaml:"nodes_per_leaf,omitempty"`
}

// short reports whether the network is described rather than listed.
func (n *networkForm) short() bool {
	return len(n.Switches) == 0 && len(n.Links) == 0 &&
		(n.Speed != "" || n.NodesPerLeaf != 0 || n.Rails != 0 || n.Topology != "" || n.Oversubscription.Known() ||
			n.Kind != "")
}
