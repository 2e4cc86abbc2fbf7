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
	w := terminalFile(e.stderr)
	if o.Quiet || w == nil {
		return func() {}
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

// terminalFile is the terminal that a stream writes to, nil where it is none.
func terminalFile(w io.Writer) *os.File {
	if m, ok := w.(messages); ok {
		w = m.w
	}
	if f, _ := w.(*os.File); f != nil && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

func isTerminal(w io.Writer) bool { return terminalFile(w) != nil }

// text is how text goes to w: colour and width only on a terminal.
func (e *env) text(w io.Writer, c common) report.TextOptions {
	o := report.TextOptions{Verbose: c.Verbose}
	if w == e.stdout && isTerminal(e.terminal) {
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
	if !isTerminal(e.terminal) {
		return 0
	}
	return e.stdout.Columns()
}

// note tells something beside the answer.
func (o common) note(e *env, text string) { o.say(e, "note: %s", text) }
