// Package lazyre holds regular expressions that are compiled when first used. A program with many of them starts at
// once: a command needs only few.
package lazyre

import (
	"os"
	"regexp"
	"strings"
	"sync"
)

// Regexp is a regular expression that is compiled when first used.
type Regexp struct {
	text string
	once sync.Once
	re   *regexp.Regexp
}

// inTest makes New compile at once, so that a wrong expression fails the tests of its package.
var inTest = len(os.Args) > 0 && strings.HasSuffix(strings.TrimSuffix(os.Args[0], ".exe"), ".test")

// New returns the expression; its first use panics where the text is none.
func New(text string) *Regexp {
	r := &Regexp{text: text}
	if inTest {
		r.compiled()
	}
	return r
}

func (r *Regexp) compiled() *regexp.Regexp {
	r.once.Do(func() { r.re = regexp.MustCompile(r.text) })
	return r.re
}

// Match is [regexp.Regexp.Match].
func (r *Regexp) Match(b []byte) bool { return r.compiled().Match(b) }

// MatchString is [regexp.Regexp.MatchString].
func (r *Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// FindSubmatch is [regexp.Regexp.FindSubmatch].
func (r *Regexp) FindSubmatch(b []byte) [][]byte { return r.compiled().FindSubmatch(b) }

// FindString is [regexp.Regexp.FindString].
func (r *Regexp) FindString(s string) string { return r.compiled().FindString(s) }

// FindStringSubmatch is [regexp.Regexp.FindStringSubmatch].
func (r *Regexp) FindStringSubmatch(s string) []string { return r.compiled().FindStringSubmatch(s) }

// SubexpNames is [regexp.Regexp.SubexpNames].
func (r *Regexp) SubexpNames() []string { return r.compiled().SubexpNames() }

// FindStringSubmatchIndex is [regexp.Regexp.FindStringSubmatchIndex].
func (r *Regexp) FindStringSubmatchIndex(s string) []int {
	return r.compiled().FindStringSubmatchIndex(s)
}

// FindAllString is [regexp.Regexp.FindAllString].
func (r *Regexp) FindAllString(s string, n int) []string { return r.compiled().FindAllString(s, n) }

// FindAllStringIndex is [regexp.Regexp.FindAllStringIndex].
func (r *Regexp) FindAllStringIndex(s string, n int) [][]int {
	return r.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch is [regexp.Regexp.FindAllStringSubmatch].
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.compiled().FindAllStringSubmatch(s, n)
}

// ReplaceAll is [regexp.Regexp.ReplaceAll].
func (r *Regexp) ReplaceAll(b, with []byte) []byte { return r.compiled().ReplaceAll(b, with) }

// ReplaceAllString is [regexp.Regexp.ReplaceAllString].
func (r *Regexp) ReplaceAllString(s, with string) string {
	return r.compiled().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is [regexp.Regexp.ReplaceAllStringFunc].
func (r *Regexp) ReplaceAllStringFunc(s string, with func(string) string) string {
	return r.compiled().ReplaceAllStringFunc(s, with)
}

// Groups are the named groups of the first match that are not empty, by their names; nil where there is no match.
func (r *Regexp) Groups(s string) map[string]string {
	m := r.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	groups := map[string]string{}
	for i, name := range r.SubexpNames() {
		if name != "" && m[i] != "" {
			groups[name] = m[i]
		}
	}
	return groups
}
