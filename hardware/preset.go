package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
)

// PresetInfo describes a preset for a list.
type PresetInfo struct {
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	Summary string   `json:"summary"`
	Source  string   `json:"source"`
	GPUs    int      `json:"gpus_per_node"`
	NICs    int      `json:"nics_per_node"`
	Nodes   int      `json:"nodes"`            // that Preset builds when the caller names no count
	Fabric  string   `json:"fabric,omitempty"` // presets of one fabric are on one network
}

// preset is a row of presets.csv: a node with its GPUs and NICs, and what joins
// such nodes.
type preset struct {
	Name    string   `csv:"name"`
	Aliases []string `csv:"aliases,optional"`
	Nodes   int      `csv:"nodes,optional"` // default count; 0 means 1
	Node    string   `csv:"node"`           // in nodes.csv; "": one GPU and nothing else
	GPU     string   `csv:"gpu"`
	NIC     string   `csv:"nic"`     // in cards.csv
	Network string   `csv:"network"` // in fabrics.csv
	Summary string   `csv:"summary"`
	Source  string   `csv:"source"`

	cards *nodeRow // a node that was named by its cards alone: 4xa6000
}

// presetTable lists the machines, then every GPU on its own.
var presetTable = sync.OnceValue(func() []preset {
	list := load[preset]("presets")
	taken := make(map[string]bool)
	for _, p := range list {
		taken[p.Name] = true
		for _, a := range p.Aliases {
			taken[a] = true
		}
	}
	for _, g := range gpuTable().models {
		if !taken[g.Name] {
			list = append(list, preset{
				Name: g.Name, GPU: g.Name, Summary: "one " + g.Title + " alone, no NIC", Source: g.Source,
			})
		}
	}
	return list
})

// fabric is a row of fabrics.csv: the network of presets.
type fabric struct {
	Name             string          `csv:"name"`
	Title            string          `csv:"title"`
	Kind             cluster.NetKind `csv:"kind,optional"`
	Rails            int             `csv:"rails,optional"`
	NodesPerLeaf     int             `csv:"nodes_per_leaf"`
	Oversubscription float64         `csv:"oversubscription,optional"`
	Switch           string          `csv:"switch,optional"`
	Origin           cluster.Origin  `csv:"origin,optional"`
	Source           string          `csv:"source"`
}

var fabricTable = sync.OnceValue(func() map[string]*fabric {
	return byName("fabrics", func(f *fabric) string { return f.Name })
})

// network is the description of the preset's network; zero for a lone GPU.
func (p *preset) network() Description {
	f := fabricTable()[p.Network]
	if f == nil {
		return Description{}
	}
	return Description{
		Name: f.Title, Kind: f.Kind, Rails: f.Rails, NodesPerLeaf: f.NodesPerLeaf, Oversubscription: f.Oversubscription,
		Model: f.Switch, Origin: f.Origin, Source: f.Source,
	}
}

// Presets lists all presets.
func Presets() []PresetInfo {
	var list []PresetInfo
	for _, p := range presetTable() {
		list = append(list, p.info())
	}
	return list
}

func (p *preset) info() PresetInfo {
	t := p.node()
	return PresetInfo{
		Name: p.Name, Aliases: slices.Clone(p.Aliases), Summary: p.Summary, Source: p.Source,
		GPUs: t.Count(cluster.GPU), NICs: t.Count(cluster.NIC), Nodes: max(p.Nodes, 1), Fabric: p.Network,
	}
}

// FindPreset is the preset that has a name for its own or for an alias; the zero value where none has.
func FindPreset(name string) PresetInfo {
	if p, err := find(name); err == nil && !strings.Contains(p.Source, AssumedNode) {
		return p.info()
	}
	return PresetInfo{}
}

// Node makes the node type of a preset, rates filled in.
func Node(name string) (*cluster.NodeType, error) {
	p, err := find(name)
	if err != nil {
		return nil, err
	}
	return p.complete(), nil
}

// complete is the preset's node with all that the catalogue knows of it.
func (p *preset) complete() *cluster.NodeType {
	t := p.node()
	joinNUMA(t)
	t.Name, t.Preset = p.Name, p.Name
	c := &cluster.Cluster{Types: []*cluster.NodeType{t}}
	Complete(c)
	return t
}

// Preset makes a cluster of count nodes of a preset, named node0, node1, …, with
// its network. A count of 0 asks for the preset's own number of nodes.
func Preset(name string, count int) (*cluster.Cluster, error) {
	p, err := find(name)
	if err != nil {
		return nil, err
	}
	count = cmp.Or(count, max(p.Nodes, 1))
	if count < 0 || count > MaxNodes {
		return nil, fmt.Errorf("preset %s: %d nodes; expected 1 to %d", p.Name, count, MaxNodes)
	}
	c := &cluster.Cluster{
		Name: p.Name, Types: []*cluster.NodeType{p.complete()}, Sources: []string{p.Name + ": " + p.Source},
		Hosts: numbered(count),
	}
	if c.Types[0].Count(cluster.NIC) == 0 {
		return c, nil
	}
	return c, Describe(p.network(), c)
}

// NetworkOf is the description of a preset's network, for a caller that builds a
// network of its own around the preset's nodes.
func NetworkOf(name string) (Description, error) {
	p, err := find(name)
	if err != nil {
		return Description{}, err
	}
	return p.network(), nil
}

