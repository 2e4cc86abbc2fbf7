package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// DOT writes the cluster as a Graphviz graph: a cluster for each node that is
// drawn, with its sockets inside, and the switches above them. One or two nodes
// are written in full; of more, the first of each kind, and the others as hosts on
// their switches.
func DOT(w io.Writer, c *cluster.Cluster) error {
	d := &dotWriter{c: c, sheet: newSheet(c)}
	d.line("graph %s {", quote(d.sheet.title()))
	d.line("  graph [rankdir=TB, fontname=Helvetica, labelloc=t, label=%s]", quote(d.sheet.title()+"\nrates are one direction"))
	d.line("  node [shape=box, style=filled, fontname=Helvetica, fontsize=10]")
	d.line("  edge [fontname=Helvetica, fontsize=9]")
	d.switches()
	for i, n := range d.sheet.nodes {
		d.node(i, n)
	}
	d.hosts()
	d.cables()
	d.line("}")
	_, err := io.WriteString(w, d.b.String())
	return err
}

type dotWriter struct {
	c     *cluster.Cluster
	sheet *sheet
	b     strings.Builder
}

func (d *dotWriter) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", " ")

// quote writes a text as Graphviz reads it; labels end on terminals too, through
// its plain output.
func quote(s string) string {
	return `"` + quoter.Replace(texttab.Clean(s)) + `"`
}

func (d *dotWriter) switches() {
	for _, row := range d.sheet.net.rows {
		var ids []string
		for i := range row {
			n := &row[i]
			id := d.switchID(n)
			ids = append(ids, id)
			d.line("  %s [label=%s, fillcolor=%s, color=%s]", id, quote(strings.Join(d.switchTexts(n), "\n")), quote(netFill), quote(netViol))
		}
		d.line("  { rank=same; %s }", strings.Join(ids, "; "))
	}
}

func (d *dotWriter) switchTexts(n *netBox) []string {
	return append([]string{d.sheet.net.title(n)}, d.sheet.net.texts(n)...)
}

func (d *dotWriter) switchID(n *netBox) string { return "sw" + strconv.Itoa(n.ids[0]) }

// typeOf is the type and name of a drawn node.
func typeOf(n node) (*cluster.NodeType, string) {
	switch n := n.(type) {
	case *panel:
		return n.t, n.title
	case *rack:
		return n.t, n.title
	}
	return nil, ""
}

// node writes the inside of a node: containers as nested clusters.
func (d *dotWriter) node(i int, n node) {
	t, title := typeOf(n)
	id := func(dev int) string { return fmt.Sprintf("n%d_%d", i, dev) }
	kids, top := children(t)
	shared := make(map[int]bool)
	for _, s := range t.Shares() {
		for _, nic := range s.NICs {
			shared[nic] = s.Crowded()
		}
	}
	d.line("  subgraph cluster_n%d {", i)
	d.line("    label=%s; style=rounded; color=%s", quote(title), quote(panelLine))
	var walk func(dev int, indent string)
	walk = func(dev int, indent string) {
		x := &t.Devices[dev]
		if x.Kind == cluster.Socket {
			d.line("%ssubgraph cluster_n%d_%d {", indent, i, dev)
			d.line("%s  label=%s; style=rounded; color=%s", indent, quote(strings.TrimSpace(x.Name+" "+x.Model.Value)), quote(cpuLine))
		} else {
			look := dotLook(x.Kind)
			if shared[dev] {
				look = fmt.Sprintf("fillcolor=%s, color=%s", quote(amberBg), quote(amber))
			}
			d.line("%s%s [label=%s, %s]", indent, id(dev), quote(strings.Join(deviceLines(t, dev), "\n")), look)
		}
		for _, k := range kids[dev] {
			walk(k, indent+"  ")
		}
		if x.Kind == cluster.Socket {
			d.line("%s}", indent)
		}
	}
	for _, dev := range top {
		walk(dev, "    ")
	}
	for k := range t.Links {
		l := &t.Links[k]
		if t.Devices[l.A].Kind == cluster.Socket || t.Devices[l.B].Kind == cluster.Socket {
			continue
		}
		rank := ""
		if t.Devices[l.A].Kind == t.Devices[l.B].Kind {
			rank = ", constraint=false" // neither end is above the other
		}
		d.line("    %s -- %s [%s%s]", id(l.A), id(l.B), dotEdge(l), rank)
	}
	d.line("  }")
}

