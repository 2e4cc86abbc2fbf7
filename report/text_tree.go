package report

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// tree prints the devices of a node below what contains them.
func (p *printer) tree(t *cluster.NodeType) {
	v := &treePrinter{printer: p, t: t, up: uplinks(t), shown: map[string]int{}}
	var top []int
	v.of, top = children(t)
	if trayCount(t) < 2 {
		v.forest(top, "  ")
		return
	}
	trays := make([][]int, trayCount(t))
	for _, d := range top {
		if k := t.Devices[d].Tray; k >= 0 && k < len(trays) && t.Devices[d].Kind != cluster.NVSwitch {
			trays[k] = append(trays[k], d)
		}
	}
	// Trays are told apart only where they differ.
	like := make(map[string][]int)
	var order []string
	for k, ids := range trays {
		s := v.signature(ids)
		if like[s] == nil {
			order = append(order, s)
		}
		like[s] = append(like[s], k)
	}
	for _, s := range order {
		p.printf("  %s\n", p.bold(trayNames(like[s])))
		v.forest(trays[like[s][0]], "  ")
	}
}

func trayNames(trays []int) string {
	if len(trays) == 1 {
		return fmt.Sprintf("tray %d", trays[0])
	}
	names := make([]string, len(trays))
	for i, k := range trays {
		names[i] = strconv.Itoa(k)
	}
	list := strings.Trim(cluster.FormatHosts(names), "[]")
	return fmt.Sprintf("tray %d, and like it all of %s (%d trays)", trays[0], list, len(trays))
}

// treePrinter prints one node type.
type treePrinter struct {
	*printer
	t  *cluster.NodeType
	of [][]int
	up []int
	// shown are branches that were printed, by their signature.
	shown map[string]int
}

// forest prints top devices. Switches of NVLink are told in a line of their own.
func (v *treePrinter) forest(top []int, indent string) {
	for _, d := range top {
		if v.t.Devices[d].Kind != cluster.NVSwitch {
			v.device(d, indent, indent)
		}
	}
}

// device prints a device and what hangs on it. A device with a single child
// shares its line where it has nothing to say itself.
func (v *treePrinter) device(d int, first, rest string) {
	names := []string{v.name(d)}
	fields := v.fields(d, true)
	for len(v.of[d]) == 1 && len(fields) == 0 {
		d = v.of[d][0]
		names = append(names, v.name(d))
		fields = v.fields(d, true)
	}
	head := first + strings.Join(names, v.dim(" › ")) + "  "
	kids := v.of[d]
	hang := rest + "    "
	if len(kids) > 0 {
		hang = rest + v.dim("│") + "   "
	}
	if len(fields) == 0 {
		v.printf("%s\n", strings.TrimRight(head, " "))
	} else {
		v.list(head, hang, fields.texts(v.style))
	}
	for i := 0; i < len(kids); {
		like, n := v.alike(kids[i:])
		corner, side := v.dim("├─ "), v.dim("│  ")
		if i+n == len(kids) {
			corner, side = v.dim("└─ "), "   "
		}
		if like >= 0 {
			v.branches(kids[i:i+n], like, rest+corner, rest+side)
		} else {
			v.device(kids[i], rest+corner, rest+side)
		}
		i += n
	}
}

// alike counts the first of some branches that are like one that was printed already, and names it; else it is -1 and one branch
// to print. Single devices are printed in any case: a line each says more than a name.
func (v *treePrinter) alike(kids []int) (like, n int) {
	if !v.compact {
		return -1, 1
	}
	like = -1
	for _, d := range kids {
		sig := v.signature([]int{d})
		first, known := v.shown[sig]
		if len(v.leaves(d)) < 2 || !known || n > 0 && first != like {
			if n == 0 {
				v.shown[sig] = d
			}
			break
		}
		like, n = first, n+1
	}
	return like, max(n, 1)
}

// branches prints branches that are like another in a line, with the GPUs and NICs of each.
func (v *treePrinter) branches(ids []int, like int, first, rest string) {
	v.folded = true
	pieces := []string{"like " + deviceName(v.t, like)}
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = deviceName(v.t, d)
		var leaves []string
		for _, l := range v.leaves(d) {
			leaves = append(leaves, v.titles[l])
		}
		pieces = append(pieces, strings.Join(leaves, ", "))
	}
	v.list(first+cluster.FormatHosts(names)+"  ", rest+"    ", pieces)
}

// leaves are the devices at the ends of a branch.
func (v *treePrinter) leaves(d int) []int {
	if len(v.of[d]) == 0 {
		return []int{d}
	}
	var out []int
	for _, k := range v.of[d] {
		out = append(out, v.leaves(k)...)
	}
	return out
}

