// Package lspci reads lspci, better with -vv, and with or without -nn: GPUs and NICs, how their links to PCIe trained,
// and the tree of bridges between them. Where a bridge above one of them is missing (lspci -d, grep, no -v), the tree
// is left unknown. Virtual functions are no devices of their own.
package lspci

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

const (
	format   = "lspci"
	maxFuncs = 1 << 16 // of one machine
	mellanox = "15b3"
)

// classes are the codes of PCI's classes that matter here, vendors those of makers, as the PCI ID repository begins
// their names.
var (
	classes = map[string]string{
		"3d controller": "0302", "vga compatible controller": "0300", "display controller": "0380",
		"processing accelerators": "1200", "infiniband controller": "0207", "fabric controller": "0208",
		"ethernet controller": "0200", "pci bridge": "0604", "host bridge": "0600",
	}
	vendors = map[string]string{
		"NVIDIA": "10de", "Advanced": "1002", "Intel": "8086", "Mellanox": mellanox, "Habana": "1da3", "Cornelis": "434e",
		"Amazon.com,": "1d0f",
	}
)

var (
	head = lazyre.New(`^((?:[[:xdigit:]]{4,8}:)?[[:xdigit:]]{2}:[[:xdigit:]]{2}\.[0-7]) (\w[\w /-]{2,40}?)` +
		`(?: \[([[:xdigit:]]{4})\])?: ((\S+) .{1,300})$`)
	ids = lazyre.New(`\[([[:xdigit:]]{4}):([[:xdigit:]]{4})\]`)
	// called is the name in brackets at the end: "GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)".
	called  = lazyre.New(`\[([^\]:]{2,64})\](?: \[[[:xdigit:]:]{9}\])?(?: \((?:rev|prog-if) .*)?$`)
	unnamed = lazyre.New(`Device ([[:xdigit:]]{4})\b`)
	detail  = lazyre.New(`^(?:NUMA node: (\d{1,4})$|Bus: primary=.*, secondary=([[:xdigit:]]{2}),|` +
		`(LnkCap|LnkSta):.*Speed ([\d.]+)GT/s(?: \(\w+\))?, Width x(\d+)|Capabilities: .*(Root Port))`)
)

// function is a PCI function.
type function struct {
	board.Func
	bus, below string // 0000:17; of a bridge, the one behind it
	root       bool   // it is the processor's, or beside its bridge
	numa       int
	top        *function // the bridge above all others that are above it
	text       string
}

// machine is one list, by the addresses in it.
type machine struct {
	line  int
	funcs []*function
	seen  map[cluster.PCI]bool
}

// Match reports whether a line about a GPU, a NIC or a bridge is somewhere in the text.
func Match(data []byte) bool {
	is := func(line string) bool {
		m := head.FindStringSubmatch(line)
		return m != nil && classes[strings.ToLower(m[2])] != ""
	}
	return lines.Find(data, "controller", is) || lines.Find(data, "Processing accelerators", is)
}

// Read reads the lists of lspci; each is one of a node without a name.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: format, Source: name}
	m, at := &machine{seen: map[cluster.PCI]bool{}}, &function{}
	err := lines.Each(name, r, func(num int, text string) error {
		h := head.FindStringSubmatch(text)
		if h == nil {
			at.set(detail.FindStringSubmatch(strings.TrimSpace(text)))
			return nil
		}
		addr, err := cluster.ParsePCI(h[1])
		if err != nil {
			return fmt.Errorf("%s:%d: %w", name, num, err)
		}
		if m.seen[addr] || len(m.funcs) >= maxFuncs { // the next machine's
			m.addTo(f)
			m = &machine{line: num, seen: map[cluster.PCI]bool{}}
		}
		at = newFunction(addr, h)
		m.funcs, m.seen[addr] = append(m.funcs, at), true
		return nil
	})
	if m.addTo(f); err == nil && len(f.Hosts) == 0 {
		err = fmt.Errorf("%s: no GPU and no NIC; expected the output of lspci -vv, such as 17:00.0 3D controller: NVIDIA "+
			"Corporation GH100 [H100 SXM5 80GB]", name)
	}
	return f, err
}

func newFunction(addr cluster.PCI, h []string) *function {
	bus := string(addr)[:strings.LastIndexByte(string(addr), ':')]
	fn := &function{numa: -1, text: strings.Clone(h[4]), bus: bus}
	fn.Addr, fn.ID.Class, fn.ID.Vendor = addr, strings.ToLower(h[3]), vendors[h[5]]
	if fn.ID.Class == "" {
		fn.ID.Class = classes[strings.ToLower(h[2])]
	}
	if d := unnamed.FindStringSubmatch(h[4]); d != nil {
		fn.ID.Device = strings.ToLower(d[1])
	}
	if d := ids.FindStringSubmatch(h[4]); d != nil {
		fn.ID.Vendor, fn.ID.Device = strings.ToLower(d[1]), strings.ToLower(d[2])
	}
	fn.Bridge, fn.root = board.IsBridge(fn.ID), fn.ID.Class == "0600" || strings.HasSuffix(bus, ":00")
	return fn
}

