package hardware

import (
	"cmp"
	"fmt"
	"slices"
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

// Forget makes rates of links unknown again that Complete assumed while it knew nothing of the link. Whoever names the
// GPUs of a type after it was completed calls it, then Complete: the generation of PCIe and of NVLink is that of the
// GPU.
func Forget(t *cluster.NodeType) {
	for i := range t.Links {
		l := &t.Links[i]
		if l.Rate.Origin != cluster.Assumed ||
			!strings.Contains(l.Rate.Source, untrained) && !strings.Contains(l.Rate.Source, unnamed) {
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
	setUnknown(&g.Vendor, m.Vendor)
	setUnknown(&g.SM, m.SM)
	setUnknown(&g.Arch, m.Arch)
	setUnknown(&g.GDR, m.GDR)
	if m.LinkKind == cluster.NVLink {
		setUnknown(&g.Links, m.Links)
	}
}

// setUnknown sets a field whose zero means unknown.
func setUnknown[T comparable](dst *T, v T) {
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
		f.warn(i, "%s calls it %s, its PCI id %s:%s is that of %s; kept the PCI id", d.Model.Source, d.Model.Value,
			d.PCIID.Vendor, d.PCIID.Device, byBus.Title)
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
			setUnknown(&l.Lanes, p.Lanes)
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

// check holds what was read or measured against the catalogue.
func (f *filler) check() {
	for i := range f.t.Links {
		f.checkLink(&f.t.Links[i])
	}
	gpus := f.t.Of(cluster.GPU)
	for i, m := range f.models {
		switch n := f.nvlinks(i); {
		case m.LinkKind != cluster.NVLink:
		case n > m.Links:
			f.warn(i, "%d NVLinks were read; %s has %d (%s)", n, m.Title, m.Links, m.Source)
		case n == 0 && m.Form == "module" && f.t.Tree == cluster.Read && len(gpus) > 1 && i == gpus[0]:
			f.warn(i, "no input shows the %d NVLinks of %s: what joins the GPUs here is PCIe alone; add nvidia-smi topo -m",
				m.Links, m.Title)
		}
	}
	f.checkPairs()
}

// checkLink warns of a rate above what its lanes can carry; two in a hundred are
// rounding.
func (f *filler) checkLink(l *cluster.Link) {
	if l.Rate.Origin < cluster.Read {
		return
	}
	var most unit.Rate
	switch l.Kind {
	case cluster.PCIe:
		most = PCIeRate(l.GTs, l.Lanes)
	case cluster.NVLink:
		one, _ := f.nvlinkOne(l)
		most = one * unit.Rate(max(l.Lanes, 0))
	}
	if most > 0 && l.Rate.Value > most*1.02 {
		f.warn(l.B, "%s says %v to %s; %d lanes of this %s link carry at most %v in one direction",
			l.Rate.Source, l.Rate.Value, f.t.Devices[l.A].Title(), l.Lanes, l.Kind, most)
	}
}

// checkPairs warns of a measured rate above that of the direct link between two
// GPUs: mostly a figure that counts both directions.
func (f *filler) checkPairs() {
	direct := make(map[[2]int]unit.Rate)
	for i := range f.t.Links {
		l := &f.t.Links[i]
		if l.Kind != cluster.NVLink && l.Kind != cluster.XGMI || l.Rate.Origin != cluster.Spec {
			continue
		}
		direct[[2]int{l.A, l.B}] += l.Rate.Value
		if !l.OneWay {
			direct[[2]int{l.B, l.A}] += l.Rate.Value
		}
	}
	for _, p := range f.t.Pairs {
		most := direct[[2]int{p.A, p.B}]
		if most > 0 && p.Rate.Known() && p.Rate.Value > most*1.05 {
			f.warn(p.A, "%s says %v to %s in one direction; the link between them carries %v (a figure for both directions?)",
				p.Rate.Source, p.Rate.Value, f.t.Devices[p.B].Title(), most)
		}
	}
}

// onDie is what NCCL counts within a chip; no traffic between GPUs fills it.
const onDie = 5000 * unit.GBps

// What a link's rate was assumed without, as Forget finds it again.
const (
	untrained = "link state unknown; "
	unnamed   = "GPU unknown; "
)

// links fills rates, from the ends of the PCIe tree upwards, because a switch
// without figures is taken to be as fast as what hangs on it.
func (f *filler) links() {
	depth := f.t.Levels()
	order := make([]int, len(f.t.Links))
	for i := range order {
		order[i] = i
	}
	lower := func(i int) int { return max(depth[f.t.Links[i].A], depth[f.t.Links[i].B]) }
	slices.SortStableFunc(order, func(a, b int) int { return lower(b) - lower(a) })
	below := make([]unit.Rate, len(f.t.Devices)) // fastest PCIe link to a child
	for _, i := range order {
		l := &f.t.Links[i]
		if !l.Rate.Known() {
			l.Rate = f.rate(l, below)
			if l.Duplex == 0 && (l.Kind == cluster.NVLink || l.Kind == cluster.XGMI || l.Kind == cluster.C2C) {
				l.Duplex = 2 * l.Rate.Value
			}
		}
		if lat, ok := linkLatency(l.Kind); ok {
			set(&l.Latency, lat)
		}
		if parent := f.t.Devices[l.B].Parent; l.Kind == cluster.PCIe && parent == l.A {
			below[l.A] = max(below[l.A], l.Rate.Value)
		} else if l.Kind == cluster.PCIe && f.t.Devices[l.A].Parent == l.B {
			below[l.B] = max(below[l.B], l.Rate.Value)
		}
	}
}

// rate is what the catalogue says of a link; unknown when it says nothing.
func (f *filler) rate(l *cluster.Link, below []unit.Rate) cluster.Fact[unit.Rate] {
	d := f.t.Devices
	switch l.Kind {
	case cluster.PCIe:
		return f.pcie(l, below)
	case cluster.NVLink:
		return f.nvlink(l)
	case cluster.XGMI:
		return f.xgmi(l)
	case cluster.C2C:
		return f.c2c(l)
	case cluster.SMP:
		same := d[l.A].Parent >= 0 && d[l.A].Parent == d[l.B].Parent
		return smpFact(f.cpu(l.A), f.cpuName(l.A), same)
	case cluster.OnDie:
		return cluster.FromAssumed(onDie, "within the processor; NCCL counts 5000 GB/s")
	case cluster.Gaudi:
		for _, e := range []int{l.A, l.B} {
			if m := f.models[e]; m.LinkKind == cluster.Gaudi {
				return cluster.FromSpec(m.Link*unit.Rate(max(l.Lanes, 1)), m.Source)
			}
		}
	}
	return cluster.Fact[unit.Rate]{}
}

// isGPU reports whether a link leads to a GPU.
func (f *filler) isGPU(l *cluster.Link) bool {
	return f.t.Devices[l.A].Kind == cluster.GPU || f.t.Devices[l.B].Kind == cluster.GPU
}

// cpu is what is known of the processor at a device, from it or its socket.
func (f *filler) cpu(dev int) *cluster.CPUInfo {
	for _, k := range []cluster.Kind{cluster.NUMA, cluster.Socket} {
		if i := f.t.Above(dev, k); i >= 0 && f.t.Devices[i].CPU != nil &&
			f.t.Devices[i].CPU.Vendor+f.t.Devices[i].CPU.Arch != "" {
			return f.t.Devices[i].CPU
		}
	}
	return nil
}

// cpuName is the processor's model as text. A CPU that a GPU hangs on by C2C is
// Grace, whether or not somebody wrote it down.
func (f *filler) cpuName(dev int) string {
	if f.linkSum().c2c {
		return graceName
	}
	for _, k := range []cluster.Kind{cluster.NUMA, cluster.Socket} {
		if i := f.t.Above(dev, k); i >= 0 && f.t.Devices[i].Model.Known() {
			return f.t.Devices[i].Model.Value
		}
	}
	return ""
}

func (f *filler) pcie(l *cluster.Link, below []unit.Rate) cluster.Fact[unit.Rate] {
	// A GPU with nothing to do lets its link fall to the first or second generation;
	// under traffic it comes back.
	if f.isGPU(l) && l.GTs > 0 && l.GTs <= 5 && l.MaxGTs > l.GTs {
		if r := PCIeRate(l.MaxGTs, max(l.Lanes, 1)); r > 0 {
			return cluster.FromAssumed(r,
				fmt.Sprintf("read at %g GT/s while idle; counted as PCIe %g GT/s x%d under load", l.GTs, l.MaxGTs, l.Lanes))
		}
	}
	if r := PCIeRate(l.GTs, l.Lanes); r > 0 {
		g, _ := pcieBySpeed(l.GTs)
		return cluster.FromSpec(r, fmt.Sprintf("PCIe %d x%d, %s", g.Gen, l.Lanes, g.Coding))
	}
	lanes, gts := max(l.Lanes, 0), knownSpeed(l.GTs)
	setUnknown(&lanes, max(l.MaxLanes, 0))
	setUnknown(&gts, knownSpeed(l.MaxGTs))
	if r := PCIeRate(gts, lanes); r > 0 {
		return cluster.FromAssumed(r,
			fmt.Sprintf("PCIe %g GT/s x%d is what the ends can do; how the link trained is unknown", gts, lanes))
	}
	child := l.B
	if f.t.Devices[l.A].Parent == l.B {
		child = l.A
	}
	d := &f.t.Devices[child]
	width := lanes
	setUnknown(&width, 16)
	card := func(gen int, why string) cluster.Fact[unit.Rate] {
		speed := gts
		setUnknown(&speed, PCIeSpeed(gen))
		return cluster.FromAssumed(PCIeRate(speed, width), why)
	}
	switch {
	case d.Kind == cluster.GPU && f.models[child].PCIeGen > 0:
		m := f.models[child]
		return card(m.PCIeGen, fmt.Sprintf(untrained+"%s is a PCIe %d card", m.Title, m.PCIeGen))
	case d.Kind == cluster.NIC && d.NIC != nil && d.NIC.Rate().Known():
		gen := feeds(d.NIC.Rate().Value)
		return card(gen, fmt.Sprintf(untrained+"PCIe %d x16 feeds the card's %s", gen, d.NIC.Rate().Value.Bits()))
	case below[child] > 0:
		return cluster.FromAssumed(below[child], untrained+"as fast as the fastest device below")
	}
	gen, why := f.platform()
	return card(gen, why)
}

// platform guesses the PCIe generation of a node from its GPUs, whose hosts were
// built with them: by model, compute capability, or number of NVLinks. Every link of which nothing is known asks.
func (f *filler) platform() (gen int, why string) {
	if f.gen > 0 {
		return f.gen, f.genWhy
	}
	defer func() { f.gen, f.genWhy = gen, why }()
	gen, why = 3, untrained+"PCIe 3 x16, as NCCL falls back to"
	for i := range f.t.Devices {
		d := &f.t.Devices[i]
		if d.Kind != cluster.GPU {
			continue
		}
		g := f.models[i].PCIeGen
		n := f.nvlinks(i)
		switch {
		case g > 0:
		case d.GPU != nil && d.GPU.SM >= 90 || n == 18:
			g = 5
		case d.GPU != nil && d.GPU.SM >= 80 || n == 12:
			g = 4
		}
		if g > gen {
			gen, why = g, fmt.Sprintf(untrained+"PCIe %d x16 as in hosts of GPUs such as %s", g, d.Name)
		}
	}
	return gen, why
}

// knownSpeed is the transfer rate, 0 for one that no generation has.
func knownSpeed(gts float64) float64 {
	g, _ := pcieBySpeed(gts)
	return g.GTs
}

// nvlink multiplies the bonded links by the rate of one link of the GPU's
// generation. Where no GPU is known, the number of links tells the generation.
func (f *filler) nvlink(l *cluster.Link) cluster.Fact[unit.Rate] {
	lanes, assumed := l.Lanes, ""
	one, source := f.nvlinkOne(l)
	if lanes <= 0 {
		for _, e := range []int{l.A, l.B} {
			if g := f.t.Devices[e].GPU; g != nil && g.Links > 0 {
				lanes, assumed = g.Links, "number of links unknown; all of the GPU's: "
			}
		}
		if lanes <= 0 {
			return cluster.Fact[unit.Rate]{}
		}
	}
	if one == 0 {
		one, source = f.guessNVLink(l)
		assumed += unnamed
	}
	rate := one * unit.Rate(lanes)
	text := fmt.Sprintf("%d links of %v: %s", lanes, one, source)
	if assumed != "" {
		return cluster.FromAssumed(rate, assumed+text)
	}
	return cluster.FromSpec(rate, text)
}

// nvlinkOne is one link at the slower end that is known.
func (f *filler) nvlinkOne(l *cluster.Link) (unit.Rate, string) {
	var one unit.Rate
	source := ""
	for _, e := range []int{l.A, l.B} {
		r, s := unit.Rate(0), ""
		if m := f.models[e]; m.LinkKind == cluster.NVLink {
			r, s = m.Link, m.Source
		} else if g := f.t.Devices[e].GPU; g != nil && g.SM > 0 {
			row := ChipLink(fmt.Sprintf("sm%d", g.SM))
			r, s = row.Link, row.Source
		}
		if r > 0 && (one == 0 || r < one) {
			one, source = r, s
		}
	}
	return one, source
}

// guessNVLink tells the generation by how many links a GPU at the link's ends
// has in all: 18 Hopper, 12 A100, 8 A800 or H800, 6 V100. A pair of cards with
// four is the bridge of A6000 and RTX 3090.
func (f *filler) guessNVLink(l *cluster.Link) (unit.Rate, string) {
	total := 0
	for _, e := range []int{l.A, l.B} {
		if f.t.Devices[e].Kind == cluster.GPU {
			total = max(total, f.nvlinks(e))
		}
	}
	switch {
	case total == 18:
		return NVLinkRate(4), "18 links per GPU as on Hopper (Blackwell has as many, twice as fast)"
	case total == 12:
		return NVLinkRate(3), "12 links per GPU as on A100"
	case total == 4:
		return nodeLink(bridgeRow).Link, "4 links between two cards as on an A6000 or RTX 3090 bridge"
	case total == 6:
		return NVLinkRate(2), "6 links per GPU as on V100"
	}
	return NVLinkRate(3), fmt.Sprintf("%d links per GPU; 25 GB/s per link as from V100 to H100", total)
}

// nvlinks counts the NVLinks that leave a GPU.
func (f *filler) nvlinks(gpu int) int { return f.linkSum().nvlinks[gpu] }

// linkSum is what the rates of single links depend on of all others. It is
// counted once: nodes with as many NUMA domains as a kernel allows have tens of
// thousands of links.
type linkSum struct {
	c2c     bool
	nvlinks []int // by device
}

func (f *filler) linkSum() *linkSum {
	if f.sum != nil {
		return f.sum
	}
	f.sum = &linkSum{nvlinks: make([]int, len(f.t.Devices))}
	for i := range f.t.Links {
		switch l := &f.t.Links[i]; l.Kind {
		case cluster.C2C:
			f.sum.c2c = true
		case cluster.NVLink:
			f.sum.nvlinks[l.A] += max(l.Lanes, 0)
			if !l.OneWay && l.B != l.A {
				f.sum.nvlinks[l.B] += max(l.Lanes, 0)
			}
		}
	}
	return f.sum
}

func (f *filler) xgmi(l *cluster.Link) cluster.Fact[unit.Rate] {
	lanes := max(l.Lanes, 1)
	for _, e := range []int{l.A, l.B} {
		arch := f.models[e].Arch
		if g := f.t.Devices[e].GPU; g != nil && g.Arch != "" {
			arch = g.Arch
		}
		if row := ChipLink(arch); row.Link > 0 {
			return cluster.FromSpec(row.Link*unit.Rate(lanes), fmt.Sprintf("%d links of %v: %s", lanes, row.Link, row.Source))
		}
	}
	return cluster.FromAssumed(50*unit.GBps*unit.Rate(lanes), unnamed+"50 GB/s per link as on MI250X")
}

// c2c is the link of the GPU's model to its CPU; the first in the catalogue where the model is unknown.
func (f *filler) c2c(l *cluster.Link) cluster.Fact[unit.Rate] {
	rows := nodeLinks()
	row := rows[slices.IndexFunc(rows, func(r linkRow) bool { return r.Family == "c2c" })].Interconnect
	for _, e := range []int{l.A, l.B} {
		if named, ok := InterconnectByName(f.models[e].C2C); ok {
			row = named
		}
	}
	if l.Lanes > 0 {
		return cluster.FromSpec(row.Link*unit.Rate(l.Lanes), row.Source)
	}
	return cluster.FromAssumed(row.OneWay, "number of links unknown: "+row.Source)
}

func (f *filler) nic(i int, d *cluster.Device) {
	m, known := nicModel(d)
	if d.NIC == nil {
		d.NIC = &cluster.NICInfo{}
	}
	n := d.NIC
	if known {
		set(&d.Model, cluster.FromSpec(m.Name, "PCI id"))
		if slices.Contains(m.Also, d.Model.Value) { // a part number
			d.Model.Value, d.Model.Source = m.Name, d.Model.Source+": "+d.Model.Value
		}
		setUnknown(&n.GDR, m.GDR)
	}
	if n.Kind == "" {
		n.Kind = nicKind(d, m)
	}
	if len(n.Ports) == 0 && known && m.Rate > 0 {
		n.Ports = []cluster.Port{{Num: 1}}
	}
	for k := range n.Ports {
		f.port(i, &n.Ports[k], m)
	}
}

// port fills the rate of a port: from its speed, else the fastest its card can
// do. A port that is down has no rate.
func (f *filler) port(i int, p *cluster.Port, m NICModel) {
	var speed PortSpeed
	if p.Speed != "" {
		speed, _ = ParsePortSpeed(p.Speed)
	}
	if m.Rate > 0 {
		set(&p.Max, cluster.FromSpec(m.Rate, m.Source))
	}
	switch {
	case p.Rate.Known():
		if m.Rate > 0 && p.Rate.Value > m.Rate*1.02 {
			f.warn(i, "%s says %s; a port of %s does at most %s (%s)", p.Rate.Source, p.Rate.Value.Bits(), m.Name, m.Rate.Bits(),
				m.Source)
		}
		if most := max(speed.Rate, speed.Nominal); most > 0 && p.Rate.Value > most*1.02 {
			f.warn(i, "%s says %s; %s carries at most %s", p.Rate.Source, p.Rate.Value.Bits(), p.Speed, most.Bits())
		}
	case speed.Rate > 0:
		p.Rate = cluster.FromSpec(speed.Rate, "speed "+p.Speed)
	case p.State == cluster.Down:
	case m.Rate > 0:
		p.Rate = cluster.FromAssumed(m.Rate, "port speed unknown; the fastest of "+m.Name)
	}
}

func nicModel(d *cluster.Device) (NICModel, bool) {
	if d.PCIID != nil {
		if m, ok := NICByPCI(d.PCIID.Vendor, d.PCIID.Device); ok {
			return m, true
		}
	}
	if d.Model.Known() {
		return NICByName(d.Model.Value)
	}
	return NICModel{}, false
}

// nicKind tells the family of network: from the card where it speaks only one,
// else from what its ports say, else from the name the system gave it.
func nicKind(d *cluster.Device, m NICModel) cluster.NetKind {
	rdma := strings.HasPrefix(d.Label, "mlx") || strings.HasPrefix(d.Label, "roce") || strings.HasPrefix(d.Label, "rocep")
	ether := cluster.Ethernet
	if rdma {
		ether = cluster.RoCE
	}
	switch m.Kind {
	case "":
	case "ethernet":
		return ether
	default:
		return cluster.NetKind(m.Kind)
	}
	for _, p := range d.NIC.Ports {
		switch strings.ToLower(p.Layer) {
		case "infiniband":
			return cluster.InfiniBand
		case "ethernet":
			return ether
		}
		if s, err := ParsePortSpeed(p.Speed); p.Speed != "" && err == nil && s.Kind != "" {
			return s.Kind
		}
	}
	if d.PCIID != nil && strings.HasPrefix(d.PCIID.Class, "0207") {
		return cluster.InfiniBand
	}
	if d.PCIID != nil && strings.HasPrefix(d.PCIID.Class, "0200") {
		return ether
	}
	return kindByLabel(d.Label)
}

// kindByLabel knows the names that drivers give their devices.
func kindByLabel(label string) cluster.NetKind {
	for _, p := range []struct {
		stem string
		kind cluster.NetKind
	}{
		{"rdmap", cluster.EFA},
		{"efa", cluster.EFA},
		{"hfi1", cluster.OmniPath},
		{"cxi", cluster.Slingshot},
		{"hsn", cluster.Slingshot},
		{"roce", cluster.RoCE},
		{"bnxt_re", cluster.RoCE},
		{"irdma", cluster.RoCE},
		{"ib", cluster.InfiniBand},
		{"eth", cluster.Ethernet},
		{"en", cluster.Ethernet},
		{"bond", cluster.Ethernet},
	} {
		if strings.HasPrefix(label, p.stem) {
			return p.kind
		}
	}
	return ""
}

// feeds is the slowest PCIe generation whose 16 lanes carry a rate, at least 3.
func feeds(rate unit.Rate) int {
	for gen := 3; gen < 7; gen++ {
		if PCIeRate(PCIeSpeed(gen), 16) >= rate {
			return gen
		}
	}
	return 7
}
