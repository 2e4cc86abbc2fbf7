package rocmsmi

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// maxGPUs is the most GPUs of a node; each pair may be a link.
const maxGPUs = 512

// kind is what a table is about.
type kind uint8

const (
	none kind = iota
	weight
	hops
	linkType
	access
	bandwidth
	other
)

// titles are parts of the lines above tables, in capitals.
var titles = []struct {
	text string
	kind kind
}{
	{"WEIGHT BETWEEN TWO GPUS", weight},
	{"HOPS BETWEEN TWO GPUS", hops},
	{"LINK TYPE BETWEEN TWO GPUS", linkType},
	{"LINK ACCESSIBILITY BETWEEN TWO GPUS", access},
	{"ACCESS BETWEEN TWO GPUS", access},
	{"WEIGHT TABLE:", weight},
	{"HOPS TABLE:", hops},
	{"LINK TYPE TABLE:", linkType},
	{"ACCESS TABLE:", access},
	{"NUMA BW TABLE:", bandwidth},
	{" TABLE:", other},
	{" BETWEEN TWO GPUS", other},
}

// machine is what a text says of one machine.
type machine struct {
	hosts  []string
	line   int
	gpus   []string // column names, in order
	table  [other][][]string
	node   map[string]int // NUMA node, by GPU
	near   map[string]int // NUMA affinity
	warns  warn.List
	amdsmi bool
}

func (m *machine) empty() bool { return len(m.gpus) == 0 && len(m.node)+len(m.near) == 0 }

// parser keeps the machine at hand for each host whose name stands before the
// lines ("" without), since pdsh mixes them.
type parser struct {
	done  []*machine
	open  map[string]*state
	heads gather.Headings
	over  bool
}

type state struct {
	m    *machine
	kind kind     // by the last title
	cols []string // of the header at hand; nil after its table
	rows [][]string
	line int
}

func newParser() *parser { return &parser{open: map[string]*state{}} }

// takeLine gives a line to a host's machine and reports whether it belonged there.
func (p *parser) takeLine(host, text string, num int) bool {
	st := p.open[host]
	if k, ok := title(text); ok {
		if st = p.state(host, num); st != nil {
			p.endTable(host, st)
			st.kind = k
		}
		return true
	}
	if cols, ok := header(text); ok {
		if st = p.state(host, num); st == nil {
			return true
		}
		p.endTable(host, st)
		st.cols, st.rows, st.line = cols, make([][]string, len(cols)), num
		return true
	}
	if m := numaLine.FindStringSubmatch(text); m != nil {
		if st = p.state(host, num); st != nil {
			p.endTable(host, st)
			n, _ := strconv.Atoi(m[3])
			p.numa(host, st, "GPU"+m[1], m[2], n, num)
		}
		return true
	}
	if st == nil {
		return false
	}
	if st.cols != nil && st.row(text, num) {
		return true
	}
	if t := strings.TrimSpace(text); strings.HasPrefix(t, "ERROR:") || strings.HasPrefix(t, "WARNING:") {
		st.m.warns.Addf(num, "the tool itself says: %.200s", t)
		return true
	}
	return false
}

// state returns the machine at hand for a host, nil where there are too many.
func (p *parser) state(host string, num int) *state {
	if st := p.open[host]; st != nil {
		return st
	}
	if len(p.open) >= gather.MaxHosts {
		p.over = true
		return nil
	}
	st := &state{m: p.machine(host, num)}
	p.open[host] = st
	return st
}

func (p *parser) machine(host string, num int) *machine {
	m := &machine{line: num, hosts: p.heads.Hosts(), node: map[string]int{}, near: map[string]int{}}
	if host != "" {
		m.hosts = []string{host}
	}
	return m
}

// next puts the machine at hand away and begins another.
func (p *parser) next(host string, st *state, num int) {
	p.done = append(p.done, st.m)
	st.m = p.machine(host, num)
}

// finish puts every machine away.
func (p *parser) finish() []*machine {
	for host, st := range p.open {
		p.endTable(host, st)
		p.done = append(p.done, st.m)
	}
	return p.done
}

