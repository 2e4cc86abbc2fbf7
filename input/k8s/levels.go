package k8s

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

// Label keys that name switches, by tier. topograph has renamed its keys
// twice: block, spine and datacenter became leaf, spine and core, and then
// tier-N, last under a name of its own.
var fabricKeys = [][]string{
	{"network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block"},
	{"network.topology.nvidia.com/spine"},
	{"network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter"},
}

var tierPrefixes = strings.Fields("network.topology.nvidia.com/tier- fabric.topograph.run/tier-")

// AWS numbers its network nodes from the top: layer 1 is farthest from the host.
const awsLayer = "topology.k8s.aws/network-node-layer-"

// Label keys that name the node itself.
const (
	hostname = "kubernetes.io/hostname"
	gceHost  = "cloud.google.com/gce-topology-host"
)

// Label keys that name the accelerator domain of a node, in order of
// preference, each with the key of a domain inside it.
var acceleratorKeys = [][]string{
	{"accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"},
	{"network.topology.nvidia.com/accelerator", "network.topology.nvidia.com/sub-domain"},
	{"nvidia.com/gpu.clique"},
	{"topology.k8s.aws/ultraserver-id"},
}

// Families of label keys that name other groupings, outermost first.
var groupKeys = [][]string{
	{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"},
	{"failure-domain.beta.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"},
	{"cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"},
	{"cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"},
	{
		"oci.oraclecloud.com/host.hpc_island_id", "oci.oraclecloud.com/host.network_block_id",
		"oci.oraclecloud.com/host.rack_id",
	},
}

// level is one label of a node that places it in a grouping.
type level struct{ key, val string }

// place puts every node under the switches and groupings that its labels name.
func (o *objects) place(t *switchtree.Tree) {
	g := groupings{ids: map[string]int{}}
	for i := range o.nodes {
		n := &o.nodes[i]
		t.Place(int32(i), n.line, fabric(n))
		for _, family := range o.families(n) {
			g.addHost(int32(i), n, family)
		}
	}
	g.fillTree(t)
}

// fabric lists the switches that a node's labels name, lowest first.
func fabric(n *node) []switchtree.Level {
	byTier := map[int]string{}
	for tier, keys := range fabricKeys {
		if chain := chainOf(n, keys); len(chain) > 0 {
			byTier[tier] = chain[0].val
		}
	}
	layers := map[int]string{}
	deepest := 0
	for i := range n.labels.Map() {
		l := &n.labels.Items[i]
		for _, p := range tierPrefixes {
			if tier, ok := numberAfter(l.Key, p); ok && l.Str() != "" {
				byTier[tier] = l.Str()
			}
		}
		if layer, ok := numberAfter(l.Key, awsLayer); ok && l.Str() != "" {
			layers[layer] = l.Str()
			deepest = max(deepest, layer)
		}
	}
	if len(byTier) == 0 {
		for layer, name := range layers {
			byTier[deepest-layer] = name
		}
	}
	var out []switchtree.Level
	for _, tier := range slices.Sorted(maps.Keys(byTier)) {
		out = append(out, switchtree.Level{Name: byTier[tier], Tier: tier})
	}
	return out
}

// numberAfter reads the number behind a prefix.
func numberAfter(s, prefix string) (int, bool) {
	rest, ok := strings.CutPrefix(s, prefix)
	n := num.Or(rest, 0, 59, -1)
	return n, ok && n >= 0
}

// families lists the chains of groupings that a node's labels name.
func (o *objects) families(n *node) [][]level {
	var out [][]level
	for _, keys := range acceleratorKeys {
		if chain := chainOf(n, keys); len(chain) > 0 {
			out = append(out, chain)
			break
		}
	}
	for _, keys := range groupKeys {
		if chain := chainOf(n, keys); len(chain) > 0 {
			out = append(out, chain)
		}
	}
	for _, l := range o.levels {
		if chain := chainOf(n, l.keys); len(chain) > 0 && !isKnown(l.keys) {
			out = append(out, chain)
		}
	}
	return out
}

func chainOf(n *node, keys []string) []level {
	var chain []level
	for _, k := range keys {
		// A grouping of one node each groups nothing.
		if v := n.label(k); v != "" && k != hostname && k != gceHost {
			chain = append(chain, level{k, v})
		}
	}
	return chain
}

// isKnown reports whether all keys of a Topology are read anyway.
func isKnown(keys []string) bool {
	known := slices.Concat(slices.Concat(fabricKeys, acceleratorKeys, groupKeys, [][]string{{hostname, gceHost}})...)
	return !slices.ContainsFunc(keys, func(k string) bool {
		return !slices.Contains(known, k) && !slices.ContainsFunc(append(tierPrefixes, awsLayer),
			func(p string) bool { return strings.HasPrefix(k, p) })
	})
}

// groupings collects groupings before they get names: a rack r1 in block b1 and
// a rack r1 in block b2 are two.
type groupings struct {
	ids   map[string]int // by the keys and values down to it
	all   []grouping
	hosts [][2]int32 // host, innermost grouping
}

type grouping struct {
	level
	path string // values down to it
	up   int
	line int
}

func (g *groupings) addHost(host int32, n *node, chain []level) {
	up, id, path := -1, "", ""
	for _, l := range chain {
		id += "\x00" + l.key + "=" + l.val
		path = strings.TrimPrefix(path+"/"+l.val, "/")
		at, ok := g.ids[id]
		if !ok {
			at = len(g.all)
			g.ids[id] = at
			g.all = append(g.all, grouping{l, path, up, n.line})
		}
		up = at
	}
	g.hosts = append(g.hosts, [2]int32{host, int32(up)})
}

// fillTree names the groupings and puts them and the hosts into the tree. A
// grouping is called by its value where that is enough, else by the values down
// to it, else also by its key.
func (g *groupings) fillTree(t *switchtree.Tree) {
	byVal, byPath := map[string]int{}, map[string]int{}
	for i := range g.all {
		byVal[g.all[i].val]++
		byPath[g.all[i].path]++
	}
	sw := make([]int, len(g.all))
	for i := range g.all {
		e := &g.all[i]
		name := e.val
		if byVal[name] > 1 {
			name = e.path
		}
		if byVal[e.val] > 1 && (byPath[e.path] > 1 || byVal[e.path] > 0 && e.path != e.val) {
			name = e.key + "=" + e.path
		}
		sw[i] = t.Switch(name, true)
		s := &t.Switches[sw[i]]
		s.Line, s.Label = e.line, e.key+"="+e.val
		if e.up >= 0 && sw[e.up] != sw[i] {
			t.Join(sw[e.up], sw[i])
		}
	}
	for _, h := range g.hosts {
		t.Attach(sw[h[1]], h[0])
	}
}

// maxTopologies bounds the Topologies that nodes are looked through for.
const maxTopologies = 50

// topology keeps the levels of a Topology.
func (o *objects) topology(v *yamldoc.Value) {
	name := cmp.Or(v.Get("metadata", "name").Str(), v.Get("metadata", "generateName").Str())
	t := levels{line: v.LineNum()}
	for _, l := range v.Get("spec", "levels").List() {
		if k := l.Get("nodeLabel").Str(); k != "" {
			t.keys = append(t.keys, k)
		}
	}
	if len(t.keys) == 0 {
		o.f.Warnf(t.line, name, "a Topology without levels")
	} else if len(o.levels) < maxTopologies {
		t.text = "topology " + name + " has the levels " + strings.Join(t.keys, " > ")
		o.levels = append(o.levels, t)
	}
}
