package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/input/live"
	"busbar.dev/query"
)

// query is what a question of a command may touch.
func (e *env) query(o common) query.Env {
	q := query.Env{Stdin: e.stdin, Progress: e.progressOf(o), Flags: true}
	if runtime.GOOS == "linux" { // others have no /sys
		q.Machine = func(ctx context.Context) ([]*cluster.Fragment, error) { return live.Read(ctx, q.Progress) }
	}
	q.State = live.State
	if !o.Quiet {
		q.Note = func(text string) { fmt.Fprintln(e.stderr, "note:", text) }
	}
	if o.Verbose {
		q.Verbose = func(text string) { fmt.Fprintln(e.stderr, text) }
	}
	return q
}

// cluster reads what words describe.
func (e *env) cluster(o common, words ...string) (*cluster.Cluster, error) {
	return query.LoadCluster(e.ctx, e.query(o), words...)
}

// wrong is what a command ends with whose document says that something is wrong.
func wrong(document interface{ Wrong() bool }, err error) error {
	if err == nil && document.Wrong() {
		return errWrong
	}
	return err
}

// patience is how long something may take before a line says what it is.
const patience = time.Second

// progressOf shows on a terminal what takes more than a second, and how far it is, at most four times a second.
func (e *env) progressOf(o common) func(text string) {
	if o.Quiet || !isTerminal(e.stderr) {
		return nil
	}
	p := &progressLine{show: func(text string) func() { return e.progress(o, text) }}
	return p.set
}

// progressLine is a line on a terminal that comes late and goes when all is done.
type progressLine struct {
	show  func(text string) (clear func())
	mu    sync.Mutex
	text  string
	timer *time.Timer
	last  time.Time // it was shown
	clear func()
}

// set changes the line; nothing ends it.
func (p *progressLine) set(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	switch {
	case text == "" && p.timer != nil:
		p.timer.Stop()
		p.timer = nil
		if p.clear != nil {
			p.clear()
			p.clear = nil
		}
	case text != "" && p.timer == nil:
		p.timer = time.AfterFunc(patience, p.due)
	case p.clear != nil && time.Since(p.last) >= patience/4:
		p.draw()
	}
}

// due is called when patience is over.
func (p *progressLine) due() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil && p.text != "" {
		p.draw()
	}
}

func (p *progressLine) draw() { p.clear, p.last = p.show(p.text), time.Now() }
