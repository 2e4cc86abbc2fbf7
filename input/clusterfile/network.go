package clusterfile

import (
	"errors"

	"busbar/cluster"
	"busbar/hardware"
)

// network reads the network: listed switch by switch, or described.
func (r *reading) network() error {
	f := &r.file.Network
	if !f.short() {
		return r.listed()
	}
	d := hardware.Description{
		Name: f.Name, Kind: f.Kind, Speed: f.Speed, Rails: f.Rails, NodesPerLeaf: f.NodesPerLeaf,
		Oversubscription: f.Oversubscription.Value, Reduction: f.Reduction, Source: format,
	}
	if err := hardware.Describe(d, &r.out); err != nil {
		return r.errAt(err, "network")
	}
	return nil
}

func (r *reading) listed() error {
	f := &r.file.Network
	if f.Speed != "" || f.NodesPerLeaf != 0 {
		return r.errAt(errors.New("both switches and a short description (speed, nodes_per_leaf); give one"), "network")
	}
	// The document's own loader resolves names of hosts and switches.
	doc := cluster.Document{Version: cluster.FormatVersion, Network: cluster.NetworkDoc{
		Name: f.Name, Kind: f.Kind, Rails: f.Rails, Oversubscription: f.Oversubscription, Reduction: f.Reduction,
		Switches: f.Switches, Links: f.Links,
	}}
	for _, h := range r.out.Hosts {
		doc.Nodes = append(doc.Nodes, cluster.NodesDoc{Hosts: h.Name})
	}
	c, err := doc.Cluster()
	if err != nil {
		return r.errAt(err, "network")
	}
	r.out.Network = c.Network
	return nil
}
