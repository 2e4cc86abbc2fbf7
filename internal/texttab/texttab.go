// Package texttab lays out text for a terminal: tables with aligned columns,
// and paragraphs wrapped to a width.
//
// Widths are counted in runes, and colour codes (SGR sequences) take no room.
// Characters that terminals draw two cells wide are counted as one.
package texttab

import (
	"cmp"
	"io"
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
	Align  Align
	Hidden bool // left out, with the cells of every row that stand in it
}

// Table is a grid of cells. The zero value is a table without columns; rows may
// still be added, and are then set to the left.
type Table struct {
	Columns []Column
	Indent  string // before every line
	Gap     string // between columns; two spaces when empty
	// Plain leaves the headings out.
	Plain bool
	// Style, when set, wraps every heading, for instance in a colour.
	Style func(string) string
	// Full pads the last column too, so that every line has the same width.
	Full bool
	// Title says what the rows have in common, where a text above the table does; see Titled.
	Title string
	// Most is how many rows are laid out as text; 0 is all. CSV and Markdown have all of them.
	Most int

	rows [][]string
}

// New is a table with these headings. One after > is that of a column of numbers, which are set to the right.
func New(heads ...string) *Table {
	t := &Table{Columns: make([]Column, len(heads))}
	for i, h := range heads {
		c := &t.Columns[i]
		c.Head = h
		if rest, ok := strings.CutPrefix(h, ">"); ok {
			c.Head, c.Align = rest, Right
		}
	}
	return t
}

// Row appends a row. Missing cells are empty.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Len is the number of rows so far.
func (t *Table) Len() int { return len(t.rows) }

// Write lays the table out. On a Terminal that is too narrow, see fit.
func (t *Table) Write(w io.Writer) error {
	if taken, err := t.Send(w); taken {
		return err
	}
	var b strings.Builder
	columns := 0
	if c, ok := w.(Terminal); ok {
		columns = c.Columns()
	}
	t.write(&b, columns)
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) write(b *strings.Builder, columns int) {
	widths := t.widths()
	for i, show := range t.fit(widths, columns) {
		if i > 0 {
			b.WriteString("\n")
		}
		if !t.Plain && len(t.Columns) > 0 {
			head := make([]string, len(t.Columns))
			for i, c := range t.Columns {
				head[i] = c.Head
				if t.Style != nil && c.Head != "" {
					head[i] = t.Style(c.Head)
				}
			}
			t.line(b, widths, show, head)
		}
		for _, r := range t.laid() {
			for _, part := range t.wrapLast(widths, show, r, columns) {
				t.line(b, widths, show, part)
			}
		}
	}
}

// String lays the table out into a text.
func (t *Table) String() string { return t.Fit(0) }

// Fit lays the table out for a terminal with so many columns; 0 is any number.
func (t *Table) Fit(columns int) string {
	var b strings.Builder
	t.write(&b, columns)
	return b.String()
}

// laid are the rows that text has.
func (t *Table) laid() [][]string {
	if t.Most > 0 {
		return t.rows[:min(t.Most, len(t.rows))]
	}
	return t.rows
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	if !t.Plain {
		for i, c := range t.Columns {
			widths[i] = Width(c.Head)
		}
	}
	for _, r := range t.laid() {
		for i, cell := range r {
			if i >= len(widths) {
				widths = append(widths, 0)
			}
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
		width := widths[i]
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		align := Left
		if i < len(t.Columns) {
			align = t.Columns[i].Align
		}
		if k > 0 {
			l.WriteString(t.gap())
		}
		l.WriteString(pad(cell, width, align))
	}
	s := t.Indent + l.String()
	if !t.Full {
		s = strings.TrimRight(s, " ")
	}
	b.WriteString(s + "\n")
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
