package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
)

// TextOptions say how Text prints. The zero value is plain text, 100 wide.
type TextOptions struct {
	Color bool // SGR codes
	Width int  // of the terminal; 100 when zero
	// Verbose shows more: what a time is made of, whole lists.
	Verbose bool
}

func (o TextOptions) width() int {
	if o.Width <= 0 {
		return 100
	}
	return max(o.Width, 40)
}

// How much of a long list is printed before the rest is only counted.
const (
	maxMatrix  = 24 // devices in the matrix of the text
	maxNICRows = 16 // devices in a matrix that still has the rows of NICs

	maxWholeMatrix = 8 // devices in the matrix of a cluster's node that is printed whole
	maxGPURows     = 16
	maxSwitches    = 40
	maxNotes       = 20
	maxLinks       = 12
)

// clusterText prints a cluster for a terminal: what it has, its nodes in a line each and the network; then the tree of every
// kind of node, its matrix, what lies nearest to what, and what the readers noticed. The count of findings, which are printed
// elsewhere, stands in its first line.
func clusterText(w io.Writer, c *cluster.Cluster, findings string, o TextOptions) error {
	return write(w, o, func(s style) string {
		p := &printer{c: c, findings: findings, style: s, width: o.width(), terminal: o.Width, compact: !o.Verbose && len(c.Hosts) > 1}
		p.cluster()
		return p.b.String()
	})
}

// cluster prints all of it.
func (p *printer) cluster() {
	p.headline()
	all := p.families(groups(p.c))
	p.nodes(all)
	p.network()
	for _, f := range all {
		if f.t != nil {
			p.nodeType(f.t)
		}
	}
	p.benches()
	p.notes()
	if p.rates || p.folded {
		p.printf("\n")
	}
	if p.rates {
		p.para("", p.dim("Rates are one direction; GB = 10⁹ bytes. Brackets give a figure's source; spec: data sheet."))
	}
	if p.folded {
		p.para("", p.dim("What is alike is shown once; -v shows all."))
	}
}

