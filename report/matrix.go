package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
)

// Matrix prints a table for every kind of node as nvidia-smi topo -m prints it:
// path classes between GPUs and NICs, CPU and NUMA affinity, a legend, and a
// legend of the NICs. Cells are padded and separated by tabs, so that the columns
// line up for a person and come apart for a program.
func Matrix(w io.Writer, c *cluster.Cluster) error {
	var b strings.Builder
	all := groups(c)
	shown := 0
	for _, g := range all {
		if g.t == nil {
			fmt.Fprintf(&b, "# %s without a description of their inside: %s\n\n", words.Plural(len(g.hosts), "host"),
				hostList(g.names(c), 400))
			continue
		}
		if len(all) > 1 {
			fmt.Fprintf(&b, "# %s: %s %s\n", g.t.Name, words.Plural(len(g.hosts), "node"), hostList(g.names(c), 400))
		}
		writeMatrix(&b, g.t)
		b.WriteString("\n")
		shown++
	}
	if shown > 0 {
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
	for _, stem := range []string{"gpu", "nic"} {
		if rest, ok := strings.CutPrefix(name, stem); ok && rest != "" && strings.Trim(rest, "0123456789") == "" {
			return strings.ToUpper(stem) + rest
		}
	}
	return name
}

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
	gpus := t.Of(cluster.GPU)
	if len(gpus) > 0 {
		tab.Columns = append(tab.Columns, texttab.Column{Head: "CPU Affinity"}, texttab.Column{Head: "NUMA Affinity"})
	}
	for i, n := range m.Names {
		row := append([]string{cellName(n)}, m.Class[i]...)
		if i < len(gpus) {
			row = append(row, affinity(t, gpus[i])...)
		}
		tab.Row(row...)
	}
	// nvidia-smi leaves the cells of NIC rows out; blanks up to the end of a line
	// would only be noise.
	for line := range strings.Lines(tab.String()) {
		b.WriteString(strings.TrimRight(line, " \t\n") + "\n")
	}
	if nics := t.Of(cluster.NIC); len(nics) > 0 {
		b.WriteString("\nNIC Legend:\n\n")
		for _, n := range nics {
			fmt.Fprintf(b, "  %s: %s\n", cellName(t.Devices[n].Name), t.Devices[n].Title())
		}
	}
}

// affinity is the CPU and NUMA cells of a GPU.
func affinity(t *cluster.NodeType, gpu int) []string {
	cores, numa := coresOf(t, gpu), "N/A"
	cores = cmp.Or(cores, "N/A")
	if k := numaOf(t, gpu); k >= 0 {
		numa = strconv.Itoa(k)
	}
	return []string{cores, numa}
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
	if classes, _ := classCounts(m, 0, len(m.Names), 0, len(m.Names)); len(classes) == 1 &&
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
	if classes, _ := classCounts(m, 0, rows, 0, rows); fold && rows > 2 && len(classes) == 1 && rows < len(m.Names) {
		p.folded, skip = true, rows
		p.printf("  %s between all GPUs\n", p.class(classes[0]))
	}
	cell := 0
	for i, n := range m.Names {
		cell = max(cell, len(n))
		for _, c := range m.Class[i] {
			cell = max(cell, len(c))
		}
	}
	gap := "  "
	if 2+cell+(len(m.Names)-skip)*(cell+2) > p.width {
		gap = " "
	}
	per := max(4, (p.width-2-cell)/(cell+len(gap))) // columns that fit
	parts := [][2]int{{skip, len(m.Names)}}
	if skip == 0 && rows < len(m.Names) && per < len(m.Names) {
		parts = [][2]int{{0, rows}, {rows, len(m.Names)}} // NICs below the GPUs
	}
	for _, part := range parts {
		from, to := part[0], part[1]
		blocks := (to - from + per - 1) / per
		each := (to - from + blocks - 1) / blocks
		for ; from < to; from += each {
			p.matrixBlock(m, rows, from, min(from+each, to), gap)
		}
	}
	p.classLegend(m, rows)
}

// classCounts counts the classes of pairs between rows and columns, in the order in which they come.
func classCounts(m cluster.Matrix, row, rows, column, columns int) (classes []string, count map[string]int) {
	count = make(map[string]int)
	for ; row < rows; row++ {
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

// matrixBlock prints some columns of the first rows.
func (p *printer) matrixBlock(m cluster.Matrix, rows, from, to int, gap string) {
	tab := p.columns("")
	tab.Gap = gap
	for _, n := range m.Names[from:to] {
		tab.Columns = append(tab.Columns, texttab.Column{Head: n, Align: texttab.Right})
	}
	for i, n := range m.Names[:rows] {
		row := []string{p.bold(n)}
		for _, c := range m.Class[i][from:to] {
			row = append(row, p.class(c))
		}
		tab.Row(row...)
	}
	p.table(tab)
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
	for _, row := range m.Class[:rows] {
		for _, s := range row {
			if c, ok := cluster.ParseClass(s); ok {
				seen[c.Type] = true
			}
		}
	}
	var parts []string
	for k := cluster.ClassType(0); k <= cluster.NET; k++ {
		c := cluster.Class{Type: k}
		name := c.String()
		if k == cluster.NV {
			name = "NV#"
		}
		if seen[k] && k != cluster.Self {
			parts = append(parts, name+" "+c.Meaning())
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
		classes, count := classCounts(m, 0, gpus, column, columns)
		for i, s := range classes {
			classes[i] = fmt.Sprintf("%s %s", p.class(s), words.Plural(count[s], "pair"))
		}
		p.list("  "+name+"  ", "           ", classes)
	}
	say("GPU–GPU", 0, gpus)
	say("GPU–NIC", gpus, len(m.Names))
	p.classLegend(m, gpus)
}
