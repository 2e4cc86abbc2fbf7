package slurm

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/words"
)

// WriteConf writes the network as a topology.conf: for topology/block where it has groupings of hosts (NVLink domains,
// blocks), else for topology/tree.
//
// Slurm's tree gives each node one leaf. The leaves of a pod in a
// rail-optimised network, all of which every node hangs on, are written as one
// switch, and so are spines that share leaves; comments name what each stands
// for. Nodes without a known switch get a switch of their own under the top, so
// that Slurm can still use them. A node that is an NVLink domain of several hosts
// is a block, and each of these hosts a node of Slurm's.
func WriteConf(w io.Writer, c *cluster.Cluster) error {
	v, err := newView(c)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	write, plugin := v.confTree, "tree"
	if len(v.domains) > 0 {
		write, plugin = v.confBlocks, "block"
	}
	fmt.Fprintf(b, "# Slurm topology.conf, written by busbar; for TopologyPlugin=topology/%s\n", plugin)
	v.comment(b)
	write(b)
	return b.Flush()
}

// WriteYAML writes the network as a topology.yaml (Slurm 25.05 and newer): the
// tree as the cluster's default and, where the network has groupings, a block
// topology beside it.
func WriteYAML(w io.Writer, c *cluster.Cluster) error {
	v, err := newView(c)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	b.WriteString("# Slurm topology.yaml, written by busbar\n---\n")
	v.comment(b)
	if len(v.tree) == 0 && len(v.domains) == 0 {
		b.WriteString("# Nothing is known about the network.\n- topology: flat\n  cluster_default: true\n  flat: true\n")
		return b.Flush()
	}
	if len(v.tree) > 0 {
		b.WriteString("- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n")
		for _, s := range v.tree {
			key, list := s.under("nodes", "children")
			fmt.Fprintf(b, "      - switch: %q\n        %s: %q\n", s.name, key, list)
		}
	}
	if len(v.domains) > 0 {
		fmt.Fprintf(b, "- topology: block\n  cluster_default: %v\n  block:\n    block_sizes:\n", len(v.tree) == 0)
		for _, n := range v.blockSizes() {
			fmt.Fprintf(b, "      - %d\n", n)
		}
		b.WriteString("    blocks:\n")
		for _, d := range v.domains {
			fmt.Fprintf(b, "      - block: %q\n        nodes: %q\n", d.name, cluster.FormatSlurmHosts(d.hosts))
		}
	}
	return b.Flush()
}

// entry is a switch or a block as Slurm takes it: hosts or switches, not both.
type entry struct {
	name        string
	hosts, down []string
	note        string
}

// under is what hangs on a switch, with the key for hosts or for switches.
func (e *entry) under(hosts, switches string) (key, list string) {
	if len(e.down) > 0 {
		return switches, cluster.FormatSlurmHosts(e.down)
	}
	return hosts, cluster.FormatSlurmHosts(e.hosts)
}

// view is a cluster's network in Slurm's terms.
type view struct {
	c       *cluster.Cluster
	tree    []entry
	domains []entry
	notes   []string // about the tree as a whole
	outside []string // hosts in no grouping
	used    map[string]bool
}

func newView(c *cluster.Cluster) (*view, error) {
	if len(c.Hosts) == 0 {
		return nil, fmt.Errorf("the cluster has no hosts, and Slurm's topology is about hosts; add a source that names them")
	}
	c, trays := switchtree.ByTray(c)
	c, dropped := switchtree.Keep(c, slurmNames(c))
	all := len(dropped)
	dropped = slices.DeleteFunc(dropped, nameless)
	adapters := all - len(dropped)
	if len(c.Hosts) == 0 {
		return nil, fmt.Errorf("no host has a name that Slurm can hold (%q); give them plain names", dropped[0])
	}
	v := &view{c: c, used: map[string]bool{}}
	if trays != "" {
		v.notes = append(v.notes, trays)
	}
	if adapters > 0 {
		v.notes = append(v.notes,
			fmt.Sprintf("Left out: %s of the fabric without a host's name, which is no node of Slurm's.",
				words.Plural(adapters, "adapter")))
	}
	if len(dropped) > 0 {
		v.notes = append(v.notes,
			fmt.Sprintf("Left out, for names that Slurm cannot hold or that repeat: %d hosts, %q and so on.", len(dropped),
				dropped[0]))
	}
	v.addTree(switchtree.Groups(c))
	v.addDomains()
	return v, nil
}

func nameless(name string) bool {
	h := cluster.Host{Name: name}
	return h.Nameless()
}

// slurmNames gives hosts their names in Slurm. Adapters that carry no host's name have none where other hosts do.
func slurmNames(c *cluster.Cluster) func(string) string {
	if !slices.ContainsFunc(c.Hosts, func(h cluster.Host) bool { return !h.Nameless() }) {
		return slurmName
	}
	return func(name string) string {
		if nameless(name) {
			return ""
		}
		return slurmName(name)
	}
}

// slurmName returns a host's name, or "" for one that Slurm cannot hold.
func slurmName(n string) string {
	if len(n) > 255 {
		return ""
	}
	return heldName.FindString(n)
}

var heldName = lazyre.New(`^[^\[\],=#"'\\\x00-\x20\x7f]+$`)

func (v *view) names(hosts []int) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = v.c.Hosts[h].Name
	}
	return natural.Sort(out)
}

