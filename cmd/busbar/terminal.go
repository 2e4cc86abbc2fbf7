package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"busbar/report"
)

// progress shows a line on a terminal while something takes its time; the
// function it returns takes it away again.
func (e *env) progress(o common, text string) func() {
	if o.Quiet || !isTerminal(e.stderr) {
		return func() {}
	}
	fmt.Fprintf(e.stderr, "\r\x1b[K%s …", text)
	return func() { fmt.Fprint(e.stderr, "\r\x1b[K") }
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// text is how text goes to w: colour and width only on a terminal.
func (e *env) text(w io.Writer) report.TextOptions {
	o := report.TextOptions{}
	if w == e.stdout && e.terminal != nil && term.IsTerminal(int(e.terminal.Fd())) {
		o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(e.terminal.Fd())); err == nil {
			o.Width = width
		}
	}
	return o
}
