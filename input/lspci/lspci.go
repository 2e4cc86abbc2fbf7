// Package lspci reads lspci, better with -vv, and with or without -nn: GPUs and NICs, how their links to PCIe trained,
// and the tree of bridges between them. What is above a device stays unknown where no bridge up to the processor's is
// in the text (lspci -d, grep, no -v). Virtual functions count where no device that
// they are part of is listed, as in a virtual machine.
package lspci

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/words"
)

const format = "lspci"

// codes are those of PCI's classes that matter here, and of makers by the first word of their names.
var codes = words.Pairs("3D controller=0302|VGA compatible controller=0300|Display controller=0380|Processing " +
	"accelerators=1200|Infiniband controller=0207|Fabric controller=0208|Ethernet controller=0200|PCI bridge=0604|Host " +
	"bridge=0600|NVIDIA=10de|Advanced=1002|Intel=8086|Mellanox=15b3|Habana=1da3|Cornelis=434e|Amazon.com,=1d0f")

var (
	// head is "17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)": address,
	// class and its code, maker, number of a device that has no name, name, numbers of both.
	head = lazyre.
		New(`^((?:[\da-f]{4,8}:)?[\da-f]{2}:[01][\da-f]\.[0-7]) (\w[\w /-]{2,40}?)(?: \[([\da-f]{4})\])?: (\S+) ` +
			`.{0,300}?(?:Device ([\da-f]{4}))?(?: \[([^\]:]{2,64})\])?(?: \[([\da-f]{4}):([\da-f]{4})\])?(?: \((?:rev|prog-if) .*)?$`)
	detail = lazyre.New(`^(?:NUMA node: (\d{1,4})$|Bus: primary=.*, secondary=([\da-f]{2}),|` +
		`Lnk(Cap|Sta):.*Speed ([\d.]+)GT/s(?: \(\w+\))?, Width x(\d+)|Capabilities: .*(Root Port))`)
)

// function is a PCI function.
type function struct {
	board.Func
	bus, below string // 0000:17; of a bridge, the one behind it
	numa       int
	gone       int // the line that shows nothing but ones in its configuration
	name       string
}

// machine is what the lists of a text say together.
type machine struct {
	funcs   []*function
	at      map[cluster.PCI]*function
	own     map[string]bool // buses of the processor's
	whole   map[string]bool // classes and makers of which a device is listed that is no virtual function
	domains map[int]board.Domain
}

// Match reports whether a line about a GPU, a NIC or a bridge is somewhere in the text.
func Match(data []byte) bool {
	is := func(line string) bool {
		m := head.FindStringSubmatch(line)
		return m != nil && codes[m[2]] != ""
	}
	return lines.Find(data, "controller", is) || lines.Find(data, "Processing accelerators", is)
}

