package yamldoc

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// flow reads [a, b] or {k: v}, over as many lines as it takes. JSON is this.
func (p *parser) flow() Value {
	p.enter()
	defer func() { p.depth-- }()
	v := Value{Kind: List, Line: int32(p.num)}
	open, end := p.s[p.pos], byte(']')
	if open == '{' {
		v.Kind, end = Map, '}'
	}
	p.pos++
	from := len(p.open)
	for first := true; ; first = false {
		if p.flowSpace(open); p.s[p.pos] == end {
			break
		}
		if !first {
			if p.s[p.pos] != ',' {
				p.fail("%.20q inside %c; expected a comma or %c", p.rest(), open, end)
			}
			p.pos++
			if p.flowSpace(open); p.s[p.pos] == end {
				break // a comma before the end is allowed
			}
		}
		if open == '{' {
			p.addItem(p.pair())
		} else {
			p.addItem(p.flowItem())
		}
	}
	p.pos++
	v.Items = p.close(from)
	return v
}

// flowSpace moves to the next character inside a flow collection.
func (p *parser) flowSpace(open byte) {
	for p.pos < len(p.s) {
		switch c := p.s[p.pos]; {
		case c == '\n':
			p.newline()
		case isBlank(c):
			p.pos++
		case c == '#' && p.restIsEmpty():
			p.endLine()
		default:
			if p.atMarker() {
				p.fail("a document ends inside %c", open)
			}
			return
		}
	}
	p.fail("%c is never closed", open)
}

// flowItem reads an item of a list; "a: b" there is a map of one entry.
func (p *parser) flowItem() Value {
	v := p.flowValue()
	if v.Kind == Map || v.Kind == List || !p.flowColon(v.Quoted) {
		return v
	}
	from := len(p.open)
	p.addItem(p.valueOf(v))
	return Value{Kind: Map, Line: v.Line, Items: p.close(from)}
}

// pair reads an entry of a flow map.
func (p *parser) pair() Value {
	k := p.flowValue()
	if k.Kind == Map || k.Kind == List {
		p.fail("a collection as a key, which is not read")
	}
	if !p.flowColon(k.Quoted) {
		return Value{Line: k.Line, Key: k.Text}
	}
	return p.valueOf(k)
}

// flowColon moves behind the colon of a key, if there is one.
func (p *parser) flowColon(quoted bool) bool {
	p.flowSpace('{')
	if p.s[p.pos] != ':' || !quoted && p.pos+1 < len(p.s) && !isBlank(p.s[p.pos+1]) && !isFlowEnd(p.s[p.pos+1]) {
		return false
	}
	p.pos++
	return true
}

// valueOf reads the value that belongs to a key.
func (p *parser) valueOf(key Value) Value {
	skipped := slices.Contains(p.skip, key.Text)
	if skipped {
		p.quiet++
	}
	p.flowSpace('{')
	var v Value
	if !isFlowEnd(p.s[p.pos]) || p.s[p.pos] == '[' || p.s[p.pos] == '{' {
		v = p.flowValue()
	}
	if skipped {
		p.quiet--
		v = Value{}
	}
	v.Key, v.Line = key.Text, key.Line
	return v
}

func isFlowEnd(c byte) bool { return c == ',' || c == ']' || c == '}' || c == '[' || c == '{' }

// flowValue reads one value inside a flow collection.
func (p *parser) flowValue() Value {
	p.props()
	if p.pos >= len(p.s) {
		p.fail("the text ends inside a collection")
	}
	switch c := p.s[p.pos]; {
	case c == '[' || c == '{':
		return p.flow()
	case c == '"' || c == '\'':
		return p.quoted()
	case c == '?' && p.pos+1 < len(p.s) && (isBlank(p.s[p.pos+1]) || isFlowEnd(p.s[p.pos+1])):
		p.fail("an explicit key (\"? \"), which is not read; write key: value")
	}
	if strings.IndexByte("#|>@`%", p.s[p.pos]) >= 0 || p.dash() {
		p.fail("%.40q cannot start a value; put it in quotes", p.rest())
	}
	v := Value{Kind: Scalar, Line: int32(p.num)}
	from := p.pos
	for ; p.pos < len(p.s); p.pos++ {
		c := p.s[p.pos]
		if isFlowEnd(c) || c == '\n' || c == '#' && p.pos > from && isBlank(p.s[p.pos-1]) {
			break
		}
		if c == ':' && (p.pos+1 == len(p.s) || isBlank(p.s[p.pos+1]) || isFlowEnd(p.s[p.pos+1])) {
			break
		}
	}
	v.Text = strings.TrimRight(p.s[from:p.pos], " \t\r")
	if p.pos == from && (p.pos >= len(p.s) || p.s[p.pos] != ':') {
		p.fail("%.20q where a value should be", p.rest())
	}
	if p.pos < len(p.s) && p.s[p.pos] == '\n' {
		// A plain scalar could go on here, which nobody writes; refuse it rather
		// than read half.
		p.flowSpace('[')
		if c := p.s[p.pos]; !isFlowEnd(c) && c != ':' {
			p.fail("%.20q goes on from the line above; put the value in quotes", p.rest())
		}
	}
	if isNull(v.Text) {
		v.Kind = Null // the text stays: it may turn out to be a key
	}
	return v
}

