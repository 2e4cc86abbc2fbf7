// Package topograph reads the two files through which NVIDIA's topograph knows
// a network: its own model of switches and nodes (YAML), and the topology graph of NetQ (JSON), which lists switches,
// hosts and the cables between their ports.
//
// The model knows who is near whom and no rates. YAML anchors and aliases are refused.
package topograph

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

const formatModel = "topograph model YAML"

// MatchModel reports whether the text is a topograph model: the top-level keys
// switches and blocks.
func MatchModel(data []byte) bool {
	// The plain search first: the expressions are slow on long texts.
	return bytes.Contains(data, []byte("switches:")) && switchesKey.Match(data) && blocksKey.Match(data)
}

var (
	switchesKey = lazyre.New(`(?m)^switches:\s*(#.*)?$`)
	blocksKey   = lazyre.New(`(?m)^blocks:\s*(#.*)?$`)
)

// ReadModelWithin reads a topograph model that may cost so much.
func ReadModelWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	docs, err := yamldoc.Read(name, r, "layout")
	if err != nil {
		return nil, err
	}
	m := modelReader{b, &cluster.Fragment{Format: formatModel, Source: name}, switchtree.New()}
	known := false
	for i := range docs {
		known = known || docs[i].Get("switches") != nil
		if err := m.read(&docs[i]); err != nil {
			return nil, err
		}
	}
	if !known {
		return nil, fmt.Errorf("%s: no switches; expected a topograph model with switches and blocks", name)
	}
	if err := m.tree.Fill(m.f); err != nil {
		return nil, err
	}
	return m.f, nil
}

type modelReader struct {
	budget *cluster.Budget
	f      *cluster.Fragment
	tree   *switchtree.Tree
}

func (m *modelReader) read(doc *yamldoc.Value) error {
	for _, e := range doc.Get("switches").Map() {
		sw := m.define(e.Key, false, e.LineNum())
		m.tree.Switches[sw].Label = labelsOf(&e)
		down, err := m.expand(&e, e.Key, "switches")
		if err != nil {
			return err
		}
		for _, d := range down {
			m.tree.Join(sw, m.tree.Switch(d, false))
		}
		if err := m.attach(&e, e.Key, sw); err != nil {
			return err
		}
	}
	for _, e := range doc.Get("blocks").List() {
		if err := m.readBlock(&e); err != nil {
			return err
		}
	}
	return nil
}

// define finds or adds a switch or a domain that a line speaks of.
func (m *modelReader) define(name string, domain bool, line int) int {
	sw := m.tree.Switch(name, domain)
	if s := &m.tree.Switches[sw]; s.Line == 0 {
		s.Line = line
	}
	return sw
}

// labelsOf writes the labels of a switch as a description.
func labelsOf(v *yamldoc.Value) string {
	var parts []string
	for _, l := range v.Get("labels").Map() {
		parts = append(parts, l.Key+"="+l.Text)
	}
	return strings.Join(parts, " ")
}

// readBlock reads nodes that share a leaf and maybe an accelerator domain, or one inside it.
func (m *modelReader) readBlock(e *yamldoc.Value) error {
	leaf := e.Get("switch").Str()
	var at []int
	if leaf != "" {
		at = append(at, m.define(leaf, false, e.LineNum()))
	}
	domain, inner := "", ""
	for _, section := range []string{"labels", "annotations"} {
		for _, l := range e.Get(section).Map() {
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
		group := m.define(domain, true, e.LineNum())
		if inner != "" && inner != domain {
			in := m.define(domain+"/"+inner, true, e.LineNum())
			m.tree.Join(group, in)
			group = in
		}
		at = append(at, group)
	}
	return m.attach(e, leaf, at...)
}

// attach puts the nodes of an entry on switches.
func (m *modelReader) attach(e *yamldoc.Value, where string, switches ...int) error {
	names, err := m.expand(e, where, "nodes")
	for _, n := range names {
		host := m.tree.Host(n)
		for _, sw := range switches {
			m.tree.Attach(sw, host)
		}
	}
	return err
}

// expand expands the hostlists of a key.
func (m *modelReader) expand(e *yamldoc.Value, where, key string) ([]string, error) {
	v := e.Get(key)
	var out []string
	for _, list := range v.Texts() {
		names, err := m.tree.Expand(m.budget, m.f, v.LineNum(), where, key, list)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}
