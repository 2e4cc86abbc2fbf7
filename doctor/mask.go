package doctor

import (
	"regexp"
	"strings"
)

// masks are the shapes of secrets that stand in logs and environments. The first
// group is kept, the rest is replaced.
var masks = []*regexp.Regexp{
	regexp.MustCompile(`(?i)((?:api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:access[_-]?)?key)?|auth[_-]?token|token|passwd|password|passphrase|credentials?|private[_-]?key)["']?\s*[=:]\s*["']?)[^\s"',;&]{3,}`),
	regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)?\s*)[A-Za-z0-9._~+/=-]{6,}`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^\s/@:]+:[^\s/@]+@`),
	regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`),
	regexp.MustCompile(`()\bgh[pousr]_[A-Za-z0-9]{20,}\b`),
	regexp.MustCompile(`()\bgithub_pat_[A-Za-z0-9_]{20,}\b`),
	regexp.MustCompile(`()\bhf_[A-Za-z0-9]{20,}\b`),
	regexp.MustCompile(`()\bsk-[A-Za-z0-9_-]{20,}\b`),
	regexp.MustCompile(`()\bxox[abprs]-[A-Za-z0-9-]{10,}\b`),
	regexp.MustCompile(`()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`((?i:wandb)[\w ]{0,24}[=: ]\s*["']?)[0-9a-f]{40}\b`),
	regexp.MustCompile(`()-----BEGIN [A-Z ]*PRIVATE KEY-----.*`),
	regexp.MustCompile(`()\bglpat-[A-Za-z0-9_-]{16,}\b`),
	regexp.MustCompile(`()\bnvapi-[A-Za-z0-9_-]{20,}\b`),
	regexp.MustCompile(`()\bAIza[0-9A-Za-z_-]{35}\b`),
}

var (
	ipv4 = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
	ipv6 = regexp.MustCompile(`(?i)\b[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7}[0-9a-f]*\b`)
	mac  = regexp.MustCompile(`(?i)\b[0-9a-f]{2}(?::[0-9a-f]{2}){5}\b`)
	user = regexp.MustCompile(`\b[\w.+-]+@[\w-]+\.[\w.-]+\b`)
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
var times = regexp.MustCompile(`(?i)^(?:\d{2}:\d{2}:\d{2}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})$`)

// Mask takes secrets out of everything that a report prints, and addresses where
// they are asked for.
func (r *Report) Mask(addresses bool) {
	clean := func(s string) string {
		if s = Secrets(s); addresses {
			s = Addresses(s)
		}
		return s
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		for _, p := range []*string{&f.Title, &f.Cause, &f.Fix, &f.Cost, &f.Where} {
			*p = clean(*p)
		}
		for j := range f.Evidence {
			f.Evidence[j].Text = clean(f.Evidence[j].Text)
		}
	}
	for i := range r.Samples {
		r.Samples[i].Text = clean(r.Samples[i].Text)
	}
}