// deviceLines is a device in a few short lines.
func deviceLines(t *cluster.NodeType, d int) []string {
	x := &t.Devices[d]
	lines := []string{x.Title()}
	if unnumbered(x) {
		lines[0] = domainTitle(t, d)
	}
	if x.Model.Known() {
		lines = append(lines, shortModel(x.Model.Value))
	}
	switch {
	case x.GPU != nil && x.GPU.Memory.Known():
		lines = append(lines, memory(x.GPU.Memory.Value))
	case x.NIC != nil:
		lines = append(lines, nonEmpty(nicRateText(x))...)
	case x.Kind == cluster.NUMA && x.CPU != nil && x.CPU.Cores != "":
		lines = append(lines, "cores "+x.CPU.Cores)
	}
	return lines
}

func dotLook(k cluster.Kind) string {
	fill, line := panelFill, inkSoft
	switch k {
	case cluster.GPU:
		fill, line = nvFill, nvGreen
	case cluster.NVSwitch:
		fill, line = nvGreen, nvGreen
	case cluster.NIC:
		fill, line = netFill, netViol
	case cluster.PCISwitch:
		fill, line = pcieFill, pcieBlue
	case cluster.NUMA, cluster.RootComplex:
		fill, line = cpuFill, cpuLine
	}
	return fmt.Sprintf("fillcolor=%s, color=%s", quote(fill), quote(line))
}

func dotEdge(l *cluster.Link) string {
	p := linkPaint(l)
	label := ""
	if l.Kind != cluster.OnDie {
		label = linkName(l)
		if low := trainedLow(l); low != "" {
			label += "\n" + low
		}
		if l.Rate.Known() {
			label += "\n" + l.Rate.Value.String()
		}
	}
	if l.Kind == cluster.OnDie {
		p.Width = unknownStroke // a part of the processor, not a link to compare
	}
	s := fmt.Sprintf("label=%s, color=%s, penwidth=%.1f", quote(label), quote(p.Stroke), p.Width)
	if p.Dash != "" {
		s += ", style=dashed"
	}
	if l.OneWay {
		s += ", dir=forward"
	}
	return s
}

// hosts writes the hosts that hang on the switches without being drawn.
func (d *dotWriter) hosts() {
	if d.sheet.hosts == nil {
		return
	}
	for i := range d.sheet.hosts.items {
		it := &d.sheet.hosts.items[i]
		title, sub := d.sheet.hosts.texts(it)
		d.line("  h%d [label=%s, fillcolor=%s, color=%s]", i, quote(strings.Join(nonEmpty(title, sub), "\n")), quote(panelFill), quote(inkSoft))
	}
}

func (d *dotWriter) cables() {
	s := d.sheet
	s.lay()
	owner := make(map[*box]string)
	for r := range s.net.rows {
		for k := range s.net.rows[r] {
			owner[&s.net.rows[r][k].box] = d.switchID(&s.net.rows[r][k])
		}
	}
	if s.hosts != nil {
		for i := range s.hosts.items {
			owner[&s.hosts.items[i].box] = fmt.Sprintf("h%d", i)
		}
	}
	if s.cloud != nil {
		owner[s.cloud] = "cloud"
		d.line("  cloud [label=\"network\", shape=ellipse, style=dashed]")
	}
	for i, n := range s.nodes {
		t, _ := typeOf(n)
		for _, nic := range t.Of(cluster.NIC) {
			if b := n.port(nic); b != nil && owner[b] == "" {
				owner[b] = fmt.Sprintf("n%d_%d", i, nic)
			}
		}
	}
	markOdd(s.wires)
	for i := range s.wires {
		w := &s.wires[i]
		look := ", color=" + quote(netViol)
		if w.bad {
			look = ", style=dashed, color=" + quote(red)
		}
		d.line("  %s -- %s [label=%s%s]", owner[w.up], owner[w.down], quote(cableText(w)), look)
	}
}

// cableText is the label of cables side by side.
func cableText(w *wire) string {
	switch {
	case w.member:
		return ""
	case w.rate == 0:
		return words.Plural(w.cables, "cable")
	}
	each := (w.rate / unit.Rate(max(w.cables, 1))).Bits()
	if w.cables > 1 {
		return fmt.Sprintf("%d × %s", w.cables, each)
	}
	return each
}
