package cause

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/told"
)

// pattern is how something is spelled: terms that are all in one clause, each with alternatives. It is written as
// ulimit+-l|memlock unlimited: a blank joins terms, | alternatives, + words that follow each other. A term matches
// where a word begins; a short one, with a blank behind, only as a whole word.
type pattern [][]string

// shortTerm is the length up to which a term matches whole words only.
const shortTerm = 3

func parsePattern(text string) (p pattern, err error) {
	for part := range strings.FieldsSeq(text) {
		var list []string
		for alternative := range strings.SplitSeq(part, "|") {
			words := strings.TrimRight(told.Normalise(strings.ReplaceAll(alternative, "+", " ")), " ")
			if words == "" {
				return nil, fmt.Errorf("%q: an empty alternative", text)
			}
			if len(words) <= shortTerm+1 {
				words += " "
			}
			list = append(list, words)
		}
		p = append(p, list)
	}
	if len(p) == 0 {
		return nil, fmt.Errorf("an empty pattern; expected words such as ulimit+-l|memlock")
	}
	return p, nil
}

// in reports that all terms are in a normalised text.
func (p pattern) in(norm string) bool {
	return !slices.ContainsFunc(p, func(alternatives []string) bool {
		return !slices.ContainsFunc(alternatives, func(t string) bool { return strings.Contains(norm, t) })
	})
}

func anyIn(list []pattern, norm string) bool {
	return slices.ContainsFunc(list, func(p pattern) bool { return p.in(norm) })
}

// Tried is what a case says of the remedies of a cause.
type Tried uint8

// Entries of the ledger.
const (
	Untried Tried = iota
	Helped
	InVain // or in place before, or stated to be in order
)

// ledger reads clauses in their order: what is said last of a remedy holds.
func (c *Cause) ledger(x *Case) (tried Tried, because *told.Clause) {
	for i := range x.Told {
		clause := &x.Told[i]
		entry := Untried
		switch {
		case anyIn(c.ok, clause.Norm) && x.Shown[c.ID] != States: // what is printed is believed
			entry = InVain
		case clause.Verdict == told.Seen && !clause.Shown || !anyIn(c.remedies, clause.Norm):
		case clause.Verdict == told.Works:
			entry = Helped
		default:
			entry = InVain
		}
		if entry != Untried {
			tried, because = entry, clause
		}
	}
	return tried, because
}

// shows reports that printed facts show a cause.
func (x *Case) shows(c *Cause) bool {
	for rule, g := range x.Shown {
		if g != None && g != Excludes && c.Finds(rule) {
			return true
		}
	}
	return false
}

// lines are the causes that a line states, as threads remember it.
func (x *Case) lines() (list []string) {
	for rule, g := range x.Shown {
		if g == Agrees || g == States {
			list = append(list, rule+" "+gradeNames[g])
		}
	}
	slices.Sort(list)
	return list
}