// addTree turns the groups of a network into switches.
func (v *view) addTree(f *switchtree.Forest) {
	for i := range f.Groups {
		v.used[f.Groups[i].Name] = true
	}
	if len(f.Groups) == 0 {
		return
	}
	islands := f.Tops()
	var extra []entry
	for i := range f.Groups {
		g := &f.Groups[i]
		e := entry{name: g.Name, note: v.standsFor(g)}
		for _, d := range g.Down {
			e.down = append(e.down, f.Groups[d].Name)
		}
		switch {
		case len(e.down) == 0:
			e.hosts = v.names(g.Hosts)
		case len(g.Hosts) > 0:
			own := entry{
				name: switchtree.Unique(switchtree.Plain(g.Name+"-hosts", 64), v.used), hosts: v.names(g.Hosts),
				note: "the hosts on " + g.Name + " itself, which Slurm wants on a leaf",
			}
			e.down = append(e.down, own.name)
			extra = append(extra, own)
		}
		v.tree = append(v.tree, e)
	}
	v.tree = append(v.tree, extra...)
	if len(islands) > 1 {
		v.notes = append(v.notes,
			fmt.Sprintf("Nothing is known to join the %d top switches: Slurm will not run one job across them.", len(islands)))
	}
	if len(f.Loose) > 0 {
		v.addLoose(f, islands)
	}
}

// addLoose puts hosts that no switch is known for under one of their own.
func (v *view) addLoose(f *switchtree.Forest, tops []int) {
	own := entry{
		name: switchtree.Unique("unplaced", v.used), hosts: v.names(f.Loose),
		note: "no source says which switch these hang on; they are here so that Slurm can use them, as far away as can be",
	}
	v.tree = append(v.tree, own)
	if len(tops) != 1 {
		return
	}
	top := &f.Groups[tops[0]]
	if len(top.Down) > 0 {
		for i := range v.tree {
			if v.tree[i].name == top.Name {
				v.tree[i].down = append(v.tree[i].down, own.name)
			}
		}
		return
	}
	v.tree = append(v.tree, entry{
		name: switchtree.Unique("top", v.used), down: []string{top.Name, own.name},
		note: "made up to join the two above",
	})
}

// standsFor says which switches a group is made of.
func (v *view) standsFor(g *switchtree.Group) string {
	if len(g.Members) == 1 {
		return ""
	}
	if len(g.Members) == 0 {
		return "made up: cables join what is under it, but no one switch is above it"
	}
	if g.Rails {
		return "rail group: stands for " + g.List(v.c) +
			"; every host below hangs on several of them, which Slurm's tree cannot say"
	}
	return "stands for " + g.List(v.c) + ", which share what is below them"
}

// addDomains turns the network's groupings into blocks.
func (v *view) addDomains() {
	used := map[string]bool{}
	inside := make([]bool, len(v.c.Hosts))
	for _, d := range switchtree.Domains(v.c) {
		name := strings.TrimSuffix(v.c.Network.Switches[d.Switch].Name, " (group)")
		v.domains = append(v.domains, entry{
			name: switchtree.Unique(switchtree.Plain(name, 64), used), hosts: v.names(d.Hosts),
		})
		for _, h := range d.Hosts {
			inside[h] = true
		}
	}
	for h := range inside {
		if !inside[h] {
			v.outside = append(v.outside, v.c.Hosts[h].Name)
		}
	}
}

// comment writes what is to be said of the whole.
func (v *view) comment(b *bufio.Writer) {
	for _, n := range v.notes {
		fmt.Fprintf(b, "# %s\n", n)
	}
}

func (v *view) confTree(b *bufio.Writer) {
	if len(v.tree) == 0 {
		b.WriteString("# Nothing is known about the network: one switch holds all hosts.\n")
		fmt.Fprintf(b, "SwitchName=all Nodes=%s\n", cluster.FormatSlurmHosts(natural.Sort(v.outside)))
		return
	}
	for _, s := range v.tree {
		if s.note != "" {
			fmt.Fprintf(b, "# %s: %s\n", s.name, s.note)
		}
		key, list := s.under("Nodes", "Switches")
		fmt.Fprintf(b, "SwitchName=%s %s=%s\n", s.name, key, list)
	}
}

func (v *view) confBlocks(b *bufio.Writer) {
	if len(v.outside) > 0 {
		fmt.Fprintf(b, "# In no block: %s\n", cluster.FormatHosts(v.outside))
	}
	for _, e := range v.domains {
		fmt.Fprintf(b, "BlockName=%s Nodes=%s\n", e.name, cluster.FormatSlurmHosts(e.hosts))
	}
	fmt.Fprintf(b, "BlockSizes=%s\n", strings.ReplaceAll(strings.Trim(fmt.Sprint(v.blockSizes()), "[]"), " ", ","))
}

// blockSizes is what Slurm may plan in: what a source says, else the smallest block, and twice that as
// long as there are blocks enough.
func (v *view) blockSizes() []int {
	if out := v.c.Network.BlockSizes; len(out) > 0 {
		return out
	}
	base := len(v.domains[0].hosts)
	for _, e := range v.domains {
		base = min(base, len(e.hosts))
	}
	var out []int
	for n := 1; n <= len(v.domains); n *= 2 {
		out = append(out, base*n)
	}
	return out
}
