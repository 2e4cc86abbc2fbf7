package clusterfile

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/yamldoc"
)

// written is file with its types in order.
type written struct {
	Version     int                       `yaml:"version"`
	Name        string                    `yaml:"name,omitempty"`
	Types       yamldoc.Ordered           `yaml:"types,omitempty"`
	Nodes       []nodesForm               `yaml:"nodes"`
	Unavailable []cluster.UnavailableDoc  `yaml:"unavailable,omitempty"`
	Network     *networkForm              `yaml:"network,omitempty"`
	Identities  []cluster.HostIdentityDoc `yaml:"identities,omitempty"`
	Benches     []cluster.Bench           `yaml:"benches,omitempty"`
	Calibration *cluster.Calibration      `yaml:"calibration,omitempty"`
	Sources     []string                  `yaml:"sources,omitempty"`
	Warnings    []cluster.Warning         `yaml:"warnings,omitempty"`
}

// Write writes a cluster so that Read gives back the same. A type that is a
// preset unchanged is written by its name.
func Write(w io.Writer, c *cluster.Cluster) error {
	d := c.Document()
	f := written{
		Version: d.Version, Name: d.Name, Unavailable: d.Unavailable, Identities: d.Identities, Benches: d.Benches,
		Calibration: d.Calibration, Sources: d.Sources, Warnings: d.Warnings,
	}
	for i := range d.Types {
		f.Types = append(f.Types, yamldoc.Pair{Key: d.Types[i].Name, Value: typeOut(c.Types[i], &d.Types[i])})
	}
	for _, n := range d.Nodes {
		f.Nodes = append(f.Nodes, nodesForm{Hosts: n.Hosts, Type: n.Type})
	}
	if n := &d.Network; n.Name != "" || n.Kind != "" || len(n.Switches)+len(n.Links) > 0 {
		f.Network = &networkForm{
			Name: n.Name, Kind: n.Kind, Rails: n.Rails, Topology: n.Topology, Routing: n.Routing, BlockSizes: n.BlockSizes,
			Scheduler:        n.Scheduler,
			Oversubscription: n.Oversubscription, Reduction: n.Reduction,
			Switches: n.Switches, Links: n.Links,
		}
	}
	return yamldoc.Encode(w, f)
}

func typeOut(t *cluster.NodeType, d *cluster.TypeDoc) typeForm {
	if d.Preset != "" {
		if p, err := hardware.Node(d.Preset); err == nil && p.Equal(t) {
			return typeForm{Preset: d.Preset}
		}
	}
	return typeForm{Preset: d.Preset, Trays: d.Trays, Tree: d.Tree, Devices: d.Devices, Links: d.Links, Pairs: d.Pairs}
}
