// Package ifname tells by an interface's name what is no network card of a cluster.
package ifname

import (
	_ "embed" // for the names
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/csvtable"
)

//go:embed names.csv
var table string

// Name is what a name says.
type Name struct {
	Prefix   string `csv:"prefix"`
	What     string `csv:"what"`
	Numbered bool   `csv:"numbered,optional"`
	Card     bool   `csv:"card,optional"`
	Source   string `csv:"source"`
}

var names = csvtable.Once[Name]("names.csv", table)

// Of is the row of a name, one of a card that says no more where it is none of the table's.
func Of(name string) Name {
	for _, v := range names() {
		rest, ok := strings.CutPrefix(name, v.Prefix)
		if ok && (!v.Numbered || rest == "" || rest[0] >= '0' && rest[0] <= '9') {
			return v
		}
	}
	return Name{Card: true}
}

// Software collects the interfaces that are no cards.
type Software []string

// Add takes a name and reports whether it is one of them.
func (s *Software) Add(name string) bool {
	is := Of(name)
	if !is.Card {
		*s = append(*s, fmt.Sprintf("%s (%s)", name, is.What))
	}
	return !is.Card
}

// Warn says that they were left out.
func (s Software) Warn(f *cluster.Fragment, line int) {
	more := ""
	if n := len(s); n > 3 {
		s, more = s[:3], fmt.Sprintf(" and %d more", n-3)
	}
	if len(s) > 0 {
		f.Warnf(line, "", "no NICs, and left out: %s%s", strings.Join(s, ", "), more)
	}
}
