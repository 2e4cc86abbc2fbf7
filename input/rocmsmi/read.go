package rocmsmi

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lines"
)

const (
	rocmFormat = "rocm-smi --showtopo"
	amdFormat  = "amd-smi topology"
)

// Match reports whether data holds a topology of rocm-smi or amd-smi.
func Match(data []byte) bool {
	if !lines.HasAny(data, "between two GPUs", "LINK TYPE TABLE:") {
		return false
	}
	_, err := Read("", bytes.NewReader(data))
	return err == nil
}

// Read reads the topology of every machine in a text.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	p := &parser{open: map[string]*machine{}}
	if err := p.heads.Each(name, r, p.takeLine); err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: rocmFormat, Source: name}
	machines := p.finish()
	slices.SortStableFunc(machines, func(a, b *machine) int { return a.line - b.line })
	types := map[string]int{}
	for _, m := range machines {
		if len(m.gpus) == 0 {
			continue
		}
		if m.amdsmi {
			f.Format = amdFormat
		}
		m.addTo(f, types)
	}
	if len(f.Types) == 0 {
		return nil, fmt.Errorf("%s: no topology found; expected tables headed GPU0 GPU1 … under titles such as Link Type "+
			"between two GPUs; save the output of rocm-smi --showtopo or amd-smi topology", name)
	}
	if p.over {
		f.Warnf(0, "", "too many hosts; the rest is left out")
	}
	return f, nil
}

// addTo adds a machine to the fragment. types finds the type of machines that
// printed the same.
func (m *machine) addTo(f *cluster.Fragment, types map[string]int) {
	hosts := m.hosts
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	printed := fmt.Sprint(m.gpus, m.table, m.numa)
	at, known := types[printed]
	if !known {
		at = len(f.Types)
		types[printed] = at
		m.addType(f, hosts[0])
	}
	more := 0
	for _, t := range m.table {
		if t == nil {
			continue
		}
		more += t.Warns.AddTo(f, hosts[0])
		if missing := t.Missing(); missing != "" {
			f.Warnf(t.Line, hosts[0], "%s", missing)
		}
	}
	if more += m.warns.AddTo(f, hosts[0]); more > 0 {
		f.Warnf(m.line, hosts[0], "%d more lines could not be used whole", more)
	}
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: at})
	}
}

func (m *machine) addType(f *cluster.Fragment, host string) {
	devs, numa := m.devices(f.Format), []cluster.Fact[int]{}
	class, unknown := m.classes()
	for i := range devs {
		// What joins a pair of no known type must not be guessed: a tree of NUMA domains would say SYS of it.
		if numa = append(numa, devs[i].GPU.NUMA); unknown {
			devs[i].GPU.NUMA = cluster.Fact[int]{}
		}
	}
	node, warns := cluster.TreeFromMatrix(devs, class)
	for i, n := range numa {
		node.Devices[i].GPU.NUMA = n
	}
	for _, w := range warns {
		f.Warnf(m.line, strings.Trim(host+"/"+w.Where, "/"), "%s", w.Text)
	}
	f.Types = append(f.Types, node)
}

func (m *machine) devices(format string) []cluster.Device {
	devs := make([]cluster.Device, len(m.gpus))
	var differ []string
	for i, name := range m.gpus {
		d := board.GPU("amd", i)
		if n, ok := lines.Numbered(name, "GPU"); ok {
			d.Index = n
		} else {
			d.PCI, _ = cluster.ParsePCI(name) // amd-smi lists GPUs in the order of their index
		}
		// The affinity is what the kernel gives the device, the node the nearest in the driver's own topology, which for
		// partitions of a GPU other than the first is not that of the partition.
		at, said := m.numa[[2]string{name, "Affinity"}]
		node, has := m.numa[[2]string{name, "Node"}]
		if said, has = said && at >= 0, has && node >= 0; said || has {
			if !said {
				at = node
			}
			d.GPU.NUMA = cluster.FromRead(at, format)
			if has && node != at {
				differ = append(differ, name)
			}
		}
		devs[i] = d
	}
	if len(differ) > 0 {
		g := differ[0]
		m.warns.Addf(m.line, "%d GPUs have a NUMA affinity other than their NUMA node (%s: %d and %d); kept the affinity",
			len(differ), g, m.numa[[2]string{g, "Affinity"}], m.numa[[2]string{g, "Node"}])
	}
	return devs
}

// cell is the word of a table, "" where it has none.
func (m *machine) cell(k kind, i, j int) string {
	if t := m.table[k]; t != nil && t.Rows[i] != nil {
		return t.Rows[i].Cells[j]
	}
	return ""
}

// classes turns the tables into path classes. Only what they show is said: an
// xGMI link, or that PCIe crosses NUMA domains; and whether cells name no type.
func (m *machine) classes() ([][]cluster.Class, bool) {
	class := make([][]cluster.Class, len(m.gpus))
	unknown := 0
	for i := range m.gpus {
		class[i] = make([]cluster.Class, len(m.gpus))
		for j := range m.gpus {
			if i == j {
				class[i][j] = cluster.Class{Type: cluster.Self}
				continue
			}
			switch m.cell(linkType, i, j) {
			case "XGMI":
				if m.hops(i, j) == 1 { // a link of its own, or no word about it
					class[i][j] = cluster.Class{Type: cluster.XG}
				}
			case "PCIE":
				// The kernel counts two hops to a GPU of the same NUMA domain, three to another.
				if m.hops(i, j) >= 3 {
					class[i][j] = cluster.Class{Type: cluster.SYS}
				}
			case "":
			default:
				unknown++
			}
		}
	}
	if unknown > 0 {
		m.warns.Addf(m.line, "%d cells of the link types name no type (such as XXXX); taken as unknown", unknown)
	}
	return class, unknown > 0
}

// hops is how far a pair is, 1 where no word is said about it.
func (m *machine) hops(i, j int) int { return num.Or(m.cell(hops, i, j), 0, 1<<20, 1) }
