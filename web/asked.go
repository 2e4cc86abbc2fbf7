package web

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asked is a question with its words.
type asked struct {
	question
	args    []string // for the program
	shown   []string // as a person would type it; an upload is a file's name
	folders []string // of uploads that it names
	mime    string   // of what comes
	here    bool     // about this machine

	take  func(*given) // makes an answer of what a run that went well left behind
	after func()       // is called when nothing of it is left running
}

// Bounds of what may be said.
const (
	maxWord   = 400
	maxNodes  = 20000
	maxRepeat = 64
)

// read turns parameters into the words of a command. Every value stands in one word
// with its flag (--flag=value), so that none is taken for another flag.
func (s *Server) read(q question, given url.Values) (*asked, error) {
	a := &asked{question: q, mime: "application/json; charset=utf-8", here: q.fresh}
	a.args, a.shown = slices.Clone(q.command), append([]string{"busbar"}, q.command...)
	rest := map[string]bool{}
	for k := range given {
		rest[k] = true
	}
	for _, p := range q.params {
		values := given[p.name]
		delete(rest, p.name)
		if p.kind != repeat && p.kind != uploads && len(values) > 1 || len(values) > maxRepeat {
			return nil, fmt.Errorf("%s is given %d times", p.name, len(values))
		}
		for _, v := range values {
			if v == "" {
				continue
			}
			if err := s.add(a, p, v); err != nil {
				return nil, err
			}
		}
	}
	form := given.Get("o")
	delete(rest, "o")
	if err := a.form(form); err != nil {
		return nil, err
	}
	for k := range rest {
		return nil, fmt.Errorf("%.40q is nothing that %s can be asked; see busbar %s --help", k, q.name, strings.Join(q.command, " "))
	}
	return a, nil
}

// form sets what comes: JSON, or one of the question's pictures.
func (a *asked) form(name string) error {
	if name == "" || name == "json" {
		a.args, a.shown = append(a.args, "--json"), append(a.shown, "--json")
		return nil
	}
	p, ok := a.pictures[name]
	if !ok {
		return fmt.Errorf("o=%.40q: expected json or one of %v", name, known(a.pictures))
	}
	a.mime = p.mime
	a.args, a.shown = append(a.args, "--output="+p.word), append(a.shown, "-o", p.word)
	return nil
}

func known(m map[string]picture) []string {
	list := []string{}
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

var plainNumber = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`)

// add puts a parameter's value into the words.
func (s *Server) add(a *asked, p param, v string) error {
	if len(v) > maxWord || !utf8.ValidString(v) || strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%s=%.40q: expected at most %d printable characters", p.name, v, maxWord)
	}
	said := v
	switch p.kind {
	case number:
		if !plainNumber.MatchString(v) {
			return fmt.Errorf("%s=%.40q: expected a number", p.name, v)
		}
	case yes:
		if v != "1" {
			return fmt.Errorf("%s=%.40q: expected 1, or nothing", p.name, v)
		}
		a.args, a.shown = append(a.args, "--"+p.flag), append(a.shown, "--"+p.flag)
		return nil
	case cluster:
		a.here = false
		if err := counted(p.name, v); err != nil {
			return err
		}
	}
	if strings.HasPrefix(v, "@") {
		if p.kind != cluster && p.kind != model && p.kind != upload && p.kind != uploads {
			return fmt.Errorf("%s=%.40q: expected no upload here", p.name, v)
		}
		path, name, folder, err := s.shelf.find(v)
		if err != nil {
			return err
		}
		a.folders = append(a.folders, folder)
		v, said = path, name
	} else if p.kind == upload || p.kind == uploads {
		return fmt.Errorf("%s=%.40q: expected an upload, as POST /api/files gives it", p.name, v)
	}
	switch {
	case p.flag == "" && (strings.HasPrefix(v, "-") || v == ""):
		return fmt.Errorf("%s=%.40q: expected a name", p.name, v)
	case p.flag == "":
		a.args, a.shown = append(a.args, v), append(a.shown, said)
	case p.kind == cluster:
		a.args, a.shown = append(a.args, "--"+p.flag+"="+v), append(a.shown, "-c", said)
	case p.kind == model:
		a.args, a.shown = append(a.args, "--"+p.flag+"="+v), append(a.shown, "-m", said)
	default:
		a.args, a.shown = append(a.args, "--"+p.flag+"="+v), append(a.shown, "--"+p.flag, said)
	}
	return nil
}

// counted bounds the nodes of a cluster's word before anything is made of it.
func counted(name, v string) error {
	i := strings.LastIndexByte(v, ':')
	if i < 0 {
		return nil
	}
	n, err := strconv.Atoi(v[i+1:])
	if err != nil || n < 1 || n > maxNodes {
		return fmt.Errorf("%s=%.40q: expected a number of nodes from 1 to %d after the colon", name, v, maxNodes)
	}
	return nil
}

// line is the command as a person can paste it into a shell.
func (a *asked) line() string {
	var list []string
	for _, w := range a.shown {
		list = append(list, quoted(w))
	}
	return strings.Join(list, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as shells read it back.
func quoted(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// key is what equal questions have in common.
func (a *asked) key() string { return cmp.Or(strings.Join(a.args, "\x00"), "-") }
