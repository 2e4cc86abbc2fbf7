package web

import (
	"net/http"
	"slices"
	"strings"

	"busbar.dev/ask"
	"busbar.dev/query"
)

// Index is the answer to GET /api/: what can be asked.
type Index struct {
	Commands []IndexCommand `json:"commands"`
	Routes   []IndexRoute   `json:"routes"` // everything below /api/
}

// IndexCommand is a command that GET PATH answers with its JSON document.
type IndexCommand struct {
	Path       string       `json:"path"`
	Command    string       `json:"command"` // that prints the same
	Forms      []string     `json:"o"`       // values of the parameter o that give something else than JSON: svg
	Parameters []IndexParam `json:"parameters"`
}

// IndexParam is a parameter of an address.
type IndexParam struct {
	Name     string   `json:"name"`
	Also     []string `json:"also,omitempty"` // other names of it
	Help     string   `json:"help"`
	Value    string   `json:"value"` // what it takes: SIZE, NUMBER; 1 is a flag
	Default  string   `json:"default,omitempty"`
	Values   []string `json:"values,omitempty"` // it takes; none is any
	Repeated bool     `json:"repeated,omitempty"`
	Upload   bool     `json:"upload,omitempty"` // it may name an upload: @ and 32 digits, as POST /api/files gives it
}

// IndexRoute is an address, how it is asked, and the role that a token needs.
type IndexRoute struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Role   string `json:"role"`
}

// index answers GET /api/.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	d := Index{Commands: []IndexCommand{}, Routes: []IndexRoute{}}
	for _, q := range append(questions(), ask.Audit, ask.Path) {
		d.Commands = append(d.Commands, newIndexCommand(q))
	}
	for _, rt := range s.routes {
		if strings.HasPrefix(rt.Path, "/api/") {
			d.Routes = append(d.Routes, IndexRoute{rt.Method, strings.TrimSuffix(rt.Path, "{$}"), rt.Role.String()})
		}
	}
	Reply(w, d)
}

// questions are those that the page asks, each under an address of its own.
func questions() []*ask.Question {
	return slices.DeleteFunc(slices.Clone(ask.Questions), func(q *ask.Question) bool { return q.Route == "" })
}

// valueOf is what a parameter takes.
func valueOf(q *ask.Question, p *query.Param) string {
	switch {
	case p.Placeholder != "":
		return p.Placeholder
	case p.IsFlag(q.New()):
		return "1"
	case p.IsNumber(q.New()):
		return "NUMBER"
	}
	return strings.ToUpper(p.Name)
}

// newIndexCommand is a question as the index lists it.
func newIndexCommand(q *ask.Question) IndexCommand {
	c := IndexCommand{
		Path: "/api/" + q.Route, Command: "busbar " + q.Words(), Forms: formNames(pageForms(q)), Parameters: []IndexParam{},
	}
	if q == ask.Audit {
		c.Path += "?audit=1"
	}
	params := q.Params()
	for i := range params {
		p := &params[i]
		if p.Page == "" {
			continue
		}
		c.Parameters = append(c.Parameters, IndexParam{
			Name: p.Page, Also: otherNames(params, p), Help: p.Help, Value: valueOf(q, p), Default: p.Default,
			Values:   slices.DeleteFunc(slices.Clone(p.Enum), func(v string) bool { return v == "" }),
			Repeated: p.Repeated && p.Names != "cluster", Upload: p.Names != "",
		})
	}
	return c
}
