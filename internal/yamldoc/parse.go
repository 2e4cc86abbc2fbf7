package yamldoc

import (
	"fmt"
	"slices"
	"strings"
)

// Parse reads every document of a text; JSON objects may follow each other
// without anything between them. The values under the keys in skip,
// wherever they stand, are passed over and come back as Null.
func Parse(text string, skip ...string) (docs []Value, err error) {
	if len(text) > MaxBytes {
		return nil, &Error{Line: 1, Text: fmt.Sprintf("%d bytes; at most %d", len(text), MaxBytes)}
	}
	p := &parser{s: strings.TrimPrefix(text, "\ufeff"), num: 1, skip: skip}
	// The parser unwinds with its own error type and nothing else.
	defer func() {
		r := recover()
		if e, ok := r.(*Error); ok {
			docs, err = nil, e
		} else if r != nil {
			panic(r)
		}
	}()
	for {
		p.directives()
		if p.blank(); p.pos >= len(p.s) {
			return docs, nil
		}
		if p.marker("...") {
			p.endLine()
			continue
		}
		if p.marker("---") {
			p.pos += 3
			if !p.restIsEmpty() {
				p.spaces()
				p.props()
			}
			if !p.restIsEmpty() {
				docs = append(docs, p.scalar(-1))
				p.endDocument()
				continue
			}
			p.endLine()
			if p.ended() {
				docs = append(docs, Value{Line: int32(p.num)})
				continue
			}
		}
		flow := p.s[p.pos] == '{'
		docs = append(docs, p.block(-1))
		if p.blank(); flow && p.pos < len(p.s) && p.s[p.pos] == '{' {
			continue // one JSON object after the other
		}
		p.endDocument()
	}
}

type parser struct {
	s      string
	pos    int
	num    int // line of pos, from 1
	start  int // of that line
	depth  int
	values int
	quiet  int // > 0 inside a skipped key
	skip   []string
	open   []Value // items of the collections that are not yet closed
	slab   []Value // room for the items of closed ones
}

