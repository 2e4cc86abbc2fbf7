package nvsmi

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lines"
)

const topoFormat = "nvidia-smi topo -m"

// MatchTopo reports whether data holds a matrix of path classes.
func MatchTopo(data []byte) bool { return matchTable(data, false) }

// matchTable looks for a matrix: of classes or, for p2p, of peer access. Most
// texts have no line that could be a row; the others are scanned as Read does.
func matchTable(data []byte, p2p bool) bool {
	if !gather.Find(data, "GPU", maybeRow) {
		return false
	}
	tables, err := scan("", bytes.NewReader(data), p2p)
	return err == nil && len(tables) > 0
}

// maybeRow reports a line such as "GPU0 X PIX", whole or cut.
func maybeRow(text string) bool {
	text = plain(text)
	if !startsWithGPU(text) {
		return false
	}
	words := strings.Fields(text)
	_, gpu := lines.Numbered(words[0], "GPU")
	return gpu && anyCell(words[1:])
}

// ReadTopo reads every matrix of path classes in a text: one node for each, or
// one for all hosts that a gathering tool names. The PCIe tree is built to fit
// the matrix.
func ReadTopo(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: topoFormat, Source: name}
	tables, err := scan(name, r, false)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("%s: no matrix of path classes found; expected a header of GPU0 GPU1 … and rows such as "+
			"GPU0 X NV12; save the output of nvidia-smi topo -m", name)
	}
	machines := sameMachine(tables)
	types := map[[sha256.Size]byte]int{}
	for _, m := range machines {
		if err := m.addTo(f, len(machines) > 1, types); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
	}
	return f, nil
}

// machine is one machine's tables: that of topo -m, perhaps that of topo -mp,
// and how often they were printed.
type machine struct {
	tables []*table
	times  int
}

// sameMachine groups the tables that describe one machine.
func sameMachine(tables []*table) []*machine {
	var out []*machine
	at := map[string][]*machine{}
	for _, t := range tables {
		key := strings.Join(t.hosts, " ") + "|" + strings.Join(t.head.cols, " ")
		i := slices.IndexFunc(at[key], func(m *machine) bool { return agree(m.tables[0], t) })
		if i < 0 {
			m := &machine{tables: []*table{t}, times: 1}
			out = append(out, m)
			at[key] = append(at[key], m)
			// A text with very many unlike tables of one shape would cost their square.
			if len(at[key]) > 64 {
				at[key] = at[key][1:]
			}
			continue
		}
		m := at[key][i]
		switch {
		case slices.ContainsFunc(m.tables, func(o *table) bool { return equal(o, t) }):
			m.times++
		case len(m.tables) < 4:
			m.tables = append(m.tables, t)
		}
	}
	for _, m := range out {
		slices.SortStableFunc(m.tables, func(a, b *table) int { return b.nvlinks() - a.nvlinks() })
	}
	return out
}

func (t *table) nvlinks() int {
	n := 0
	for _, r := range t.rows {
		if r == nil {
			continue
		}
		for _, c := range r.cells {
			if strings.HasPrefix(c, "NV") {
				n++
			}
		}
	}
	return n
}

func equal(a, b *table) bool {
	for i := range a.rows {
		if a.rows[i] == nil != (b.rows[i] == nil) || a.rows[i] != nil && !slices.Equal(a.rows[i].cells, b.rows[i].cells) {
			return false
		}
	}
	return true
}

// agree reports whether two tables of the same columns differ at most where one
// names an NVLink and the other the PCIe path that it hides.
func agree(a, b *table) bool {
	if a.prompt != "" && b.prompt != "" && a.prompt != b.prompt {
		return false
	}
	for i := range a.rows {
		x, y := a.rows[i], b.rows[i]
		if x == nil || y == nil {
			continue
		}
		if len(x.tail) > 0 && len(y.tail) > 0 && !slices.Equal(x.tail, y.tail) {
			return false
		}
		for j := range min(len(x.cells), len(y.cells)) {
			p, q := x.cells[j], y.cells[j]
			if p != q && p != "" && q != "" && strings.HasPrefix(p, "NV") == strings.HasPrefix(q, "NV") {
				return false
			}
		}
	}
	return true
}