// set takes a line of -v, nil for one that says nothing of use.
func (fn *function) set(m []string) {
	switch {
	case m == nil:
	case m[1] != "":
		fn.numa, _ = strconv.Atoi(m[1])
	case m[2] != "" && fn.Bridge:
		fn.below = fn.bus[:len(fn.bus)-2] + strings.ToLower(m[2])
	case m[3] == "LnkCap":
		fn.Wire.MaxGTs, fn.Wire.MaxLanes = board.ParseGTs(m[4]+" GT/s"), board.ParseLanes(m[5])
	case m[3] != "":
		fn.Wire.GTs, fn.Wire.Lanes = board.ParseGTs(m[4]+" GT/s"), board.ParseLanes(m[5])
	case m[6] != "":
		fn.root = true
	}
}

// device is the GPU or NIC that a function is, or nil.
func (fn *function) device() (d *cluster.Device) {
	numa := cluster.Fact[int]{}
	if fn.numa >= 0 {
		numa = cluster.FromRead(fn.numa, format)
	}
	vendor := board.GPUVendor(fn.ID, strings.HasSuffix(fn.bus, ":00"))
	switch class := fn.ID.Class; {
	case strings.Contains(fn.text, "Virtual Function"):
		return nil
	case vendor != "":
		d = new(board.GPU(vendor, -1))
		d.GPU.NUMA = numa
	case class == "0200" || class == "0207" || class == "0208":
		d = new(board.NIC(""))
		d.NIC.Kind = board.NetKind(fn.ID, "", class == "0207" || fn.ID.Vendor == mellanox, "")
		d.NIC.NUMA = numa
	default:
		return nil
	}
	if m := called.FindStringSubmatch(fn.text); m != nil {
		d.Model = cluster.FromRead(m[1], format)
	}
	if d.PCI = fn.Addr; fn.ID.Vendor != "" && fn.ID.Device != "" {
		d.PCIID = new(fn.ID)
	}
	return d
}

// addTo gives a machine that has a GPU or a NIC.
func (m *machine) addTo(f *cluster.Fragment) {
	behind, ofProcessor := map[string]*function{}, map[string]bool{}
	var domains []board.Domain
	var ends []*function
	for _, fn := range m.funcs { // a bridge stands before what is behind it
		if fn.Device = fn.device(); fn.Device != nil {
			ends = append(ends, fn)
		}
		if fn.numa >= 0 && !slices.ContainsFunc(domains, func(d board.Domain) bool { return d.Index == fn.numa }) {
			domains = append(domains, board.Domain{Index: fn.numa})
		}
		if up := behind[fn.bus]; up != nil {
			fn.top, up.Kids = up.top, append(up.Kids, &fn.Func)
		} else {
			fn.top = fn
			ofProcessor[fn.bus] = ofProcessor[fn.bus] || fn.root
		}
		if fn.below != "" {
			behind[fn.below] = fn
		}
	}
	if len(ends) == 0 {
		return
	}
	t, roots := &cluster.NodeType{Name: "node", Tree: cluster.Read}, map[string]board.Root{}
	h, left := &board.Host{}, 0
	if slices.ContainsFunc(ends, func(fn *function) bool { return !ofProcessor[fn.top.bus] }) {
		t.Tree = 0
		f.Warnf(m.line, "", "bridges above GPUs and NICs are not in this list, so the PCIe tree is unknown; give the whole "+
			"output of sudo lspci -vv")
		for _, fn := range ends {
			roots[string(fn.Addr)] = board.Root{Above: -1, Kids: []*board.Func{&fn.Func}}
		}
	} else {
		h, left = board.NewHost(t, format, nil, domains)
		for _, fn := range m.funcs {
			if r, ok := roots[fn.bus]; fn.top == fn {
				if !ok || r.Above < 0 && fn.numa >= 0 {
					r.Above = h.Domain(fn.numa)
				}
				r.Label, r.Kids = "pci"+fn.bus, append(r.Kids, &fn.Func)
				roots[fn.bus] = r
			}
		}
	}
	var list []board.Root
	for _, at := range slices.Sorted(maps.Keys(roots)) {
		list = append(list, roots[at])
	}
	rep := board.Grow(t, format, list)
	rep.Left += left
	rep.Warn(f, "", t)
	f.AddNode("", t)
}
