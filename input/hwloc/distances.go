package hwloc

import (
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// links adds NVLink and xGMI from hwloc's bandwidth matrices, which hold MB/s in
// one direction. Nobody measured these: hwloc multiplies the number of NVLinks
// by a figure of its own for their generation, and writes 100000 for any xGMI
// link. So NVLink gives the number of links and a nominal rate, xGMI only tells
// that there is a link.
func (m *machine) links() {
	var hops matrix
	for _, x := range m.top.matrices {
		if x.name == "XGMIHops" {
			hops = x
		}
	}
	for _, x := range m.top.matrices {
		switch x.name {
		case "NVLinkBandwidth":
			m.connect(x, matrix{}, cluster.NVLink)
		case "XGMIBandwidth":
			m.connect(x, hops, cluster.XGMI)
		}
	}
}

// connect adds one link, or two that differ, for every pair with a bandwidth.
// hops, where there is such a matrix, tells links from paths over other GPUs.
func (m *machine) connect(x, hops matrix, kind cluster.LinkKind) {
	n := len(x.index)
	at := make([]int, n)
	for i := range at {
		at[i] = m.lookup(x, i)
	}
	sum := map[[2]int]uint64{}
	var order [][2]int
	for i := range n {
		for k := range n {
			v := x.values[i*n+k]
			if at[i] < 0 || at[k] < 0 || at[i] == at[k] || v == 0 || v > 1e8 {
				continue
			}
			if len(hops.index) == n && hops.values[i*n+k] != 1 {
				continue
			}
			key := [2]int{at[i], at[k]}
			if sum[key] == 0 {
				order = append(order, key)
			}
			// Several NVSwitches are one device; the links to them add up.
			sum[key] += v
		}
	}
	for _, key := range order {
		there, back := sum[key], sum[[2]int{key[1], key[0]}]
		if there == back && key[0] > key[1] {
			continue
		}
		l := cluster.Link{A: key[0], B: key[1], Kind: kind, OneWay: there != back}
		if kind == cluster.NVLink {
			l.Lanes = int(there / m.perLink(key[0], key[1]))
			l.Rate = cluster.FromSpec(unit.Rate(there)*1e6, source+" "+x.name)
		}
		m.t.Connect(l)
	}
}

// perLink is the figure that hwloc uses for one NVLink of a GPU, in MB/s.
func (m *machine) perLink(ends ...int) uint64 {
	for _, e := range ends {
		d := &m.t.Devices[e]
		if d.Kind != cluster.GPU {
			continue
		}
		if g, ok := hardware.GPUByName(d.Model.Value); ok && g.Module() && g.Links > 0 {
			return uint64(g.Link / 1e6)
		}
	}
	return 25000
}

// lookup finds the device of a matrix's i-th object, -1 when it is none of ours.
func (m *machine) lookup(x matrix, i int) int {
	id := x.index[i]
	if !strings.Contains(id, ":") {
		id = x.of + ":" + id
	}
	o := m.top.byID[id]
	if o == nil {
		return -1
	}
	switch kindOf(o) {
	case "Package", "NUMANode":
		return m.cpuDevice(o)
	case "OSDev":
		o = o.Up
	}
	if kindOf(o) != "PCIDev" {
		return -1
	}
	if o.Get("subtype") == "NVSwitch" || board.IsNVSwitch(pciID(o.Get("pci_type"))) {
		return m.nvswitch()
	}
	return m.t.ByPCI(m.devs[o])
}

// cpuDevice is the NUMA domain that a GPU's links to its processor end in (NVLink
// on POWER8 and POWER9); sockets carry no traffic themselves.
func (m *machine) cpuDevice(o *object) int {
	at := m.board.Only()
	for _, k := range m.top.of("NUMANode") {
		for up := k; up != nil && at < 0; up = up.Up {
			if up == o {
				at = m.board.Domain(number(k.Get("os_index"), -1))
			}
		}
	}
	if at < 0 {
		at = m.near(&object{Up: o})
	}
	if at >= 0 && m.t.Devices[at].Kind != cluster.NUMA {
		return -1
	}
	return at
}

// nvswitch is the one device that stands for all NVSwitches of the node.
func (m *machine) nvswitch() int {
	if all := m.t.Of(cluster.NVSwitch); len(all) > 0 {
		return all[0]
	}
	return m.t.Add(cluster.Device{Kind: cluster.NVSwitch, Index: -1, Parent: -1})
}
