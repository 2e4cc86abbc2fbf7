// Package netq reads the topology graph of NVIDIA NetQ's API (JSON), which lists switches, hosts and the cables between
// their ports.
package netq

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
)

const (
	format   = "NetQ topology JSON"
	maxBytes = 64 << 20 // bytes
)

// Match reports whether the text is a topology graph as NVIDIA NetQ's API gives it.
func Match(data []byte) bool {
	text := string(data)
	return strings.Contains(text, `"compounded_nodes"`) && strings.Contains(text, `"links"`) &&
		strings.Contains(text, `"device_type"`)
}

// graph is one of NetQ's: groups of devices, and what joins two of them.
type graph struct {
	Nodes []node `json:"nodes"`
	Links []link `json:"links"`
}

type node struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Type   string `json:"device_type"`
	Tier   int    `json:"tier"` // from 1 for switches
	Inside []node `json:"compounded_nodes"`
}

type link struct {
	Cables []struct {
		Ends []end `json:"interfaces"`
	} `json:"compounded_links"`
}

type end struct {
	Node string `json:"node"`
	Port string `json:"interface"`
}

// device is a switch or a host, by its index among them; -1 as the other.
type device struct{ sw, host int }

// cable leads from a switch to a host or to a lower switch.
type cable struct {
	sw, below device
	port      string // of the host
}

type reading struct {
	f      *cluster.Fragment
	dev    map[string]device
	cables []cable
	nics   [][]string // of each host, its interfaces
}

// Read reads such a graph: which switches and hosts there are, and the cables between them.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxBytes, "expected NetQ's topology graph")
	if err != nil {
		return nil, err
	}
	var graphs []graph
	if err := json.Unmarshal(data, &graphs); err != nil {
		return nil, fmt.Errorf("%s: %w; expected NetQ's topology graph, a JSON list", name, err)
	}
	q := reading{f: &cluster.Fragment{Format: format, Source: name}, dev: map[string]device{}}
	q.f.Network.Kind = cluster.Ethernet
	for _, g := range graphs {
		q.devices(g.Nodes)
	}
	if len(q.dev) == 0 {
		return nil, fmt.Errorf("%s: no devices; expected NetQ's topology graph with nodes and compounded_nodes", name)
	}
	left := 0
	for _, g := range graphs {
		for _, l := range g.Links {
			for _, c := range l.Cables {
				if len(c.Ends) != 2 || !q.cable(c.Ends[0], c.Ends[1]) {
					left++
				}
			}
		}
	}
	if left > 0 {
		q.f.Warnf(0, "", "left out %d cables without two devices of the graph, one of them a switch", left)
	}
	q.types()
	q.links()
	return q.f, nil
}

// devices adds what is in groups, and in groups of groups.
func (q *reading) devices(list []node) {
	for _, n := range list {
		_, known := q.dev[n.ID]
		name := cmp.Or(n.Name, n.ID)
		switch {
		case n.Inside != nil:
			q.devices(n.Inside)
		case known || n.ID == "":
		case n.Tier > 0 || strings.Contains(n.Type, "switch"):
			q.dev[n.ID] = device{sw: len(q.f.Network.Switches), host: -1}
			tier := cluster.TierUnknown
			if n.Tier > 0 && n.Tier < 64 {
				tier = cluster.Tier(n.Tier - 1)
			}
			q.f.Network.Switches = append(q.f.Network.Switches, cluster.Switch{Name: name, Tier: tier, Rail: -1})
		default:
			q.dev[n.ID] = device{sw: -1, host: len(q.f.Hosts)}
			q.f.Hosts = append(q.f.Hosts, cluster.Host{Name: name, Type: -1})
			q.nics = append(q.nics, nil)
		}
	}
}

// cable reports whether the two ends can be a cable's.
func (q *reading) cable(x, y end) bool {
	a, okA := q.dev[x.Node]
	b, okB := q.dev[y.Node]
	if !okA || !okB || a.sw < 0 && b.sw < 0 {
		return false
	}
	tier := func(d device) cluster.Tier { return q.f.Network.Switches[d.sw].Tier }
	if a.sw < 0 || b.sw >= 0 && cmp.Or(cmp.Compare(tier(a), tier(b)), b.sw-a.sw) < 0 {
		a, b, y = b, a, x
	}
	if h := b.host; h >= 0 && y.Port != "" && !slices.Contains(q.nics[h], y.Port) && len(q.nics[h]) < 256 {
		q.nics[h] = append(q.nics[h], y.Port)
	}
	q.cables = append(q.cables, cable{a, b, y.Port})
	return true
}

// types gives hosts that have equal interfaces one type.
func (q *reading) types() {
	types := cluster.Types{}
	hosts := q.f.Hosts
	q.f.Hosts = nil
	for h, nics := range q.nics {
		slices.Sort(nics)
		t := &cluster.NodeType{Name: fmt.Sprintf("host with %d interfaces", len(nics))}
		for i, n := range nics {
			d := board.NIC(n)
			d.Index, d.NIC.Kind = i, cluster.Ethernet
			t.Add(d)
		}
		types.AddNode(q.f, hosts[h].Name, t)
	}
}

// links adds the cables: those from one switch to one interface of many hosts, or to another switch, as one.
func (q *reading) links() {
	at := map[[3]int]int{}
	n := &q.f.Network
	slices.SortStableFunc(q.cables, func(x, y cable) int { return x.below.host - y.below.host })
	for _, c := range q.cables {
		l := cluster.NetLink{A: cluster.AtSwitch(c.sw.sw, 0), B: cluster.AtSwitch(c.below.sw, 0)}
		if h := c.below.host; h >= 0 {
			l.B.NIC, l.Count = slices.Index(q.nics[h], c.port), 1
		}
		key := [3]int{l.A.Switch, l.B.Switch, l.B.NIC}
		i, known := at[key]
		if !known {
			i = len(n.Links)
			at[key] = i
			n.Links = append(n.Links, l)
		}
		b := &n.Links[i].B
		if h := c.below.host; h < 0 {
			n.Links[i].Count++
		} else if last := len(b.Hosts) - 1; last < 0 || b.Hosts[last].First+b.Hosts[last].N <= h { // not listed twice
			b.Hosts = cluster.AppendSpan(b.Hosts, cluster.Span{First: h, N: 1})
		}
	}
}
