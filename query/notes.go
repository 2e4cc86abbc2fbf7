package query

import (
	"slices"
	"sync"
)

// Noted is what is worth knowing beside an answer, as part of a document.
type Noted struct {
	Notes []string `json:"notes,omitempty"` // worth knowing beside the answer: what was assumed, left out or not used
}

func (n *Noted) setNotes(list []string) { n.Notes = list }

// notes are those of a question while it is answered. Those of a question that another one asks are the other's too.
type notes struct {
	above *notes
	mu    sync.Mutex
	list  []string
}

func (n *notes) add(text string) {
	for ; n != nil; n = n.above {
		n.mu.Lock()
		if !slices.Contains(n.list, text) {
			n.list = append(n.list, text)
		}
		n.mu.Unlock()
	}
}

// begin begins the answer to a question. What it returns ends it: the document gets its notes, and the error the names of
// parameters that its reader knows.
func begin[D any](question any, env *Env, doc **D, err *error) (end func()) {
	env.question, env.notes = question, &notes{above: env.notes}
	return func() {
		if *doc != nil {
			if d, ok := any(*doc).(interface{ setNotes([]string) }); ok && len(env.notes.list) > 0 {
				d.setNotes(env.notes.list)
			}
		}
		*err = env.spelled(*err)
	}
}

// note tells something beside the answer.
func (e *Env) note(texts ...string) {
	for _, t := range texts {
		plain := t
		if e.question != nil {
			plain, _ = unflagged(t, Params(e.question))
		}
		e.notes.add(plain)
		switch {
		case e.Note == nil:
		case e.Flags:
			e.Note(t)
		default:
			e.Note(plain)
		}
	}
}
