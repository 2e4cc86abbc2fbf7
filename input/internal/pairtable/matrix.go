package pairtable

import "busbar.dev/cluster"

// Matrix is a table as a tool printed it.
type Matrix struct {
	Title string
	Line  int    // of the title
	By    string // the word before the columns that names what measured, "" for none
	Cols  []int
	Rows  []Row
}

// Row is one line of a matrix: a value for each column, fewer in a text that was cut. NaN stands for N/A.
type Row struct {
	Device int
	Line   int
	Values []float64
}

// maxWarnings bounds the warnings of one text.
const maxWarnings = 100

// Scanner reads matrices of one text line by line.
type Scanner struct {
	// Frag gets the warnings.
	Frag *cluster.Fragment
	// Square refuses rows of devices that have no column.
	Square bool

	open       *Matrix // until its end; its columns are nil before its header
	cols, rows map[int]bool
	warned     int
}

// Warnf warns of a line, up to a number that a person would read.
func (s *Scanner) Warnf(line int, format string, args ...any) {
	if s.warned++; s.warned <= maxWarnings {
		s.Frag.Warnf(line, "", format, args...)
	}
}

// Begin opens a matrix at its title. End must have closed the one before.
func (s *Scanner) Begin(title string, line int) { s.open = &Matrix{Title: title, Line: line} }

// Open is the matrix at hand, nil where there is none.
func (s *Scanner) Open() *Matrix { return s.open }

// Header gives the matrix at hand its columns.
func (s *Scanner) Header(by string, cols []int) {
	s.open.By, s.open.Cols = by, cols
	s.rows, s.cols = map[int]bool{}, make(map[int]bool, len(cols))
	for _, c := range cols {
		s.cols[c] = true
	}
}

// Row takes the words of a line as a row of the matrix at hand, and reports whether they are one.
func (s *Scanner) Row(line int, words []string) bool {
	m := s.open
	device, values, ok := row(words, len(m.Cols))
	if !ok {
		return false
	}
	switch {
	case s.rows[device]:
		s.Warnf(line, "row %d of %q comes twice; kept the first", device, m.Title)
		return true
	case s.Square && !s.cols[device]:
		s.Warnf(line, "row %d of %q has no column of its own; left out", device, m.Title)
		return true
	case len(values) != len(m.Cols):
		s.Warnf(line, "row %d of %q has %d values for %d columns; used what is there", device, m.Title, len(values),
			len(m.Cols))
	}
	s.rows[device] = true
	m.Rows = append(m.Rows, Row{Device: device, Line: line, Values: values})
	return true
}

// End closes the matrix at hand and returns it, nil where there is none with a row.
func (s *Scanner) End() *Matrix {
	m := s.open
	s.open = nil
	if m == nil || len(m.Rows) > 0 {
		return m
	}
	if m.By == "" { // one of several with the same title may have been announced in vain
		s.Warnf(m.Line, "%q has no rows; the text may be cut", m.Title)
	}
	return nil
}
