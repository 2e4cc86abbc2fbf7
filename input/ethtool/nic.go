package ethtool

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/ifname"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/natural"
	"busbar.dev/unit"
)

// nic is an interface as read so far, and the port that it is.
type nic struct {
	cluster.Device
	cluster.Port
	has    [outside]bool
	line   int
	ipoib  bool // ip link says so
	absent bool // ethtool found no such interface
}

// source stands beside every fact.
const source = "ethtool"

// set takes the value of a line of a key and a value.
func (n *nic) set(key, v string) {
	switch key {
	case "Supported link modes":
		for mode := range strings.FieldsSeq(v) {
			digits, _, _ := strings.Cut(mode, "base") // 100000baseSR4/Full
			if rate := megabits(digits); rate > n.Max.Value {
				n.Max = cluster.FromRead(rate, source+" supported link modes")
			}
		}
	case "Speed":
		n.Rate = board.Fact(megabits(strings.TrimSuffix(v, "Mb/s")), source)
	case "Link detected":
		switch word, _, _ := strings.Cut(v, " "); word {
		case "yes":
			n.State = cluster.Up
		case "no":
			n.State = cluster.Down
		}
	case "No data available":
		n.absent = true
	case "driver":
		n.NIC.Driver = short(v)
	case "firmware-version":
		if v, _, _ = strings.Cut(v, " "); v != "N/A" { // the board's name follows in brackets
			n.NIC.Firmware = short(v)
		}
	case "bus-info":
		n.PCI, _ = cluster.ParsePCI(v)

	// Features whose absence slows TCP: the processor then cuts, joins and sums every packet.
	case "rx-checksumming", "tx-checksumming", "scatter-gather", "tcp-segmentation-offload",
		"generic-segmentation-offload", "generic-receive-offload":
		if v == "off" && !slices.Contains(n.NIC.Off, key) { // "off [fixed]" is no setting
			n.NIC.Off = append(n.NIC.Off, strings.Clone(key))
		}

	case "RX": // the greatest size comes before what is set
		size, _ := strconv.ParseUint(v, 10, 24)
		if n.NIC.RxRingMax == 0 {
			n.NIC.RxRingMax = int(size)
		} else {
			n.NIC.RxRing = int(size)
		}
	}
}

// megabits reads a whole number of Mb/s, up to 10 Tb/s; anything else is 0, and so is a form that -1 takes in older
// versions.
func megabits(s string) unit.Rate {
	if s == "65535" {
		return 0
	}
	return unit.Rate(num.Or(s, 1, 1e7, 0)) * unit.Gbps / 1000
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
		if (a.Device.Label == "") != (b.Device.Label == "") {
			return cmp.Compare(len(b.Device.Label), len(a.Device.Label))
		}
		return natural.Compare(a.Device.Label, b.Device.Label)
	})
	t := &cluster.NodeType{Name: "node", Devices: make([]cluster.Device, 0, len(d.nics))}
	nameless, first := 0, 0
	var software ifname.Software
	for _, n := range d.nics {
		switch {
		case n.PCI == "" && (software.Add(n.Device.Label) || software.Add(n.NIC.Driver)):
			continue
		case n.absent && !n.has[info] && !n.has[statistics]:
			f.Warnf(n.line, n.Device.Label, "ethtool had no data on it: no such interface there; left out")
			continue
		case n.Device.Label == "" && n.PCI == "":
			if nameless++; nameless == 1 {
				first = n.line
			}
		}
		t.Devices = append(t.Devices, n.finish("nic"+strconv.Itoa(len(t.Devices))))
	}
	software.Warn(f, 0)
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
		link: "ip link", info: "ethtool -i", features: "ethtool -k", rings: "ethtool -g", statistics: "ethtool -S",
	} {
		if d.count[b] == d.blocks {
			return command
		}
	}
	return "ethtool"
}

// finish completes the device.
func (n *nic) finish(name string) cluster.Device {
	n.Device.Name, n.Port.Label, n.Layer = name, n.Device.Label, "Ethernet"
	n.NIC.Kind = board.NetKind(cluster.PCIID{}, n.NIC.Driver, false, "")
	if strings.Contains(n.NIC.Driver, "ipoib") || n.ipoib {
		n.NIC.Kind, n.Layer = cluster.InfiniBand, "InfiniBand"
	}
	if n.State == cluster.Down {
		n.Rate = cluster.Fact[unit.Rate]{}
	}
	n.NIC.Ports = []cluster.Port{n.Port}
	return n.Device
}

// setLink takes the first line of ip link: name, flags, MTU, state.
func (n *nic) setLink(m []string) {
	n.MTU = board.Fact(num.Int(m[3]), "ip link")
	switch {
	case m[4] == "UP":
		n.State = cluster.Up
	case m[4] == "DOWN" && strings.Contains(m[2], "NO-CARRIER"): // else it is only not in use
		n.State = cluster.Down
	}
}

// sums takes a line of ip -s link: names of counters, which the next line goes by, or their values.
func (n *nic) sums(names, text string) string {
	if strings.HasPrefix(text, "link/infiniband ") {
		n.ipoib = true
	}
	if strings.HasPrefix(text, "RX") || strings.HasPrefix(text, "TX") {
		return text
	}
	side, names, _ := strings.Cut(names, ":")
	values := strings.Fields(text)
	for i, name := range strings.Fields(names) {
		if name == "overrun" {
			name = "over"
		}
		if name != "errors" && name != "dropped" {
			name += "_errors"
		}
		if i < len(values) {
			n.statistic(strings.ToLower(side[:2]) + "_" + name + ": " + values[i])
		}
	}
	return ""
}
