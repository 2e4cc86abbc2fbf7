// Package lldp reads what lldpd on a node saw of its neighbours: lldpctl -f json. Interfaces become NICs, the systems
// at the other end switches, and what joins them cables. The text does not name the node itself: HOST=FILE does.
package lldp

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/yamldoc"
)

// Format is what fragments carry.
const Format = "lldpctl"

// Bounds: what is read, and interfaces of a node.
const (
	maxBytes      = 16 << 20
	maxInterfaces = 256
)

// neighbour is what an interface sees.
type neighbour struct {
	iface, system, port string
	bridge              bool // the other end says that it forwards
	known               bool // whether it does is known
}

// Match reports whether lldpd's neighbours are in the text.
func Match(data []byte) bool {
	text := string(data[:min(len(data), 1<<20)])
	return strings.Contains(text, `"lldp"`) && strings.Contains(text, `"chassis"`)
}

// Read reads the neighbours of one node.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxBytes, "expected the output of lldpctl -f json on one node")
	if err != nil {
		return nil, err
	}
	list, err := fromJSON(strings.TrimLeft(string(data), " \t\r\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f := &cluster.Fragment{Format: Format, Source: name}
	fillFragment(f, list)
	if len(f.Network.Links) == 0 {
		return nil, fmt.Errorf("%s: no neighbour that forwards; expected the output of lldpctl -f json", name)
	}
	warn.Limit(f)
	return f, nil
}

// fillFragment makes the node, its NICs, and the switches that they are cabled to.
func fillFragment(f *cluster.Fragment, list []neighbour) {
	t := &cluster.NodeType{}
	index, nics := map[string]int{}, map[string]int{}
	for _, n := range list {
		switch {
		case n.iface == "" || n.system == "":
			continue
		case n.known && !n.bridge:
			f.Warnf(0, n.iface, "the other end, %s, forwards nothing: it is no switch, and was left out", n.system)
			continue
		case len(nics) >= maxInterfaces:
			f.Warnf(0, n.iface, "more than %d interfaces; left out", maxInterfaces)
			continue
		}
		if _, ok := nics[n.iface]; ok {
			f.Warnf(0, n.iface, "sees %s too; kept the first neighbour", n.system)
			continue
		}
		nic := len(nics)
		nics[n.iface] = nic
		d := board.NIC(n.iface)
		d.Index, d.NIC.Kind = nic, cluster.Ethernet
		t.Add(d)
		sw, ok := index[n.system]
		if !ok {
			sw = len(f.Network.Switches)
			index[n.system] = sw
			f.Network.Switches = append(f.Network.Switches, cluster.Switch{Name: n.system, Tier: cluster.Leaf, Rail: -1})
		}
		f.Network.Links = append(f.Network.Links, cluster.NetLink{
			A: cluster.AtSwitch(sw, portNumber(n.port)),
			B: cluster.End{Switch: -1, Hosts: []cluster.Span{{First: 0, N: 1}}, NIC: nic}, State: cluster.Up,
		})
	}
	if len(nics) > 0 {
		f.AddNode("", t)
		f.Network.Kind = cluster.Ethernet
	}
}

// split is a port's number with the part of a split port behind it: swp17, Ethernet48, swp1s2, Ethernet49/1.
var split = lazyre.New(`^\D*(\d{1,5})(?:(s|/|:)(\d{1,2}))?$`)

// portNumber numbers a port, parts of a split one behind all others: swp17 and Ethernet17/1 are 17, swp17s1 is 1017; 0
// unknown.
func portNumber(name string) int {
	m := split.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	if n > 1<<16 {
		return 0
	}
	part, _ := strconv.Atoi(m[3])
	if m[2] != "s" {
		part = max(part-1, 0) // those of a slash begin at 1
	}
	return n + 1000*part
}

// forwards notes a capability.
func (n *neighbour) forwards(kind string, on bool) {
	n.known = true
	n.bridge = n.bridge || on && (kind == "Bridge" || kind == "Router")
}

// fromJSON reads lldpctl -f json, whose lists are objects where they have one entry.
func fromJSON(text string) ([]neighbour, error) {
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, err
	}
	var list []neighbour
	for i := range docs {
		for _, entry := range entries(docs[i].Get("lldp", "interface")) {
			for k := range entry.Map() {
				if len(list) <= maxInterfaces {
					list = append(list, jsonNeighbour(&entry.Items[k]))
				}
			}
		}
	}
	return list, nil
}

func entries(list *yamldoc.Value) []yamldoc.Value {
	if list == nil || list.List() != nil {
		return list.List()
	}
	return []yamldoc.Value{*list}
}

func jsonNeighbour(e *yamldoc.Value) neighbour {
	n := neighbour{iface: e.Key}
	chassis := e.Get("chassis")
	if len(chassis.Map()) > 0 {
		c := &chassis.Items[0]
		if n.system = c.Key; c.Key == "id" { // a system without a name
			n.system = c.Get("value").Str()
			c = chassis
		}
		for _, capability := range entries(c.Get("capability")) {
			n.forwards(capability.Get("type").Str(), capability.Get("enabled").Str() == "true")
		}
	}
	port := e.Get("port")
	n.port = port.Get("descr").Str()
	// What is no interface's name says less than the description, and the switch's own number for a port nothing.
	if kind := port.Get("id", "type").Str(); kind == "ifname" || n.port == "" && kind != "local" {
		n.port = port.Get("id", "value").Str()
	}
	return n
}
