// Package topograph reads the two files through which NVIDIA's topograph knows
// a network: its own model of switches and nodes (YAML, in the three shapes it
// has had), and the topology graph of NetQ (JSON), which lists switches, hosts
// and the cables between their ports.
//
// The model knows who is near whom and no rates. A GPU type without a count is
// a warning. YAML anchors and aliases are refused.
package topograph

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

const formatModel = "topograph model YAML"

// MatchModel reports whether the text is a topograph model: the top-level keys
// switches and one of blocks, capacity_blocks and nodes.
func MatchModel(data []byte) bool {
	// The plain search first: the expressions are slow on long texts.
	return bytes.Contains(data, []byte("switches:")) && switchesKey.Match(data) && blocksKey.Match(data)
}

var (
	switchesKey = lazyre.New(`(?m)^switches:\s*(#.*)?$`)
	blocksKey   = lazyre.New(`(?m)^(blocks|capacity_blocks|nodes):\s*(#.*)?$`)
)

// ReadModelWithin reads a topograph model that may cost so much.
func ReadModelWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	docs, err := yamldoc.Read(name, r, "layout")
	if err != nil {
		return nil, err
	}
	m := modelReader{
		budget: b, f: &cluster.Fragment{Format: formatModel, Source: name}, tree: switchtree.New(), blocks: map[string]int{},
	}
	for i := range docs {
		if docs[i].Get("switches") == nil {
			continue
		}
		m.known = true
		if err := m.read(&docs[i]); err != nil {
			return nil, err
		}
	}
	if !m.known {
		return nil, fmt.Errorf("%s: no switches; expected a topograph model with switches and blocks", name)
	}
	m.warnTypes()
	if err := m.tree.Fill(m.f); err != nil {
		return nil, err
	}
	return m.f, nil
}

// named is an entry of a section and its name. Sections were lists of entries
// with a name at first and are maps by name now.
type named struct {
	name string
	v    *yamldoc.Value
}

func entries(v *yamldoc.Value) []named {
	var out []named
	for i := range v.Map() {
		out = append(out, named{v.Items[i].Key, &v.Items[i]})
	}
	for i := range v.List() {
		out = append(out, named{v.Items[i].Get("name").Str(), &v.Items[i]})
	}
	return out
}

type modelReader struct {
	budget *cluster.Budget
	f      *cluster.Fragment
	tree   *switchtree.Tree
	known  bool
	blocks map[string]int // capacity block → the switch that has it
	types  []string       // GPU types that were stated
}

func (m *modelReader) read(doc *yamldoc.Value) error {
	for _, e := range entries(doc.Get("switches")) {
		if err := m.readSwitch(e); err != nil {
			return err
		}
	}
	blocks := append(entries(doc.Get("blocks")), entries(doc.Get("capacity_blocks"))...)
	for _, e := range blocks {
		if err := m.readBlock(e); err != nil {
			return err
		}
	}
	for _, e := range entries(doc.Get("nodes")) {
		host := m.tree.Host(e.name)
		if d := e.v.Get("attributes", "nvlink").Str(); d != "" {
			m.domain(e.v.LineNum(), d, "", []int32{host})
		}
		m.noteType(e.v)
	}
	return nil
}

func (m *modelReader) readSwitch(e named) error {
	if e.name == "" {
		m.f.Warnf(e.v.LineNum(), "", "a switch without a name; skipped")
		return nil
	}
	sw := m.tree.Switch(e.name, false)
	if s := &m.tree.Switches[sw]; s.Line > 0 {
		m.f.Warnf(e.v.LineNum(), e.name, "defined again (first on line %d); both were taken", s.Line)
	} else {
		s.Line = e.v.LineNum()
		s.Label = labelsOf(e.v)
	}
	down, err := m.expand(e, "switches")
	if err != nil {
		return err
	}
	for _, d := range down {
		m.tree.Join(sw, m.tree.Switch(d, false))
	}
	hosts, err := m.expand(e, "nodes")
	if err != nil {
		return err
	}
	m.attach(sw, hosts)
	for i := range e.v.Get("capacity_blocks").List() {
		m.blocks[e.v.Get("capacity_blocks").Items[i].Str()] = sw
	}
	return nil
}

// labelsOf writes the labels (earlier: metadata) of a switch as a description.
func labelsOf(v *yamldoc.Value) string {
	var parts []string
	for _, section := range []string{"labels", "metadata"} {
		for _, l := range v.Get(section).Map() {
			parts = append(parts, l.Key+"="+l.Text)
		}
	}
	return strings.Join(parts, " ")
}

// readBlock reads nodes that share a leaf and maybe an accelerator domain.
func (m *modelReader) readBlock(e named) error {
	names, err := m.expand(e, "nodes")
	if err != nil {
		return err
	}
	where := e.name
	sw, ok := m.blocks[e.name]
	if s := e.v.Get("switch").Str(); s != "" {
		where, ok = s, true
		sw = m.tree.Switch(s, false)
		if m.tree.Switches[sw].Line == 0 {
			m.tree.Switches[sw].Line = e.v.LineNum()
		}
	}
	var hosts []int32
	if ok {
		hosts = m.attach(sw, names)
	} else {
		// The shape with a list of nodes under each switch places them there.
		for _, n := range names {
			hosts = append(hosts, m.tree.Host(n))
		}
	}
	if len(names) == 0 {
		m.f.Warnf(e.v.LineNum(), where, "a block without nodes")
	}
	domain, inner := e.v.Get("nvlink").Str(), ""
	for _, section := range []string{"labels", "annotations"} {
		for _, l := range e.v.Get(section).Map() {
			switch {
			case strings.HasSuffix(l.Key, "/sub-domain"):
				inner = l.Text
			case strings.HasSuffix(l.Key, "/accelerator"),
				strings.HasPrefix(l.Key, "accelerator.") && strings.HasSuffix(l.Key, "/domain"):
				domain = l.Text
			}
		}
	}
	if domain != "" {
		m.domain(e.v.LineNum(), domain, inner, hosts)
	}
	m.noteType(e.v)
	return nil
}

// attach puts hosts on a switch.
func (m *modelReader) attach(sw int, names []string) []int32 {
	hosts := make([]int32, len(names))
	for i, n := range names {
		hosts[i] = m.tree.Host(n)
		m.tree.Attach(sw, hosts[i])
	}
	return hosts
}

// domain puts hosts into an accelerator domain, or into one inside it.
func (m *modelReader) domain(line int, name, inner string, hosts []int32) {
	d := m.tree.Switch(name, true)
	if m.tree.Switches[d].Line == 0 {
		m.tree.Switches[d].Line = line
	}
	if inner != "" && inner != name {
		in := m.tree.Switch(name+"/"+inner, true)
		m.tree.Switches[in].Line = line
		m.tree.Join(d, in)
		d = in
	}
	for _, h := range hosts {
		m.tree.Attach(d, h)
	}
}

func (m *modelReader) noteType(v *yamldoc.Value) {
	if t := v.Get("type").Str(); t != "" && !slices.Contains(m.types, t) && len(m.types) < 20 {
		m.types = append(m.types, t)
	}
}

func (m *modelReader) warnTypes() {
	if len(m.types) > 0 {
		m.f.Warnf(0, "", "GPU type %s is stated without a count; skipped", strings.Join(m.types, ", "))
	}
}

// expand expands the hostlists of a key.
func (m *modelReader) expand(e named, key string) ([]string, error) {
	v := e.v.Get(key)
	var out []string
	for _, list := range v.Texts() {
		names, err := m.tree.Expand(m.budget, m.f, v.LineNum(), e.name, key, list)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}
