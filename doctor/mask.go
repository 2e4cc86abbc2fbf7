package doctor

import (
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/texttab"
)

// value is a secret as it stands behind its name: quoted, perhaps with blanks in
// it, or up to the next blank.
const value = `(?:\\?"[^"]*"?|\\?'[^']*'?|[^\s"']{3,})`

// masks are the shapes of secrets that stand in logs and environments. The first
// group is kept, the rest is replaced.
var masks = []*lazyre.Regexp{
	// Names that say so, with whatever else is in the name; tokens of text are none.
	lazyre.
		New(`(?i)((?:api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|account[_-]?key|private[_-]?key|secret[\w-]*|token|jwt|passwd|password|passphrase|credentials?)\\?["']?\s*[=:]\s*)` + value),
	lazyre.New(`(\b[A-Z0-9]+(?:_[A-Z0-9]+)*_(?:KEY|PASS|PWD)=)` + value),
	lazyre.New(`(?i)((?:[?&]sig|signature)=)` + value),
	lazyre.
		New(`(?i)("?name"?\s*[:=]\s*["']?[\w-]*(?:token|secret|passw|_key|credential)[\w-]*["']?\s*,\s*"?value"?\s*[:=]\s*)` +
			value),
	lazyre.
		New(`(?i)(--?(?:[a-z]+[_-])*(?:token|passwd|password|passphrase|api[_-]?key|access[_-]?key|secret[a-z_-]*|credentials?)\s+)` + value),
	lazyre.New(`(\bsshpass\s+-p\s*|\bmysql\w*\s(?:.*\s)?-p)\S+`),
	lazyre.New(`(\bcurl\s(?:.*\s)?(?:-u|--user)[ =]?)\S+:\S+`),
	lazyre.New(`(?i)(\bcookie:\s*).+`),
	lazyre.New(`(?i)(authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?\s*)[A-Za-z0-9._~+/=-]{6,}`),
	lazyre.New(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`),
	lazyre.New(`([a-z][a-z0-9+.-]*://)[^\s/]+@`), // a token may be the user's name
	lazyre.New(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
	lazyre.New(`()\bgh[pousr]_[A-Za-z0-9]{20,}\b`),
	lazyre.New(`()\b(?:github|dckr)_pat_[A-Za-z0-9_-]{16,}\b`),
	lazyre.New(`()\b(?:hf|npm|rpa)_[A-Za-z0-9]{20,}\b`),
	lazyre.New(`()\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}\b`),
	lazyre.New(`()\bsk-[A-Za-z0-9_-]{20,}\b`),
	lazyre.New(`()\bxox[abprs]-[A-Za-z0-9-]{10,}\b`),
	lazyre.New(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	lazyre.New(`((?i:wandb)[\w ]{0,24}[=: ]\s*["']?)[0-9a-f]{40}\b`),
	lazyre.New(`()-----BEGIN [A-Z ]*PRIVATE KEY-----.*`),
	lazyre.New(`()\bglpat-[A-Za-z0-9_-]{16,}\b`),
	lazyre.New(`()\bnvapi-[A-Za-z0-9_-]{20,}\b`),
	lazyre.New(`()\bpypi-[A-Za-z0-9_-]{20,}`),
	lazyre.New(`()\bAIza[0-9A-Za-z_-]{35}\b`),
	lazyre.New(`()\bya29\.[A-Za-z0-9_-]{16,}`),
	lazyre.New(`()\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`),
}

var (
	ipv4 = lazyre.New(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6 = lazyre.New(`(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}[0-9a-f]*\b`)
	mac  = lazyre.New(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b`)
	user = lazyre.New(`\b[\w.+-]+@[\w-]+\.[\w.-]+\b`)
)

const hidden = "***"

// Secrets replaces what looks like a token, key or password in a text.
func Secrets(s string) string {
	for _, m := range masks {
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
