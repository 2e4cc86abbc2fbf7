package nvsmi

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// table is one matrix as printed: of path classes, or of peer access.
type table struct {
	pairtable.Matrix
	hosts  []string // names the text gives for certain; none when it gives none
	prompt string   // the name a shell prompt gives
	cap    string   // the capability of a -p2p command line above, "" unknown
	tails  int      // columns behind the classes
	legend map[string]string
	wide   int // rows with more cells than there are columns
}

// p2pWords are the cells of a peer-access matrix and what they mean.
var p2pWords = map[string]string{
	"OK":  "ok",
	"CNS": "chipset not supported",
	"GNS": "GPU not supported",
	"TNS": "topology not supported",
	"NS":  "not supported",
	"DR":  "disabled by a registry key",
	"U":   "unknown",
}

// cellWord returns the usual spelling of a cell, "" for a word that is none.
// SOC is what drivers before 384 call SYS; PSB is the switch on a dual-GPU
// board, which only its two GPUs share.
func cellWord(w string) string {
	switch w {
	case "X", "PIX", "PXB", "PHB", "NODE", "SYS":
		return w
	case "SOC":
		return "SYS"
	case "PSB":
		return "PIX"
	}
	if n, ok := lines.Numbered(w, "NV"); ok && n > 0 && n <= 1024 || p2pWords[w] != "" {
		return w
	}
	return ""
}

func anyCell(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return cellWord(w) != "" })
}

// isAffinity reports a word such as 0-15, 0,3-9 or N/A.
func isAffinity(w string) bool { return w == "N/A" || strings.Trim(w, "0123456789,-") == "" }

// isP2P reports whether the cells speak of peer access.
func (t *table) isP2P() bool {
	for _, r := range t.Rows {
		if r == nil {
			continue
		}
		for _, c := range r.Cells {
			if c != "" && c != "X" {
				return p2pWords[c] != ""
			}
		}
	}
	// One GPU alone: only topo -m has affinity columns.
	return t.tails == 0
}

// scanner finds the matrices in a text. Lines of several hosts may be mixed, as
// pdsh mixes them, so that each host has a table of its own under way.
type scanner struct {
	tables []*table
	open   map[string]*table // by the host before the line, "" without
	heads  gather.Headings
	prompt hint
	p2p    hint
}

// hint is a word found shortly before a table.
type hint struct {
	word string
	line int
}

func (h hint) near(line int) string {
	if line-h.line <= 5 {
		return h.word
	}
	return ""
}

// scan reads a text to its end. It returns the tables that have a row.
func scan(name string, r io.Reader) ([]*table, error) {
	s := &scanner{open: map[string]*table{}}
	err := s.heads.Each(name, r, s.takeLine)
	for _, t := range s.open {
		s.close(t)
	}
	slices.SortFunc(s.tables, func(a, b *table) int { return cmp.Compare(a.Line, b.Line) })
	return s.tables, err
}

// capability is what a command line asks for: the letters after -p2p.
var capability = lazyre.New(`-p2p(?:status)?[ =]+([rwnap]+)(?:[^a-z]|$)`)

// takeLine gives a line to a host's table and reports whether it belonged there.
func (s *scanner) takeLine(host, text string, num int) bool {
	if h := gather.Prompt(text, "nvidia-smi"); h != "" {
		s.prompt = hint{h, num}
	}
	if strings.Contains(text, "-p2p") {
		if m := capability.FindStringSubmatch(text); m != nil {
			s.p2p = hint{strings.Clone(m[1]), num}
		}
	}
	text = withoutBars(text)
	t := s.open[host]
	if cols, tails := parseHeader(text); cols != nil {
		if t != nil {
			s.close(t)
		} else if len(s.open) >= gather.MaxHosts {
			return false
		}
		t = &table{hosts: s.heads.Hosts(), prompt: s.prompt.near(num), cap: s.p2p.near(num), tails: tails}
		if host != "" {
			t.hosts = []string{host}
		}
		t.Line = num
		t.Head(cols)
		s.open[host] = t
		return true
	}
	return t != nil && (t.row(text, num) || t.note(text))
}

// withoutBars is a row of a Markdown table without its bars.
func withoutBars(s string) string {
	if strings.HasPrefix(strings.TrimLeft(s, " \t"), "|") {
		return strings.ReplaceAll(s, "|", " ")
	}
	return s
}

// close keeps a table that has a row with X, which no other tool's tables have.
func (s *scanner) close(t *table) {
	for _, r := range t.Rows {
		if r != nil && slices.Contains(r.Cells, "X") {
			s.tables = append(s.tables, t)
			return
		}
	}
}

var (
	// tailNames are the columns behind the classes.
	tailNames = lazyre.New(`CPU ?Affinity|NUMA ?Affinity|GPU NUMA ID`)
	// deviceWord is a word that can be a device's name.
	deviceWord = lazyre.New(`^[A-Za-z][\w.-]*\d[\w.-]*$`)
	// glued is a name or a cell that lost the white space before it, as where a terminal breaks a line at a tab.
	glued = lazyre.New(`\B(?:PIX|PXB|PHB|NODE|SYS|SOC|NV\d|GPU\d|NIC\d|mlx\d|CPU Aff)`)
)

// cellsOf cuts a line into its words.
func cellsOf(text string) []string { return strings.Fields(glued.ReplaceAllString(text, " $0")) }

