package clusterfile

import (
	"busbar.dev/cluster"
)

// file is the YAML form. Types are keyed by name.
type file struct {
	Version     int                       `yaml:"version,omitempty"`
	Name        string                    `yaml:"name,omitempty"`
	Types       map[string]*typeForm      `yaml:"types,omitempty"`
	Nodes       []nodesForm               `yaml:"nodes"`
	Unavailable []cluster.UnavailableDoc  `yaml:"unavailable,omitempty"`
	Network     networkForm               `yaml:"network,omitempty"`
	Identities  []cluster.HostIdentityDoc `yaml:"identities,omitempty"`
	Benches     []cluster.Bench           `yaml:"benches,omitempty"`
	Calibration *cluster.Calibration      `yaml:"calibration,omitempty"`
	Sources     []string                  `yaml:"sources,omitempty"`
	Warnings    []cluster.Warning         `yaml:"warnings,omitempty"`
}

// nodesForm is a run of hosts, by name or by number.
type nodesForm struct {
	Hosts string `yaml:"hosts,omitempty"` // hostlist
	Count int    `yaml:"count,omitempty"` // without hosts: node0…
	Type  string `yaml:"type,omitempty"`  // a name under types, or a preset
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
	Name             string                       `yaml:"name,omitempty"`
	Kind             cluster.NetKind              `yaml:"kind,omitempty"`
	Speed            string                       `yaml:"speed,omitempty"` // NDR, 400Gb/s, 100GbE; default: the NICs'
	Rails            int                          `yaml:"rails,omitempty"`
	NodesPerLeaf     int                          `yaml:"nodes_per_leaf,omitempty"`
	Topology         string                       `yaml:"topology,omitempty"`         // torus:4x4x4, hyperx:4x4, dragonfly:4, dragonfly+:4, rail-only, planes
	Routing          string                       `yaml:"routing,omitempty"`          // minimal, adaptive
	BlockSizes       []int                        `yaml:"block_sizes,omitempty"`      // of Slurm's topology/block
	Scheduler        []cluster.SchedulerSwitchDoc `yaml:"scheduler,omitempty"`        // switches of Slurm's topology.conf
	Oversubscription cluster.Fact[float64]        `yaml:"oversubscription,omitempty"` // 2 or 2:1
	Reduction        cluster.Tri                  `yaml:"reduction,omitempty"`        // in-network: yes, no
	Switches         []cluster.SwitchDoc          `yaml:"switches,omitempty"`
	Links            []cluster.NetLinkDoc         `yaml:"links,omitempty"`
}

// short reports whether the network is described rather than listed.
func (n *networkForm) short() bool {
	return len(n.Switches) == 0 && len(n.Links) == 0 &&
		(n.Speed != "" || n.NodesPerLeaf != 0 || n.Rails != 0 || n.Topology != "" || n.Oversubscription.Known() ||
			n.Kind != "")
}
