// Package ask is the registry of questions: of each its type, how it is asked, and how its document is written. The
// command line with its completion and manual pages, the page's routes and the tests that walk all questions are made
// from it.
//
// The package is not promised: it may change with the program.
package ask

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"busbar.dev/query"
	"busbar.dev/report"
)

// Question is one of package query's as people ask it.
type Question struct {
	// Name is the words of the command that asks it.
	Name string
	// Help, About and Examples are what --help prints. A question that has them is a command of its own, which stands
	// behind the command After; one without is asked by a command that does more, and says so itself.
	Help, About, After string
	Examples           []string
	// Route is its address on the page, below /api/; "" where the page does not ask it.
	Route  string
	Within time.Duration // the page waits for the answer
	Heavy  bool          // takes all cores for long
	Here   bool          // is about this machine where it names no cluster
	// Forms are how its document is written beside text and JSON; Also says that they are files besides the text.
	Forms []Form
	Also  bool

	Typed
}

// Typed is what follows from the types of a question and its document.
type Typed struct {
	New    func() any // a new question
	Params func() []query.Param
	Run    func(ctx context.Context, question any, env query.Env) (document any, err error)
	Text   func(w io.Writer, document any, o report.TextOptions) error
}

// Form is a way to write a document.
type Form struct {
	Name    string
	Endings []string // of names of files that are written so
	Mime    string   // on the page; "" where the page has no use for it
	Write   func(ctx context.Context, w io.Writer, a Answer) error
}

// Answer is a question with its document.
type Answer struct {
	Question, Document any
	Env                query.Env // in which it was asked
}

// Detail is what --help prints below the flags' heading.
func (q *Question) Detail() string {
	return q.About + "\n\nExamples:\n  " + strings.Join(q.Examples, "\n  ")
}

// Named is the question that a command's words ask.
func Named(name string) *Question {
	for _, q := range Questions {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// typed is a question of package query with the text of its document.
func typed[Q interface {
	Run(ctx context.Context, env query.Env) (*D, error)
}, D any](text func(*report.Page, *D)) Typed {
	return Typed{
		New:    func() any { return new(Q) },
		Params: sync.OnceValue(func() []query.Param { return query.Params(*new(Q)) }), // every command starts with the list
		Run: func(ctx context.Context, question any, env query.Env) (any, error) {
			d, err := (*question.(*Q)).Run(ctx, env)
			if d == nil {
				return nil, err
			}
			return d, err
		},
		Text: func(w io.Writer, d any, o report.TextOptions) error { return report.Print(w, o, text, d.(*D)) },
	}
}

// written is a form that is made from the document alone.
func written[D any](name, ending, mime string, write func(io.Writer, *D) error) Form {
	return Form{name, strings.Fields(ending), mime, func(_ context.Context, w io.Writer, a Answer) error {
		return write(w, a.Document.(*D))
	}}
}

// drawn is a document's picture.
func drawn[D any](draw func(*D) (*report.Picture, error)) Form {
	return written("svg", ".svg", SVG, func(w io.Writer, d *D) error {
		p, err := draw(d)
		if err != nil {
			return err
		}
		return p.SVG(w)
	})
}

// What the page says that an answer is.
const (
	SVG  = "image/svg+xml"
	Text = "text/plain; charset=utf-8"
	JSON = "application/json"
)
