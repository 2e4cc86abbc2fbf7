package slurm

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/switchtree"
)

// Names of the formats, as fragments carry them.
const (
	formatConf = "Slurm topology.conf"
	formatShow = "scontrol show topology"
	formatYAML = "Slurm topology.yaml"
)

// MatchConf reports whether a topology.conf, or what "scontrol show topology" prints, is in the text: a SwitchName or
// BlockName line with Nodes, Switches, Level or BlockIndex.
func MatchConf(data []byte) bool {
	for r := range definitions(string(data)) {
		if !r.isProse() && (r.shown() || r.get("Nodes")+r.get("Switches") != "") {
			return true
		}
	}
	return false
}

// kind is what a record defines.
type kind uint8

const (
	aSwitch kind = iota
	aBlock
	anAggregate // several blocks that scontrol shows as one
	sizes       // a BlockSizes line
	include
)

var starts = map[string]kind{
	"switchname": aSwitch, "blockname": aBlock, "aggregatedblock": anAggregate, "blocksizes": sizes,
}

// record is a line of Slurm's, or one of several on a line that lost its
// newlines.
type record struct {
	kind   kind
	line   int
	name   string
	fields []field
	junk   bool // words that are no Key=Value
}

func (r *record) get(key string) string { return get(r.fields, key) }

// shown reports a record that scontrol printed.
func (r *record) shown() bool { return r.get("Level")+r.get("BlockIndex") != "" }

// isProse reports a sentence about SwitchName=…, which is no definition.
func (r *record) isProse() bool { return r.junk && r.get("Nodes") == "" && r.get("Switches") == "" }

