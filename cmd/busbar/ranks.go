package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"busbar.dev/engine/ranks"
	"busbar.dev/query"
)

// process is how this process is connected to ranks that it starts.
func (e *env) process(o common) ranks.Process {
	e.stdout.passed = true
	p := ranks.Process{Args: e.args, Stdout: passed{e.stdout}, Stderr: e.stderr, Messages: terminalFile(e.stderr)}
	if e.terminal != nil && !e.stdout.alone() {
		p.Screen = terminalFile(e.terminal)
	}
	say := func(text string) { fmt.Fprintln(e.stderr, "busbar:", text) }
	if !o.Quiet {
		p.Note = say
	}
	if o.Verbose {
		p.Crash = say
	}
	return p
}

// measuring is what a question may touch that measures: its progress shows at once.
func (e *env) measuring(o common) query.Env {
	q := e.query(o)
	q.Version = buildVersion()
	clear := func() {}
	q.Progress = func(text string) {
		clear()
		if clear = func() {}; text != "" {
			clear = e.progress(o, text)
		}
	}
	return q
}

// fromRanks is the end of a command whose ranks found something wrong.
func fromRanks(err error) error {
	if errors.Is(err, ranks.ErrWrong) {
		return errWrong
	}
	return err
}

// terminalFile is the terminal that a stream writes to, nil where it is none.
func terminalFile(w io.Writer) *os.File {
	if !isTerminal(w) {
		return nil
	}
	if m, ok := w.(messages); ok { // a rank shows its progress
		w = m.w
	}
	return w.(*os.File)
}
