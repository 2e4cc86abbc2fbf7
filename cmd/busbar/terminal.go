package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

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

// writeFile writes a file whole or not at all.
func writeFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s: a folder; give a file name in it", name)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".busbar-*")
	if err != nil {
		// The error names the temporary file; people know only their own.
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return cannotError{fmt.Errorf("%s: cannot write there: %w", name, err)}
	}
	defer os.Remove(tmp.Name())
	if err := write(tmp); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return cannotError{err}
	}
	if err := tmp.Close(); err != nil {
		return cannotError{err}
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return cannotError{err}
	}
	return nil
}
