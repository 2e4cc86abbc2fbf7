package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
)

// TextOptions say how a report is printed. The zero value is plain text, 100 wide.
type TextOptions struct {
	Color bool // SGR codes
	Width int  // of the terminal; 100 when zero
	// Verbose shows more: what a time is made of, whole lists, which ranks form the parallel groups of a step.
	Verbose bool
}

func (o TextOptions) width() int {
	if o.Width <= 0 {
		return 100
	}
	return max(o.Width, 40)
}

// Page is what a report is written on: its text, and its tables for writers that take tables.
type Page struct {
	TextOptions
	style
	width  int // that paragraphs are wrapped to
	text   strings.Builder
	tables []*texttab.Table
	err    error // why there is no report
}

// Print writes the report on a document, free of what a name in a file could send to a terminal. A writer that takes
// tables gets those of the report. Lines that a terminal has no room for are wrapped between words. The report is made
// without colour first: an escape in what comes is the input's own, and nobody can tell it from ours once there is
// colour, so such a text stays without.
func Print[D any](w io.Writer, o TextOptions, report func(*Page, D), document D) error {
	p := &Page{TextOptions: o, width: o.width()}
	report(p, document)
	text := p.text.String()
	if o.Color && !strings.ContainsRune(text, '\x1b') {
		p = &Page{TextOptions: o, width: o.width(), style: style{on: true}}
		report(p, document)
		text = string(texttab.Harmless([]byte(p.text.String())))
	} else {
		text = texttab.Clean(text)
	}
	for _, t := range p.tables {
		if _, err := t.Send(w); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, texttab.WrapLong(text, o.Width))
	return cmp.Or(p.err, err)
}

// printf adds to the text. A quantity that can be written short is, as in tables.
func (p *Page) printf(format string, args ...any) {
	for i, value := range args {
		if v, ok := value.(interface{ Short() string }); ok {
			args[i] = v.Short()
		}
	}
	fmt.Fprintf(&p.text, format, args...)
}

// lines prints texts on lines of their own, but for empty ones.
func (p *Page) lines(texts ...string) { p.hanging("", "", nonEmpty(texts...)) }

// para prints a wrapped text; lines after the first are indented by two more.
func (p *Page) para(indent, text string) {
	p.hanging(indent, indent+"  ", texttab.Wrap(text, p.width-len(indent)-2))
}

// wrapped prints a text in lines, the first behind something else than the others.
func (p *Page) wrapped(first, rest, text string) {
	p.hanging(first, rest, texttab.Wrap(text, p.width-texttab.Width(first)))
}

// list prints pieces with a dot between them, wrapped between pieces.
func (p *Page) list(first, rest string, pieces []string) {
	p.hanging(first, rest, texttab.Flow(pieces, p.dim(" · "), p.width-texttab.Width(first)))
}

// hanging prints lines, the first behind something else than the others.
func (p *Page) hanging(first, rest string, lines []string) {
	for i, l := range lines {
		if i > 0 {
			first = rest
		}
		p.printf("%s%s\n", first, l)
	}
}

func (p *Page) heading(s string) { p.printf("\n%s\n", p.bold(s)) }

// marked prints the first of a list below its heading, each text behind a mark.
func (p *Page) marked(head, mark string, list []string, most int) {
	if len(list) > 0 {
		p.heading(head)
	}
	for _, text := range list[:min(len(list), most)] {
		p.wrapped("  "+mark+" ", "    ", text)
	}
	if n := len(list) - most; n > 0 {
		p.printf("  … and %d more\n", n)
	}
}

// notes prints what else is to know.
func (p *Page) notes(list []string) {
	for _, text := range list {
		p.printf("note: %s\n", text)
	}
}

// columns is a table below a heading.
func (p *Page) columns(heads ...string) *texttab.Table {
	t := texttab.New(heads...)
	t.Indent = "  "
	return t
}

// table prints a table.
func (p *Page) table(t *texttab.Table) {
	p.send(t)
	p.lay(t)
}

// first prints the first rows of a table, and how many more there are. A single one more is printed too, since to count
// it takes as much room.
func (p *Page) first(t *texttab.Table, most int, tail string) {
	if t.Len() <= most+1 {
		p.table(t)
		return
	}
	t.Most = most
	p.table(t)
	p.printf("%s%s\n", t.Indent, p.dim(fmt.Sprintf("… and %d more%s", t.Len()-most, tail)))
}

// below prints a table that has rows, behind an empty line.
func (p *Page) below(t *texttab.Table) {
	if t.Len() > 0 {
		p.printf("\n")
		p.table(t)
	}
}

// send keeps a table for writers that take tables alone.
func (p *Page) send(t *texttab.Table) { p.tables = append(p.tables, t) }

// lay prints a table that writers of tables have in another form.
func (p *Page) lay(t *texttab.Table) {
	t.Style = p.bold
	p.text.WriteString(t.Fit(p.Width))
}

// style colours text for a terminal, or does not.
type style struct{ on bool }

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
