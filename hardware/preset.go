package hardware

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// PresetInfo describes a preset for a list.
type PresetInfo struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	Summary string   `json:"summary"`
	Source  string   `json:"source"`
	GPUs    int      `json:"gpus_per_node"`
	NICs    int      `json:"nics_per_node"`
	Nodes   int      `json:"nodes"` // that Preset builds when the caller names no count
}

// machine is a preset: how to make a node and what joins the nodes.
type machine struct {
	name    string
	aliases []string
	summary string
	source  string
	nodes   int // default count; 0 means 1
	node    func() *cluster.NodeType
	net     Description
}

// machines lists the machines, then every GPU on its own.
func machines() []machine {
	list := slices.Concat(dgxMachines(), rackMachines(), awsMachines(), azureMachines(), googleMachines(), cloudMachines(), siteMachines(), boxMachines())
	taken := make(map[string]bool)
	for _, m := range list {
		taken[m.name] = true
		for _, a := range m.aliases {
			taken[a] = true
		}
	}
	for _, g := range GPUs() {
		if !taken[g.Name] {
			list = append(list, bareGPU(g))
		}
	}
	return list
}

// bareGPU is one host with one GPU and nothing else.
func bareGPU(g GPUModel) machine {
	return machine{
		name: g.Name, summary: "one " + g.Title + " alone, no NIC", source: g.Source,
		node: func() *cluster.NodeType {
			t := newNode(cluster.Unknown)
			addChip(t, -1, g, "")
			return t
		},
	}
}

// Presets lists all presets.
func Presets() []PresetInfo {
	var list []PresetInfo
	for _, m := range machines() {
		t := m.node()
		list = append(list, PresetInfo{
			Name: m.name, Aliases: m.aliases, Summary: m.summary, Source: m.source,
			GPUs: t.Count(cluster.GPU), NICs: t.Count(cluster.NIC), Nodes: max(m.nodes, 1),
		})
	}
	return list
}

// Node makes the node type of a preset, rates filled in.
func Node(name string) (*cluster.NodeType, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	return m.make(), nil
}

func (m *machine) make() *cluster.NodeType {
	t := m.node()
	joinNUMA(t)
	t.Name, t.Preset = m.name, m.name
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}}
	Complete(c)
	return t
}

// Preset makes a cluster of count nodes of a preset, named node0, node1, …, with
// its network. A count of 0 asks for the preset's own number of nodes.
func Preset(name string, count int) (*cluster.Cluster, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		count = max(m.nodes, 1)
	}
	if count < 0 || count > MaxNodes {
		return nil, fmt.Errorf("preset %s: %d nodes; expected 1 to %d", m.name, count, MaxNodes)
	}
	c := &cluster.Cluster{Name: m.name, Types: []*cluster.NodeType{m.make()}, Sources: []string{m.name + ": " + m.source}}
	c.Hosts = make([]cluster.Host, count)
	for i := range c.Hosts {
		c.Hosts[i] = cluster.Host{Name: "node" + strconv.Itoa(i)}
	}
	if c.Types[0].Count(cluster.NIC) == 0 {
		return c, nil
	}
	net := m.net
	if net.Source == "" {
		net.Source = m.source
	}
	return c, Describe(net, c)
}

// NetworkOf is the description of a preset's network, for a caller that builds a
// network of its own around the preset's nodes.
func NetworkOf(name string) (Description, error) {
	m, err := find(name)
	if err != nil {
		return Description{}, err
	}
	return m.net, nil
}

// find looks a preset up by name or alias, whatever the case and with _ or
// spaces for -. An unknown name is an error that lists what is near.
func find(name string) (*machine, error) {
	want := presetKey(name)
	all := machines()
	for i := range all {
		if presetKey(all[i].name) == want || slices.ContainsFunc(all[i].aliases, func(a string) bool { return presetKey(a) == want }) {
			return &all[i], nil
		}
	}
	near := nearest(want, all)
	if len(near) == 0 {
		return nil, fmt.Errorf("preset %.40q; no such machine or GPU; `busbar presets` lists them", name)
	}
	return nil, fmt.Errorf("preset %.40q; no such machine or GPU; near it: %s", name, strings.Join(near, ", "))
}

func presetKey(s string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(strings.TrimSpace(s)))
}

// nearest lists up to five names that contain the wanted one, are contained in
// it, or differ from it by few letters.
func nearest(want string, all []machine) []string {
	type guess struct {
		name string
		far  int
	}
	var guesses []guess
	if want == "" || len(want) > 64 {
		return nil
	}
	for _, m := range all {
		best := 1 << 30
		for _, n := range append([]string{m.name}, m.aliases...) {
			n = presetKey(n)
			d := distance(want, n)
			if strings.Contains(n, want) || len(n) > 2 && strings.Contains(want, n) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best <= max(2, len(want)/3) {
			guesses = append(guesses, guess{m.name, best})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return a.far - b.far })
	var names []string
	for _, g := range guesses[:min(5, len(guesses))] {
		names = append(names, g.name)
	}
	return names
}

// distance is the number of letters to insert, drop or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
