package main

import (
	"errors"
	"fmt"

	"busbar.dev/engine/ranks"
	"busbar.dev/query"
)

// process is how this process is connected to ranks that it starts.
func (e *env) process(o common) ranks.Process {
	e.stdout.passed = true
	p := ranks.Process{Args: e.args, Stdout: passed{e.stdout}, Stderr: e.stderr, Messages: terminalFile(e.stderr)}
	if !e.stdout.alone() {
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

// onRanks is a job's ranks as who measures; keep takes what is left in the process that the user started.
func onRanks[D any](e *env, o common, job ranks.Job, ready func() error, keep func([]byte) error,
	answer func(*env, D, func([]byte) error) error,
) query.Ranks[D] {
	return query.Ranks[D]{
		Job: job, Process: e.process(o), Ready: ready, Keep: keep,
		Answer: func(d D, keep func([]byte) error) error { return answer(e, d, keep) },
	}
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