// quoted reads a scalar in quotes, over as many lines as it takes.
func (p *parser) quoted() Value {
	v := Value{Kind: Scalar, Quoted: true, Line: int32(p.num)}
	if end := closingQuote(p.s, p.pos); end >= 0 {
		if t := p.s[p.pos+1 : end-1]; strings.IndexByte(t, '\\') < 0 && strings.IndexByte(t, '\'') < 0 {
			v.Text = t // nothing to translate: a part of the text as it is
			p.pos = end
			return v
		}
	}
	q := p.s[p.pos]
	var b []byte
	escaped := 0 // end of the last escape in b
	for p.pos++; p.pos < len(p.s); {
		switch c := p.s[p.pos]; {
		case c == q && q == '\'' && p.pos+1 < len(p.s) && p.s[p.pos+1] == q:
			b = append(b, q)
			p.pos += 2
		case c == q:
			p.pos++
			v.Text = string(b)
			return v
		case c == '\n':
			b = append(b[:escaped], p.foldQuoted(b[escaped:])...)
		case c == '\\' && q == '"':
			b = p.escape(b)
			escaped = len(b)
		default:
			b = append(b, c)
			p.pos++
		}
	}
	p.num = int(v.Line)
	p.fail("%c is never closed", q)
	return v
}

// foldQuoted turns a line break inside quotes into a space, or empty lines into
// line breaks.
func (p *parser) foldQuoted(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r")
	empty := -1
	for p.pos < len(p.s) && isBlank(p.s[p.pos]) {
		if p.s[p.pos] == '\n' {
			empty++
			p.newline()
			continue
		}
		p.pos++
	}
	return append(b, foldGap(empty)...)
}

var escapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': "\"", '/': "/", '\\': "\\", 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029", '\t': "\t",
}

// escape reads a backslash and what it stands for.
func (p *parser) escape(b []byte) []byte {
	p.pos++
	if p.pos >= len(p.s) {
		return b
	}
	c := p.s[p.pos]
	if s, ok := escapes[c]; ok {
		p.pos++
		return append(b, s...)
	}
	switch c {
	case 'x':
		return utf8.AppendRune(b, p.hex(2))
	case 'u':
		r := p.hex(4)
		if utf16.IsSurrogate(r) && strings.HasPrefix(p.s[p.pos:], "\\u") {
			p.pos++
			r = utf16.DecodeRune(r, p.hex(4))
		}
		return utf8.AppendRune(b, r)
	case 'U':
		r := p.hex(8)
		if !utf8.ValidRune(r) {
			p.fail("\\U%08x is no character", r)
		}
		return utf8.AppendRune(b, r)
	case '\n', '\r': // the line goes on below; empty lines between stay
		for empty := -1; p.pos < len(p.s) && isBlank(p.s[p.pos]); {
			if p.s[p.pos] != '\n' {
				p.pos++
				continue
			}
			p.newline()
			if empty++; empty > 0 {
				b = append(b, '\n')
			}
		}
	default:
		p.fail("\\%c is no escape that YAML or JSON knows", c)
	}
	return b
}

// hex reads n hexadecimal digits behind the letter at pos.
func (p *parser) hex(n int) rune {
	p.pos++
	if p.pos+n > len(p.s) {
		p.fail("the text ends inside an escape")
	}
	v, err := strconv.ParseUint(p.s[p.pos:p.pos+n], 16, 32)
	if err != nil {
		p.fail("%q is not hexadecimal", p.s[p.pos:p.pos+n])
	}
	p.pos += n
	return rune(v)
}
