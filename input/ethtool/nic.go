package ethtool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/ifname"
	"busbar.dev/internal/natural"
	"busbar.dev/unit"
)

// nic is an interface as read so far.
type nic struct {
	name              string
	has               [statistics + 1]bool
	line              int
	speed             unit.Rate // 0 unknown
	most              unit.Rate // greatest supported mode, 0 unknown
	state             cluster.State
	driver            string
	firmware          string
	pci               cluster.PCI
	counters          map[string]uint64
	absent            bool // ethtool found no such interface
	off               []string
	rxRing, rxRingMax int
}

// setting takes a line of ethtool IF. Lists of modes go on over several lines
// that have no key.
func (d *reader) setting(text string) {
	if text == "No data available" {
		d.cur.absent = true
		return
	}
	key, value, ok := strings.Cut(text, ":")
	if ok {
		d.key = key
	} else {
		value = text
	}
	n := d.cur
	switch d.key {
	case "Supported link modes":
		for _, mode := range strings.Fields(value) {
			n.most = max(n.most, modeRate(mode))
		}
	case "Speed":
		n.speed = speed(strings.TrimSpace(value))
	case "Link detected":
		switch word, _, _ := strings.Cut(strings.TrimSpace(value), " "); word {
		case "yes":
			n.state = cluster.Up
		case "no":
			n.state = cluster.Down
		}
	}
}

// modeRate reads 100000baseSR4/Full, whose digits are Mb/s.
func modeRate(mode string) unit.Rate {
	num, _, ok := strings.Cut(mode, "base")
	if !ok {
		return 0
	}
	return megabits(num)
}

// speed reads 1000Mb/s. "Unknown!" is unknown, and so are the forms that -1 takes
// in older versions.
func speed(s string) unit.Rate {
	num, ok := strings.CutSuffix(s, "Mb/s")
	if !ok || num == "65535" || num == "4294967295" {
		return 0
	}
	return megabits(num)
}

// megabits reads a whole number of Mb/s, up to 10 Tb/s; anything else is 0.
func megabits(s string) unit.Rate {
	v, err := strconv.ParseUint(s, 10, 32)
	if err != nil || v > 1e7 {
		return 0
	}
	return unit.Rate(v) * unit.Gbps / 1000
}

// info takes a line of ethtool -i.
func (n *nic) info(text string) {
	key, value, _ := strings.Cut(text, ":")
	value = strings.TrimSpace(value)
	switch key {
	case "driver":
		n.driver = short(value)
	case "firmware-version":
		// The board's name follows in brackets.
		value, _, _ = strings.Cut(value, " ")
		if value != "N/A" {
			n.firmware = short(value)
		}
	case "bus-info":
		if p, err := cluster.ParsePCI(value); err == nil {
			n.pci = p
		}
	}
}

// short bounds a value that is kept as text.
func short(s string) string {
	s = s[:min(len(s), 64)]
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return strings.Clone(s)
}

// fragment gives the interfaces as NICs of one node, in natural order, those
// without a name last.
func (d *reader) fragment() *cluster.Fragment {
	f := &cluster.Fragment{Format: d.format(), Source: d.source}
	slices.SortStableFunc(d.nics, func(a, b *nic) int {
		if (a.name == "") != (b.name == "") {
			return cmp.Compare(len(b.name), len(a.name))
		}
		return natural.Compare(a.name, b.name)
	})
	t := &cluster.NodeType{Name: "node", Devices: make([]cluster.Device, 0, len(d.nics))}
	nameless, first := 0, 0
	var software []string
	for _, n := range d.nics {
		switch is := ifname.Of(n.name); {
		case !is.Card && n.pci == "":
			software = append(software, fmt.Sprintf("%s (%s)", n.name, is.What))
			continue
		case n.absent && !n.has[info] && !n.has[statistics]:
			f.Warnf(n.line, n.name, "ethtool had no data on it: no such interface there; left out")
			continue
		case n.name == "" && n.pci == "":
			if nameless++; nameless == 1 {
				first = n.line
			}
		}
		t.Devices = append(t.Devices, n.device("nic"+strconv.Itoa(len(t.Devices))))
	}
	if n := len(software); n > 0 {
		more := ""
		if n > 3 {
			more = fmt.Sprintf(" and %d more", n-3)
		}
		f.Warnf(0, "", "no NICs, and left out: %s%s", strings.Join(software[:min(n, 3)], ", "), more)
	}
	if nameless > 0 {
		f.Warnf(first, "", "%d blocks do not say whose they are: neither interface nor PCI address; put a line such as \"$ "+
			"ethtool -S eth0\" before each", nameless)
	}
	f.AddNode("", t)
	return f
}

// format names the command where all blocks are of one: files of two commands are about one machine, two of one are
// not.
func (d *reader) format() string {
	for b, command := range map[block]string{
		info: "ethtool -i", features: "ethtool -k", rings: "ethtool -g", statistics: "ethtool -S",
	} {
		if d.count[b] == d.blocks {
			return command
		}
	}
	return "ethtool"
}

func (n *nic) device(name string) cluster.Device {
	const source = "ethtool"
	p := cluster.Port{Label: n.name, State: n.state, Layer: "Ethernet", Counters: n.counters}
	if n.speed > 0 && n.state != cluster.Down {
		p.Rate = cluster.FromRead(n.speed, source)
	}
	if n.most > 0 {
		p.Max = cluster.FromRead(n.most, source+" supported link modes")
	}
	d := cluster.Device{
		Kind: cluster.NIC, Name: name, Index: -1, Label: n.name, PCI: n.pci, Parent: -1,
		NIC: &cluster.NICInfo{
			Kind: board.NetKind(cluster.PCIID{}, n.driver, false, ""), Driver: n.driver, Firmware: n.firmware, Off: n.off,
			RxRing: n.rxRing, RxRingMax: n.rxRingMax,
		},
	}
	if strings.Contains(n.driver, "ipoib") {
		d.NIC.Kind, p.Layer = cluster.InfiniBand, "InfiniBand"
	}
	d.NIC.Ports = []cluster.Port{p}
	return d
}
