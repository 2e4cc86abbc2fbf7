package nvsmi

import (
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lines"
)

// maxDevices is the most columns a matrix may have.
const maxDevices = 1024

// table is one matrix as printed: of path classes, or of peer access.
type table struct {
	hosts  []string // names the text gives for certain; none when it gives none
	prompt string   // the name a shell prompt gives
	cap    string   // the capability of a -p2p command line above, "" unknown
	line   int      // of the header
	head   header
	rows   []*row // by column; nil where there is none
	legend map[string]string
	warns  warn.List
}

// row is one line of a matrix.
type row struct {
	line  int
	cells []string // words of cellWords; "" unknown
	tail  []string // affinity cells; "" empty
	wide  bool     // it has more cells than there are columns
}

// isP2P reports whether the cells speak of peer access.
func (t *table) isP2P() bool {
	for _, r := range t.rows {
		if r == nil {
			continue
		}
		for _, c := range r.cells {
			if c != "" && c != "X" {
				return p2pWords[c] != ""
			}
		}
	}
	// One GPU alone: only topo -m has affinity columns.
	return t.head.tails == 0
}

// scanner finds the matrices in a text. Lines of several hosts may be mixed, as
// pdsh mixes them, so that each host has a table of its own under way.
type scanner struct {
	tables []*table
	open   map[string]*state // by the host before the line, "" without
	heads  gather.Headings
	prompt hint
	p2p    hint
	last   int // line that last was part of a table
}

// hint is a word found shortly before a table.
type hint struct {
	word string
	line int
}

func (h hint) near(line int) string {
	if h.word != "" && line-h.line <= 5 {
		return h.word
	}
	return ""
}

// state is the table under way for one host.
type state struct {
	t     *table
	pend  *pending // the row that the next line may continue
	text  string   // the header so far, while no row has come
	folds int      // lines that continued it
	line  int      // of the last line that was part of the table
}

// scan reads a text to its end. It returns the tables that have a row: those of path classes, or of peer access.
func scan(name string, r io.Reader, p2p bool) ([]*table, error) {
	s := &scanner{open: map[string]*state{}, last: -stray - 1}
	err := lines.Each(name, r, func(num int, text string) error {
		if num-s.last <= stray || s.heads.Open() || interesting(text) {
			s.line(text, num)
		}
		return nil
	})
	for _, st := range s.open {
		s.close(st)
	}
	s.tables = slices.DeleteFunc(s.tables, func(t *table) bool { return t.isP2P() != p2p })
	slices.SortFunc(s.tables, func(a, b *table) int { return a.line - b.line })
	return s.tables, err
}

// interesting is a cheap test for lines that can matter while no table is open.
func interesting(line string) bool {
	for _, mark := range [...]string{"GPU", "NIC", "nvidia-smi", "---", ">>"} {
		if strings.Contains(line, mark) {
			return true
		}
	}
	return false
}

// stray is how many lines of other output may stand between two lines of one
// table. Further on only lines with a word of nvidia-smi's are looked at.
const stray = 100

func (s *scanner) line(text string, num int) {
	if s.heads.Line(text) {
		return
	}
	if h := gather.Prompt(text, "nvidia-smi"); h != "" {
		s.prompt = hint{h, num}
	}
	if c := p2pCapability(text); c != "" {
		s.p2p = hint{c, num}
	}
	text = plain(text)
	if s.takeLine("", text, num) {
		return
	}
	if host, rest, ok := gather.Cut(text); ok {
		s.takeLine(host, plain(rest), num)
	}
}

// plain turns the bars of a Markdown table into tabs.
func plain(s string) string {
	t := strings.TrimLeft(s, " \t")
	if strings.HasPrefix(t, "|") {
		return strings.ReplaceAll(strings.Trim(strings.TrimRight(t, " \t"), "|"), "|", "\t")
	}
	return s
}

// takeLine gives a line to a host's table and reports whether it belonged there.
func (s *scanner) takeLine(host, text string, num int) bool {
	st := s.open[host]
	if h, ok := parseHeader(text); ok && (st == nil || !st.continuesHeader(text, num)) {
		if st != nil {
			s.close(st)
		}
		if len(s.open) >= gather.MaxHosts && st == nil {
			return false
		}
		s.open[host] = s.begin(host, h, text, num)
		s.last = num
		return true
	}
	if st == nil {
		return false
	}
	ok := st.continuesHeader(text, num) && st.moreHeader(text) || st.row(text, num) || st.moreRow(text, num) ||
		st.legend(text)
	if ok {
		st.line, s.last = num, num
	}
	return ok
}

func (s *scanner) begin(host string, h header, text string, num int) *state {
	t := &table{line: num, head: h, prompt: s.prompt.near(num), cap: s.p2p.near(num)}
	switch {
	case host != "":
		t.hosts = []string{host}
	default:
		t.hosts = s.heads.Hosts()
	}
	return &state{t: t, text: text, line: num}
}

// close keeps a table that has a row with X, which no other tool's tables have.
func (s *scanner) close(st *state) {
	st.flush()
	for _, r := range st.t.rows {
		if r != nil && slices.Contains(r.cells, "X") {
			s.tables = append(s.tables, st.t)
			return
		}
	}
}

// legend takes "NIC0: mlx5_0".
func (st *state) legend(text string) bool {
	nic, label, ok := strings.Cut(strings.TrimSpace(text), ": ")
	if _, isNIC := lines.Numbered(nic, "NIC"); !ok || !isNIC || st.t.rows == nil && st.pend == nil {
		return false
	}
	label = strings.TrimSpace(label)
	if label == "" || len(label) > 64 || strings.ContainsAny(label, " \t") {
		return false
	}
	if st.t.legend == nil {
		st.t.legend = map[string]string{}
	}
	if len(st.t.legend) < maxDevices {
		st.t.legend[strings.Clone(nic)] = strings.Clone(label)
	}
	return true
}

// addTo hands the table's warnings to a fragment.
func (t *table) addTo(f *cluster.Fragment, where string) {
	if more := t.warns.AddTo(f, where); more > 0 {
		f.Warnf(t.line, where, "%d more lines of this matrix could not be used whole", more)
	}
}
