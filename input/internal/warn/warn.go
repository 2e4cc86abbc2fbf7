// Package warn keeps the warnings of a reader within what a person would read.
package warn

import (
	"fmt"

	"busbar.dev/cluster"
)

// Bounds of the warnings about one part of a text, and about a whole one.
const (
	mostOfPart = 20
	mostOfText = 500
)

// List is the warnings about one part of a text, such as a table. The zero value is ready.
type List struct {
	all  []warning
	more int
}

type warning struct {
	line int
	text string
}

// Addf adds a warning about a line; those after the first twenty are counted.
func (l *List) Addf(line int, format string, args ...any) {
	if len(l.all) >= mostOfPart {
		l.more++
		return
	}
	l.all = append(l.all, warning{line, fmt.Sprintf(format, args...)})
}

// AddTo hands the warnings to a fragment and returns how many more there were.
func (l *List) AddTo(f *cluster.Fragment, where string) (more int) {
	for _, w := range l.all {
		f.Warnf(w.line, where, "%s", w.text)
	}
	return l.more
}

// Limit cuts the warnings of a whole text; more than a few hundred say nothing new.
func Limit(f *cluster.Fragment) {
	if n := len(f.Warnings); n > mostOfText {
		f.Warnings = f.Warnings[:mostOfText:mostOfText]
		f.Warnf(0, "", "%d more warnings", n-mostOfText)
	}
}

// Found adds what is wrong with the machine itself, which is a finding of map and doctor: its id, its severity and what
// to do.
func Found(f *cluster.Fragment, line int, where, id, severity, fix, format string, args ...any) {
	f.Warnf(line, where, format, args...)
	w := &f.Warnings[len(f.Warnings)-1]
	w.ID, w.Severity, w.Fix = id, severity, fix
}