func (p *parser) fail(format string, args ...any) {
	panic(&Error{Line: p.num, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail("nested more than %d deep", maxDepth)
	}
}

// valuesIn is how many values a text may hold. A value takes ten times the
// memory of the shortest text that makes one, and real texts have far longer
// ones.
func valuesIn(bytes int) int { return min(maxValues, 10_000+bytes/6) }

// addItem keeps an item of the collection being read, unless it is being skipped.
func (p *parser) addItem(v Value) {
	if p.quiet > 0 {
		return
	}
	if p.values++; p.values > valuesIn(len(p.s)) {
		p.fail("more than %d values; keep only the part that matters", valuesIn(len(p.s)))
	}
	p.open = append(p.open, v)
}

// slabSize is how many values are allocated at once.
const slabSize = 256

// close takes the items added since from. They move to a place of their exact
// size: a list that grew by itself would leave as much garbage as it holds.
func (p *parser) close(from int) []Value {
	n := len(p.open) - from
	if n == 0 {
		return nil
	}
	if n > len(p.slab) {
		p.slab = make([]Value, max(n, min(slabSize, len(p.s)/32)))
	}
	items := p.slab[:n:n]
	p.slab = p.slab[n:]
	copy(items, p.open[from:])
	clear(p.open[from:])
	p.open = p.open[:from]
	return items
}

// directives passes over %YAML and %TAG lines.
func (p *parser) directives() {
	for p.blank(); p.pos < len(p.s) && p.s[p.pos] == '%' && p.col() == 0; p.blank() {
		p.endLine()
	}
}

// endDocument checks that nothing but another document follows.
func (p *parser) endDocument() {
	if p.ended() {
		return
	}
	p.fail("%.40q does not belong to what is above it; check the indentation", p.rest())
}

// blank moves to the first character of the next line that holds something
// other than a comment. It is for use at the start of a line or behind
// everything on it.
func (p *parser) blank() {
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; c {
		case ' ', '\r':
			p.pos++
		case '\n':
			p.newline()
		case '#':
			p.endLine()
		case '\t':
			if p.restIsEmpty() {
				p.endLine()
				continue
			}
			if first := strings.TrimLeft(p.rest(), " \t\r"); strings.TrimLeft(p.s[p.start:p.pos], " \t") == "" &&
				first[0] != '{' && first[0] != '[' {
				p.fail("a tab in the indentation; YAML wants spaces")
			}
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) newline() {
	p.pos++
	p.num++
	p.start = p.pos
}

// endLine moves to the start of the next line.
func (p *parser) endLine() {
	i := strings.IndexByte(p.s[p.pos:], '\n')
	if i < 0 {
		p.pos = len(p.s)
		return
	}
	p.pos += i
	p.newline()
}

// spaces passes over white space inside a line.
func (p *parser) spaces() {
	for p.pos < len(p.s) && (p.s[p.pos] == ' ' || p.s[p.pos] == '\t') {
		p.pos++
	}
}

// rest is the line from pos, without its end.
func (p *parser) rest() string {
	r := p.s[p.pos:]
	if i := strings.IndexByte(r, '\n'); i >= 0 {
		r = r[:i]
	}
	return strings.TrimSuffix(r, "\r")
}

// restIsEmpty reports whether only white space and a comment are left.
func (p *parser) restIsEmpty() bool {
	for i := p.pos; i < len(p.s); i++ {
		switch p.s[i] {
		case ' ', '\t', '\r':
		case '\n':
			return true
		case '#':
			return i == p.start || isBlank(p.s[i-1])
		default:
			return false
		}
	}
	return true
}

func (p *parser) col() int { return p.pos - p.start }

// marker reports whether a document marker stands at pos.
func (p *parser) marker(m string) bool {
	if p.col() != 0 || !strings.HasPrefix(p.s[p.pos:], m) {
		return false
	}
	return p.blankAt(p.pos + 3)
}

// atMarker reports a line that ends or begins a document.
func (p *parser) atMarker() bool { return p.marker("---") || p.marker("...") }

// ended passes over what is blank, and reports whether the document is over behind it.
func (p *parser) ended() bool {
	p.blank()
	return p.pos >= len(p.s) || p.atMarker()
}

// blankAt reports white space, or the end of the text.
func (p *parser) blankAt(i int) bool { return i == len(p.s) || isBlank(p.s[i]) }

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// more moves to the next line with something on it and reports whether it
// belongs to a collection at column col.
func (p *parser) more(col int) bool {
	if p.ended() {
		return false
	}
	switch c := p.col(); {
	case c < col:
		return false
	case c > col:
		p.fail("indented by %d; expected %d as above", c, col)
	}
	return true
}

// block reads the value that starts at pos, inside a collection at column col
// (-1 at the top).
func (p *parser) block(col int) Value {
	p.enter()
	defer func() { p.depth-- }()
	switch {
	case p.dash():
		return p.sequence(p.col())
	case p.atKey():
		return p.mapping(p.col())
	}
	p.props()
	if !p.restIsEmpty() {
		return p.scalar(col)
	}
	num := p.num // a tag on a line of its own
	p.endLine()
	if p.ended() || p.col() <= col {
		return Value{Line: int32(num)}
	}
	return p.block(col)
}

// dash reports whether an entry of a sequence starts at pos.
func (p *parser) dash() bool {
	return p.pos < len(p.s) && p.s[p.pos] == '-' && p.blankAt(p.pos+1)
}

func (p *parser) sequence(col int) Value {
	v := Value{Kind: List, Line: int32(p.num)}
	from := len(p.open)
	for {
		p.pos++
		p.addItem(p.entry(col, col+1))
		if !p.more(col) {
			break
		}
		if !p.dash() {
			if p.atKey() {
				break // the key that follows "key:" with its list at the same column
			}
			p.fail("%.40q among the entries of a list; expected \"- \"", p.rest())
		}
	}
	v.Items = p.close(from)
	return v
}

func (p *parser) mapping(col int) Value {
	v := Value{Kind: Map, Line: int32(p.num)}
	from := len(p.open)
	for {
		num := p.num
		key := p.key()
		skipped := slices.Contains(p.skip, key)
		if skipped {
			p.quiet++
		}
		e := p.entry(col, col)
		if skipped {
			p.quiet--
			e = Value{}
		}
		e.Key, e.Line = key, int32(num)
		p.addItem(e)
		if !p.more(col) {
			break
		}
		if !p.atKey() {
			p.fail("%.40q among the entries of a map; expected \"key: value\"", p.rest())
		}
	}
	v.Items = p.close(from)
	return v
}

// entry reads what follows a dash or a key: on the same line, or on the next
// lines if they are indented by more than col. A list may stand at column list.
func (p *parser) entry(col, list int) Value {
	num := p.num
	if !p.restIsEmpty() {
		p.spaces()
		p.props()
		if !p.restIsEmpty() {
			if list > col && (p.dash() || p.atKey()) {
				return p.block(col) // "- - a" and "- key: value"
			}
			return p.scalar(col)
		}
	}
	p.endLine()
	if p.ended() {
		return Value{Line: int32(num)}
	}
	if c := p.col(); c > col || c == list && p.dash() {
		return p.block(col)
	}
	return Value{Line: int32(num)}
}

// props passes over tags and refuses anchors.
func (p *parser) props() {
	for p.pos < len(p.s) && p.s[p.pos] == '!' {
		for p.pos < len(p.s) && !isBlank(p.s[p.pos]) {
			p.pos++
		}
		p.spaces()
	}
	if p.pos < len(p.s) && (p.s[p.pos] == '&' || p.s[p.pos] == '*') {
		p.fail("%.20q is an anchor or an alias, which are not read; write the value out in full", p.rest())
	}
}
