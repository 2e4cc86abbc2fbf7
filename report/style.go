package report

import (
	"io"
	"strings"

	"busbar.dev/internal/texttab"
)

// write prints a text that is made as a whole. A writer that takes tables gets those of the text.
func write(w io.Writer, o TextOptions, render func(style) string) error {
	var tables []*texttab.Table
	text := printed(o, func(s style) string {
		tables, s.tables = nil, &tables
		return render(s)
	})
	for _, t := range tables {
		if _, err := t.Send(w); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// printed is a text for o, free of what a name in a file could send to a
// terminal. render is asked without colour first: an escape in what comes is the
// input's own, and nobody can tell it from ours once there is colour, so such a
// text stays without.
func printed(o TextOptions, render func(style) string) string {
	text := render(style{})
	if o.Color && !strings.ContainsRune(text, '\x1b') {
		return keepSGR(render(style{on: true}))
	}
	return texttab.Clean(text)
}

// keepSGR cleans a text whose only escapes are ours.
func keepSGR(s string) string {
	parts := strings.Split(s, "\x1b")
	for i := range parts {
		parts[i] = texttab.Clean(parts[i])
	}
	return strings.Join(parts, "\x1b")
}

// style colours text for a terminal, or does not.
type style struct {
	on     bool
	tables *[]*texttab.Table // that were laid out; nil where nobody asks
}

// fit lays a table out for a terminal with so many columns; 0 is any number.
func (s style) fit(t *texttab.Table, columns int) string {
	t.Style = s.bold
	if s.tables != nil {
		*s.tables = append(*s.tables, t)
	}
	return t.Fit(columns)
}

func (s style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.sgr("1", t) }
func (s style) dim(t string) string    { return s.sgr("2", t) }
func (s style) red(t string) string    { return s.sgr("31", t) }
func (s style) green(t string) string  { return s.sgr("32", t) }
func (s style) yellow(t string) string { return s.sgr("33", t) }
func (s style) cyan(t string) string   { return s.sgr("36", t) }
