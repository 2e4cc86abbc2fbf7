package clusterfile

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/yamldoc"
)

// written is file with its types in order.
type written struct {
	Version     int                      `yaml:"version"`
	Name        string                   `yaml:"name,omitempty"`
	Types       yamldoc.Ordered          `yaml:"types,omitempty"`
	Nodes       []cluster.NodesDoc       `yaml:"nodes"`
	Unavailable []cluster.UnavailableDoc `yaml:"unavailable,omitempty"`
	Network     *cluster.NetworkDoc      `yaml:"network,omitempty"`
	cluster.Records
}

// Write writes a cluster so that Read gives back the same. A type that is a
// preset unchanged is written by its name.
func Write(w io.Writer, c *cluster.Cluster) error {
	d := c.Document()
	f := written{Version: d.Version, Name: d.Name, Nodes: d.Nodes, Unavailable: d.Unavailable, Records: d.Records}
	for i := range d.Types {
		f.Types = append(f.Types, yamldoc.Pair{Key: d.Types[i].Name, Value: typeOut(c.Types[i], &d.Types[i])})
	}
	if n := &d.Network; n.Name != "" || n.Kind != "" || len(n.Switches)+len(n.Links) > 0 {
		f.Network = n
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
