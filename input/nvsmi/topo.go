package nvsmi

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lines"
)

const topoFormat = "nvidia-smi topo -m"

// MatchMatrix reports whether data may hold a matrix, of path classes or of peer access: a line that could be a row,
// such as "GPU0 X PIX", whole or cut.
func MatchMatrix(data []byte) bool {
	return gather.Find(data, "GPU", func(text string) bool {
		words := append(strings.Fields(withoutBars(text)), "")
		_, gpu := lines.Numbered(words[0], "GPU")
		return gpu && anyCell(words[1:])
	})
}

// ReadMatrices reads every matrix of a text: a fragment of those of path classes, and one of those of peer access;
// none where a text has none.
func ReadMatrices(name string, r io.Reader) (list []*cluster.Fragment, err error) {
	tables, err := scan(name, r)
	if err != nil {
		return nil, err
	}
	var classes, access []*table
	for _, t := range tables {
		if t.isP2P() {
			access = append(access, t)
		} else {
			classes = append(classes, t)
		}
	}
	for _, of := range []struct {
		tables []*table
		read   func(name string, tables []*table) (*cluster.Fragment, error)
	}{{classes, readTopo}, {access, readP2P}} {
		if len(of.tables) > 0 {
			f, err := of.read(name, of.tables)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
	}
	return list, nil
}

// readTopo makes one node for each matrix of path classes, or one for all hosts that a gathering tool names. The PCIe
// tree is built to fit the matrix.
func readTopo(name string, tables []*table) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: topoFormat, Source: name}
	machines := sameMachine(tables)
	types := map[[sha256.Size]byte]int{}
	for _, m := range machines {
		if err := m.addMachine(f, len(machines) > 1, types); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
	}
	return f, nil
}

// sameMachine gives one table of those one behind the other that agree: they describe one machine. Of topo -m and topo
// -mp, which shows NVLinks as the PCIe path that they hide, it is the former.
func sameMachine(tables []*table) (out []*table) {
	last := map[string]int{} // of the same hosts and columns
	for _, t := range tables {
		key := strings.Join(t.hosts, " ") + "|" + strings.Join(t.Cols, " ")
		if at, ok := last[key]; !ok || !agree(out[at], t) {
			last[key] = len(out)
			out = append(out, t)
		} else if t.nvlinks() > out[at].nvlinks() {
			out[at] = t
		}
	}
	return out
}

// nvlinks counts the cells that name NVLinks.
func (t *table) nvlinks() int { return strings.Count(t.String(), `"NV`) }

// agree reports whether two tables of the same columns differ at most where one
// names an NVLink and the other the PCIe path that it hides.
func agree(a, b *table) bool {
	if a.prompt != "" && b.prompt != "" && a.prompt != b.prompt {
		return false
	}
	for i := range a.Rows {
		x, y := a.Rows[i], b.Rows[i]
		if x == nil || y == nil {
			continue
		}
		if len(x.Tail) > 0 && len(y.Tail) > 0 && !slices.Equal(x.Tail, y.Tail) {
			return false
		}
		for j := range min(len(x.Cells), len(y.Cells)) {
			p, q := x.Cells[j], y.Cells[j]
			if p != q && p != "" && q != "" && strings.HasPrefix(p, "NV") == strings.HasPrefix(q, "NV") {
				return false
			}
		}
	}
	return true
}

// addMachine adds the machine to the fragment. types finds the type of machines that
// printed the same: ten thousand equal nodes are one type.
func (t *table) addMachine(f *cluster.Fragment, several bool, types map[[sha256.Size]byte]int) error {
	if err := t.Check(); err != nil {
		return err
	}
	if rows := t.Count(); 2*t.wide > rows {
		return fmt.Errorf("%d: %d of %d rows have more cells than the header has columns (%d): names ran together there, "+
			"and which cell is whose is not known; copy the output again, with its white space", t.Line, t.wide, rows,
			len(t.Cols))
	}
	hosts := t.names(several)
	t.dropDamaged()
	t.addTo(f, hosts[0])
	sum := sha256.Sum256(fmt.Append(nil, t, t.tails, t.legend))
	at, known := types[sum]
	if !known {
		at = len(f.Types)
		types[sum] = at
		t.addType(f, hosts[0])
	}
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: at})
	}
	return nil
}

func (t *table) addType(f *cluster.Fragment, host string) {
	keep, devs := t.devices()
	node, warns := cluster.TreeFromMatrix(devs, t.classes(keep))
	for _, w := range warns {
		f.Warnf(t.Line, strings.Trim(host+"/"+w.Where, "/"), "%s", w.Text)
	}
	f.Types = append(f.Types, node)
}

// devices makes the GPUs and NICs of a table. keep lists their columns; columns
// of NVMe drives (topo -nvme) are left out.
func (t *table) devices() (keep []int, devs []cluster.Device) {
	nics := 0
	for i, name := range t.Cols {
		cores, numa := "", cluster.Fact[int]{}
		if r := t.Rows[i]; r != nil {
			c, n := t.affinity(r)
			if cores = c; n >= 0 {
				numa = cluster.FromRead(n, topoFormat)
			}
		}
		var d cluster.Device
		if n, ok := lines.Numbered(name, "GPU"); ok {
			d = board.GPU("nvidia", n)
			d.GPU.Cores, d.GPU.NUMA = cores, numa
		} else if strings.HasPrefix(strings.ToLower(name), "nvme") {
			continue
		} else {
			d = board.NIC(name)
			d.Index, d.NIC.NUMA = nics, numa
			nics++
			if n, ok := lines.Numbered(name, "NIC"); ok {
				d.Index, d.Label = n, t.legend[name]
			}
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
		r := t.Rows[a]
		if r == nil || r.Cells == nil {
			continue
		}
		out[i] = make([]cluster.Class, len(keep))
		for j, b := range keep {
			out[i][j], _ = cluster.ParseClass(r.Cells[b])
		}
	}
	return out
}