func (v *treePrinter) name(d int) string {
	dev := &v.t.Devices[d]
	switch dev.Kind {
	case cluster.GPU:
		return v.green(dev.Name)
	case cluster.NIC:
		name := v.cyan(dev.Name)
		if dev.Label != "" && dev.Label != dev.Name {
			name += " " + dev.Label
		}
		return name
	}
	return deviceName(v.t, d)
}

// fields says everything about a device; its address only where it is wanted.
func (v *treePrinter) fields(d int, address bool) fieldList {
	dev := &v.t.Devices[d]
	var l fieldList
	l.figure(dev.Model.Value, dev.Model.Origin)
	switch dev.Kind {
	case cluster.Socket, cluster.NUMA:
		l.cpu(dev.CPU, dev.Model.Known() || v.saidAbove(d))
	case cluster.GPU:
		l.gpu(dev.GPU)
	case cluster.NIC:
		l.nic(dev.NIC)
	case cluster.PCISwitch:
		if !dev.Model.Known() {
			l.say("PCIe switch")
		}
	}
	if address {
		l.say(string(dev.PCI))
	}
	if v.up[d] >= 0 && v.t.Links[v.up[d]].Kind != cluster.OnDie {
		link := &v.t.Links[v.up[d]]
		l.link(link)
		v.rates = v.rates || link.Rate.Known()
	}
	return l
}

// saidAbove reports whether the socket of a NUMA domain names the processor.
func (v *treePrinter) saidAbove(d int) bool {
	p := v.t.Devices[d].Parent
	if p < 0 {
		return false
	}
	up := &v.t.Devices[p]
	return up.Model.Known() || up.CPU != nil && up.CPU.Vendor != ""
}

// cpu describes a socket or NUMA domain; named says that its model is told
// already.
func (l *fieldList) cpu(c *cluster.CPUInfo, named bool) {
	if c == nil {
		return
	}
	if c.Vendor != "" && c.Family > 0 && !named {
		l.say(fmt.Sprintf("%s family %d model %d", c.Vendor, c.Family, c.Model))
	}
	if c.Cores != "" {
		l.say("cores " + shortCores(c.Cores, 80))
	}
	if c.Memory.Known() {
		l.figure(memory(c.Memory.Value), c.Memory.Origin)
	}
}

func (l *fieldList) gpu(g *cluster.GPUInfo) {
	if g == nil {
		return
	}
	if g.Memory.Known() {
		l.figure(memory(g.Memory.Value), g.Memory.Origin)
	}
	if g.HBM.Known() {
		l.figure("memory "+g.HBM.Value.String(), g.HBM.Origin)
	}
	if len(g.Slices) > 0 {
		l.say(words.Plural(len(g.Slices), "MIG slice"))
	}
	if g.GDR == cluster.No {
		l.add(field{text: "no GDR", bare: true, bad: true})
	}
}

func (l *fieldList) nic(n *cluster.NICInfo) {
	if n == nil {
		return
	}
	if kind := netName(n.Kind); !l.says(kind) {
		l.say(kind)
	}
	for i := range n.Ports {
		l.port(&n.Ports[i], len(n.Ports) > 1)
	}
	switch n.GDR {
	case cluster.Yes:
		l.add(field{text: "GDR-capable", bare: true})
	case cluster.No:
		l.add(field{text: "no GDR", bare: true, bad: true})
	}
	if n.Reduction == cluster.Yes {
		l.add(field{text: "in-network reduction", bare: true})
	}
}

func (l *fieldList) port(p *cluster.Port, many bool) {
	name := ""
	if many {
		name = "port " + strconv.Itoa(p.Num) + ": "
		if p.Label != "" {
			name = p.Label + ": "
		}
	}
	if p.Rate.Known() {
		l.figure(name+p.Rate.Value.Bits(), p.Rate.Origin)
		name = ""
		if p.Max.Origin > cluster.Spec && p.Max.Value > p.Rate.Value {
			l.warn("could do " + p.Max.Value.Bits())
		}
	}
	if p.MTU.Known() {
		l.figure(fmt.Sprintf("%sMTU %d B", name, p.MTU.Value), p.MTU.Origin)
		name = ""
	}
	switch p.State {
	case cluster.Up:
		l.say(name + "up")
	case cluster.Down, cluster.Init:
		l.warn(name + p.State.String())
	}
}

// signature is equal for sets of devices that differ only in names and addresses.
func (v *treePrinter) signature(ids []int) string {
	var b strings.Builder
	var walk func(d int)
	walk = func(d int) {
		dev := &v.t.Devices[d]
		b.WriteString("(" + dev.Kind.String())
		for _, f := range v.fields(d, false) {
			b.WriteString("|" + f.text + f.origin.String())
		}
		for _, k := range v.of[d] {
			walk(k)
		}
		b.WriteString(")")
	}
	for _, d := range ids {
		walk(d)
	}
	return b.String()
}
