package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
)

// Matrix prints a table for every kind of node as nvidia-smi topo -m prints it:
// path classes between GPUs and NICs, CPU and NUMA affinity, a legend, and a
// legend of the NICs. Cells are padded and separated by tabs, so that the columns
// line up for a person and come apart for a program.
func Matrix(w io.Writer, c *cluster.Cluster) error {
	var b strings.Builder
	all, described := c.ByType(), false
	for _, g := range all {
		if g.Type == nil {
			fmt.Fprintf(&b, "# %s without a description of their inside: %s\n\n", words.Plural(len(g.Hosts), "host"),
				hostList(c.NamesOf(g.Hosts), 400))
			continue
		}
		if len(all) > 1 {
			fmt.Fprintf(&b, "# %s: %s %s\n", g.Type.Name, words.Plural(len(g.Hosts), "node"), hostList(c.NamesOf(g.Hosts), 400))
		}
		writeMatrix(&b, g.Type)
		b.WriteString("\n")
		described = true
	}
	if described {
		b.WriteString(legend)
	}
	_, err := io.WriteString(w, texttab.Clean(b.String()))
	return err
}

const legend = `Legend:

  X    = Self
  SYS  = Connection across the link between CPU sockets or NUMA domains, besides PCIe
  NODE = Connection across PCIe and between host bridges of one NUMA domain
  PHB  = Connection across PCIe and a host bridge (the CPU)
  PXN  = Connection over NVLink to the GPU beside the NIC, then PCIe
  PXB  = Connection across several PCIe switches, without a host bridge
  PIX  = Connection across at most one PCIe switch
  NV#  = Connection across # bonded NVLinks
  XGMI = Connection across Infinity Fabric between GPUs
`

// cellName is the heading of a device: GPU0 for gpu0.
func cellName(name string) string {
	if numberedDevice.MatchString(name) {
		return strings.ToUpper(name)
	}
	return name
}

var numberedDevice = lazyre.New(`^(gpu|nic)[0-9]+$`)

func writeMatrix(b *strings.Builder, t *cluster.NodeType) {
	m := t.Matrix()
	if len(m.Names) == 0 {
		b.WriteString("# no GPU and no NIC\n")
		return
	}
	tab := texttab.New("")
	tab.Gap = "\t"
	for _, n := range m.Names {
		tab.Columns = append(tab.Columns, texttab.Column{Head: cellName(n), Align: texttab.Center})
	}
	gpus, nics := t.Of(cluster.GPU), t.Of(cluster.NIC)
	if len(gpus) > 0 {
		tab.Columns = append(tab.Columns, texttab.Column{Head: "CPU Affinity"}, texttab.Column{Head: "NUMA Affinity"})
	}
	for i, n := range m.Names {
		row := append([]string{cellName(n)}, m.Class[i]...)
		if i < len(gpus) {
			numa := t.NUMAOf(gpus[i])
			row = append(row, cmp.Or(t.CoresOf(gpus[i]), "N/A"), either(numa >= 0, strconv.Itoa(numa), "N/A"))
		}
		tab.Row(row...)
	}
	// nvidia-smi leaves the cells of NIC rows out; blanks up to the end of a line
	// would only be noise.
	for line := range strings.Lines(tab.String()) {
		b.WriteString(strings.TrimRight(line, " \t\n") + "\n")
	}
	if len(nics) > 0 {
		b.WriteString("\nNIC Legend:\n\n")
	}
	for _, n := range nics {
		fmt.Fprintf(b, "  %s: %s\n", cellName(t.Devices[n].Name), t.Devices[n].Title())
	}
}

