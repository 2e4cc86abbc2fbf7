package nvsmi

import (
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

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
	case "X", "PIX", "PXB", "PHB", "NODE", "SYS", "XGMI":
		return w
	case "SOC":
		return "SYS"
	case "PSB":
		return "PIX"
	case "DIS":
		return "?"
	}
	if n, ok := lines.Numbered(w, "NV"); ok && n > 0 && n <= 1024 {
		return w
	}
	if p2pWords[w] != "" {
		return w
	}
	return ""
}

// isAffinity reports a word such as 0-15, 0,3-9 or N/A.
func isAffinity(w string) bool { return w == "N/A" || w != "" && strings.Trim(w, "0123456789,-") == "" }

// pending is a row whose rest may stand on the next line.
type pending struct {
	line  int
	col   int
	text  string // without the label
	cells int    // words that are cells
	tail  bool   // an affinity followed them
	folds int
}

// row takes a line that begins with the name of a column and holds a cell.
func (st *state) row(text string, num int) bool {
	text = strings.TrimLeft(text, " \t")
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return false
	}
	label, rest := text[:end], text[end:]
	p := &pending{line: num, text: strings.Clone(rest)}
	p.measure()
	if p.cells == 0 {
		return false
	}
	col, ok := st.t.head.at[label]
	if !ok {
		if _, gpu := lines.Numbered(label, "GPU"); gpu && p.cells > 1 {
			st.flush()
			st.t.warns.Addf(num, "row %s has no column; expected one of the header at line %d; the row is left out", label,
				st.t.line)
		}
		return false
	}
	st.flush()
	p.col = col
	st.pend = p
	return true
}

func (p *pending) measure() {
	p.cells, p.tail = 0, false
	for _, w := range strings.Fields(p.text) {
		switch {
		case cellWord(w) != "":
			p.cells++
		case isAffinity(w) && p.cells > 0:
			p.tail = true
		}
	}
}

// moreRow takes the rest of a row that a terminal folded.
func (st *state) moreRow(text string, num int) bool {
	p := st.pend
	if p == nil || num != st.line+1 || p.folds >= maxFolds {
		return false
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return false
	}
	short := p.cells < len(st.t.head.cols)
	if !short && (p.tail && !strings.HasSuffix(p.text, ",") && !strings.HasSuffix(p.text, "-") || !isAffinity(words[0])) {
		return false
	}
	between := " "
	for i, w := range words {
		if i == 0 && cellWord(w) == "" && short && !p.tail && cellWord(lastWord(p.text)+w) != "" ||
			i == 0 && !short && p.tail {
			between = ""
			continue
		}
		if cellWord(w) == "" && !isAffinity(w) {
			return false
		}
	}
	p.text += between + strings.Join(words, " ")
	p.folds++
	p.measure()
	return true
}

func lastWord(s string) string {
	if s == "" || s[len(s)-1] == ' ' || s[len(s)-1] == '\t' {
		return ""
	}
	return s[strings.LastIndexAny(s, " \t")+1:]
}

// flush makes the pending row part of the table.
func (st *state) flush() {
	p := st.pend
	if p == nil {
		return
	}
	st.pend, st.text = nil, ""
	t := st.t
	if t.rows == nil {
		t.rows = make([]*row, len(t.head.cols))
	}
	name := t.head.cols[p.col]
	if t.rows[p.col] != nil {
		t.warns.Addf(p.line, "row %s stands here again (first at line %d); the first is kept", name, t.rows[p.col].line)
		return
	}
	r := st.parse(p)
	for j, c := range r.cells {
		if c == "X" && j != p.col {
			t.warns.Addf(p.line, "row %s has its X in the column of %s: a cell is missing or too many; the row is left out",
				name, t.head.cols[j])
			// The row counts as seen, so that its end is not reported again.
			t.rows[p.col] = &row{line: p.line}
			return
		}
	}
	t.rows[p.col] = r
}

