package slurm

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

// listed is how the entry of a topology begins, and what makes it one of a kind that is read.
var (
	listed  = lazyre.New(`(?m)^ *- +topology:`)
	ofAKind = lazyre.New(`(?m)^ +(tree|block|flat):`)
)

// MatchYAML reports whether the text is a topology.yaml.
func MatchYAML(data []byte) bool {
	return lines.Has(data, " topology:") && listed.Match(data) && ofAKind.Match(data)
}

// ReadYAMLWithin reads a topology.yaml. The tree that is the cluster's default, else the first, becomes the network's
// switches, and blocks over the same hosts groupings.
func ReadYAMLWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	if !MatchYAML([]byte(text)) {
		return nil, fmt.Errorf("%s: no \"- topology: name\"; expected %s", name, formatYAML)
	}
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, yamldoc.In(name, err)
	}
	f := &cluster.Fragment{Format: formatYAML, Source: name}
	y := treeReader{budget: b, f: f, tree: switchtree.New()}
	y.tree.Overlap = true
	var all []yamldoc.Value
	for _, d := range docs {
		all = append(all, d.List()...)
	}
	var tree *yamldoc.Value
	for i := range all {
		if t := &all[i]; t.Get("tree") != nil && (tree == nil || t.Get("cluster_default").True()) {
			tree = t
		}
	}
	for i := range all {
		if err := y.topology(&all[i], tree); err != nil {
			return nil, err
		}
	}
	return y.filled()
}

// topology reads one entry of the list; tree is the one that is the network.
func (tr *treeReader) topology(t, tree *yamldoc.Value) error {
	switch {
	case t == tree:
		return tr.entries(t.Get("tree", "switches"), "switch", aSwitch)
	case t.Get("block") != nil:
		if tree == nil || !tree.Get("cluster_default").True() { // else Slurm plans by the tree
			tr.blocks = true
			if s := t.Get("block", "block_sizes"); s != nil {
				tr.sizes(s.LineNum(), "block_sizes", s.Texts())
			}
		}
		return tr.entries(t.Get("block", "blocks"), "block", aBlock)
	case t.Get("flat") == nil: // to which all nodes are equally near
		tr.f.Warnf(t.LineNum(), t.Get("topology").Str(), "neither the tree of the network nor block nor flat; skipped")
	}
	return nil
}

// entries reads the switches or blocks of a topology.
func (tr *treeReader) entries(list *yamldoc.Value, nameKey string, of kind) error {
	for _, e := range list.List() {
		r := record{kind: of, line: e.LineNum(), name: e.Get(nameKey).Str(), fields: []field{
			{"Nodes", strings.Join(e.Get("nodes").Texts(), ",")}, {"Switches", strings.Join(e.Get("children").Texts(), ",")},
		}}
		if r.name == "" {
			tr.f.Warnf(r.line, "", "an entry without %q; skipped", nameKey)
		} else if err := tr.addSwitch(r); err != nil {
			return err
		}
	}
	return nil
}