// endTable files the table at hand. A table that the machine has already, with
// other cells, is that of another machine.
func (p *parser) endTable(host string, st *state) {
	if st.cols == nil {
		return
	}
	cols, rows, line := st.cols, st.rows, st.line
	st.cols, st.rows = nil, nil
	k := kindOf(st.kind, rows)
	if k == none || k == other || !slices.ContainsFunc(rows, func(r []string) bool { return r != nil }) {
		return
	}
	if had := st.m.table[k]; had != nil && !slices.EqualFunc(had, rows, slices.Equal) ||
		len(st.m.gpus) > 0 && !slices.Equal(st.m.gpus, cols) {
		p.next(host, st, line)
	}
	st.m.gpus, st.m.amdsmi = cols, strings.Contains(cols[0], ":")
	st.m.table[k] = rows
	for i, r := range rows {
		if r == nil {
			st.m.warns.Addf(line, "no row for %s: the table is cut off", cols[i])
		}
	}
}

// kindOf trusts the cells above the title: where the weights cannot be read, the
// table of link types follows their title.
func kindOf(k kind, rows [][]string) kind {
	for _, r := range rows {
		if slices.Contains(r, "XGMI") || slices.Contains(r, "PCIE") {
			return linkType
		}
	}
	return k
}

// title reads the line above a table or between tables.
func title(text string) (kind, bool) {
	if !strings.Contains(text, "between two GPUs") && !strings.Contains(text, "TABLE:") || len(text) > 256 {
		return none, false
	}
	up := strings.ToUpper(strings.TrimSpace(text))
	for _, t := range titles {
		if strings.Contains(up, t.text) {
			return t.kind, true
		}
	}
	return none, false
}

// header reads "GPU0 GPU1 …" or PCI addresses.
func header(text string) ([]string, bool) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > maxGPUs {
		return nil, false
	}
	seen := make(map[string]bool, len(words))
	for i, w := range words {
		if !isGPU(w) || seen[w] || strings.Contains(w, ":") != strings.Contains(words[0], ":") {
			return nil, false
		}
		seen[w] = true
		words[i] = strings.Clone(w)
	}
	return words, true
}

// isGPU accepts GPU7 and 0000:0d:00.0.
func isGPU(w string) bool {
	if _, ok := lines.Numbered(w, "GPU"); ok {
		return true
	}
	_, err := cluster.ParsePCI(w)
	return err == nil && strings.Count(w, ":") == 2 && strings.Contains(w, ".")
}

// row reads "GPU0 0 XGMI …" into the table at hand.
func (st *state) row(text string, num int) bool {
	words := strings.Fields(text)
	if len(words) < 2 || !isGPU(words[0]) {
		return false
	}
	at := slices.Index(st.cols, words[0])
	if at < 0 {
		st.m.warns.Addf(num, "row %s has no column; the row is left out", words[0])
		return true
	}
	cells := words[1:]
	if len(cells) != len(st.cols) {
		st.m.warns.Addf(num, "row %s has %d cells; the header has %d columns; the rest is taken as unknown", words[0],
			len(cells), len(st.cols))
		cells = cells[:min(len(cells), len(st.cols))]
	}
	if st.rows[at] != nil {
		return true
	}
	st.rows[at] = make([]string, len(st.cols))
	for i, c := range cells {
		st.rows[at][i] = intern(c)
	}
	return true
}

// intern keeps a word once, without the rest of its line.
func intern(c string) string {
	if len(c) > 32 {
		return ""
	}
	return unique.Make(c).Value()
}

// numaLine is "GPU[3]  : (Topology) Numa Affinity: 1" and "GPU 3 : …".
var numaLine = lazyre.New(`^\s*GPU[\s\[]*(\d{1,4})[\s\]]*:.*?Numa (Node|Affinity): +(-?\d{1,5})\s*$`)

// numa files a NUMA line; another number for a GPU that has one means another
// machine.
func (p *parser) numa(host string, st *state, gpu, what string, n, num int) {
	for range 2 {
		into := st.m.node
		if what == "Affinity" {
			into = st.m.near
		}
		if had, ok := into[gpu]; ok && had != n {
			p.next(host, st, num)
			continue
		}
		if len(into) < maxGPUs {
			into[gpu] = n
		}
		return
	}
}
