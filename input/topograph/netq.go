package topograph

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/yamldoc"
)

const formatNetQ = "NetQ topology JSON"

// MatchNetQ reports whether the text is NetQ's topology graph.
func MatchNetQ(data []byte) bool {
	text := string(data)
	return strings.Contains(text, `"compounded_nodes"`) && strings.Contains(text, `"links"`) &&
		strings.Contains(text, `"device_type"`)
}

// ReadNetQ reads NetQ's topology graph. Devices of a tier are switches, those
// found at the other end of a cable (over LLDP) are hosts, and a host's
// interfaces become its NICs.
func ReadNetQ(name string, r io.Reader) (*cluster.Fragment, error) {
	docs, err := yamldoc.Read(name, r, "layout")
	if err != nil {
		return nil, err
	}
	q := netqReader{
		f: &cluster.Fragment{Format: formatNetQ, Source: name}, dev: map[string]device{}, nics: map[string][]string{},
	}
	var graphs []*yamldoc.Value
	for i := range docs {
		if docs[i].Get("nodes") != nil {
			graphs = append(graphs, &docs[i])
		}
		for k := range docs[i].List() {
			graphs = append(graphs, &docs[i].Items[k])
		}
	}
	for _, g := range graphs {
		q.devices(g.Get("nodes"), 0)
	}
	if len(q.dev) == 0 {
		return nil, fmt.Errorf("%s: no devices; expected NetQ's topology graph with nodes and compounded_nodes", name)
	}
	for _, g := range graphs {
		q.cables(g.Get("links"))
	}
	q.types()
	q.links()
	return q.f, nil
}

// device is where a NetQ id went: a switch or a host.
type device struct {
	sw, host int // -1 when it is the other
}

// cable joins a port of one device to a port of another, ids and interfaces.
type cable struct {
	a, b   string
	ifA    string
	ifB    string
	line   int
	number int // cables side by side of which no ports are known
}

type netqReader struct {
	f     *cluster.Fragment
	dev   map[string]device
	list  []cable
	nics  map[string][]string // per host id, its interfaces
	hosts []string            // ids, as in f.Hosts
}

// devices collects devices; groups of them (tiers) hold them as compounded_nodes.
func (q *netqReader) devices(v *yamldoc.Value, depth int) {
	for _, n := range v.List() {
		if inner := n.Get("compounded_nodes"); inner != nil && depth < 8 {
			q.devices(inner, depth+1)
			continue
		}
		q.device(&n)
	}
}

func (q *netqReader) device(n *yamldoc.Value) {
	id, name := n.Get("id").Str(), n.Get("name").Str()
	name = cmp.Or(name, id)
	if id == "" {
		return
	}
	if _, ok := q.dev[id]; ok {
		q.f.Warnf(n.LineNum(), name, "device %s is listed again; kept the first", id)
		return
	}
	tier, known := n.Get("tier").Int()
	if strings.Contains(n.Get("device_type").Str(), "switch") || known && tier > 0 {
		q.dev[id] = device{sw: len(q.f.Network.Switches), host: -1}
		t := cluster.TierUnknown
		if known && tier > 0 && tier < 64 {
			t = cluster.Tier(tier - 1) // NetQ counts from 1
		}
		q.f.Network.Switches = append(q.f.Network.Switches, cluster.Switch{Name: name, Tier: t, Rail: -1})
		return
	}
	q.dev[id] = device{sw: -1, host: len(q.f.Hosts)}
	q.hosts = append(q.hosts, id)
	q.f.Hosts = append(q.f.Hosts, cluster.Host{Name: name, Type: -1})
}

