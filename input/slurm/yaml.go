package slurm

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

// MatchYAML reports whether a topology.yaml is in the text: a list entry
// "- topology: name", also inside a manual page, and below it one of the kinds
// of topology.
func MatchYAML(data []byte) bool {
	text, ok := yamlPart(string(data))
	if !ok {
		return false
	}
	for _, kind := range []string{"tree:", "block:", "flat:", "ring:", "torus3d:"} {
		if strings.Contains(text, " "+kind) {
			return true
		}
	}
	return false
}

// yamlPart keeps the lists of topologies of a text, unindented, and blanks all
// other lines, so that line numbers stay. Manual pages write - as \-.
func yamlPart(text string) (string, bool) {
	if !strings.Contains(text, "topology:") {
		return "", false
	}
	var b strings.Builder
	inside, found, base := false, false, 0
	for raw := range strings.SplitSeq(text, "\n") {
		l := strings.ReplaceAll(clean(raw), `\-`, "-")
		indent := len(l) - len(strings.TrimLeft(l, " "))
		body := l[indent:]
		if !inside && isTopology(body) {
			inside, found, base = true, true, indent
		}
		if inside && body != "" && body[0] != '#' && (indent < base || indent == base && !strings.HasPrefix(body, "- ")) {
			inside = false
		}
		if inside && indent >= base {
			b.WriteString(l[base:])
		}
		b.WriteByte('\n')
	}
	return b.String(), found
}

func isTopology(s string) bool {
	rest, ok := strings.CutPrefix(s, "- ")
	return ok && strings.HasPrefix(strings.TrimLeft(rest, " "), "topology:")
}

// ReadYAMLWithin reads a topology.yaml. The first tree (the cluster's default where
// that is one) becomes the network's switches; further trees, blocks, rings and
// toruses over the same hosts become groupings.
func ReadYAMLWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	part, ok := yamlPart(text)
	if !ok {
		return nil, fmt.Errorf("%s: no \"- topology: name\"; expected %s", name, formatYAML)
	}
	docs, err := yamldoc.Parse(part)
	if err != nil {
		return nil, yamldoc.In(name, err)
	}
	f := &cluster.Fragment{Format: formatYAML, Source: name}
	y := yamlReader{treeReader: treeReader{budget: b, f: f, tree: switchtree.New(), unknown: map[string]bool{}}}
	y.tree.Overlap = true
	var all []*yamldoc.Value
	for d := range docs {
		for i := range docs[d].List() {
			all = append(all, &docs[d].Items[i])
		}
	}
	y.real = mainTree(all)
	for _, t := range all {
		if err := y.topology(t); err != nil {
			return nil, err
		}
	}
	if err := y.tree.Fill(f); err != nil {
		return nil, err
	}
	y.defaultSizes()
	warn.Limit(f)
	return f, nil
}

// mainTree picks the tree that is the network: the cluster's default where
// that is a tree, else the first.
func mainTree(all []*yamldoc.Value) *yamldoc.Value {
	var first *yamldoc.Value
	for _, t := range all {
		if t.Get("tree") == nil {
			continue
		}
		if t.Get("cluster_default").True() {
			return t
		}
		first = cmp.Or(first, t)
	}
	return first
}

type yamlReader struct {
	treeReader
	real *yamldoc.Value
}

// topology reads one entry of the list.
func (y *yamlReader) topology(t *yamldoc.Value) error {
	title := t.Get("topology").Str()
	switch {
	case t.Get("tree") != nil:
		prefix := title + "/"
		if t == y.real {
			prefix = ""
		}
		return y.entries(t.Get("tree", "switches"), "switch", prefix, t != y.real)
	case t.Get("block") != nil:
		if y.real == nil || !y.real.Get("cluster_default").True() { // else Slurm plans by the tree
			y.blocks = true
			if s := t.Get("block", "block_sizes"); s != nil {
				y.sizes(s.LineNum(), "block_sizes", s.Texts())
			}
		}
		return y.entries(t.Get("block", "blocks"), "block", "", true)
	case t.Get("ring") != nil:
		return y.entries(t.Get("ring", "rings"), "ring", "", true)
	case t.Get("torus3d") != nil:
		return y.entries(t.Get("torus3d", "toruses"), "name", "", true)
	case t.Get("flat") != nil:
		y.f.Warnf(t.LineNum(), title, "a flat topology: Slurm treats all nodes as equally near")
	default:
		y.f.Warnf(t.LineNum(), title, "neither tree, block, ring, torus3d nor flat; skipped")
	}
	return nil
}

// entries reads the switches, blocks, rings or toruses of a topology.
func (y *yamlReader) entries(list *yamldoc.Value, nameKey, prefix string, domain bool) error {
	if list == nil || list.Kind != yamldoc.List {
		y.f.Warnf(list.LineNum(), nameKey, "no list of them; topology skipped")
		return nil
	}
	for _, e := range list.Items {
		r := record{line: e.LineNum(), name: e.Get(nameKey).Str(), prefix: prefix}
		if r.name == "" {
			y.f.Warnf(r.line, "", "an entry without %q; skipped", nameKey)
			continue
		}
		if domain {
			r.kind = aBlock
		}
		lists := e.Get("nodes").Texts()
		for _, region := range e.Get("regions").List() {
			lists = append(lists, region.Get("nodes").Texts()...)
		}
		r.fields = []field{
			{"Nodes", strings.Join(lists, ",")}, {"Switches", strings.Join(e.Get("children").Texts(), ",")},
		}
		s, err := y.addSwitch(r)
		if err != nil {
			return err
		}
		s.Label = torusLabel(&e)
	}
	return nil
}

// torusLabel says the shape of a torus.
func torusLabel(e *yamldoc.Value) string {
	d := e.Get("dims")
	if d == nil {
		return ""
	}
	return fmt.Sprintf("torus %sx%sx%s", d.Get("x").Str(), d.Get("y").Str(), d.Get("z").Str())
}