// printer collects the text of a cluster.
type printer struct {
	style
	c        *cluster.Cluster
	findings string // how many there are
	b        strings.Builder
	width    int
	// terminal is its number of columns; 0 is any number.
	terminal int
	rates    bool // a rate was printed
	// compact folds nodes, branches of the PCIe tree and tables that are alike: a cluster is more than a screen without that.
	compact, folded bool
	// titles are what the devices of the node type at hand are called.
	titles []string
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// para prints a wrapped text; lines after the first are indented by two more.
func (p *printer) para(indent, s string) {
	for i, l := range texttab.Wrap(s, p.width-len(indent)-2) {
		if i > 0 {
			p.b.WriteString("  ")
		}
		p.printf("%s%s\n", indent, l)
	}
}

// list prints pieces with a dot between them, wrapped between pieces.
func (p *printer) list(first, rest string, pieces []string) {
	for i, l := range texttab.Flow(pieces, p.dim(" · "), p.width-texttab.Width(first)) {
		if i == 0 {
			p.printf("%s%s\n", first, l)
			continue
		}
		p.printf("%s%s\n", rest, l)
	}
}

func (p *printer) heading(s string) { p.printf("\n%s\n", p.bold(s)) }

// columns is a table below a heading.
func (p *printer) columns(heads ...string) *texttab.Table {
	t := texttab.New(heads...)
	t.Indent = "  "
	return t
}

func (p *printer) table(t *texttab.Table) {
	p.b.WriteString(p.fit(t, p.terminal))
}

func (p *printer) headline() {
	s := p.c.Summary()
	name := cmp.Or(p.c.Name, "cluster")
	parts := summaryParts(s)
	if s.GPUs == 0 {
		parts = append(parts, "no GPU known")
	}
	if p.findings != "" {
		parts = append(parts, p.findings)
	}
	p.list(p.bold(name)+"  ", "  ", parts)
	if len(p.c.Sources) > 0 {
		shown := p.c.Sources
		if len(shown) > 6 {
			shown = append(shown[:6:6], fmt.Sprintf("… and %d more", len(p.c.Sources)-6))
		}
		p.para("", p.dim("from "+strings.Join(shown, ", ")))
	}
}

// summaryParts counts what there is, leaving out what there is none of.
func summaryParts(s cluster.Summary) []string {
	var parts []string
	for _, n := range []struct {
		n    int
		noun string
	}{{s.Nodes, "node"}, {s.GPUs, "GPU"}, {s.NICs, "NIC"}, {s.Switches, "switch"}} {
		if n.n > 0 {
			parts = append(parts, words.Plural(n.n, n.noun))
		}
	}
	return parts
}

// nodes prints what a node of each kind has, and how those that are nearly like it differ.
func (p *printer) nodes(all []family) {
	if len(all) > 0 {
		p.heading("Nodes")
	}
	for _, f := range all {
		g := f.all()
		title := "not described"
		if g.t != nil {
			title = nodeName(g.t)
		}
		if len(g.hosts) > 1 {
			title += fmt.Sprintf(" × %d", len(g.hosts))
		}
		if names := g.names(p.c); len(names) > 0 {
			title += ": " + hostList(names, 2*p.width)
		}
		p.para("  ", title)
		if g.t != nil {
			p.list("    ", "    ", p.nodeWords(g.t))
		}
		for i, n := range f.near {
			if i == maxNotes {
				p.printf("    %s\n", p.dim(fmt.Sprintf("… and %s more that differ", words.Plural(len(f.near)-i, "kind"))))
				break
			}
			p.folded = true
			p.para("    ", hostList(n.names(p.c), p.width)+": "+strings.Join(n.differs, "; "))
		}
	}
	p.outOfService()
}

// outOfService prints the nodes that a scheduler gives no jobs, by state; the audit has the reasons.
func (p *printer) outOfService() {
	by := map[string][]int{}
	for i := range p.c.Hosts {
		if o := p.c.Hosts[i].Out; o != nil {
			by[o.State] = append(by[o.State], i)
		}
	}
	for _, state := range slices.Sorted(maps.Keys(by)) {
		p.para("  ", p.yellow(state)+" in Slurm: "+hostList(hostNames(p.c, by[state]), 2*p.width))
	}
}

// nodeWords sums up the GPUs of a node, the links between them, its NICs and its sockets.
func (p *printer) nodeWords(t *cluster.NodeType) []string {
	var list []string
	add := func(text []string) { list = append(list, strings.Join(text, ", ")) }
	if t.Count(cluster.GPU) > 0 {
		add(gpuCaption(t))
	} else {
		add([]string{"no GPU known"})
	}
	for _, s := range fastSets(t) {
		p.rates = true
		// Trays of one kind have sets of their own that read alike.
		if text := strings.Join(fastCaption(t, &s), ", "); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	if t.Count(cluster.NIC) > 0 {
		add(nicCaption(t))
	} else {
		add([]string{"no NIC known"})
	}
	if n := t.Count(cluster.Socket); n > 0 {
		add([]string{words.Plural(n, "socket")})
	}
	return list
}

// nodeName is what a kind of node is called.
func nodeName(t *cluster.NodeType) string { return cmp.Or(t.Name, "node") }

// nodeType prints the inside of a kind of node.
func (p *printer) nodeType(t *cluster.NodeType) {
	p.heading("Inside " + nodeName(t))
	p.titles = deviceTitles(t)
	if t.Tree == cluster.Assumed {
		p.para("  ", p.dim("No source shows the PCIe tree; this one is assumed and fits what they say."))
	}
	p.tree(t)
	p.fastLinks(t)
	p.cpuLinks(t)
	p.matrix(t)
	p.nearest(t)
	p.measured(t)
}

func (p *printer) benches() {
	if len(p.c.Benches) == 0 {
		return
	}
	p.heading("Measured collectives")
	t := p.columns("op", ">ranks", ">nodes", ">size", ">bus bandwidth", "source")
	for i, b := range p.c.Benches {
		if i == maxSwitches {
			t.Row(fmt.Sprintf("… and %d more", len(p.c.Benches)-i))
			break
		}
		nodes := "?"
		if b.Hosts > 0 {
			nodes = fmt.Sprint(b.Hosts)
		}
		t.Row(b.Op, fmt.Sprint(b.Ranks), nodes, b.Size.String(), b.Bus.String(), b.From)
	}
	p.table(t)
}

func (p *printer) notes() {
	if len(p.c.Warnings) == 0 {
		return
	}
	p.heading("Notes")
	for i, w := range p.c.Warnings {
		if i == maxNotes {
			p.printf("  … and %d more\n", len(p.c.Warnings)-i)
			break
		}
		lines := texttab.Wrap(w.String(), p.width-4)
		for j, l := range lines {
			mark := p.yellow("!")
			if j > 0 {
				mark = " "
			}
			p.printf("  %s %s\n", mark, l)
		}
	}
}
