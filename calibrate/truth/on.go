package truth

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/result"
)

// On is a sweep as a case on a cluster that somebody described: what was measured
// there, and not a machine made from the sweep's own words. The release is the
// sweep's where it names one; devices are the GPUs of every node that took part, by their numbers, the first where
// there are none.
func On(s *result.Sweep, c *cluster.Cluster, release nccl.Version, devices []int) (*Case, error) {
	x, err := newCase(s)
	if err != nil {
		return nil, err
	}
	layout, hosts, err := layoutOn(s, c)
	if err != nil {
		return nil, err
	}
	own := slices.Clone(layout)
	switch {
	case len(devices) > 0 && s.Devices != nil && !slices.Equal(devices, s.Devices):
		err = fmt.Errorf("its ranks ran on devices %v, and --devices says %v; leave --devices out, or give the right file",
			s.Devices, devices)
	case len(devices) > 0:
		err = choose(layout, c, s.PerNode, devices)
	case s.Devices != nil && choose(own, c, s.PerNode, s.Devices) == nil: // else only those that ran are described
		layout = own
	}
	if err != nil {
		return nil, err
	}
	if err := sameGPUs(s, c, layout); err != nil {
		return nil, err
	}
	if v, ok := Release(s); ok {
		release = v
	}
	p, err := predict.New(c, layout, release, settings(s), nil)
	if err != nil {
		return nil, err
	}
	x.Hosts = hosts
	p.Conditions, x.Unused = conditions(s)
	return x.by(p, nil)
}

// layoutOn is a sweep's layout on a cluster, and the hosts that it is on as a hostlist: those that the sweep names
// where the cluster has all of them, because one slow NIC among the first hosts says nothing about others; else the
// first, and "".
func layoutOn(s *result.Sweep, c *cluster.Cluster) (nccl.Layout, string, error) {
	names, err := cluster.ParseHosts(s.Hosts)
	if s.Hosts == "" || err != nil || len(names) != s.Nodes {
		l, err := nccl.Block(c, s.Nodes, s.PerNode)
		return l, "", err
	}
	l := make(nccl.Layout, 0, s.Nodes*s.PerNode)
	for at, i := range c.HostsNamed(names) {
		if c.TypeOf(i) == nil {
			l, err := nccl.Block(c, s.Nodes, s.PerNode)
			return l, "", err
		}
		gpus := c.TypeOf(i).Of(cluster.GPU)
		if len(gpus) < s.PerNode {
			return nil, "", fmt.Errorf("measured with %s on %s, which has %d in the cluster; expected measurements of the "+
				"cluster that -c describes",
				words.Plural(s.PerNode, "GPU"), names[at], len(gpus))
		}
		for _, g := range gpus[:s.PerNode] {
			l = append(l, nccl.Rank{Host: i, GPU: g})
		}
	}
	return l, s.Hosts, nil
}

// choose takes other GPUs of every node, of a rack every tray, than the first.
func choose(l nccl.Layout, c *cluster.Cluster, each int, devices []int) error {
	if len(devices) != each {
		return fmt.Errorf("--devices names %d; measured with %s of each node",
			len(devices), words.Plural(each, "GPU"))
	}
	for i := range l {
		t := c.TypeOf(l[i].Host)
		gpus := t.Of(cluster.GPU)
		n, d := len(gpus)/max(1, t.Trays), devices[i%each]
		if d >= n {
			return fmt.Errorf("--devices: %s has %s, numbered from 0; %d is none of them", c.Hosts[l[i].Host].Name,
				words.Plural(n, "GPU"), d)
		}
		l[i].GPU = gpus[slices.Index(gpus, l[i].GPU)/n*n+d]
	}
	return nil
}

// Release is the release of NCCL that a sweep names, false where it names none
// that is known.
func Release(s *result.Sweep) (nccl.Version, bool) {
	text, _, _ := strings.Cut(s.Library, " ")
	v, err := nccl.ParseVersion(text)
	return v, err == nil && v.Compare(nccl.Oldest) >= 0 && v.Compare(nccl.Newest) <= 0
}

// sameGPUs refuses a sweep whose GPUs are not those that its ranks have on a
// cluster. Where one of the two names none, nothing contradicts.
func sameGPUs(s *result.Sweep, c *cluster.Cluster, l nccl.Layout) error {
	name := gpuName(s.GPU())
	if name == "" {
		return nil
	}
	for _, r := range l {
		d := &c.TypeOf(r.Host).Devices[r.GPU]
		if has := d.Model.Value; has != "" && Chip(has) != Chip(name) {
			return fmt.Errorf("measured on %q, and %s of the cluster has %q; expected measurements of the cluster that -c "+
				"describes", name, c.Hosts[r.Host].Name, has)
		}
	}
	return nil
}

// Chip is the catalogue's name of a GPU without the size of its memory, which no
// collective depends on; a GPU that is not there is its own text.
func Chip(name string) string {
	m, ok := hardware.GPUByName(name)
	if !ok {
		return strings.ToLower(name)
	}
	if i := strings.LastIndexByte(m.Name, '-'); i > 0 && strings.Trim(m.Name[i+1:], "0123456789") == "" {
		return m.Name[:i]
	}
	return m.Name
}

// Pick is the case with some of its points.
func (c *Case) Pick(keep func(i int) bool) *Case {
	d := *c
	d.Points, d.Ops, d.Times, d.Settings = nil, nil, nil, nil
	for i := range c.Ops {
		if keep(i) {
			d.Points, d.Ops = append(d.Points, c.Points[i]), append(d.Ops, c.Ops[i])
			d.Times, d.Settings = append(d.Times, c.Times[i]), append(d.Settings, c.Settings[i])
		}
	}
	return &d
}