// cables collects the links, one by one where their ports are listed.
func (q *netqReader) cables(v *yamldoc.Value) {
	for _, l := range v.List() {
		size, _ := l.Get("size").Int()
		each := l.Get("compounded_links").List()
		if len(each) == 0 {
			q.cable(cable{a: l.Get("src").Str(), b: l.Get("target").Str(), line: l.LineNum(), number: min(max(size, 1), 1024)})
			continue
		}
		if size > 0 && size != len(each) {
			q.f.Warnf(l.LineNum(), l.Get("id").Str(), "says %d cables and lists %d; took those listed", size, len(each))
		}
		for _, c := range each {
			ends := c.Get("interfaces").List()
			if len(ends) != 2 {
				q.f.Warnf(c.LineNum(), c.Get("id").Str(), "a cable with %d ends; expected 2; skipped", len(ends))
				continue
			}
			q.cable(cable{
				a: ends[0].Get("node").Str(), b: ends[1].Get("node").Str(),
				ifA: ends[0].Get("interface").Str(), ifB: ends[1].Get("interface").Str(), line: c.LineNum(), number: 1,
			})
		}
	}
}

// cable takes a cable in, the switch (or the higher switch) first.
func (q *netqReader) cable(c cable) {
	a, okA := q.dev[c.a]
	b, okB := q.dev[c.b]
	switch {
	case !okA || !okB:
		q.f.Warnf(c.line, "", "a cable between %q and %q, one of which is not listed; skipped", c.a, c.b)
		return
	case a.sw < 0 && b.sw < 0:
		q.f.Warnf(c.line, q.f.Hosts[a.host].Name, "a cable from host to host; skipped")
		return
	case a.sw < 0, b.sw >= 0 && q.tier(a.sw) < q.tier(b.sw), b.sw >= 0 && q.tier(a.sw) == q.tier(b.sw) && b.sw < a.sw:
		c.a, c.b, c.ifA, c.ifB = c.b, c.a, c.ifB, c.ifA
	}
	q.list = append(q.list, c)
	if q.dev[c.b].host >= 0 && c.ifB != "" && !slices.Contains(q.nics[c.b], c.ifB) && len(q.nics[c.b]) < 256 {
		q.nics[c.b] = append(q.nics[c.b], c.ifB)
	}
}

func (q *netqReader) tier(sw int) cluster.Tier { return q.f.Network.Switches[sw].Tier }

// types gives every host a type with its interfaces as NICs; hosts with the
// same interfaces share one.
func (q *netqReader) types() {
	types := cluster.Types{}
	hosts := q.f.Hosts
	q.f.Hosts = nil
	for h, id := range q.hosts {
		nics := q.nics[id]
		if len(nics) == 0 {
			q.f.Hosts = append(q.f.Hosts, hosts[h])
			continue
		}
		slices.Sort(nics)
		t := &cluster.NodeType{Name: fmt.Sprintf("host with %d interfaces", len(nics))}
		for i, n := range nics {
			d := board.NIC(n)
			d.Index, d.NIC.Kind = i, cluster.Ethernet
			t.Add(d)
		}
		types.AddNode(q.f, hosts[h].Name, t)
	}
	q.f.Network.Kind = cluster.Ethernet
}

// links turns cables into links: those between two switches into one with a
// count, those to hosts into one per switch and NIC.
func (q *netqReader) links() {
	type key struct{ sw, other, nic, count int }
	at := map[key]int{}
	n := &q.f.Network
	byHost := slices.Clone(q.list)
	slices.SortStableFunc(byHost, func(x, y cable) int { return q.dev[x.b].host - q.dev[y.b].host })
	for _, c := range byHost {
		a, b := q.dev[c.a], q.dev[c.b]
		k := key{a.sw, b.sw, -1, 0}
		if b.host >= 0 {
			k.nic, k.count = slices.Index(q.nics[c.b], c.ifB), c.number
		}
		i, ok := at[k]
		if !ok {
			i = len(n.Links)
			at[k] = i
			n.Links = append(n.Links, cluster.NetLink{
				A: cluster.End{Switch: a.sw, NIC: -1}, B: cluster.End{Switch: b.sw, NIC: k.nic}, Count: k.count,
			})
		}
		if b.host < 0 {
			n.Links[i].Count += c.number
			continue
		}
		end := &n.Links[i].B
		if last := len(end.Hosts) - 1; last >= 0 && end.Hosts[last].First+end.Hosts[last].N >= b.host+1 {
			continue // listed twice
		}
		end.Hosts = cluster.AppendSpan(end.Hosts, cluster.Span{First: b.host, N: 1})
	}
}
