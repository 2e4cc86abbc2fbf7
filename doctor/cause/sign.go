package cause

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// sign is a pattern of words: terms that are all there, each with alternatives. It is
// written as ibv_reg_mr cannot+allocate|enomem: a blank joins terms, | alternatives,
// + words that follow each other.
type sign struct {
	text  string
	terms [][]term
}

// term is words that follow each other, normalised, with a blank in front. It matches
// where a word begins; a short one only as a whole word or its plural.
type term struct {
	text  string
	whole bool
}

// shortTerm is the length up to which a term matches whole words only.
const shortTerm = 3

func parseSign(text string) (sign, error) {
	s := sign{text: text}
	for part := range strings.FieldsSeq(text) {
		var list []term
		for alt := range strings.SplitSeq(part, "|") {
			n := normalise(strings.ReplaceAll(alt, "+", " "))
			if strings.HasSuffix(alt, ".") { // the beginning of a release: 2.
				list = append(list, term{strings.TrimRight(n, " ") + ".", false})
				continue
			}
			if strings.TrimSpace(n) == "" {
				return sign{}, fmt.Errorf("sign %q: an empty alternative", text)
			}
			list = append(list, term{strings.TrimRight(n, " "), len(n) <= shortTerm+2})
		}
		s.terms = append(s.terms, list)
	}
	if len(s.terms) == 0 {
		return sign{}, fmt.Errorf("an empty sign; expected words such as ulimit+-l|memlock")
	}
	return s, nil
}

// synonyms are groups of terms that say the same.
var synonyms = sync.OnceValue(func() (groups [][]term) {
	for _, group := range wordsFile().Get("synonyms").List() {
		var list []term
		for _, item := range group.List() {
			list = append(list, parseTerms(item.Str())...)
		}
		groups = append(groups, list)
	}
	return groups
})

// is reports a term that is a synonym's, or a form of it.
func (t *term) is(g *term) bool {
	return t.text == g.text || !g.whole && strings.HasPrefix(t.text, g.text) && !strings.Contains(t.text[1:], " ") &&
		len(t.text) <= len(g.text)+3
}

// canonical is the word that stands for a word's group; empty: it is in none.
func canonical(w string) string {
	w = " " + w
	for _, group := range synonyms() {
		for _, g := range group {
			if (&term{text: w}).is(&g) {
				return group[0].text[1:]
			}
		}
	}
	return ""
}

func parseTerms(alternatives string) []term {
	s, err := parseSign(strings.ReplaceAll(strings.TrimSpace(alternatives), " ", "+"))
	if err != nil {
		return nil
	}
	return s.terms[0]
}

// in reports that all terms are in a normalised text.
func (s *sign) in(text string) bool {
	for _, alternatives := range s.terms {
		if !anyIn(alternatives, text) {
			return false
		}
	}
	return true
}

func anyIn(list []term, text string) bool {
	return slices.ContainsFunc(list, func(t term) bool { return t.in(text) })
}

func (t *term) in(text string) bool {
	for {
		i := strings.Index(text, t.text)
		if i < 0 {
			return false
		}
		text = text[i+len(t.text):]
		if !t.whole || text == "" || text[0] == ' ' || text[0] == 's' && (len(text) == 1 || text[1] == ' ') {
			return true
		}
	}
}

// normalise makes texts comparable: lower case, a blank for whatever joins or parts
// words, one blank in front and behind. Full stops stay inside of numbers and names.
func normalise(text string) string {
	b := make([]byte, 0, len(text)+2)
	b = append(b, ' ')
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'A' && c <= 'Z':
			b = append(b, c+'a'-'A')
			continue
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '=', c == '%', c >= 0x80:
			b = append(b, c)
			continue
		case c == '.' && i+1 < len(text) && alnum(text[i+1]):
			b = append(b, c)
			continue
		case c == '\'' && i > 0 && i+1 < len(text) && alnum(text[i-1]) && alnum(text[i+1]):
			continue // doesn't → doesnt
		}
		if b[len(b)-1] != ' ' {
			b = append(b, ' ')
		}
	}
	if b[len(b)-1] != ' ' {
		b = append(b, ' ')
	}
	return string(b)
}

func alnum(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
