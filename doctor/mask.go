package doctor

import (
	_ "embed" // for the shapes of secrets
	"regexp"
	"slices"
	"strings"
	"sync"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/texttab"
)

// secretTable has the shapes of secrets that stand in logs and environments, an expression a line. The first group is
// kept, the rest is replaced. Names that say so come first, with whatever else is in the name; tokens of text are none.
//
//go:embed secrets.txt
var secretTable string

// masks are those of secretTable. {value} in it is a secret as it stands behind its name: quoted, perhaps with blanks
// in it, or up to the next blank.
var masks = sync.OnceValue(func() (list []*regexp.Regexp) {
	const value = `(?:\\?"[^"]*"?|\\?'[^']*'?|[^\s"']{3,})`
	for line := range strings.Lines(strings.ReplaceAll(secretTable, "{value}", value)) {
		list = append(list, regexp.MustCompile(strings.TrimSuffix(line, "\n")))
	}
	return list
})

var (
	ipv4 = lazyre.New(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6 = lazyre.New(`(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}[0-9a-f]*\b`)
	mac  = lazyre.New(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b`)
	user = lazyre.New(`\b[\w.+-]+@[\w-]+\.[\w.-]+\b`)
)

const hidden = "***"

// Secrets replaces what looks like a token, key or password in a text.
func Secrets(s string) string {
	for _, m := range masks() {
		s = m.ReplaceAllString(s, "${1}"+hidden)
	}
	return s
}

// Addresses replaces addresses of hosts and people.
func Addresses(s string) string {
	s = user.ReplaceAllString(s, hidden)
	s = mac.ReplaceAllString(s, hidden)
	s = ipv4.ReplaceAllString(s, hidden)
	return ipv6.ReplaceAllStringFunc(s, func(a string) string {
		if strings.Count(a, ":") < 2 || times.MatchString(a) {
			return a // a time of day, or a bus id
		}
		return hidden
	})
}

// times are clocks and PCI addresses, which look like short IPv6 ones.
var times = lazyre.New(`(?i)^(?:\d{2}:\d{2}:\d{2}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})$`)

// Mask takes secrets out of everything that a report prints, names of files
// included, and addresses where they are asked for; and what the texts could do to
// a terminal or to the lines of a format beyond being read.
func (r *Report) Mask(addresses bool) {
	clean := func(s string) string {
		if s = Secrets(s); addresses {
			s = Addresses(s)
		}
		return texttab.Clean(s)
	}
	quote := func(q *finding.Quote) {
		q.File, q.Text = oneLine(clean(q.File)), oneLine(clean(q.Text))
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, p := range []*string{&f.Title, &f.Cause, &f.Fix, &f.Cost, &f.Where} {
			*p = clean(*p)
		}
		for j := range f.Evidence {
			quote(&f.Evidence[j])
		}
	}
	for i := range r.Samples {
		quote(&r.Samples[i])
	}
	r.Sources = slices.Clone(r.Sources)
	for i, s := range r.Sources {
		r.Sources[i] = oneLine(clean(s))
	}
}

// oneLine keeps what stands in one line there.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", " ") }
