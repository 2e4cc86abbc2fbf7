// Package ask is the registry of questions: of each its type, how the page asks it, and how its document is written.
// The page's routes and the tests that walk all questions are made from it; commands find their question here.
//
// The package is not promised: it may change with the program.
package ask

import (
	"cmp"
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
	// Name is its own; Command are the words of the command that asks it, where they are others.
	Name, Command string
	// Route is its address on the page, below /api/; "" where the page does not ask it.
	Route  string
	Within time.Duration // the page waits for the answer
	Heavy  bool          // takes all cores for long
	Here   bool          // is about this machine where it names no cluster
	// Group, Help and About make it a command of its own, whose flags are the question's: where it stands among the
	// commands, what it does in a line, and in full with its examples last. Without a group it is not listed among them.
	Group, Help, About string
	// Forms are how its document is written beside text and JSON; Also says that they are files besides the text.
	Forms []Form
	Also  bool

	Typed
}

// Typed is what follows from the types of a question and its document.
type Typed struct {
	New    func() any // a new question
	Doc    any        // a pointer of the type of its document
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

// Words are those of the command that asks it.
func (q *Question) Words() string { return cmp.Or(q.Command, q.Name) }

// Named is the question of a name.
func Named(name string) *Question {
	for _, q := range Questions {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// asking is a question of package query.
type asking[D any] interface {
	Run(ctx context.Context, env query.Env) (*D, error)
}

// typed is a question of package query with the text of its document.
func typed[Q asking[D], D any](text func(*report.Page, *D)) Typed { return beginning(*new(Q), text) }

// beginning is a question of which a part is there from the start.
func beginning[Q asking[D], D any](part Q, text func(*report.Page, *D)) Typed {
	return Typed{
		Doc: (*D)(nil),
		New: func() any {
			q := part
			return &q
		},
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
