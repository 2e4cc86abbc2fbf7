package ibnet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/natural"
)

// adapter is one card function: a node, or several where the format names only
// ports and they agree on host and label.
type adapter struct {
	label string
	nodes []int
}

// machine is a host before it has a type.
type machine struct {
	name string
	nics []adapter
}

// addHosts groups adapters by the host name in their descriptions and gives equal hosts one type.
func (f *fabric) addHosts() {
	types, used := cluster.Types{}, names{}
	for _, m := range f.machines() {
		slices.SortStableFunc(m.nics, func(x, y adapter) int { // mlx5_9 before mlx5_10, and cards without a label by GUID
			return cmp.Or(natural.Compare(x.label, y.label), cmp.Compare(f.nodes[x.nodes[0]].guid, f.nodes[y.nodes[0]].guid))
		})
		h := len(f.out.Hosts)
		types.AddNode(f.out, used.freeName(m.name, ""), f.nodeType(m.nics))
		for k, nic := range m.nics {
			for _, n := range nic.nodes {
				f.nodes[n].host, f.nodes[n].nic = h, k
				f.out.Hosts[h].IDs = f.identities(f.out.Hosts[h].IDs, "nic"+strconv.Itoa(k), n)
			}
		}
	}
	given := names{}
	for _, t := range f.out.Types {
		t.Name = given.freeName(t.Name, "")
	}
}

// machines lists the hosts by name. Aggregation nodes and routers are none.
func (f *fabric) machines() (list []machine) {
	named := map[string][]adapter{}
	for n := range f.nodes {
		nd := &f.nodes[n]
		switch {
		case nd.kind == aRouter:
			f.notice(router, 0, "")
		case nd.kind != anAdapter:
		case isAggregation(nd.desc):
			f.notice(aggregation, 0, "")
			f.out.Network.Reduction = cluster.Yes
		default:
			host, label := hostOf(nd.desc)
			if nd.desc == "" {
				host = nd.id // a net file names nodes by their ids
			}
			if host == "" || nd.desc == "" && nd.guid != 0 {
				f.notice(unnamed, nd.line, nd.title())
				host, label = f.guidName(n), ""
			}
			named[host] = append(named[host], adapter{label, []int{n}})
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(named), natural.Compare) {
		list = f.settle(list, name, named[name])
	}
	slices.SortStableFunc(list, func(x, y machine) int { return natural.Compare(x.name, y.name) })
	return list
}

// settle makes the adapters of a host distinct. Ports of one card that a format lists apart become one adapter. Cards
// with one label, and far too many cards, are different machines under one name, each of which is named by its GUID.
func (f *fabric) settle(list []machine, name string, nics []adapter) []machine {
	many := len(nics) > maxCAs
	var kept []adapter
	for _, nic := range nics {
		n := nic.nodes[0]
		same := slices.IndexFunc(kept, func(k adapter) bool { return k.label == nic.label })
		switch {
		case !many && (same < 0 || nic.label == ""):
			kept = append(kept, nic)
		case !many && f.oneCard(kept[same].nodes, n):
			kept[same].nodes = append(kept[same].nodes, n)
		default:
			f.notice(shared, f.nodes[n].line, f.nodes[n].title())
			list = append(list, machine{f.guidName(n), []adapter{nic}})
		}
	}
	if kept != nil {
		list = append(list, machine{name, kept})
	}
	return list
}

// oneCard reports whether a node can be a further port of a card: the format gives no node GUIDs, and the port numbers
// differ.
func (f *fabric) oneCard(have []int, n int) bool {
	for _, h := range have {
		for _, p := range f.nodes[n].has {
			if _, taken := f.at[portKey(h, f.ports[p].num)]; taken {
				return false
			}
		}
	}
	return f.nodes[n].guid == 0 && f.nodes[have[0]].guid == 0
}

// guidName names an adapter that nobody named: by its first port's GUID, which
// every format prints, else by its node's.
func (f *fabric) guidName(n int) string {
	nd := &f.nodes[n]
	for _, p := range nd.has {
		if g := f.ports[p].guid; g != 0 {
			return "ca-" + guidText(g)
		}
	}
	if nd.guid != 0 {
		return "ca-" + guidText(nd.guid)
	}
	return "ca-" + strings.ReplaceAll(nd.title(), " ", "-")
}

// identities adds what belongs to one adapter alone.
func (f *fabric) identities(to []cluster.Identity, device string, n int) []cluster.Identity {
	nd := &f.nodes[n]
	uuid := nicGUID(nd.guid)
	if len(nd.has) == 0 && uuid != "" {
		return append(to, cluster.Identity{Device: device, UUID: uuid})
	}
	for _, p := range nd.has {
		pt := &f.ports[p]
		to = append(to, cluster.Identity{
			Device: device, UUID: uuid, Port: pt.num, GUID: nicGUID(pt.guid), LID: pt.lid, Counters: pt.counters,
		})
	}
	return to
}

// nicPorts are an adapter's ports by number. Ports that it states and that no
// line mentions have nothing on them, if the scan saw the adapter at all.
func (f *fabric) nicPorts(nic adapter) (ports []cluster.Port) {
	stated, cabled := 0, false
	for _, n := range nic.nodes {
		nd := &f.nodes[n]
		stated = max(stated, nd.ports)
		for _, p := range nd.has {
			pt := &f.ports[p]
			is := pt.is
			if q := pt.peer; q >= 0 {
				cabled = true
				is = is.or(f.ports[q].is)
			}
			ports = append(ports, cluster.Port{
				Num: pt.num, Rate: is.fact(f.format), Max: pt.could.fact(f.format), State: pt.state,
				Layer: "InfiniBand", Speed: is.String(),
			})
		}
	}
	// More than a card's few ports can only be a mistake; they are not made up.
	const most = 4
	for num := 1; num <= stated && stated <= most; num++ {
		if !slices.ContainsFunc(ports, func(p cluster.Port) bool { return p.Num == num }) {
			p := cluster.Port{Num: num, Layer: "InfiniBand"}
			if cabled {
				p.State = cluster.Down
			}
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(x, y cluster.Port) int { return x.Num - y.Num })
	return ports
}

// model is the maker's part number, MT and the device id in decimal, as ibstat
// prints it.
func (n *node) model(source string) cluster.Fact[string] {
	const mellanox = 0x2c9
	if n.vendor != mellanox || n.device == 0 {
		return cluster.Fact[string]{}
	}
	return cluster.FromRead("MT"+strconv.Itoa(int(n.device)), source)
}

// nodeType makes the type of a host: its adapters, of whose place inside the host
// the fabric knows nothing.
func (f *fabric) nodeType(nics []adapter) *cluster.NodeType {
	t := &cluster.NodeType{}
	speed, same := "", true
	for k, nic := range nics {
		ports := f.nicPorts(nic)
		for _, p := range ports {
			speed = cmp.Or(speed, p.Speed)
			same = same && (p.Speed == speed || p.State == cluster.Down)
		}
		d := board.NIC(nic.label)
		d.Name, d.Model = "nic"+strconv.Itoa(k), f.nodes[nic.nodes[0]].model(f.format)
		d.NIC.Kind, d.NIC.Ports = cluster.InfiniBand, ports
		t.Devices = append(t.Devices, d)
	}
	t.Name = fmt.Sprintf("ib-%dnic", len(nics))
	if same && speed != "" {
		t.Name += "-" + speed
	}
	return t
}