// addTo adds the machine to the fragment. types finds the type of machines that
// printed the same: ten thousand equal nodes are one type.
func (m *machine) addTo(f *cluster.Fragment, several bool, types map[[sha256.Size]byte]int) error {
	t := m.tables[0]
	host := ""
	if len(t.hosts) > 0 {
		host = t.hosts[0]
	} else if several {
		host = t.prompt
	}
	if t.head.over {
		return fmt.Errorf("%d: more than %d columns; a node has fewer devices; cut the text to one matrix", t.line,
			maxDevices)
	}
	if over, rows := t.wider(); 2*over > rows {
		return fmt.Errorf("%d: %d of %d rows have more cells than the header has columns (%d): names ran together there, "+
			"and "+
			"which cell is whose is not known; copy the output again, with its white space", t.line, over, rows,
			len(t.head.cols))
	}
	if t.head.bad != "" {
		f.Warnf(t.line, host, "column %s stands twice in the header; the second is left out", t.head.bad)
	}
	t.reportMissing(f, host)
	for _, o := range m.tables {
		o.addTo(f, host)
	}
	sum := m.sum()
	at, known := types[sum]
	if !known {
		at = len(f.Types)
		types[sum] = at
		m.addType(f, host)
	}
	if m.times > 1 && host == "" {
		f.Warnf(t.line, "", "the matrix stands here %d times without host names; taken as one machine", m.times)
	}
	hosts := t.hosts
	if len(hosts) == 0 {
		hosts = []string{host}
	}
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: at})
	}
	return nil
}

// wider counts the rows with more cells than the header has columns, and all.
func (t *table) wider() (over, rows int) {
	for _, r := range t.rows {
		if r != nil {
			rows++
			if r.wide {
				over++
			}
		}
	}
	return over, rows
}

func (m *machine) addType(f *cluster.Fragment, host string) {
	t := m.tables[0]
	keep, devs := t.devices()
	class := make([][][]cluster.Class, len(m.tables))
	for k, o := range m.tables {
		class[k] = o.classes(keep)
	}
	node, warns := cluster.TreeFromMatrix(devs, class[0], class[1:]...)
	for _, w := range warns {
		f.Warnf(t.line, strings.Trim(host+"/"+w.Where, "/"), "%s", w.Text)
	}
	f.Types = append(f.Types, node)
}

// sum is equal for machines that printed the same.
func (m *machine) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, t := range m.tables {
		fmt.Fprintf(h, "%q %v\n", t.head.cols, t.head.tails)
		for i, r := range t.rows {
			if r != nil {
				fmt.Fprintf(h, "%q %q %q\n", r.cells, r.tail, t.legend[t.head.cols[i]])
			} else {
				fmt.Fprintf(h, "- %q\n", t.legend[t.head.cols[i]])
			}
		}
	}
	h.Sum(sum[:0])
	return sum
}

// reportMissing warns once of the rows that the text does not have.
func (t *table) reportMissing(f *cluster.Fragment, host string) {
	var names []string
	for i, r := range t.rows {
		if r == nil && t.head.cols[i] != "" {
			names = append(names, t.head.cols[i])
		}
	}
	if len(names) == 0 {
		return
	}
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more", len(names)-8)
		names = names[:8]
	}
	f.Warnf(t.line, host, "no row for %s%s: the matrix is cut off; their relations are known from the other rows only",
		strings.Join(names, ", "), more)
}

// devices makes the GPUs and NICs of a table. keep lists their columns; columns
// of NVMe drives (topo -nvme) and repeated names are left out.
func (t *table) devices() (keep []int, devs []cluster.Device) {
	nics := 0
	for i, name := range t.head.cols {
		d := cluster.Device{Parent: -1}
		cores, numa := "", -1
		if t.rows[i] != nil {
			cores, numa = t.affinity(t.rows[i])
		}
		var where cluster.Fact[int]
		if numa >= 0 {
			where = cluster.FromRead(numa, topoFormat)
		}
		if n, ok := lines.Numbered(name, "GPU"); ok {
			d.Kind, d.Index = cluster.GPU, n
			d.GPU = &cluster.GPUInfo{Vendor: "nvidia", Cores: strings.Clone(cores), NUMA: where}
		} else if name != "" && !strings.HasPrefix(strings.ToLower(name), "nvme") {
			d.Kind, d.Index, d.Label = cluster.NIC, nics, name
			nics++
			if n, ok := lines.Numbered(name, "NIC"); ok {
				d.Index, d.Label = n, t.legend[name]
			}
			d.NIC = &cluster.NICInfo{NUMA: where}
		} else {
			continue
		}
		keep = append(keep, i)
		devs = append(devs, d)
	}
	return keep, devs
}

// classes turns the words of the kept columns into classes.
func (t *table) classes(keep []int) [][]cluster.Class {
	out := make([][]cluster.Class, len(keep))
	for i, a := range keep {
		r := t.rows[a]
		if r == nil {
			continue
		}
		out[i] = make([]cluster.Class, len(keep))
		for j, b := range keep {
			if b < len(r.cells) {
				out[i][j], _ = cluster.ParseClass(r.cells[b])
			}
		}
	}
	return out
}
