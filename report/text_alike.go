package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

const (
	// mostDifferences is in how many lines the difference of a kind of node from another must fit for it to be printed as such
	// lines; a kind that differs in more is described itself.
	mostDifferences = 6
	// mostFamilies bounds the kinds that others are held against: nodes that all differ are described one by one anyway.
	mostFamilies = 8
)

// family is a kind of node with the kinds that differ from it in little.
type family struct {
	group
	near []nearKind
}

// nearKind is hosts that are like another kind of node but for a few things.
type nearKind struct {
	group
	differs []string // a line each
}

// families folds kinds of nodes that differ in little into the commonest of them, in the order of the kinds.
func (p *printer) families(all []group) []family {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(all[b].hosts), len(all[a].hosts)) })
	kept := map[int]*family{}
	var bases []int
	var said []*described
	for _, i := range order {
		near := -1
		var differs []string
		if g := all[i]; p.compact && g.t != nil && len(g.hosts) > 0 {
			d := describe(g.t)
			for k, b := range said {
				if lines, ok := d.from(b); ok && (near < 0 || len(lines) < len(differs)) {
					near, differs = bases[k], lines
				}
			}
			if near < 0 && len(said) < mostFamilies {
				said, bases = append(said, d), append(bases, i)
			}
		}
		if near >= 0 {
			kept[near].near = append(kept[near].near, nearKind{all[i], differs})
			continue
		}
		kept[i] = &family{group: all[i]}
	}
	var out []family
	for i := range all {
		if kept[i] != nil {
			out = append(out, *kept[i])
		}
	}
	return out
}

// all are the hosts of a family.
func (f *family) all() group {
	g := group{t: f.t, hosts: slices.Clone(f.hosts)}
	for _, n := range f.near {
		g.hosts = append(g.hosts, n.hosts...)
	}
	return g
}

// aspect is one thing that can be compared, of a device or, without one, of the node.
type aspect struct{ device, what string }

// described is everything about a kind of node that a reader would compare, by what it is about.
type described struct {
	order []aspect
	value map[aspect]string
	gpus  map[string]bool
	paths cluster.Matrix // between devices by what people call them
}

func describe(t *cluster.NodeType) *described {
	d := &described{value: map[aspect]string{}, gpus: map[string]bool{}, paths: t.Matrix()}
	titles, up := deviceTitles(t), uplinks(t)
	for i, k := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		d.paths.Names[i] = titles[k]
	}
	for i, name := range titles {
		dev := &t.Devices[i]
		if dev.Kind == cluster.RootComplex || dev.Kind == cluster.PCISwitch {
			continue // what they do shows in the paths between the others
		}
		d.gpus[name] = dev.Kind == cluster.GPU
		d.say(name, "", "there")
		d.say(name, "model", dev.Model.Value)
		d.say(name, "PCI address", string(dev.PCI))
		d.processor(name, dev.CPU)
		d.gpu(name, dev.GPU)
		d.nic(name, dev)
		if up[i] >= 0 {
			l := &t.Links[up[i]]
			d.say(name, "link", strings.Join(nonEmpty(linkName(l), trainedLow(l)), ", "))
		}
	}
	var fast []string
	for _, s := range fastSets(t) {
		fast = append(fast, strings.Join(fastCaption(t, &s), ", "))
	}
	d.say("", "links between GPUs", strings.Join(fast, "; "))
	d.say("", "measured rates", measuredRange(t))
	return d
}

func (d *described) say(device, what, value string) {
	if value == "" {
		return
	}
	d.order = append(d.order, aspect{device, what})
	d.value[aspect{device, what}] = value
}

func (d *described) processor(name string, c *cluster.CPUInfo) {
	if c == nil {
		return
	}
	d.say(name, "cores", c.Cores)
	if c.Memory.Known() {
		d.say(name, "memory", memory(c.Memory.Value))
	}
}

func (d *described) gpu(name string, g *cluster.GPUInfo) {
	if g == nil {
		return
	}
	if g.Memory.Known() {
		d.say(name, "memory", memory(g.Memory.Value))
	}
	if len(g.Slices) > 0 {
		d.say(name, "MIG", words.Plural(len(g.Slices), "slice"))
	}
	d.say(name, "GPUDirect RDMA", triWord(g.GDR))
}

