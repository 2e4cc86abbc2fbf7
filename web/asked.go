package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"busbar.dev/ask"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/lazyre"
	"busbar.dev/query"
)

// asked is a question with what was said.
type asked struct {
	*ask.Question
	ask     any // of package query
	files   uploads
	here    bool   // about this machine
	line    string // the command that asks the same, for a shell
	mime    string // of what comes
	drawing string // what else than the line says what comes
	// write makes the body from the answer, of at most so many bytes.
	write func(ctx context.Context, answer ask.Answer, most int) ([]byte, error)
}

// Bounds of what may be said.
const (
	maxWord   = 400
	maxRepeat = 64
)

// read turns the parameters of an address into a question.
func (s *Server) read(q *ask.Question, given url.Values) (*asked, error) {
	a := &asked{Question: q, ask: q.New(), files: uploads{}, here: q.Here}
	rest := map[string]bool{}
	for k := range given {
		rest[k] = true
	}
	params := q.Params()
	for i := range params {
		p := &params[i]
		if p.Page == "" {
			continue
		}
		values := given[p.Page]
		delete(rest, p.Page)
		for _, other := range otherNames(params, p) {
			values = append(slices.Clone(values), given[other]...)
			delete(rest, other)
		}
		several := p.Repeated && p.Names != "cluster"
		if !several && len(values) > 1 || len(values) > maxRepeat {
			return nil, failure.In(p.Name, fmt.Errorf("%s is given %d times", p.Page, len(values)))
		}
		for _, v := range values {
			if v == "" {
				continue
			}
			if err := s.add(a, p, v); err != nil {
				return nil, failure.In(p.Name, err)
			}
		}
	}
	form := given.Get("o")
	delete(rest, "o")
	if rest["json"] {
		return nil, failure.In("json",
			fmt.Errorf("json is a flag of the command; here JSON is what comes, unless o asks for something else"))
	}
	for k := range rest {
		return nil, failure.In(fmt.Sprintf("%.40s", k), fmt.Errorf("%.40q is nothing that %s can be asked; GET /api/ lists "+
			"what can, as does busbar %s --help", k, q.Route, q.Words()))
	}
	return a, a.as(form)
}

// fed refuses a question about files that none is given to.
func (a *asked) fed() error {
	params := a.Params()
	for i := range params {
		p := &params[i]
		if p.Argument && (p.Names == "file" || p.Names == "files") && len(a.files) == 0 {
			return failure.In(p.Name,
				fmt.Errorf("no %s given; expected %s=@ID, an upload as POST /api/files gives it", p.Page, p.Page))
		}
	}
	return nil
}

// otherNames are those of a parameter that no parameter has for its own: its long flag's, and cluster for what names
// one.
func otherNames(params []query.Param, p *query.Param) (list []string) {
	for _, name := range append([]string{p.Name, p.Short, p.Names}, p.Also...) {
		taken := func(q query.Param) bool { return q.Page == name || q.Name == name && q.Page != p.Page }
		if name != "" && !slices.Contains(list, name) && !slices.ContainsFunc(params, taken) {
			list = append(list, name)
		}
	}
	return list
}

// as sets what comes: JSON, or one of the question's pictures.
func (a *asked) as(form string) error {
	if form == "" || form == "json" {
		a.line, a.mime = a.command("--json"), jsonType
		a.write = func(_ context.Context, answer ask.Answer, most int) ([]byte, error) {
			return encoded(answer.Document, most)
		}
		return nil
	}
	known := pageForms(a.Question)
	i := slices.IndexFunc(known, func(f ask.Form) bool { return f.Name == form })
	if i < 0 {
		return failure.In("o", fmt.Errorf("o=%.40q: expected %s", form, strings.Join(append([]string{"json"},
			formNames(known)...), ", ")))
	}
	flag := form
	if a.Also {
		flag += "=-"
	}
	a.line, a.mime = a.command("-o", flag), known[i].Mime
	a.write = func(ctx context.Context, answer ask.Answer, most int) ([]byte, error) {
		out := &bounded{most: most}
		err := known[i].Write(ctx, out, answer)
		return out.Bytes(), err
	}
	return nil
}

// command is the line that asks the same in a shell.
func (a *asked) command(more ...string) string {
	return query.ShellLine(append(query.CommandLine(strings.Fields(a.Words()), a.ask), more...))
}

// pageForms are the forms of a question's document that the page has a use for, by their names.
func pageForms(q *ask.Question) []ask.Form {
	list := slices.DeleteFunc(slices.Clone(q.Forms), func(f ask.Form) bool { return f.Mime == "" })
	slices.SortFunc(list, func(a, b ask.Form) int { return strings.Compare(a.Name, b.Name) })
	return list
}

func formNames(list []ask.Form) []string {
	names := []string{}
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

var plainNumber = lazyre.New(`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`)

// add gives the question a parameter's value.
func (s *Server) add(a *asked, p *query.Param, v string) error {
	if len(v) > maxWord || !utf8.ValidString(v) ||
		strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s=%.40q: expected at most %d printable characters", p.Page, v, maxWord)
	}
	switch {
	case p.IsNumber(a.ask) && !plainNumber.MatchString(v):
		return fmt.Errorf("%s=%.40q: expected a number", p.Page, v)
	case p.IsFlag(a.ask) && v != "1":
		return fmt.Errorf("%s=%.40q: expected 1, or nothing", p.Page, v)
	case p.Names == "cluster":
		a.here = false
	}
	switch file := p.Names == "file" || p.Names == "files"; {
	case strings.HasPrefix(v, "@") && p.Names == "":
		return fmt.Errorf("%s=%.40q: expected no upload here", p.Page, v)
	case strings.HasPrefix(v, "@"):
		var err error
		if v, err = s.shelf.find(v, a.files); err != nil {
			return err
		}
	case file:
		return fmt.Errorf("%s=%.40q: expected an upload, as POST /api/files gives it", p.Page, v)
	case (p.Argument || p.Names != "") && strings.HasPrefix(v, "-"):
		return fmt.Errorf("%s=%.40q: expected a name", p.Page, v)
	}
	return p.Set(a.ask, v)
}

// key is what equal questions have in common.
func (a *asked) key() string {
	data, err := json.Marshal([]any{a.line, a.drawing, a.files, a.ask})
	if err != nil {
		return a.line
	}
	return string(data)
}
