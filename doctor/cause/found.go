package cause

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/yamldoc"
)

// Found is one way in which evidence shows a cause. Of the ways in a cause's file the first whose condition holds
// counts.
type Found struct {
	When     *Condition
	Grade    Grade            // how the evidence shows it; None, Excludes: it does not, and later ways are not tried
	Severity finding.Severity // of the finding
	Quote    []*Atom          // whose lines are quoted
	Hosts    []*Atom          // observations whose hosts are where it is

	// Texts of the finding; braces hold atoms: {link-degraded.1}. What is missing is that of the way before, and then the
	// cause's own.
	Title, Why, Fix, Cost, Where string
	Because                      string // stands before Why
}

func parseFound(v *yamldoc.Value) (f Found, err error) {
	if v.Kind != yamldoc.Map {
		return f, errors.New("found: expected maps with when, how and quote")
	}
	texts := map[string]*string{
		"title": &f.Title, "cause": &f.Why, "because": &f.Because, "fix": &f.Fix, "cost": &f.Cost, "where": &f.Where,
	}
	atoms := map[string]*[]*Atom{"quote": &f.Quote, "hosts": &f.Hosts}
	how, level := "", "error"
	for i := range v.Items {
		x := &v.Items[i]
		text := x.Str()
		switch {
		case texts[x.Key] != nil:
			*texts[x.Key] = text
		case atoms[x.Key] != nil:
			*atoms[x.Key], err = ParseAtoms(text)
		case x.Key == "when":
			f.When, err = ParseCondition(text)
		case x.Key == "how":
			how = text
		case x.Key == "level":
			level = text
		default:
			err = fmt.Errorf("%q is no field of found; expected when, how, level, quote, hosts, title, cause, because, fix, "+
				"cost or where", x.Key)
		}
		if err != nil {
			return f, fmt.Errorf("line %d: %w", x.LineNum(), err)
		}
	}
	grade := slices.Index(gradeNames, how)
	if f.When == nil || grade < 0 {
		return f, fmt.Errorf("line %d: found needs when, and how: states (a line states it), agrees (two observations "+
			"agree), suggests (one of several causes), expects (no fault), excludes (it cannot be) or nothing", v.LineNum())
	}
	f.Grade = Grade(grade)
	levels := map[string]finding.Severity{"error": finding.Error, "warning": finding.Warn, "note": finding.Note}
	var ok bool
	if f.Severity, ok = levels[level]; !ok {
		return f, fmt.Errorf("level %q; expected error, warning or note", level)
	}
	return f, nil
}

// texts fills in what ways leave to the one before, and the first to the cause.
func (c *Cause) texts() {
	base := Found{Title: c.Title, Why: c.Why, Fix: c.Fix, Cost: c.Cost}
	for i := range c.Found {
		f := &c.Found[i]
		f.Title, f.Why = cmp.Or(f.Title, base.Title), cmp.Or(f.Why, base.Why)
		f.Fix, f.Cost = cmp.Or(f.Fix, base.Fix), cmp.Or(f.Cost, base.Cost)
		base = *f
		if f.Because != "" {
			f.Why = f.Because + " " + f.Why
		}
	}
}

// Atoms are all that a way asks for.
func (f *Found) Atoms() ([]*Atom, error) {
	list := slices.Concat(f.When.Atoms(), f.Quote, f.Hosts)
	for _, text := range []string{f.Title, f.Why, f.Fix, f.Cost, f.Where} {
		for _, p := range Braces(text) {
			a, err := parseAtom(p[1 : len(p)-1])
			if err != nil {
				return nil, err
			}
			list = append(list, a)
		}
	}
	return list, nil
}

// Braces are the placeholders of a text.
func Braces(text string) []string { return braces.FindAllString(text, -1) }

var braces = lazyre.New(`\{(?:[@$][^}]*|[^}]*\.[^}]*)\}`)

// Fill puts values into a text's braces.
func Fill(text string, value func(*Atom) string) string {
	for _, p := range Braces(text) {
		if a, err := parseAtom(p[1 : len(p)-1]); err == nil {
			text = strings.ReplaceAll(text, p, value(a))
		}
	}
	return text
}