// Read reads the lists of lspci of one machine.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	m := machine{
		at: map[cluster.PCI]*function{}, own: map[string]bool{}, whole: map[string]bool{}, domains: map[int]board.Domain{},
	}
	fn := &function{}
	err := lines.Each(name, r, func(num int, text string) error {
		h := head.FindStringSubmatch(text)
		if h == nil {
			m.set(fn, detail.FindStringSubmatch(strings.TrimSpace(text)))
			return nil
		}
		addr, _ := cluster.ParsePCI(h[1]) // head has its form
		class, vendor := cmp.Or(h[3], codes[h[2]]), cmp.Or(h[7], codes[h[4]])
		if fn = m.at[addr]; fn == nil {
			fn = &function{numa: -1, name: strings.Clone(h[6]), bus: string(addr)[:strings.LastIndexByte(string(addr), ':')]}
			fn.Addr, fn.ID = addr, cluster.PCIID{Class: class, Vendor: vendor, Device: strings.Clone(cmp.Or(h[8], h[5]))}
			fn.Bridge = board.IsBridge(fn.ID)
			m.own[fn.bus] = m.own[fn.bus] || class == "0600" || strings.HasSuffix(fn.bus, ":00")
			m.funcs, m.at[addr] = append(m.funcs, fn), fn
			m.whole[class+vendor] = m.whole[class+vendor] || !fn.virtual()
		}
		if strings.HasSuffix(text, " (rev ff)") {
			fn.gone = num
		}
		if fn.ID.Class != class || fn.ID.Vendor != vendor || len(m.funcs) > 1<<16 {
			return fmt.Errorf("%s:%d: %s is another device than above; expected the list of one machine; split the file", name,
				num, addr)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: format, Source: name}
	t := m.nodeType(f)
	if f.AddNode("", t); t.Count(cluster.GPU)+t.Count(cluster.NIC) == 0 {
		return nil,
			fmt.Errorf("%s: no GPU and no NIC; expected the output of lspci -vv, such as 17:00.0 3D controller: NVIDIA "+
				"Corporation GH100 [H100 SXM5 80GB]", name)
	}
	for _, fn := range m.funcs {
		if d := t.ByPCI(fn.Addr); d >= 0 && fn.gone > 0 {
			warn.Found(f, fn.gone, t.Devices[d].Name, "off-bus", "error", "dmesg for Xid 79 and PCIe errors; "+
				"power-cycle the node, else reseat or replace the device and check its power",
				"%s does not answer on PCIe (rev ff): off the bus or without power",
				fn.Addr)
		}
	}
	return f, nil
}

// set takes a line of -v; nil says nothing of use.
func (m *machine) set(fn *function, v []string) {
	switch {
	case v == nil:
	case v[1] != "":
		fn.numa = num.Int(v[1])
		m.domains[fn.numa] = board.Domain{Index: fn.numa}
	case v[2] != "" && fn.Bridge:
		fn.below = fn.bus[:len(fn.bus)-2] + v[2]
	case v[3] == "Cap":
		fn.Wire.MaxGTs, fn.Wire.MaxLanes = board.ParseGTs(v[4]+" GT/s"), board.ParseLanes(v[5])
	case v[3] != "":
		fn.Wire.GTs, fn.Wire.Lanes = board.ParseGTs(v[4]+" GT/s"), board.ParseLanes(v[5])
	case v[6] != "":
		m.own[fn.bus] = true
	}
}

func (fn *function) virtual() bool { return strings.Contains(fn.name, "Virtual Function") }

// device is the GPU or NIC that a function is, or nil.
func (fn *function) device() (d *cluster.Device) {
	numa := cluster.Fact[int]{}
	if fn.numa >= 0 {
		numa = cluster.FromRead(fn.numa, format)
	}
	if vendor := board.GPUVendor(fn.ID, strings.HasSuffix(fn.bus, ":00")); vendor != "" {
		d = new(board.GPU(vendor, -1))
		d.GPU.NUMA = numa
	} else if slices.Contains([]string{"0200", "0207", "0208"}, fn.ID.Class) {
		d = new(board.NIC(""))
		d.NIC.Kind = board.NetKind(fn.ID, "", fn.ID.Class == "0207" || fn.ID.Vendor == "15b3", "")
		d.NIC.NUMA = numa
	}
	if d == nil {
		return nil
	}
	if d.PCI, d.Model = fn.Addr, board.Fact(fn.name, format); fn.ID.Vendor != "" && fn.ID.Device != "" {
		d.PCIID = new(fn.ID)
	}
	return d
}

// nodeType grows the tree.
func (m *machine) nodeType(f *cluster.Fragment) *cluster.NodeType {
	t := &cluster.NodeType{Name: "node", Tree: cluster.Read}
	h := board.NewHost(t, format, nil, slices.Collect(maps.Values(m.domains)))
	behind, roots := map[string]*function{}, map[string]board.Root{}
	for _, fn := range m.funcs { // a bridge stands before what is behind it
		if !fn.virtual() || !m.whole[fn.ID.Class+fn.ID.Vendor] {
			fn.Device = fn.device()
		}
		up, at := behind[fn.bus], fn.bus
		behind[fn.below] = fn
		if up != nil {
			up.Kids = append(up.Kids, &fn.Func)
			continue
		}
		r, kid := board.Root{Label: "pci" + at, Above: -1}, &fn.Func
		if !m.own[at] { // some port of the processor's is above it
			at, kid = string(fn.Addr), &board.Func{Bridge: true, Kids: []*board.Func{kid}}
			if fn.Bridge || fn.Device != nil {
				t.Tree = 0
			}
		} else if had, ok := roots[at]; ok {
			r = had
		}
		if r.Above < 0 && m.own[at] && fn.numa >= 0 {
			r.Above = h.Domain(fn.numa)
		}
		r.Kids = append(r.Kids, kid)
		roots[at] = r
	}
	var list []board.Root
	for _, at := range slices.Sorted(maps.Keys(roots)) {
		list = append(list, roots[at])
	}
	h.Grow(list)
	h.Warn(f, "")
	return t
}
