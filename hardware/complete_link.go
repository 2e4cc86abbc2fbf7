package hardware

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

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
		if i := f.t.Above(dev, k); i >= 0 && f.t.Devices[i].CPU != nil && f.t.Devices[i].CPU.Vendor+f.t.Devices[i].CPU.Arch != "" {
			return f.t.Devices[i].CPU
		}
	}
	return nil
}

// cpuName is the processor's model as text. A CPU that a GPU hangs on by C2C is
// Grace, whether or not somebody wrote it down.
func (f *filler) cpuName(dev int) string {
	if f.linkSum().c2c {
		return grace().name
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
			return cluster.FromAssumed(r, fmt.Sprintf("read at %g GT/s while idle; counted as PCIe %g GT/s x%d under load", l.GTs, l.MaxGTs, l.Lanes))
		}
	}
	if r := PCIeRate(l.GTs, l.Lanes); r > 0 {
		g, _ := pcieBySpeed(l.GTs)
		return cluster.FromSpec(r, fmt.Sprintf("PCIe %d x%d, %s", g.Gen, l.Lanes, g.Coding))
	}
	lanes, gts := max(l.Lanes, 0), knownSpeed(l.GTs)
	fill(&lanes, max(l.MaxLanes, 0))
	fill(&gts, knownSpeed(l.MaxGTs))
	if r := PCIeRate(gts, lanes); r > 0 {
		return cluster.FromAssumed(r, fmt.Sprintf("PCIe %g GT/s x%d is what the ends can do; how the link trained is unknown", gts, lanes))
	}
	child := l.B
	if f.t.Devices[l.A].Parent == l.B {
		child = l.A
	}
	d := &f.t.Devices[child]
	width := lanes
	fill(&width, 16)
	card := func(gen int, why string) cluster.Fact[unit.Rate] {
		speed := gts
		fill(&speed, PCIeSpeed(gen))
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
			r, s = chipLink(fmt.Sprintf("sm%d", g.SM))
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
		if one, source := chipLink(arch); one > 0 {
			return cluster.FromSpec(one*unit.Rate(lanes), fmt.Sprintf("%d links of %v: %s", lanes, one, source))
		}
	}
	return cluster.FromAssumed(50*unit.GBps*unit.Rate(lanes), unnamed+"50 GB/s per link as on MI250X")
}

// c2c counts 45 GB/s a link: ten on GH200, five a GPU on GB200.
func (f *filler) c2c(l *cluster.Link) cluster.Fact[unit.Rate] {
	row, _ := InterconnectByName("NVLink-C2C GH200")
	for _, e := range []int{l.A, l.B} {
		if sm := f.models[e].SM; sm >= 100 {
			row, _ = InterconnectByName("NVLink-C2C GB200")
		}
	}
	if l.Lanes > 0 {
		return cluster.FromSpec(row.Link*unit.Rate(l.Lanes), row.Source)
	}
	return cluster.FromAssumed(row.OneWay, "number of links unknown: "+row.Source)
}