// definitions yields the records of a text.
func definitions(text string) iter.Seq[record] {
	matters := func(raw string) bool {
		return strings.IndexByte(raw, '=') >= 0 || isInclude(strings.TrimLeft(raw, " \t"))
	}
	return func(yield func(record) bool) {
		for l := range joinedLines(text, matters) {
			for _, r := range records(l) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// records reads the definitions on a line. A line that starts with anything
// else, after one word such as "host7:" that pdsh puts there, has none.
func records(l line) []record {
	text, _, _ := strings.Cut(l.text, "#")
	s := strings.TrimLeft(text, " \t")
	if isInclude(s) {
		file := strings.TrimSpace(s[8:])
		if file == "" || strings.ContainsAny(file, " \t") {
			return nil
		}
		return []record{{kind: include, line: l.num, name: file}}
	}
	if word, after, cut := strings.Cut(s, " "); cut && strings.HasSuffix(word, ":") {
		s = strings.TrimLeft(after, " \t")
	}
	first, _, ok := strings.Cut(s, "=")
	if _, is := starts[strings.ToLower(strings.TrimSpace(first))]; !ok || !is {
		return nil
	}
	fields, loose := cutFields(s)
	var out []record
	for _, f := range fields {
		if k, is := starts[strings.ToLower(f.key)]; is {
			out = append(out, record{kind: k, line: l.num, name: f.val, junk: loose})
		} else if n := len(out); n > 0 {
			out[n-1].fields = append(out[n-1].fields, f)
		}
	}
	return out
}

// treeReader collects records into a tree.
type treeReader struct {
	budget  *cluster.Budget
	f       *cluster.Fragment
	tree    *switchtree.Tree
	records int
	blocks  bool // topology/block plans with what was read
}

// ReadConfWithin reads a topology.conf, or the output of "scontrol show topology", of a tree or of blocks.
func ReadConfWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: formatConf, Source: name}
	tr := treeReader{budget: b, f: f, tree: switchtree.New()}
	for r := range definitions(text) {
		if err := tr.addRecord(r); err != nil {
			return nil, err
		}
	}
	if tr.records == 0 {
		return nil, fmt.Errorf("%s: no SwitchName= or BlockName= line; expected %s with Nodes= or Switches= on such lines",
			name, formatConf)
	}
	return tr.filled()
}

// filled is the fragment of the tree.
func (tr *treeReader) filled() (*cluster.Fragment, error) {
	if err := tr.tree.Fill(tr.f); err != nil {
		return nil, err
	}
	tr.defaultSizes()
	warn.Limit(tr.f)
	return tr.f, nil
}

func (tr *treeReader) addRecord(r record) error {
	f := tr.f
	switch r.kind {
	case include:
		f.Warnf(r.line, "", "Include %s is not followed; give that file as well", r.name)
		return nil
	case sizes:
		tr.sizes(r.line, "BlockSizes="+r.name, strings.Split(r.name, ","))
		return nil
	}
	if r.isProse() {
		return nil
	}
	names, err := hosts(tr.budget, r.name)
	if r.kind != anAggregate && (err != nil || len(names) != 1) {
		f.Warnf(r.line, r.name, "not the name of one switch or block; line skipped")
		return nil
	}
	if tr.records++; r.shown() {
		f.Format = formatShow
	}
	tr.blocks = tr.blocks || r.kind == aBlock
	shown, err := strconv.Atoi(r.get("BlockSize")) // as scontrol shows it
	if had := f.Network.BlockSizes; err == nil && !slices.Contains(had, shown) {
		if list := append(slices.Clone(had), shown); cluster.CheckBlockSizes(list) == nil {
			f.Network.BlockSizes = list
		}
	}
	if r.junk {
		f.Warnf(r.line, r.name, "words that are no Key=Value were skipped")
	}
	return tr.addSwitch(r)
}

// addSwitch adds the switch or the grouping of a record, with what the record lists under it.
func (tr *treeReader) addSwitch(r record) error {
	sw := tr.tree.Switch(r.name, r.kind != aSwitch)
	s := &tr.tree.Switches[sw]
	if s.Line > 0 {
		tr.f.Warnf(r.line, r.name, "defined again (first on line %d), which Slurm refuses; both were taken", s.Line)
	} else {
		s.Line = r.line
	}
	level, nodes, switches := r.get("Level"), r.get("Nodes"), r.get("Switches")
	if n, err := strconv.Atoi(level); err == nil && n >= 0 {
		tr.tree.Switches[sw].Level = n
	}
	if r.kind == anAggregate {
		switches = r.name
	}
	down, err := tr.expand(r, "Switches", switches)
	if err != nil {
		return err
	}
	if err := tr.room(r, len(down)); err != nil {
		return err
	}
	for _, d := range down {
		tr.tree.Join(sw, tr.tree.Switch(d, r.kind != aSwitch))
	}
	if nodes == "" || r.kind == anAggregate || level != "" && level != "0" && len(down) > 0 {
		return nil // scontrol repeats all hosts below on every level
	}
	if len(down) > 0 {
		tr.f.Warnf(r.line, r.name, "both Nodes and Switches on one switch, which Slurm refuses; both were taken")
	}
	if strings.EqualFold(nodes, "ALL") {
		tr.f.Warnf(r.line, r.name, "Nodes=ALL names no hosts here")
		return nil
	}
	list, err := tr.expand(r, "Nodes", nodes)
	if err != nil {
		return err
	}
	twice := 0
	for _, n := range list {
		if !tr.tree.Attach(sw, tr.tree.Host(n)) {
			twice++
		}
	}
	if twice > 0 {
		tr.f.Warnf(r.line, r.name, "%d of its nodes are listed twice", twice)
	}
	return nil
}

// room refuses more switches than are read, before they are made: a switch takes
// far more than the few bytes that name a thousand of them.
func (tr *treeReader) room(r record, more int) error {
	if n := len(tr.tree.Switches) + more; n > cluster.MaxSwitches {
		return fmt.Errorf("%s:%d: %d switches so far; at most %d are read", tr.f.Source, r.line, n, cluster.MaxSwitches)
	}
	return nil
}

// expand expands a hostlist of a record.
func (tr *treeReader) expand(r record, key, list string) ([]string, error) {
	if list = hostlist(list); list == "" {
		return nil, nil
	}
	return tr.tree.Expand(tr.budget, tr.f, r.line, r.name, key, list)
}
