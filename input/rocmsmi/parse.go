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

// machine is what a text says of one machine, and the table under way.
type machine struct {
	hosts  []string
	line   int
	gpus   []string // column names, in order
	table  [other][][]string
	node   map[string]int // NUMA node, by GPU
	near   map[string]int // NUMA affinity
	warns  warn.List
	amdsmi bool

	kind kind     // by the last title
	cols []string // of the header at hand; nil after its table
	rows [][]string
	from int // line of the header
}

func (m *machine) empty() bool { return len(m.gpus) == 0 && len(m.node)+len(m.near) == 0 }

// parser keeps the machine at hand for each host whose name stands before the
// lines ("" without), since pdsh mixes them.
type parser struct {
	done  []*machine
	open  map[string]*machine
	heads gather.Headings
	over  bool
}

func newParser() *parser { return &parser{open: map[string]*machine{}} }

// takeLine gives a line to a host's machine and reports whether it belonged there.
func (p *parser) takeLine(host, text string, num int) bool {
	k, isTitle := title(text)
	cols, isHeader := header(text)
	numa := numaLine.FindStringSubmatch(text)
	m := p.open[host]
	switch {
	case isTitle || isHeader || numa != nil:
		if m == nil {
			m = p.begin(host, num)
		}
		if m != nil {
			m = p.endTable(host, m)
		}
	case m == nil:
		return false
	}
	switch {
	case m == nil: // there are too many
	case isTitle:
		m.kind = k
	case isHeader:
		m.cols, m.rows, m.from = cols, make([][]string, len(cols)), num
	case numa != nil:
		n, _ := strconv.Atoi(numa[3])
		p.numa(host, m, "GPU"+numa[1], numa[2], n, num)
	case m.cols != nil && m.row(text, num):
	default:
		t := strings.TrimSpace(text)
		told := strings.HasPrefix(t, "ERROR:") || strings.HasPrefix(t, "WARNING:")
		if told {
			m.warns.Addf(num, "the tool itself says: %.200s", t)
		}
		return told
	}
	return true
}

// begin begins a host's machine; nil where there are too many.
func (p *parser) begin(host string, num int) *machine {
	if p.open[host] == nil && len(p.open) >= gather.MaxHosts {
		p.over = true
		return nil
	}
	m := &machine{line: num, hosts: p.heads.Hosts(), node: map[string]int{}, near: map[string]int{}}
	if host != "" {
		m.hosts = []string{host}
	}
	p.open[host] = m
	return m
}

// next puts the machine at hand away and begins another.
func (p *parser) next(host string, m *machine, num int) *machine {
	p.done = append(p.done, m)
	n := p.begin(host, num)
	n.kind = m.kind
	return n
}

// finish puts every machine away.
func (p *parser) finish() []*machine {
	for host, m := range p.open {
		p.done = append(p.done, p.endTable(host, m))
	}
	return p.done
}

// endTable files the table at hand and gives the machine at hand. A table that the machine has already, with
// other cells, is that of another machine.
func (p *parser) endTable(host string, m *machine) *machine {
	cols, rows := m.cols, m.rows
	m.cols, m.rows = nil, nil
	k := kindOf(m.kind, rows)
	if k == none || k == other || !slices.ContainsFunc(rows, func(r []string) bool { return r != nil }) {
		return m
	}
	if had := m.table[k]; had != nil && !slices.EqualFunc(had, rows, slices.Equal) ||
		len(m.gpus) > 0 && !slices.Equal(m.gpus, cols) {
		from := m.from
		m = p.next(host, m, from)
		m.from = from
	}
	m.gpus, m.amdsmi = cols, strings.Contains(cols[0], ":")
	m.table[k] = rows
	for i, r := range rows {
		if r == nil {
			m.warns.Addf(m.from, "no row for %s: the table is cut off", cols[i])
		}
	}
	return m
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
func (m *machine) row(text string, num int) bool {
	words := strings.Fields(text)
	if len(words) < 2 || !isGPU(words[0]) {
		return false
	}
	at := slices.Index(m.cols, words[0])
	if at < 0 {
		m.warns.Addf(num, "row %s has no column; the row is left out", words[0])
		return true
	}
	cells := words[1:]
	if len(cells) != len(m.cols) {
		m.warns.Addf(num, "row %s has %d cells; the header has %d columns; the rest is taken as unknown", words[0],
			len(cells), len(m.cols))
		cells = cells[:min(len(cells), len(m.cols))]
	}
	if m.rows[at] != nil {
		return true
	}
	m.rows[at] = make([]string, len(m.cols))
	for i, c := range cells {
		m.rows[at][i] = intern(c)
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
func (p *parser) numa(host string, m *machine, gpu, what string, n, num int) {
	of := func(m *machine) map[string]int {
		if what == "Affinity" {
			return m.near
		}
		return m.node
	}
	if had, ok := of(m)[gpu]; ok && had != n {
		m = p.next(host, m, num)
	}
	if into := of(m); len(into) < maxGPUs {
		into[gpu] = n
	}
}