// foreign says what is missing for accelerators that others build, by the beginning of a name.
func foreign(key string) string {
	for _, x := range []struct{ begin, why string }{
		{"tpu", "collectives of TPUs are compiled by XLA over their own torus; missing are its choices and a published " +
			"sweep"},
		{"trn", "collectives of Trainium run by the Neuron runtime; missing are its choices and a published sweep"},
		{"trainium", "collectives of Trainium run by the Neuron runtime; missing are its choices and a published sweep"},
		{"inferentia", "collectives of Inferentia run by the Neuron runtime; missing are its choices and a published sweep"},
		{"ascend", "collectives of Ascend run by its own HCCL; missing are its choices and a published sweep"},
	} {
		if strings.HasPrefix(key, x.begin) {
			return x.why
		}
	}
	return ""
}

// find looks a preset up by name or alias, whatever the case and with _ or
// spaces for -. An unknown name is an error that lists what is near.
func find(name string) (*preset, error) {
	want := presetKey(name)
	all := presetTable()
	for i := range all {
		if presetKey(all[i].Name) == want ||
			slices.ContainsFunc(all[i].Aliases, func(a string) bool { return presetKey(a) == want }) {
			return &all[i], nil
		}
	}
	if p, err := nodeOf(want, all); p != nil || err != nil {
		return p, err
	}
	if g, ok := GPUByName(want); ok && g.Name != want && !countedName.MatchString(want) {
		return find(g.Name)
	}
	if why := foreign(want); why != "" {
		return nil, fmt.Errorf("preset %.40q: %s; NVIDIA's GPUs (NCCL) and AMD's (RCCL) are modelled", name, why)
	}
	near := nearest(want, all)
	if len(near) == 0 {
		return nil, fmt.Errorf("preset %.40q: no such machine or GPU; `busbar list presets` lists them", name)
	}
	return nil, fmt.Errorf("preset %.40q: no such machine or GPU; similar: %s", name, strings.Join(near, ", "))
}

// AssumedNode begins the source of a node that was named by its GPUs alone.
const AssumedNode = "assumed to be"

// maxCards is more PCIe cards than a server takes.
const maxCards = 16

// IsGPU reports a preset that is a GPU by its name alone, without a number of them.
func IsGPU(name string) bool {
	p, err := find(name)
	return err == nil && p.Node == "" && p.cards == nil && !countedName.MatchString(name)
}

// countedName is a name that has a number of GPUs itself.
var countedName = lazyre.New(`^[0-9]+x`)

// nodeOf is a node of several GPUs, as 4xa100-40: that of the first machine whose nodes have as many of them, else for
// PCIe cards one that has them on root ports. Both results are nil where the name is none of this kind.
func nodeOf(want string, all []preset) (*preset, error) {
	count, name, _ := strings.Cut(want, "x")
	g, ok := GPUByName(name)
	if end := strings.LastIndexByte(want, 'x'); !ok && end > 0 { // h100x8, 4090x2
		count, name = want[end+1:], want[:end]
		g, ok = GPUByName(name)
	}
	n, err := strconv.Atoi(count)
	if !ok || err != nil || n < 1 || countedName.MatchString(name) {
		return nil, nil
	}
	if n == 1 {
		return find(g.Name)
	}
	var others []string
	for _, p := range all {
		if p.GPU != g.Name || p.Node == "" {
			continue
		}
		have := p.node().Count(cluster.GPU)
		if have == n {
			own := p
			own.Name, own.Aliases, own.Nodes = want, nil, 1
			own.Source = fmt.Sprintf("%s as a node of %s (%s): %s", AssumedNode, p.Name, p.Summary, p.Source)
			return &own, nil
		}
		others = append(others, fmt.Sprintf("%s has %d", p.Name, have))
	}
	if !g.Module() && n <= maxCards {
		row, text := cardsNode(g, n)
		return &preset{Name: want, GPU: g.Name, cards: row, Source: AssumedNode + " " + text}, nil
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("%s: no preset has nodes of %s; write a cluster file (docs/format/cluster.md)", want, g.Title)
	}
	return nil, fmt.Errorf("%s: no preset has nodes of %d %s: %s; expected one of these with a number "+
		"of nodes, such as %s:%d for %d nodes, or a cluster file (docs/format/cluster.md)", want, n, g.Title,
		strings.Join(others, ", "), strings.Fields(others[0])[0], n, n)
}

func presetKey(s string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(strings.TrimSpace(s)))
}

// nearest lists up to five names that contain the wanted one, are contained in
// it, or differ from it by few letters.
func nearest(want string, all []preset) []string {
	type guess struct {
		name string
		far  int
	}
	var guesses []guess
	if want == "" || len(want) > 64 {
		return nil
	}
	for _, p := range all {
		best := 1 << 30
		for _, n := range append([]string{p.Name}, p.Aliases...) {
			n = presetKey(n)
			d := words.Distance(want, n)
			if strings.Contains(n, want) || len(n) > 2 && strings.Contains(want, n) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best <= max(2, len(want)/3) {
			guesses = append(guesses, guess{p.Name, best})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return a.far - b.far })
	var names []string
	for _, g := range guesses[:min(5, len(guesses))] {
		names = append(names, g.name)
	}
	return names
}
