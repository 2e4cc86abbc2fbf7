package texttab

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/unit"
)

// Sink is a writer that takes tables as such instead of their text, to write them in another format.
type Sink interface {
	io.Writer
	// Table takes a table, or reports that it wants its text.
	Table(t *Table) (taken bool, err error)
}

// Send gives a table to a writer that takes tables.
func (t *Table) Send(w io.Writer) (taken bool, err error) {
	if s, ok := w.(Sink); ok {
		return s.Table(t)
	}
	return false, nil
}

// Titled is the table with its title in a first column, for writers that leave out the text around it.
func (t *Table) Titled() *Table {
	if t.Title == "" {
		return t
	}
	more := *t
	more.Title = ""
	more.Columns = append([]Column{{Head: "of"}}, t.Columns...)
	more.rows = make([][]string, len(t.rows))
	for i, r := range t.rows {
		more.rows[i] = append([]string{t.Title}, r...)
	}
	return &more
}

// Heads are the headings of the columns that are shown.
func (t *Table) Heads() []string {
	var list []string
	for _, i := range t.shown() {
		list = append(list, Strip(t.Columns[i].Head))
	}
	return list
}

// Select is the table with some of its columns, in the order of their names. A name is a heading, or one without its
// unit: size is size (B). Names that no column has are left out; a table that has none of them is nil. used marks those
// that were found.
func (t *Table) Select(names []string, used map[string]bool) *Table {
	var columns []int
	shown := t.shown()
	for _, name := range names {
		k := slices.IndexFunc(shown, func(i int) bool {
			head := Strip(t.Columns[i].Head)
			short, _, _ := strings.Cut(head, " (")
			return strings.EqualFold(head, name) || strings.EqualFold(short, name)
		})
		if k >= 0 {
			used[name] = true
			columns = append(columns, shown[k])
		}
	}
	if columns == nil {
		return nil
	}
	some := *t
	some.Columns, some.rows = nil, nil
	for _, i := range columns {
		some.Columns = append(some.Columns, t.Columns[i])
	}
	for _, r := range t.rows {
		some.rows = append(some.rows, cells(r, columns))
	}
	return &some
}

// cells are some of a row's, without colours.
func cells(row []string, columns []int) []string {
	list := make([]string, len(columns))
	for k, i := range columns {
		if i < len(row) {
			list[k] = strings.TrimSpace(Strip(row[i]))
		}
	}
	return list
}

// quantity reads a time, a size or a rate as terminals have them: 819 ms, which no program adds to 1.2 s. base is the
// unit of the value; "" where the text is another.
func quantity(text string) (v float64, base string) {
	if !strings.Contains(text, " ") {
		return // 8B is a model
	}
	if span, err := unit.ParseSpan(text); err == nil {
		return span.Seconds(), "s"
	}
	if size, err := unit.ParseBytes(text); err == nil {
		return float64(size), "B"
	}
	if rate, err := unit.ParseRate(text); err == nil {
		return rate.GBps(), "GB/s"
	}
	return
}

// inOneUnit makes numbers of a column of quantities, with their unit behind its heading.
func inOneUnit(lines [][]string, column int, base string) {
	numbers := make([]string, len(lines))
	for k, line := range lines[1:] {
		text := line[column]
		if text != "" && text != "0" && text != "–" {
			v, found := quantity(text)
			if found == "" || found != cmp.Or(base, found) {
				return
			}
			text, base = fmt.Sprintf("%.12g", v), found
		}
		numbers[k+1] = text
	}
	if base == "" {
		return
	}
	numbers[0] = fmt.Sprintf("%s (%s)", lines[0][column], base)
	for k, text := range numbers {
		lines[k][column] = text
	}
}

// CSV writes the table with a line of headings, as RFC 4180 has it, and each column in one unit.
func (t *Table) CSV(w io.Writer) error {
	columns := t.shown()
	lines := [][]string{t.Heads()}
	for _, r := range t.rows {
		lines = append(lines, cells(r, columns))
	}
	for k, i := range columns {
		inOneUnit(lines, k, t.Columns[i].base)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// Markdown writes the table as GitHub's Markdown has it.
func (t *Table) Markdown(w io.Writer) error {
	var b strings.Builder
	columns := t.shown()
	line := func(list []string) {
		for _, s := range list {
			b.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.Heads())
	rule := make([]string, len(columns))
	for k, i := range columns {
		if rule[k] = "---"; t.Columns[i].Align == Right {
			rule[k] = "--:"
		}
	}
	line(rule)
	for _, r := range t.rows {
		line(cells(r, columns))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WrapLong wraps lines that are wider than so many columns between words, and indents what follows by two more than the
// line. Lines that fit are left as they are.
func WrapLong(text string, columns int) string {
	if columns < 2*leastWrapped {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body, ended := strings.CutSuffix(line, "\n")
		if Width(body) <= columns {
			b.WriteString(line)
			continue
		}
		indent := body[:len(body)-len(strings.TrimLeft(body, " "))]
		if len(indent) > columns/2 {
			b.WriteString(line)
			continue
		}
		for i, part := range Wrap(body, columns-len(indent)-2) {
			if i > 0 {
				b.WriteString("\n" + "  ")
			}
			b.WriteString(indent + part)
		}
		if ended {
			b.WriteString("\n")
		}
	}
	return b.String()
}
