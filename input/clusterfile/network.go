package clusterfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// network reads the network: listed switch by switch, or described.
func (r *reading) network() error {
	f := &r.file.Network
	if !f.short() || len(r.out.Hosts) == 0 && f.Speed == "" && f.NodesPerLeaf == 0 {
		return r.listed()
	}
	if f.Kind != "" {
		k, err := netKind(string(f.Kind))
		if err != nil {
			return r.errAt(err, "network", "kind")
		}
		f.Kind = k
	}
	if o := f.Oversubscription; o.Known() && o.Value < 1 {
		return r.errAt(fmt.Errorf("%g; expected 1 (none) or more, 2 meaning 2:1", o.Value), "network", "oversubscription")
	}
	f.Rails = cmp.Or(f.Rails, r.presetRails())
	d := hardware.Description{
		Name: f.Name, Kind: f.Kind, Speed: f.Speed, Rails: f.Rails, NodesPerLeaf: f.NodesPerLeaf, Topology: f.Topology,
		Routing:          f.Routing,
		Oversubscription: f.Oversubscription.Value, Reduction: f.Reduction, Source: format,
		Take: r.budget.TakeSwitches,
	}
	before := r.out.Warnings
	if err := hardware.Describe(d, &r.out); err != nil {
		return r.errAt(err, "network")
	}
	// A file that was written with its warnings gives the same ones again.
	added := slices.DeleteFunc(slices.Clone(r.out.Warnings[len(before):]),
		func(w cluster.Warning) bool { return slices.Contains(before, w) })
	r.out.Warnings = append(before, added...)
	if f.Oversubscription.Known() {
		r.out.Network.Oversubscription = f.Oversubscription // with its origin
	}
	return nil
}

// presetRails is the number of rails that all presets of the file agree on.
func (r *reading) presetRails() int {
	rails := -1
	for _, t := range r.out.Types {
		n := 0
		if d, err := hardware.NetworkOf(t.Preset); t.Preset != "" && err == nil {
			n = d.Rails
		}
		if rails >= 0 && n != rails {
			return 0
		}
		rails = n
	}
	return max(rails, 0)
}

func (r *reading) listed() error {
	f := &r.file.Network
	if f.Speed != "" || f.NodesPerLeaf != 0 {
		return r.errAt(errors.New("both switches and a short description (speed, nodes_per_leaf); give one"), "network")
	}
	// The document's own loader resolves names of hosts and switches.
	if err := r.out.LoadNetwork(r.budget, &f.NetworkDoc, r.hosts); err != nil {
		return r.errAt(err, "network")
	}
	return nil
}