func (d *described) nic(name string, dev *cluster.Device) {
	n := dev.NIC
	if n == nil {
		return
	}
	d.say(name, "network", netName(n.Kind))
	d.say(name, "rate", cmp.Or(nicRateText(dev), "unknown"))
	for i := range n.Ports {
		port := &n.Ports[i]
		on := ""
		if len(n.Ports) > 1 {
			on = fmt.Sprintf("port %d ", port.Num)
		}
		if port.MTU.Known() {
			d.say(name, on+"MTU", fmt.Sprintf("%d B", port.MTU.Value))
		}
		if port.State == cluster.Init {
			d.say(name, on+"state", port.State.String())
		}
	}
	d.say(name, "GPUDirect RDMA", triWord(n.GDR))
	d.say(name, "firmware", n.Firmware)
	d.say(name, "driver", n.Driver)
	d.say(name, "offloads off", strings.Join(n.Off, " "))
	if n.RxRing > 0 {
		d.say(name, "receive ring", fmt.Sprint(n.RxRing))
	}
}

func triWord(t cluster.Tri) string {
	if t == cluster.No {
		return "no"
	}
	return ""
}

// measuredRange is the slowest and the fastest pair that was measured.
func measuredRange(t *cluster.NodeType) string {
	var low, high *cluster.Pair
	for i := range t.Pairs {
		x := &t.Pairs[i]
		if x.Rate.Origin != cluster.Measured {
			continue
		}
		if low == nil || x.Rate.Value < low.Rate.Value {
			low = x
		}
		if high == nil || x.Rate.Value > high.Rate.Value {
			high = x
		}
	}
	if low == nil {
		return ""
	}
	return fmt.Sprintf("%v to %v", low.Rate.Value, high.Rate.Value)
}

// from says in lines how a kind of node differs from another; ok is false where that is more than a few lines, or where it has
// other GPUs altogether.
func (d *described) from(o *described) (lines []string, ok bool) {
	type change struct{ what, have, want string }
	var order []change
	devices := map[change][]string{}
	less := false
	note := func(at aspect) {
		c := change{at.what, d.value[at], o.value[at]}
		gone := d.value[aspect{at.device, ""}] != o.value[aspect{at.device, ""}]
		switch {
		case c.have == c.want || gone && at.what != "":
			return
		case c.have == "" && at.what != "": // of this one less is known, which is no difference
			less = true
			return
		case at.what == "PCI address" && c.want != "": // every machine of another make has others; which ones is in -o yaml
			c.have, c.want = "", ""
		}
		if devices[c] == nil {
			order = append(order, c)
		}
		devices[c] = append(devices[c], at.device)
	}
	for _, at := range d.order {
		note(at)
	}
	for _, at := range o.order {
		if _, both := d.value[at]; !both {
			note(at)
		}
	}
	for _, c := range order {
		if (c.what == "model" || c.what == "") && d.otherGPUs(o, devices[c]) {
			return nil, false
		}
		lines = append(lines, changeWords(cluster.FormatHosts(devices[c]), c.what, c.have, c.want))
	}
	lines = append(lines, d.pathChanges(o)...)
	switch {
	case len(lines) > 0:
	case less:
		lines = []string{"less is known of it"}
	default:
		lines = []string{"differs only in what -o yaml shows"}
	}
	return lines, len(lines) <= mostDifferences
}

// changeWords says how devices differ.
func changeWords(devices, what, have, want string) string {
	switch {
	case what == "" && want == "":
		return devices + " only here"
	case what == "":
		return devices + " missing"
	case have == "":
		return devices + " other " + what + "es"
	}
	text := strings.TrimSpace(devices + " " + what + " " + have)
	if want != "" {
		text += " instead of " + want
	}
	return text
}

// otherGPUs reports that half of the GPUs or more are among some devices.
func (d *described) otherGPUs(o *described, devices []string) bool {
	n, all := 0, 0
	for _, name := range devices {
		if d.gpus[name] || o.gpus[name] {
			n++
		}
	}
	for _, is := range o.gpus {
		if is {
			all++
		}
	}
	return n > 0 && 2*n >= all
}

// pathChanges says which paths between devices that both have are of another class.
func (d *described) pathChanges(o *described) []string {
	at := map[string]int{}
	for i, n := range o.paths.Names {
		at[n] = i
	}
	type change struct{ have, want string }
	var order []change
	pairs := map[change][]string{}
	for i, a := range d.paths.Names {
		for k := i + 1; k < len(d.paths.Names); k++ {
			b := d.paths.Names[k]
			x, okX := at[a]
			y, okY := at[b]
			if !okX || !okY || d.paths.Class[i][k] == o.paths.Class[x][y] {
				continue
			}
			c := change{d.paths.Class[i][k], o.paths.Class[x][y]}
			if pairs[c] == nil {
				order = append(order, c)
			}
			pairs[c] = append(pairs[c], a+"–"+b)
		}
	}
	var lines []string
	for _, c := range order {
		more := ""
		if n := len(pairs[c]) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		lines = append(lines, fmt.Sprintf("path %s%s %s instead of %s", pairs[c][0], more, c.have, c.want))
	}
	return lines
}
