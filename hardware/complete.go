package hardware

import (
	"cmp"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// catalogue is the source written beside what Complete warns about.
const catalogue = "hardware catalogue"

// Complete fills what readers left unknown from the catalogue: rates and
// latencies of links, memory, bandwidth and peaks of GPUs, kind and rate of
// network cards, rates of cables. What the catalogue knows has the origin Spec;
// what had to be assumed has Assumed and the reason. A known fact is never
// replaced; one that contradicts the catalogue becomes a warning. Calling it
// twice changes nothing and repeats no warning.
func Complete(c *cluster.Cluster) {
	_ = CompleteWithin(nil, c) // a nil budget has nothing to stop it
}

// CompleteWithin is Complete that ends with the question that it is for; the cluster is then half completed.
func CompleteWithin(b *cluster.Budget, c *cluster.Cluster) error {
	seen := make(map[cluster.Warning]bool, len(c.Warnings))
	for _, w := range c.Warnings {
		seen[w] = true
	}
	names := hostNames(c)
	for i, t := range c.Types {
		if err := b.Stopped(); err != nil {
			return err
		}
		f := &filler{t: t, where: names[i], models: make([]GPUModel, len(t.Devices))}
		f.devices()
		f.links()
		f.check()
		for _, w := range f.warnings {
			if !seen[w] {
				seen[w] = true
				c.Warnings = append(c.Warnings, w)
			}
		}
	}
	completeNetwork(&c.Network)
	return b.Stopped()
}

// hostNames gives every type the name that warnings call it by: its only host's,
// else its own.
func hostNames(c *cluster.Cluster) []string {
	names := make([]string, len(c.Types))
	count := make([]int, len(c.Types))
	for _, h := range c.Hosts {
		if h.Type >= 0 && h.Type < len(names) {
			names[h.Type] = h.Name
			count[h.Type]++
		}
	}
	for i, t := range c.Types {
		if count[i] != 1 || names[i] == "" {
			names[i] = t.Name
		}
	}
	return names
}

// Forget makes rates of links unknown again that Complete assumed while it knew nothing of the link. Whoever names the GPUs of a
// type after it was completed calls it, then Complete: the generation of PCIe and of NVLink is that of the GPU.
func Forget(t *cluster.NodeType) {
	for i := range t.Links {
		l := &t.Links[i]
		if l.Rate.Origin != cluster.Assumed || !strings.Contains(l.Rate.Source, untrained) && !strings.Contains(l.Rate.Source, unnamed) {
			continue
		}
		if l.Duplex == 2*l.Rate.Value {
			l.Duplex = 0
		}
		l.Rate = cluster.Fact[unit.Rate]{}
	}
}

// filler completes one node type.
type filler struct {
	t        *cluster.NodeType
	where    string
	models   []GPUModel // by device; Name "" where the catalogue has none
	warnings []cluster.Warning
	sum      *linkSum
	gen      int // of PCIe, as platform guesses; 0 not yet
	genWhy   string
}

func (f *filler) warn(dev int, format string, args ...any) {
	where := f.t.Devices[dev].Title()
	if f.where != "" {
		where = f.where + "/" + where
	}
	f.warnings = append(f.warnings, cluster.Warning{Source: catalogue, Where: where, Text: fmt.Sprintf(format, args...)})
}

// set fills an unknown fact.
func set[T any](dst *cluster.Fact[T], src cluster.Fact[T]) {
	if !dst.Known() {
		*dst = src
	}
}

func (f *filler) devices() {
	for i := range f.t.Devices {
		switch d := &f.t.Devices[i]; d.Kind {
		case cluster.GPU:
			f.gpu(i, d)
		case cluster.NIC:
			f.nic(i, d)
		}
	}
}

func (f *filler) gpu(i int, d *cluster.Device) {
	m, ok := f.gpuModel(i, d)
	if !ok {
		return
	}
	f.models[i] = m
	if d.GPU == nil {
		d.GPU = &cluster.GPUInfo{}
	}
	g := d.GPU
	if !d.Model.Known() {
		d.Model = cluster.FromSpec(m.Title, "PCI id "+d.PCIID.Vendor+":"+d.PCIID.Device)
	}
	if g.Memory.Known() && len(g.Slices) == 0 && (g.Memory.Value < m.Memory*8/10 || g.Memory.Value > m.Memory*11/10) {
		f.warn(i, "%s says %v of memory; %s has %v (%s)", g.Memory.Source, g.Memory.Value, m.Title, m.Memory, m.Source)
	}
	if g.SM != 0 && m.SM != 0 && g.SM != m.SM {
		f.warn(i, "compute capability %d was read; %s has %d (%s)", g.SM, m.Title, m.SM, m.Source)
	}
	set(&g.Memory, cluster.FromSpec(m.Memory, m.Source))
	set(&g.HBM, cluster.FromSpec(m.HBM, m.Source))
	if g.Peak == nil {
		g.Peak = make(map[cluster.Dtype]cluster.Fact[unit.FLOPS], len(m.Peak))
	}
	for dt, v := range m.Peak {
		if !g.Peak[dt].Known() {
			g.Peak[dt] = cluster.FromSpec(v, m.Source)
		}
	}
	fill(&g.Vendor, m.Vendor)
	fill(&g.SM, m.SM)
	fill(&g.Arch, m.Arch)
	fill(&g.GDR, m.GDR)
	if m.LinkKind == cluster.NVLink {
		fill(&g.Links, m.Links)
	}
}

// fill sets a field whose zero means unknown.
func fill[T comparable](dst *T, v T) {
	var zero T
	if *dst == zero {
		*dst = v
	}
}

// gpuModel finds the row by name and by PCI id. The bus is believed; a name that
// stands for another generation of chip is a warning (one that only leaves the
// memory size open is not).
func (f *filler) gpuModel(i int, d *cluster.Device) (GPUModel, bool) {
	byName, named := GPUModel{}, false
	if d.Model.Known() {
		byName, named = GPUByName(d.Model.Value)
	}
	if d.PCIID == nil {
		return byName, named
	}
	byBus, found := GPUByPCI(d.PCIID.Vendor, d.PCIID.Device)
	if !found {
		return byName, named
	}
	if named && (byBus.SM != byName.SM || byBus.Arch != byName.Arch) {
		f.warn(i, "%s calls it %s, its PCI id %s:%s is that of %s; kept the PCI id", d.Model.Source, d.Model.Value, d.PCIID.Vendor, d.PCIID.Device, byBus.Title)
	}
	return byBus, true
}

// completeNetwork fills rates of cables from their speed and latencies of cables
// and switches.
func completeNetwork(n *cluster.Network) {
	speeds := make(map[string]PortSpeed)
	lookup := func(s string) PortSpeed {
		p, ok := speeds[s]
		if !ok {
			p, _ = ParsePortSpeed(s)
			speeds[s] = p
		}
		return p
	}
	ends := make(map[string]cluster.Fact[unit.Time])
	var fastest unit.Rate
	for i := range n.Links {
		l := &n.Links[i]
		if l.Speed != "" && (l.Lanes == 0 || n.Kind == "" || !l.Rate.Known()) {
			p := lookup(l.Speed)
			fill(&l.Lanes, p.Lanes)
			n.Kind = cmp.Or(n.Kind, p.Kind)
			if p.Rate > 0 && !l.Rate.Known() { // the text is made where it is kept
				set(&l.Rate, cluster.FromSpec(p.Rate, "speed "+l.Speed))
			}
		}
		fastest = max(fastest, l.Rate.Value)
		if !l.Latency.Known() && (l.A.ToHosts() || l.B.ToHosts()) {
			key := string(n.Kind) + l.Speed
			t, ok := ends[key]
			if !ok {
				t = adapterLatency(n.Kind, l.Speed)
				ends[key] = t
			}
			l.Latency = t
		}
	}
	if n.Kind == "" {
		return
	}
	sw, ok := defaultSwitch(n.Kind, fastest)
	late := cluster.FromAssumed(sw.Latency.Value, "as "+sw.Name+": "+sw.Latency.Source)
	for i := range n.Switches {
		if ok && !n.Switches[i].Domain {
			set(&n.Switches[i].Latency, late)
		}
	}
}
