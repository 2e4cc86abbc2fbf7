// Package tags finds XML tags in text that need not be XML.
//
// NCCL's files are XML in a small dialect: elements and attributes, no text, no
// entities. People hand them in as the file itself, or as part of a log whose
// launcher wrote "[1,0]<stdout>:" before each line, cut off at the end, with
// comments on top. An XML decoder gives up on all but the first; All
// yields the tags it sees and leaves their order to its caller. Entities are never expanded.
package tags

import (
	"iter"
	"strings"

	"busbar.dev/internal/lazyre"
)

// maxTag bounds one tag. NCCL itself allows 16 attributes of 254 characters.
const maxTag = 16 << 10

// Kind is what a token is.
type Kind uint8

// Token kinds.
const (
	Open   Kind = iota + 1 // <cpu numaid="0">
	Empty                  // <net name="lo"/>
	Close                  // </cpu>
	Decl                   // <!DOCTYPE or <!ENTITY: only the name is read
	Broken                 // a tag that does not end, or is beyond the bounds
)

// Token is one tag.
type Token struct {
	Kind Kind
	Name string
	Attrs
	Line int    // where it begins, from 1
	Text string // what follows, up to the next tag: a part of the text that is read
}

// Attrs are attributes, in the order of the text.
type Attrs []Attr

// Attr is one attribute.
type Attr struct{ Key, Value string }

// Get returns an attribute, or "" when it is absent.
func (a Attrs) Get(key string) string {
	for i := range a {
		if a[i].Key == key {
			return a[i].Value
		}
	}
	return ""
}

// No value of NCCL's spans lines: one that does was never closed.
var (
	tag       = lazyre.New(`^<(?:!(\w+)|(/?)([A-Za-z][\w.:-]*)((?:[^<>"']|"[^"\n]*"|'[^'\n]*')*)(>?))`)
	attribute = lazyre.New(`([\w.:-]+)=(?:"([^"\n]*)"|'([^'\n]*)')`)
)

// All yields the tags of a text one after another. Comments are passed over.
func All(text string) iter.Seq[*Token] {
	return func(yield func(*Token) bool) {
		for line := 1; ; {
			at := strings.IndexByte(text, '<')
			if at < 0 {
				return
			}
			line += strings.Count(text[:at], "\n")
			text = text[at:]
			size := 1
			if strings.HasPrefix(text, "<!--") {
				if size = strings.Index(text, "-->"); size < 0 {
					return
				}
			} else if m := tag.FindStringSubmatch(text[:min(len(text), maxTag)]); m != nil {
				size = len(m[0])
				t := token(m, line)
				t.Text, _, _ = strings.Cut(text[size:], "<")
				if !yield(t) {
					return
				}
			}
			line += strings.Count(text[:size], "\n")
			text = text[size:]
		}
	}
}

// token is a tag, cut into its declaration's name, slash, name, attributes and end.
func token(m []string, line int) *Token {
	t := &Token{Kind: Open, Name: strings.Clone(m[1] + m[3]), Line: line}
	switch {
	case m[1] != "":
		t.Kind = Decl
	case m[5] == "":
		t.Kind = Broken
	case m[2] != "":
		t.Kind = Close
	case strings.HasSuffix(m[4], "/"):
		t.Kind = Empty
	}
	for _, a := range attribute.FindAllStringSubmatch(m[4], -1) {
		t.Attrs = append(t.Attrs, Attr{strings.Clone(a[1]), strings.Clone(a[2] + a[3])})
	}
	return t
}
