package rocmsmi

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// maxGPUs is the most GPUs of a node; each pair may be a link.
const maxGPUs = 512

// kind is what a table is about.
type kind uint8

const (
	other kind = iota
	hops
	linkType
	kinds
)

// machine is what a text says of one machine, and the table under way.
type machine struct {
	hosts  []string
	line   int
	gpus   []string // column names, in order
	table  [kinds]*pairtable.Matrix
	numa   map[[2]string]int // NUMA domains by GPU: its Node, and its Affinity
	warns  warn.List
	amdsmi bool

	kind kind // by the last title
	open *pairtable.Matrix
}

// parser keeps the machine at hand for each host whose name stands before the
// lines ("" without), since pdsh mixes them.
type parser struct {
	done  []*machine
	open  map[string]*machine
	heads gather.Headings
	over  bool
}

// takeLine gives a line to a host's machine and reports whether it belonged there.
func (p *parser) takeLine(host, text string, line int) bool {
	k, isTitle := title(text)
	cols := header(text)
	numa := numaLine.FindStringSubmatch(text)
	m := p.open[host]
	switch {
	case !isTitle && cols == nil && numa == nil:
		return m != nil && m.row(text, line)
	case m != nil:
		m = p.endTable(host, m)
	case len(p.open) >= gather.MaxHosts:
		p.over = true
		return true
	default:
		m = p.begin(host, line)
	}
	switch {
	case isTitle:
		m.kind = k
	case cols != nil:
		m.open = &pairtable.Matrix{Line: line}
		m.open.Head(cols)
	default:
		p.numa(host, m, [2]string{"GPU" + numa[1], numa[2]}, num.Int(numa[3]), line)
	}
	return true
}

// begin begins a host's machine, and puts the one at hand away.
func (p *parser) begin(host string, num int) *machine {
	m := &machine{line: num, hosts: p.heads.Hosts(), numa: map[[2]string]int{}}
	if had := p.open[host]; had != nil {
		p.done, m.kind = append(p.done, had), had.kind
	}
	if host != "" {
		m.hosts = []string{host}
	}
	p.open[host] = m
	return m
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
	t := m.open
	m.open = nil
	if t == nil || t.Count() == 0 {
		return m
	}
	k := m.kind
	for _, r := range t.Rows {
		// Where the weights cannot be read, the table of link types follows their title.
		if r != nil && (slices.Contains(r.Cells, "XGMI") || slices.Contains(r.Cells, "PCIE")) {
			k = linkType
		}
	}
	if k == other {
		return m
	}
	if had := m.table[k]; had != nil && had.String() != t.String() || len(m.gpus) > 0 && !slices.Equal(m.gpus, t.Cols) {
		m = p.begin(host, t.Line)
	}
	m.gpus, m.amdsmi = t.Cols, strings.Contains(t.Cols[0], ":")
	m.table[k] = t
	return m
}

// title reads the line above a table or between tables.
func title(text string) (kind, bool) {
	if !strings.Contains(text, "between two GPUs") && !strings.Contains(text, "TABLE:") || len(text) > 256 {
		return other, false
	}
	up := strings.ToUpper(text)
	switch {
	case strings.Contains(up, "HOPS"):
		return hops, true
	case strings.Contains(up, "LINK TYPE"):
		return linkType, true
	}
	return other, true
}

// header reads "GPU0 GPU1 …" or PCI addresses; nil: it is none.
func header(text string) []string {
	words := strings.Fields(text)
	seen := map[string]bool{}
	for _, w := range words {
		if !isGPU(w) || seen[w] || strings.Contains(w, ":") != strings.Contains(words[0], ":") || len(seen) >= maxGPUs {
			return nil
		}
		seen[w] = true
	}
	return words
}

// isGPU accepts GPU7 and 0000:0d:00.0.
func isGPU(w string) bool {
	if _, ok := lines.Numbered(w, "GPU"); ok {
		return true
	}
	_, err := cluster.ParsePCI(w)
	return err == nil && strings.Count(w, ":") == 2 && strings.Contains(w, ".")
}

// row reads "GPU0 0 XGMI …" into the table at hand, and keeps what the tool itself warns of.
func (m *machine) row(text string, num int) bool {
	words := strings.Fields(text)
	switch {
	case m.open != nil && len(words) > 1 && isGPU(words[0]):
		m.open.Add(num, words[0], words[1:])
	case len(words) > 0 && (words[0] == "ERROR:" || words[0] == "WARNING:"):
		m.warns.Addf(num, "the tool itself says: %.200s", strings.TrimSpace(text))
	default:
		return false
	}
	return true
}

// numaLine is "GPU[3]  : (Topology) Numa Affinity: 1" and "GPU 3 : …".
var numaLine = lazyre.New(`^\s*GPU[\s\[]*(\d{1,4})[\s\]]*:.*?Numa (Node|Affinity): +(-?\d{1,5})\s*$`)

// numa files a NUMA line; another number for a GPU that has one means another
// machine.
func (p *parser) numa(host string, m *machine, of [2]string, n, num int) {
	if had, ok := m.numa[of]; ok && had != n {
		m = p.begin(host, num)
	}
	if len(m.numa) < 2*maxGPUs {
		m.numa[of] = n
	}
}
