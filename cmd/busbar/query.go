package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"busbar.dev/ask"
	"busbar.dev/cluster"
	"busbar.dev/input/live"
	"busbar.dev/internal/failure"
	"busbar.dev/query"
	"busbar.dev/report"
)

// query is what a question of a command may touch.
func (e *env) query(o common) query.Env {
	q := query.Env{Stdin: e.stdin, Progress: e.progressOf(o), Flags: true, Fleet: e.server}
	if runtime.GOOS == "linux" { // others have no /sys
		q.Machine = func(ctx context.Context) ([]*cluster.Fragment, error) { return live.Read(ctx, q.Progress) }
	}
	q.State = live.State
	q.Note = func(text string) { o.note(e, text) }
	if o.Verbose {
		q.Verbose = func(text string) { fmt.Fprintln(e.stderr, text) }
	}
	return q
}

// questionCmd is a command whose flags are those of a question.
type questionCmd struct {
	Question any `embed:""`

	asked *ask.Question
	common
}

// Run asks the question and prints the answer.
func (c *questionCmd) Run(e *env) error { return e.ask(c.asked, c.Question, c.common) }

// cluster reads what words describe.
func (e *env) cluster(o common, words ...string) (*cluster.Cluster, error) {
	return query.LoadCluster(e.ctx, e.query(o), words...)
}

// ask asks a question and prints the answer.
func (e *env) ask(q *ask.Question, question any, o common) error {
	return e.writeAnswer(q, question, o, nil)
}

// show prints a document as JSON or as text.
func show[D any](e *env, o common, document D, text func(*report.Page, D)) error {
	if o.JSON {
		return report.JSON(e.stdout, document)
	}
	return report.Print(e.stdout, e.text(e.stdout, o), text, document)
}

// shown prints what a question answers, or hands its error on.
func shown[D any](e *env, o common, text func(*report.Page, *D)) func(*D, error) error {
	return func(document *D, err error) error {
		if err != nil {
			return err
		}
		return wrong(document, show(e, o, document, text))
	}
}

// wrong is what a command ends with whose document says that something is wrong, or that nothing could be examined.
func wrong(document any, err error) error {
	if w, ok := document.(interface{ Wrong() bool }); ok && err == nil && w.Wrong() {
		return errWrong
	}
	if u, ok := document.(interface{ Unexamined() bool }); ok && err == nil && u.Unexamined() {
		return failure.Cannot(errors.New("no verdict: nothing that was given could be examined"))
	}
	return err
}

// answer asks one of the questions of a command. A flag that is another's, and would do nothing, is refused; those that
// chose the question are known.
func (e *env) answer(q *ask.Question, question any, o common, output []string, known ...string) error {
	known = append(known, "output")
	for _, p := range slices.Concat(query.Params(o), q.Params()) {
		known = append(known, p.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(e.given)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--%s has no effect on busbar %s; leave it out", name, q.Words())
		}
	}
	return e.writeAnswer(q, question, o, output)
}

// writeAnswer asks a question and writes its document in every form that -o names.
func (e *env) writeAnswer(q *ask.Question, question any, o common, output []string) error {
	a := &ask.Answer{Question: question, Env: e.query(o)}
	f := e.forms(q, a, o)
	targets, err := f.several(e, output, o.JSON) // before the work, not after it
	if err != nil {
		return err
	}
	if a.Document, err = q.Run(e.ctx, question, a.Env); err != nil {
		return err
	}
	return wrong(a.Document, f.writeAll(e, targets, o.JSON))
}

// forms are how the answer to a question can be written.
func (e *env) forms(q *ask.Question, a *ask.Answer, o common) forms {
	f := forms{also: q.Also, list: []form{
		{"text", []string{".txt"}, func(w io.Writer) error { return q.Text(w, a.Document, e.text(w, o)) }},
	}}
	for _, x := range q.Forms {
		f.list = append(f.list, form{x.Name, x.Endings, func(w io.Writer) error { return x.Write(e.ctx, w, *a) }})
	}
	f.list = append(f.list, form{"json", []string{".json"}, func(w io.Writer) error { return report.JSON(w, a.Document) }})
	return f
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