// parseHeader reads a line of column names: GPUs first, then NICs, then the
// affinity columns, which it counts. A row is none, because a class follows its name.
func parseHeader(text string) (cols []string, tails int) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t"), "GPU") { // the cheap part of the test
		return nil, 0
	}
	words := cellsOf(text)
	for i, w := range words {
		_, gpu := lines.Numbered(w, "GPU")
		switch {
		case i == 0 && !gpu, len(cols) > pairtable.MaxDevices:
			return cols, 0
		case strings.HasPrefix(w, "CPU"), strings.HasPrefix(w, "NUMA"), w == "GPU":
			return cols, len(tailNames.FindAllString(strings.Join(words[i:], " "), -1))
		case cellWord(w) != "" || len(w) > 64 || !deviceWord.MatchString(w):
			return nil, 0
		}
		cols = append(cols, w)
	}
	return cols, 0
}

// row takes a line that begins with the name of a device and holds a cell.
func (t *table) row(text string, num int) bool {
	words := strings.Fields(text)
	if len(words) < 2 || !deviceWord.MatchString(words[0]) || !anyCell(words[1:]) {
		return false
	}
	words = cellsOf(text)
	name, words := words[0], words[1:]
	// The cells end before the first word that can only be an affinity.
	n := slices.IndexFunc(words, func(w string) bool { return isAffinity(w) && w != "N/A" })
	if n < 0 {
		for n = len(words); n > 0 && words[n-1] == "N/A"; n-- {
		}
	}
	at, r := t.Add(num, name, words[:n])
	if r == nil {
		return true
	}
	if n > len(t.Cols) {
		t.wide++
	}
	r.Tail = strings.Fields(strings.Join(words[n:min(n+8, len(words))], " "))
	for j, w := range r.Cells {
		r.Cells[j] = cellWord(w)
		switch {
		case w == "X" && j != at:
			t.Warns.Addf(num, "row %s has its X in the column of %s: a cell is missing or too many; the row is left out",
				name, t.Cols[j])
			*r = pairtable.Row{Line: num} // it counts as seen, so that its end is not reported again
			return true
		case r.Cells[j] == "" && w != "" && w != "N/A":
			t.Warns.Addf(num, "row %s, column %s: %q; expected X, NV#, PIX, PXB, PHB, NODE or SYS; taken as unknown", name,
				t.Cols[j], w)
		}
	}
	return true
}

// note takes a line of the NICs' legend, "NIC0: mlx5_0".
func (t *table) note(text string) bool {
	nic, label, ok := strings.Cut(strings.TrimSpace(text), ": ")
	label = strings.TrimSpace(label)
	if _, isNIC := lines.Numbered(nic, "NIC"); !ok || !isNIC || t.Count() == 0 || label == "" || len(label) > 64 ||
		strings.ContainsAny(label, " \t") {
		return false
	}
	if t.legend == nil {
		t.legend = map[string]string{}
	}
	if len(t.legend) < pairtable.MaxDevices {
		t.legend[strings.Clone(nic)] = strings.Clone(label)
	}
	return true
}

// affinity reads the cells behind the classes: the list of cores, and the NUMA
// domain, or the first of several (Grace has one per GPU beside its own); -1
// when there is none.
func (t *table) affinity(r *pairtable.Row) (cores string, numa int) {
	tail := slices.Concat(r.Tail, []string{"", ""})
	// A cell that is only a number is a list of cores where the row has all cells that the header announces.
	if len(r.Tail) >= t.tails || strings.ContainsAny(tail[0], "-,") {
		cores, tail = tail[0], tail[1:]
	}
	if !isAffinity(cores) || cores == "N/A" || len(cores) > 1024 {
		cores = ""
	}
	first, _, _ := strings.Cut(tail[0], ",")
	first, _, _ = strings.Cut(first, "-")
	return cores, num.Or(first, 0, 1<<16, -1)
}

// coreList is a whole list of cores.
var coreList = lazyre.New(`^\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*$`)

// dropDamaged leaves out lists of cores that lost their beginning: they begin with a hyphen or a comma, or are the end
// of what a longer one of the same NUMA domain says.
func (t *table) dropDamaged() {
	whole := map[int]string{} // the longest list of a domain
	for _, r := range t.Rows {
		if r != nil {
			if cores, numa := t.affinity(r); len(cores) > len(whole[numa]) && coreList.MatchString(cores) {
				whole[numa] = cores
			}
		}
	}
	for i, r := range t.Rows {
		if r == nil {
			continue
		}
		cores, numa := t.affinity(r)
		if cores != "" && (!coreList.MatchString(cores) || numa >= 0 && cores != whole[numa] &&
			strings.Contains(cores, ",") && strings.HasSuffix(whole[numa], cores)) {
			t.Warns.Addf(r.Line, "row %s: the list of cores %q is damaged; expected a list such as 0-31,64-95; left out",
				t.Cols[i], cores)
			r.Tail[0] = "N/A"
		}
	}
}

// names are the hosts of a table: a prompt tells several apart, but may be a container's.
func (t *table) names(several bool) []string {
	switch {
	case len(t.hosts) > 0:
		return t.hosts
	case several:
		return []string{t.prompt}
	}
	return []string{""}
}

// addTo hands the table's warnings to a fragment.
func (t *table) addTo(f *cluster.Fragment, where string) {
	if missing := t.Missing(); missing != "" {
		f.Warnf(t.Line, where, "%s", missing)
	}
	if more := t.Warns.AddTo(f, where); more > 0 {
		f.Warnf(t.Line, where, "%d more lines of this matrix could not be used whole", more)
	}
}
