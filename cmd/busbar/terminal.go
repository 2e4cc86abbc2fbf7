package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"busbar.dev/internal/texttab"
	"busbar.dev/report"
)

// progress shows a line on a terminal while something takes its time; the
// function it returns takes it away again.
func (e *env) progress(o common, text string) func() {
	if o.Quiet || !isTerminal(e.stderr) {
		return func() {}
	}
	w := e.stderr
	if m, ok := w.(messages); ok {
		w = m.w
	}
	fmt.Fprintf(w, "\r\x1b[K%s …", texttab.Clean(text))
	return func() { fmt.Fprint(w, "\r\x1b[K") }
}

// messages is standard error for all that is not progress: names out of files and
// arguments appear there, and must not reach a terminal as commands to it.
type messages struct{ w io.Writer }

func (m messages) Write(p []byte) (int, error) {
	if _, err := io.WriteString(m.w, texttab.Clean(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func isTerminal(w io.Writer) bool {
	if m, ok := w.(messages); ok {
		w = m.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// text is how text goes to w: colour and width only on a terminal.
func (e *env) text(w io.Writer, c common) report.TextOptions {
	o := report.TextOptions{Verbose: c.Verbose}
	if w == e.stdout && e.terminal != nil && term.IsTerminal(int(e.terminal.Fd())) {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	if t, ok := w.(texttab.Terminal); ok {
		o.Width = t.Columns()
	}
	return o
}

// screen is the width of the terminal that standard output is, 0 where it is none: COLUMNS counts for text that people
// read, and not for the columns that programs read from a file.
func (e *env) screen() int {
	if e.terminal == nil || !term.IsTerminal(int(e.terminal.Fd())) {
		return 0
	}
	return e.stdout.Columns()
}

// note tells something beside the answer.
func (o common) note(e *env, texts ...string) {
	if o.Quiet {
		return
	}
	for _, t := range texts {
		fmt.Fprintln(e.stderr, "note:", t)
	}
}
