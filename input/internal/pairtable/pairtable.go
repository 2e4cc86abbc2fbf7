// Package pairtable is what tools that print a row and a column for each GPU have in common: the tables, those of
// figures under a title, and the node with its pairs that follows from them.
package pairtable

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/warn"
)

// MaxDevices bounds the columns of a table.
const MaxDevices = 1024

// Matrix is a table as a tool printed it.
type Matrix struct {
	Title string
	Line  int      // of the title, or of the header where there is none
	Cols  []string // names of devices
	Rows  []*Row   // by column; nil where the text has none
	Warns warn.List

	place map[string]int
}

// Row is one line of a matrix: a word for each column, "" where it is unknown.
type Row struct {
	Line  int
	Cells []string
	Tail  []string // what stands behind the cells
}

// Head gives a matrix its columns.
func (m *Matrix) Head(cols []string) {
	m.Cols, m.Rows, m.place = make([]string, len(cols)), make([]*Row, len(cols)), make(map[string]int, len(cols))
	for i, c := range cols {
		m.Cols[i] = strings.Clone(c)
		m.place[m.Cols[i]] = i
	}
}

// Check tells what is wrong with the columns.
func (m *Matrix) Check() error {
	switch {
	case len(m.Cols) > MaxDevices:
		return fmt.Errorf("%d: more than %d columns; a node has fewer devices; cut the text to one matrix", m.Line,
			MaxDevices)
	case len(m.place) < len(m.Cols):
		return fmt.Errorf("%d: a column stands twice in the header; expected each device once; copy the output again", m.Line)
	}
	return nil
}

// Add takes the cells of a row and returns the row's place and the row; nil where it has no place. What does not fit
// is a warning.
func (m *Matrix) Add(line int, name string, cells []string) (int, *Row) {
	at, ok := m.place[name]
	switch n := len(m.Cols); {
	case !ok:
		m.Warns.Addf(line, "row %s has no column; expected one of the header at line %d; the row is left out", name, m.Line)
		return 0, nil
	case m.Rows[at] != nil:
		m.Warns.Addf(line, "row %s stands here again (first at line %d); the first is kept", name, m.Rows[at].Line)
		return 0, nil
	case len(cells) < n:
		m.Warns.Addf(line, "row %s has %d cells; the header has %d columns; the rest is taken as unknown", name, len(cells),
			n)
	case len(cells) > n:
		m.Warns.Addf(line, "row %s has more cells than the header has columns (%d): %q", name, n, cells[n])
	}
	r := &Row{Line: line, Cells: make([]string, len(m.Cols))}
	for i := range min(len(cells), len(m.Cols)) {
		r.Cells[i] = strings.Clone(cells[i])
	}
	m.Rows[at] = r
	return at, r
}

// Count is the number of rows.
func (m *Matrix) Count() (n int) {
	for _, r := range m.Rows {
		if r != nil {
			n++
		}
	}
	return n
}

// String is the same for tables of the same contents.
func (m *Matrix) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q\n", m.Cols)
	for _, r := range m.Rows {
		if r != nil {
			fmt.Fprintf(&b, "%q %q", r.Cells, r.Tail)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Missing names the rows that the text does not have; "" where it has all.
func (m *Matrix) Missing() string {
	var names []string
	for i, r := range m.Rows {
		if r == nil {
			names = append(names, m.Cols[i])
		}
	}
	if len(names) == 0 {
		return ""
	}
	more := ""
	if len(names) > 8 {
		more = fmt.Sprintf(" and %d more", len(names)-8)
	}
	return fmt.Sprintf("no row for %s%s: the matrix is cut off; their relations are known from the other rows only",
		strings.Join(names[:min(len(names), 8)], ", "), more)
}

// Figures reads a line below a title, and reports whether it belongs there: the header, which is numbers of devices,
// perhaps behind D\D or GPU, or a row of a number and figures.
func (m *Matrix) Figures(line int, text string) bool {
	words := strings.Fields(text)
	if len(words) == 0 {
		return true
	}
	if m.Cols == nil {
		if words[0] == `D\D` || words[0] == "GPU" {
			words = words[1:]
		}
		if len(words) == 0 || len(words) > MaxDevices || slices.ContainsFunc(words, isNoNumber) {
			return false
		}
		m.Head(words)
		return true
	}
	if len(words) < 2 || len(words)-1 > len(m.Cols) || isNoNumber(words[0]) || slices.ContainsFunc(words[1:], isNoFigure) {
		return false
	}
	m.Add(line, words[0], words[1:])
	return true
}

func isNoNumber(s string) bool { _, ok := Number(s); return !ok }

func isNoFigure(s string) bool { _, ok := Figure(s); return !ok }

// Number reads the number of a device.
func Number(s string) (int, bool) {
	n := num.Or(s, 0, MaxDevices-1, -1)
	return n, n >= 0
}

// Figure reads one figure; N/A is not a number.
func Figure(s string) (float64, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return v, true
	}
	return math.NaN(), strings.EqualFold(s, "N/A")
}