// parse cuts a row into cells and affinities.
func (st *state) parse(p *pending) *row {
	t := st.t
	n := len(t.head.cols)
	name := t.head.cols[p.col]
	cells, tail, ok := tabbed(p.text, n)
	if !ok {
		cells, tail = spaced(p.text, n)
		if len(cells) < n {
			if apart := splitGlued(cells); len(apart) == n {
				t.warns.Addf(p.line, "row %s: cells without white space between them were taken apart", name)
				cells = apart
			}
		}
	}
	r := &row{line: p.line, cells: make([]string, len(cells)), tail: tail}
	for j, w := range cells {
		if r.cells[j] = cellWord(w); r.cells[j] == "" && w != "N/A" {
			t.warns.Addf(p.line, "row %s, column %s: %q; expected X, NV#, PIX, PXB, PHB, NODE or SYS; taken as unknown", name,
				t.head.cols[j], w)
		}
	}
	if len(cells) < n {
		t.warns.Addf(p.line, "row %s has %d cells; the header has %d columns; the rest is taken as unknown", name, len(cells),
			n)
	}
	for k, w := range tail {
		if cellWord(w) != "" {
			t.warns.Addf(p.line, "row %s has more cells than the header has columns (%d): %q", name, n, w)
			r.tail, r.wide = tail[:k], true
			break
		}
	}
	return r
}

// tabbed cuts at tabs, which keeps empty cells. It gives up where the tabs do
// not separate n single words.
func tabbed(text string, n int) (cells, tail []string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text, " "), "\t")
	if !ok {
		return nil, nil, false
	}
	parts := strings.SplitN(rest, "\t", n+9)
	if len(parts) < n {
		return nil, nil, false
	}
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
		if i < n && (parts[i] == "" || strings.ContainsAny(parts[i], " \t") || isAffinity(parts[i]) && parts[i] != "N/A") {
			return nil, nil, false
		}
	}
	return parts[:n], parts[n:], true
}

// spaced cuts at white space. The cells end before the first word that can only
// be an affinity.
func spaced(text string, n int) (cells, tail []string) {
	words := strings.Fields(text)
	for i, w := range words {
		if i == n || isAffinity(w) && w != "N/A" || w == "N/A" && !anyCell(words[i:]) {
			return words[:i], words[i:min(len(words), i+8)]
		}
	}
	return words, nil
}

func anyCell(words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return cellWord(w) != "" })
}

// splitGlued takes words such as SYSSYS or NV18NV18 apart.
func splitGlued(words []string) []string {
	var out []string
	for _, w := range words {
		parts := []string{w}
		if cellWord(w) == "" {
			if p := classesIn(w); p != nil {
				parts = p
			}
		}
		out = append(out, parts...)
		if len(out) > maxDevices {
			return nil
		}
	}
	return out
}

var classWord = lazyre.New(`NODE|SYS|SOC|PIX|PXB|PHB|X|NV[1-9]\d*`)

// classesIn are the classes that a word is made of; nil when it is not.
func classesIn(w string) []string {
	if out := classWord.FindAllString(w, -1); strings.Join(out, "") == w {
		return out
	}
	return nil
}

// affinity reads the cells behind the classes: the list of cores, and the NUMA
// domain, or the first of several (Grace has one per GPU beside its own); -1
// when there is none.
func (t *table) affinity(r *row) (cores string, numa int) {
	tail := r.tail
	for len(tail) > 0 && tail[len(tail)-1] == "" {
		tail = tail[:len(tail)-1]
	}
	if len(tail) == 0 {
		return "", -1
	}
	// A cell that is only a number is a list of cores if its place says so: the
	// first of all cells that the header announces, or one that tabs put there.
	first := tail[0]
	if first != "" && len(tail) < t.head.tails && !strings.ContainsAny(first, "-,") {
		tail = append([]string{""}, tail...)
	}
	cores = tail[0]
	if !isAffinity(cores) || cores == "N/A" || len(cores) > 1024 {
		cores = ""
	}
	for _, w := range tail[1:] {
		if w == "" {
			continue
		}
		return cores, firstNumber(w)
	}
	return cores, -1
}

func firstNumber(w string) int {
	end := 0
	for end < len(w) && w[end] >= '0' && w[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(w[:end])
	if err != nil || n > 1<<16 {
		return -1
	}
	return n
}
