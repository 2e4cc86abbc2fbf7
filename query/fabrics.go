package query

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input"
)

// joinFabrics settles how the networks of several presets stand to each other. Nodes whose presets name one fabric are
// on one, which is described anew around them all; those of different fabrics keep their own, and nothing is known that
// joins these.
func joinFabrics(read []input.Source) ([]cluster.Warning, error) {
	var order []string
	on := map[string][]*cluster.Fragment{}
	for i := range read {
		if !read[i].Preset {
			continue
		}
		f := read[i].Fragments[0]
		if f.Network.Kind == "" || len(f.Types) == 0 {
			continue // a bare GPU, or another source has the network
		}
		name := hardware.FindPreset(f.Types[0].Preset).Fabric
		if on[name] == nil {
			order = append(order, name)
		}
		on[name] = append(on[name], f)
	}
	var names []string
	for _, name := range order {
		list := on[name]
		if len(list) > 1 {
			if err := oneFabric(list); err != nil {
				return nil, err
			}
		}
		hosts := hostNames(&list[0].Cluster)
		names = append(names, fmt.Sprintf("%s (%.60s)", list[0].Network.Name, hosts))
		if len(order) > 1 {
			for i := range list[0].Network.Switches {
				list[0].Network.Switches[i].Name = name + "-" + list[0].Network.Switches[i].Name
			}
		}
	}
	if len(order) < 2 {
		return nil, nil
	}
	return []cluster.Warning{{Text: fmt.Sprintf("%d networks that no source joins: %s; between their nodes nothing "+
		"but the ports counts. A cluster file describes the links between them", len(order), strings.Join(names, ", "))}}, nil
}

// oneFabric puts the nodes of all fragments on the network of the first, as a description of the catalogue has it.
func oneFabric(list []*cluster.Fragment) error {
	first := &list[0].Cluster
	all := cluster.Cluster{Types: slices.Clone(first.Types), Hosts: slices.Clone(first.Hosts)}
	for _, f := range list[1:] {
		for _, h := range f.Hosts {
			h.Type += len(all.Types)
			all.Hosts = append(all.Hosts, h)
		}
		all.Types = append(all.Types, f.Types...)
		f.Network = cluster.Network{}
	}
	d, err := hardware.NetworkOf(first.Types[0].Preset)
	if err != nil {
		return err
	}
	if err := hardware.Describe(d, &all); err != nil {
		return err
	}
	first.Types, first.Hosts, first.Network = all.Types, all.Hosts, all.Network
	first.Warnings = append(first.Warnings, all.Warnings...)
	return nil
}
