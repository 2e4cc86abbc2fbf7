package hwloc

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

// Format names what this package reads.
const Format = "hwloc lstopo XML"

// source stands beside every fact.
const source = "lstopo"

// maxMachines bounds the documents of one text.
const maxMachines = 1 << 16

// Read reads every hwloc XML document in r, one node each. name is the source's
// name for messages.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxBytes, "cut out the topology")
	if err != nil {
		return nil, err
	}
	if lines.Has(data, "<!ENTITY") {
		return nil, fmt.Errorf("%s: the text declares XML entities; lstopo writes none: remove the DOCTYPE", name)
	}
	f := &cluster.Fragment{Format: Format, Source: name}
	empty, seen := 0, 0
	err = tags.Trees(f, string(data), "topology", maxElements, func(root *object) {
		if len(root.All("object")) == 0 {
			return // another tool's element of this name
		}
		if seen++; seen <= maxMachines && !addMachine(f, root) {
			empty++
		}
	})
	switch {
	case err != nil:
		return nil, err
	case seen == 0:
		return nil, fmt.Errorf("%s: no <topology> with a machine in it; expected the output of lstopo --of xml", name)
	case len(f.Hosts) == 0:
		return nil, fmt.Errorf("%s: the <topology> names no package, NUMA node or PCI device; write it again with lstopo "+
			"--of xml", name)
	case seen > maxMachines:
		return nil, fmt.Errorf("%s: more than %d topologies in one text", name, maxMachines)
	case empty > 0:
		f.Warnf(0, "", "%d of %d topologies name no package, NUMA node or PCI device; left out", empty, seen)
	}
	return f, nil
}

// addMachine adds the machine of one document. It reports whether there was anything in it.
func addMachine(f *cluster.Fragment, root *object) bool {
	top := &topology{version: root.Get("version"), byID: map[string]*object{}, about: []*object{root}}
	top.collect(root)
	m := &machine{f: f, top: top, t: &cluster.NodeType{Tree: cluster.Read}, host: info("HostName", top.about...)}
	if !m.layout() {
		return false
	}
	f.AddNode(m.host, m.t)
	return true
}

// machine turns one topology into a node type.
type machine struct {
	f     *cluster.Fragment
	top   *topology
	t     *cluster.NodeType
	host  string
	board *board.Host
	devs  map[*object]cluster.PCI // GPUs, NICs and NVSwitches by their PCI object
	seen  map[cluster.PCI]bool
}

func (m *machine) layout() bool {
	sockets, domains := m.sockets(), m.domains()
	if len(sockets) == 0 && len(domains) == 0 && len(m.top.of("PCIDev")) == 0 {
		return false
	}
	m.board = board.NewHost(m.t, source, sockets, domains)
	m.devs, m.seen = map[*object]cluster.PCI{}, map[cluster.PCI]bool{}
	m.board.Grow(m.roots())
	m.board.Warn(m.f, m.host)
	m.links()
	return true
}

// sockets lists the packages.
func (m *machine) sockets() []board.Socket {
	var list []board.Socket
	for _, o := range m.top.of("Package") {
		get := func(name string) string {
			return strings.TrimSpace(cmp.Or(info(name, o), info(name, m.top.about...)))
		}
		list = append(list, board.Socket{
			Index: number(o.Get("os_index"), len(list)),
			CPUs:  m.cpus(o),
			Model: get("CPUModel"),
			Info: cluster.CPUInfo{
				Arch:   board.Arch(info("Architecture", m.top.about...)),
				Vendor: get("CPUVendor"),
				Family: board.Family(num.Int(get("CPUFamilyNumber"))),
				Model:  num.Int(get("CPUModelNumber")),
			},
		})
	}
	return list
}

// domains lists the NUMA nodes. hwloc 1 writes none for a machine that has only
// one; the machine itself then carries the memory.
func (m *machine) domains() []board.Domain {
	var list []board.Domain
	for _, o := range m.top.of("NUMANode") {
		list = append(list, board.Domain{
			Index:  number(o.Get("os_index"), len(list)),
			CPUs:   m.cpus(o),
			Memory: size(o.Get("local_memory"), 1),
		})
	}
	if whole := m.top.of("Machine"); len(list) == 0 && len(whole) > 0 && len(m.top.of("PU")) > 0 {
		list = append(list, board.Domain{CPUs: m.cpus(whole[0]), Memory: size(whole[0].Get("local_memory"), 1)})
	}
	return list
}

func (m *machine) cpus(o *object) board.CPUs {
	set, err := board.ParseMask(o.Get("cpuset"))
	if err != nil {
		m.f.Warnf(o.Line, m.host, "%s: %v", strings.ToLower(kindOf(o)), err)
	}
	return set
}

// number reads an index, or gives other when there is none.
func number(s string, other int) int { return num.Or(s, 0, 1<<20-1, other) }

// size reads a number of units; 0 is unknown.
func size(s string, each unit.Bytes) unit.Bytes {
	return unit.Bytes(num.Or(s, 0, 1<<60/int(each), 0)) * each
}

// near finds the NUMA domain (or socket) that an I/O object belongs to: that of
// the nearest object around it that has CPUs.
func (m *machine) near(o *object) int {
	if at := m.board.Only(); at >= 0 {
		return at
	}
	for o = o.Up; o != nil; o = o.Up {
		if kindOf(o) == "NUMANode" {
			return m.board.Domain(number(o.Get("os_index"), -1))
		}
		if o.Get("cpuset") == "" {
			continue
		}
		set, err := board.ParseMask(o.Get("nodeset"))
		if one, convErr := strconv.Atoi(set.String()); err == nil && convErr == nil {
			if at := m.board.Domain(one); at >= 0 {
				return at
			}
		}
		cpus, err := board.ParseMask(o.Get("cpuset"))
		if err != nil {
			return -1
		}
		return m.board.Near(cpus)
	}
	return -1
}

// speed reads pci_link_speed: GB/s, one direction, after encoding; 0 when hwloc
// does not know.
func speed(o *object) unit.Rate {
	v, err := strconv.ParseFloat(o.Get("pci_link_speed"), 64)
	if err != nil || !(v > 0 && v < 1e4) {
		return 0
	}
	return unit.Rate(v) * unit.GBps
}
