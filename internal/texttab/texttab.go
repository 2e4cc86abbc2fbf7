// Package texttab lays out text for a terminal: tables with aligned columns,
// and paragraphs wrapped to a width.
//
// A table is declared by its columns, and text, CSV and Markdown come from the same ones. A column is a word: its
// heading, before it whether it is set to the right and when it hides, behind it the format of its cells. Rows are then
// lists of values:
//
//	t := texttab.New(texttab.If(verbose, "source"), ">size (B)", ">busbw (GB/s)|%.2f", "?note")
//	t.Add(r.Source, r.Size, r.BusBW.GBps(), r.Note)
//
// A function per column, as in []Column[Row]{{"type", func(r Row) any { return r.Dtype }}}, takes 14 tokens more for
// each of them, which doubles the tables of predict, step and plan: every cell repeats the type of the row.
//
// Widths are counted in runes, and colour codes (SGR sequences) take no room.
// Characters that terminals draw two cells wide are counted as one.
package texttab

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Align says to which side of its column a cell is set.
type Align uint8

// Alignments.
const (
	Left Align = iota
	Right
	Center
)

// Column is a heading and how the cells below it are set.
type Column struct {
	Head   string
	Format string // of values, as package fmt has it; %v when empty
	Align  Align
	Hidden bool // left out, with the cells of every row that stand in it
	// Optional is left out where all its cells are empty.
	Optional bool

	base string // the unit of a file's numbers, where values have one
}

// Table is a grid of cells. The zero value is a table without columns; rows may
// still be added, and are then set to the left.
type Table struct {
	Columns []Column
	Indent  string // before every line
	Gap     string // between columns; two spaces when empty
	// Style, when set, wraps every heading, for instance in a colour.
	Style func(string) string
	// Title says what the rows have in common, where a text above the table does; see Titled.
	Title string
	// Most is how many rows are laid out as text; 0 is all. CSV and Markdown have all of them.
	Most int

	rows [][]string
}

// New is a table with these columns, each a heading. Before the heading > sets cells to the right, as numbers are, and
// ? leaves the column out where all its cells are empty; behind it | and a format say how values are written.
func New(columns ...string) *Table {
	t := &Table{}
	for word := range strings.SplitSeq(strings.Join(columns, "\n"), "\n") {
		t.Columns = append(t.Columns, column(word))
	}
	return t
}

// If is columns for New that are shown only where a condition holds.
func If(shown bool, columns ...string) string {
	mark := ""
	if !shown {
		mark = "!"
	}
	return mark + strings.Join(columns, "\n"+mark)
}

// column reads a column as New takes it.
func column(word string) (c Column) {
	for word != "" {
		switch word[0] {
		case '>':
			c.Align = Right
		case '?':
			c.Optional = true
		case '!':
			c.Hidden = true
		default:
			c.Head, c.Format, _ = strings.Cut(word, "|")
			return c
		}
		word = word[1:]
	}
	return c
}

// Row appends a row of texts. Missing cells are empty.
func (t *Table) Row(cells ...string) {
	for len(t.Columns) < len(cells) {
		t.Columns = append(t.Columns, Column{})
	}
	t.rows = append(t.rows, cells)
}

// Add appends a row of values, each in the format of its column. Texts are cells as they are, and a quantity that can
// be written short is.
func (t *Table) Add(values ...any) {
	cells := make([]string, len(values))
	for i, value := range values {
		switch v := value.(type) {
		case string:
			cells[i] = v
		case interface{ Short() string }:
			cells[i], t.Columns[i].base = v.Short(), "s"
		default:
			cells[i] = fmt.Sprintf(cmp.Or(t.Columns[i].Format, "%v"), value)
		}
	}
	t.Row(cells...)
}

// Len is the number of rows so far.
func (t *Table) Len() int { return len(t.rows) }

// Write lays the table out, without what a name in a cell could do to a terminal. On a Terminal that is too narrow, see
// fit.
func (t *Table) Write(w io.Writer) error {
	if taken, err := t.Send(w); taken {
		return err
	}
	columns := 0
	if c, ok := w.(Terminal); ok {
		columns = c.Columns()
	}
	_, err := io.WriteString(w, Clean(t.Fit(columns)))
	return err
}

// String lays the table out into a text.
func (t *Table) String() string { return t.Fit(0) }

// Fit lays the table out for a terminal with so many columns; 0 is any number.
func (t *Table) Fit(columns int) string {
	var b strings.Builder
	widths := t.widths()
	for i, show := range t.fit(widths, columns) {
		if i > 0 {
			b.WriteString("\n")
		}
		if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Head != "" }) {
			t.line(&b, widths, show, t.headings())
		}
		for _, r := range t.laid() {
			for _, part := range t.wrapLast(widths, show, r, columns) {
				t.line(&b, widths, show, part)
			}
		}
	}
	return b.String()
}

// headings are those of all columns, in the table's style.
func (t *Table) headings() []string {
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i] = c.Head
		if t.Style != nil && c.Head != "" {
			heads[i] = t.Style(c.Head)
		}
	}
	return heads
}

// laid are the rows that text has.
func (t *Table) laid() [][]string {
	if t.Most > 0 {
		return t.rows[:min(t.Most, len(t.rows))]
	}
	return t.rows
}

// shown are the columns that are not left out.
func (t *Table) shown() []int {
	var list []int
	for i, c := range t.Columns {
		used := func(row []string) bool { return i < len(row) && row[i] != "" }
		if !c.Hidden && (!c.Optional || slices.ContainsFunc(t.rows, used)) {
			list = append(list, i)
		}
	}
	return list
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = Width(c.Head)
	}
	for _, r := range t.laid() {
		for i, cell := range r {
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

func (t *Table) gap() string {
	return cmp.Or(t.Gap, "  ")
}

func (t *Table) line(b *strings.Builder, widths, show []int, cells []string) {
	var l strings.Builder
	for k, i := range show {
		if k > 0 {
			l.WriteString(t.gap())
		}
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		l.WriteString(pad(cell, widths[i], t.Columns[i].Align))
	}
	b.WriteString(strings.TrimRight(t.Indent+l.String(), " ") + "\n")
}

// pad sets s into width cells. A longer s is returned as it is.
func pad(s string, width int, a Align) string {
	free := width - Width(s)
	if free <= 0 {
		return s
	}
	switch a {
	case Right:
		return strings.Repeat(" ", free) + s
	case Center:
		return strings.Repeat(" ", free/2) + s + strings.Repeat(" ", free-free/2)
	}
	return s + strings.Repeat(" ", free)
}
