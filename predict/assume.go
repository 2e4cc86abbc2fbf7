package predict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Given is what the caller knows about a cluster whose sources do not say it.
type Given struct {
	GPU string // model, as `busbar list hardware gpu` lists them; "" unknown
	NIC NICs
}

// AsGiven is the source of what the caller said.
const AsGiven = "as given"

// nonBlocking says how links between switches without a rate are taken.
const nonBlocking = "no source says the rate of links between switches; the network is taken as non-blocking " +
	"(ibnetdiscover has the rates, oversubscription: 2 in a cluster file states them)"

// Assume fills what a prediction cannot do without and no source says: the model
// of GPUs whose matrix is all that is known, by the number of their NVLinks, and
// the rate of NICs, by what is sold with such GPUs. What it assumed it tells, a
// sentence each. nets says that data will leave the nodes.
func Assume(c *cluster.Cluster, g Given, nets bool) ([]string, error) {
	var notes []string
	named := hardware.GPUModel{}
	if g.GPU != "" {
		var ok bool
		if named, ok = hardware.GPUByName(g.GPU); !ok {
			return nil, fmt.Errorf("GPU %q is not in the catalogue; `busbar list hardware gpu` lists it", g.GPU)
		}
	}
	for _, t := range c.Types {
		note, err := assumeGPUs(t, named)
		if err != nil {
			return nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
	}
	if len(notes) > 0 {
		hardware.Complete(c)
	}
	if !nets {
		return notes, nil
	}
	notes = append(notes, closeUncabled(c)...)
	added := false
	for _, t := range used(c) {
		has, gpus := t.Count(cluster.NIC), t.Count(cluster.GPU)
		switch {
		case has > 0 && g.NIC.Count > 0 && g.NIC.Count != has:
			return notes, fmt.Errorf("%s has %s and %d are given; a count is for nodes whose sources name none: leave it out "+
				"to give only the rate", t.Name, words.Plural(has, "NIC"), g.NIC.Count)
		case has == 0 && gpus > 0 && g.NIC.Rate > 0:
			notes = append(notes, addNICs(t, g.NIC))
			added = true
			continue
		case has == 0 && gpus > 0 &&
			!slices.ContainsFunc(c.Types, func(o *cluster.NodeType) bool { return o.Count(cluster.NIC) > 0 }):
			return notes, noNICs(t)
		}
		if note := assumeNICs(t, g.NIC.Rate); note != "" {
			notes = append(notes, note)
		}
	}
	if added {
		hardware.Complete(c)
	}
	if c.Network.TrunksUnknown() {
		notes = append(notes, nonBlocking)
	}
	return notes, nil
}

// used are the types that hosts have.
func used(c *cluster.Cluster) (list []*cluster.NodeType) {
	has := make([]bool, len(c.Types))
	for i := range c.Hosts {
		if t := c.Hosts[i].Type; t >= 0 {
			has[t] = true
		}
	}
	for i, t := range c.Types {
		if has[i] || len(c.Hosts) == 0 {
			list = append(list, t)
		}
	}
	return list
}

// closeUncabled takes NICs without a cable out of use, and tells which.
func closeUncabled(c *cluster.Cluster) []string {
	list := c.CloseUncabled()
	if len(list) == 0 {
		return nil
	}
	var names []string
	for _, u := range list[:min(len(list), 8)] {
		names = append(names, c.Hosts[u.Host].Name+"/"+c.TypeOf(u.Host).Devices[u.NIC].Title())
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return []string{fmt.Sprintf("%s: no cable in %s, which has the peers'; not used for traffic",
		strings.Join(names, ", "), cmp.Or(list[0].Source, "the network's source"))}
}

// assumeGPUs names the GPUs of a type that have no name. A name that is given
// counts for them only.
func assumeGPUs(t *cluster.NodeType, named hardware.GPUModel) (string, error) {
	gpus := t.Of(cluster.GPU)
	var nameless []int
	for _, d := range gpus {
		x := &t.Devices[d]
		if x.GPU == nil || x.GPU.SM == 0 && (x.GPU.Vendor == "" || x.GPU.Vendor == "nvidia") {
			nameless = append(nameless, d)
		}
	}
	if len(nameless) == 0 {
		return "", nil
	}
	m, why := named, AsGiven
	if m.Name == "" {
		links := 0
		for _, d := range nameless {
			links = max(links, nvlinks(t, d))
		}
		all := hardware.GPUs()
		i := slices.IndexFunc(all, func(m hardware.GPUModel) bool { return m.Typical && m.Links == links })
		if i < 0 {
			return "", failure.In("gpu", fmt.Errorf("%s: no source names the model of %s, and NCCL decides by it; give it "+
				"(--gpu a100-80; `busbar list hardware gpu` lists them)", t.Name, t.Devices[nameless[0]].Name))
		}
		m, why = all[i], fmt.Sprintf("they have %d NVLinks", links)
	}
	for _, d := range nameless {
		x := &t.Devices[d]
		x.Model = cluster.FromAssumed(m.Title, why)
		if x.GPU == nil {
			x.GPU = &cluster.GPUInfo{}
		}
	}
	hardware.Forget(t)
	if named.Name != "" {
		return fmt.Sprintf("GPUs of %s are taken as %s", t.Name, m.Title), nil
	}
	return fmt.Sprintf("no source names the GPUs of %s; %s, so they are taken as %s (--gpu names another)", t.Name, why,
		m.Title), nil
}

// nvlinks is how many NVLinks of a GPU lead anywhere.
func nvlinks(t *cluster.NodeType, dev int) int {
	n := 0
	for i := range t.Links {
		l := &t.Links[i]
		if l.Kind == cluster.NVLink && (l.A == dev || l.B == dev && !l.OneWay) {
			n += l.Lanes
		}
	}
	return n
}

// assumeNICs gives rates to NICs that have none.
func assumeNICs(t *cluster.NodeType, given unit.Rate) string {
	rate, why := given, AsGiven
	if rate == 0 {
		rate, why = usualNIC(t), "typical for these GPUs"
	}
	count := 0
	for _, d := range t.Of(cluster.NIC) {
		x := &t.Devices[d]
		if x.NIC == nil {
			x.NIC = &cluster.NICInfo{}
		}
		if len(x.NIC.Ports) == 0 {
			x.NIC.Ports = []cluster.Port{{Num: 1}}
		}
		known := false
		for _, p := range x.NIC.Ports {
			known = known || p.Rate.Known() || p.Max.Known() || p.State == cluster.Down
		}
		if known {
			continue
		}
		count++
		x.NIC.Ports[0].Rate = cluster.FromAssumed(rate, why)
		if x.NIC.Kind == "" && strings.HasPrefix(x.Label, "mlx") {
			x.NIC.Kind = cluster.InfiniBand
		}
	}
	if count == 0 {
		return ""
	}
	nics := words.Plural(count, "NIC")
	if given > 0 {
		return fmt.Sprintf("%s of %s: taken as %s", nics, t.Name, rate.Bits())
	}
	return fmt.Sprintf("no source says the rate of %s of %s; taken as %s, %s (--nic gives another)", nics, t.Name,
		rate.Bits(), why)
}

// usualNIC is the port that is sold with a generation of GPUs.
func usualNIC(t *cluster.NodeType) unit.Rate {
	sm := 0
	for _, d := range t.Of(cluster.GPU) {
		if g := t.Devices[d].GPU; g != nil {
			sm = max(sm, g.SM)
		}
	}
	switch {
	case sm >= 90:
		return 400 * unit.Gbps
	case sm >= 80:
		return 200 * unit.Gbps
	}
	return 100 * unit.Gbps
}
