package texttab

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
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
		bare, _, _ := strings.Cut(name, " (") // a file has units that a text has in its cells
		k := slices.IndexFunc(shown, func(i int) bool {
			head := Strip(t.Columns[i].Head)
			short, _, _ := strings.Cut(head, " (")
			return strings.EqualFold(head, name) || strings.EqualFold(short, bare)
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

// quantities are what columns of a file are counted in: a terminal has 819 ms below 1.2 s, which no program adds up.
var quantities = []struct {
	unit  string
	parse func(s string) (float64, error)
}{
	{"s", func(s string) (float64, error) { v, err := unit.ParseSpan(s); return v.Seconds(), err }},
	{"B", func(s string) (float64, error) { v, err := unit.ParseBytes(s); return float64(v), err }},
	{"GB/s", func(s string) (float64, error) { v, err := unit.ParseRate(s); return v.GBps(), err }},
}

// inOneUnit is the table whose columns of quantities have numbers, with the unit behind the heading.
func (t *Table) inOneUnit() *Table {
	all := make([]int, len(t.Columns))
	for i := range all {
		all[i] = i
	}
	same := &Table{Columns: slices.Clone(t.Columns)}
	for _, r := range t.rows {
		same.rows = append(same.rows, cells(r, all))
	}
	for i := range same.Columns {
		for _, q := range quantities {
			numbers, ok := same.numbers(i, q.parse)
			none := same.Columns[i].span && q.unit == "s" && len(numbers) == len(same.rows) // times of 0 alone
			if !ok && !none {
				continue
			}
			same.Columns[i].Head += " (" + q.unit + ")"
			for k, text := range numbers {
				same.rows[k][i] = text
			}
			break
		}
	}
	return same
}

// numbers are the cells of a column without their units. ok is false where some are no such quantities, or none is one.
func (t *Table) numbers(column int, parse func(string) (float64, error)) (list []string, ok bool) {
	for _, r := range t.rows {
		text := r[column]
		v, err := parse(text)
		switch {
		case err == nil && strings.Contains(text, " "):
			text, ok = strconv.FormatFloat(v, 'g', 12, 64), true
		case text != "" && text != "0" && text != "–":
			return nil, false
		}
		list = append(list, text)
	}
	return list, ok
}

// CSV writes the table with a line of headings, as RFC 4180 has it, and each column in one unit.
func (t *Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	t = t.inOneUnit()
	columns := t.shown()
	if err := c.Write(t.Heads()); err != nil {
		return err
	}
	for _, r := range t.rows {
		if err := c.Write(cells(r, columns)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
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