// matrix prints the table inside the text. The rows of NICs are left out of a
// large one, for they say little; a node with very many devices gets its classes
// counted instead.
func (p *printer) matrix(t *cluster.NodeType) {
	m := t.Matrix()
	if len(m.Names) < 2 || t.Count(cluster.GPU) == 0 {
		return
	}
	p.printf("\n")
	if classes, _ := classCounts(m, len(m.Names), 0, len(m.Names)); len(classes) == 1 &&
		classes[0] == (cluster.Class{}).String() {
		p.para("  ", p.dim("Paths between devices are unknown: map the node itself or add its nvidia-smi topo -m."))
		return
	}
	if len(m.Names) > maxMatrix {
		p.matrixCounts(t, m)
		return
	}
	rows := len(m.Names)
	fold := p.compact && rows > maxWholeMatrix
	if rows > maxNICRows || fold {
		rows = t.Count(cluster.GPU)
	}
	skip := 0 // columns that a line says
	if classes, _ := classCounts(m, rows, 0, rows); fold && rows > 2 && len(classes) == 1 && rows < len(m.Names) {
		p.folded, skip = true, rows
		p.printf("  %s between all GPUs\n", p.class(classes[0]))
	}
	tab, cell := p.columns(""), 0
	for i, n := range m.Names {
		cell = max(cell, len(n), len(slices.MaxFunc(m.Class[i], func(a, b string) int { return len(a) - len(b) })))
		if i >= skip {
			tab.Columns = append(tab.Columns, texttab.Column{Head: n, Align: texttab.Right})
		}
	}
	for i, n := range m.Names[:rows] {
		row := []string{p.bold(n)}
		for _, c := range m.Class[i][skip:] {
			row = append(row, p.class(c))
		}
		tab.Row(row...)
	}
	if 2+cell+(len(m.Names)-skip)*(cell+2) > p.width {
		tab.Gap = " "
	}
	p.send(tab)
	tab.Style = p.bold
	p.text.WriteString(tab.Fit(p.width))
	p.classLegend(m, rows)
}

// classCounts counts the classes of pairs between the first rows and some columns, in the order in which they come.
func classCounts(m cluster.Matrix, rows, column, columns int) (classes []string, count map[string]int) {
	count = make(map[string]int)
	for row := range rows {
		for k := max(column, row+1); k < columns; k++ {
			for _, class := range slices.Compact([]string{m.Class[row][k], m.Class[k][row]}) { // a way back may differ
				if count[class]++; count[class] == 1 {
					classes = append(classes, class)
				}
			}
		}
	}
	return classes, count
}

// class colours a path class by how good it is.
func (p *printer) class(s string) string {
	c, _ := cluster.ParseClass(s)
	switch c.Type {
	case cluster.NV, cluster.XG, cluster.LK, cluster.C2:
		return p.green(s)
	case cluster.PIX, cluster.PXB:
		return p.cyan(s)
	case cluster.Self:
		return p.dim(s)
	case cluster.SYS, cluster.Apart:
		return p.yellow(s)
	}
	return s
}

// classLegend explains the classes that occur in the first rows.
func (p *printer) classLegend(m cluster.Matrix, rows int) {
	seen := make(map[cluster.ClassType]bool)
	for _, s := range slices.Concat(m.Class[:rows]...) {
		if c, ok := cluster.ParseClass(s); ok {
			seen[c.Type] = true
		}
	}
	var parts []string
	for k := cluster.ClassType(0); k <= cluster.NET; k++ {
		if c := (cluster.Class{Type: k}); seen[k] && k != cluster.Self {
			parts = append(parts, cmp.Or(when(k == cluster.NV, "NV#"), c.String())+" "+c.Meaning())
		}
	}
	for _, l := range texttab.Flow(parts, " · ", p.width-2) {
		p.printf("  %s\n", p.dim(l))
	}
}

// matrixCounts says how many pairs have which class.
func (p *printer) matrixCounts(t *cluster.NodeType, m cluster.Matrix) {
	gpus := t.Count(cluster.GPU)
	say := func(name string, column, columns int) {
		classes, count := classCounts(m, gpus, column, columns)
		for i, s := range classes {
			classes[i] = fmt.Sprintf("%s %s", p.class(s), words.Plural(count[s], "pair"))
		}
		p.list("  "+name+"  ", "           ", classes)
	}
	say("GPU–GPU", 0, gpus)
	say("GPU–NIC", gpus, len(m.Names))
	p.classLegend(m, gpus)
}
