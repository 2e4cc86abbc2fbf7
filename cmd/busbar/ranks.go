package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"busbar.dev/engine/ranks"
)

// onRanks does a task on the ranks of a job, as one of them or as the process that starts them.
func (e *env) onRanks(o common, j *ranks.Job, t ranks.Task) error {
	p := ranks.Process{Args: e.args, Stdout: e.stdout, Stderr: e.stderr, Messages: terminalFile(e.stderr)}
	if e.terminal != nil {
		p.Screen = terminalFile(e.terminal)
	}
	say := func(text string) { fmt.Fprintln(e.stderr, "busbar:", text) }
	if !o.Quiet {
		p.Note = say
	}
	if o.Verbose {
		p.Crash = say
	}
	err := j.Run(e.ctx, p, t)
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
