package yamldoc

import "strings"

// atKey reports whether a key and its colon start at pos.
func (p *parser) atKey() bool {
	_, end := p.findKey()
	return end >= 0
}

// findKey finds the key at pos: where its text ends and where its colon is.
func (p *parser) findKey() (end, colon int) {
	switch c := p.s[p.pos]; {
	case c == '&' || c == '*':
		p.props() // refuses
	case c == '?' && p.blankAt(p.pos+1):
		p.fail("an explicit key (\"? \"), which is not read; write key: value")
	case c == '[' || c == '{' || c == '!' || c == '|' || c == '>':
		return 0, -1
	case c == '"' || c == '\'':
		end = closingQuote(p.s, p.pos)
		if end < 0 {
			return 0, -1
		}
		for colon = end; colon < len(p.s) && (p.s[colon] == ' ' || p.s[colon] == '\t'); colon++ {
		}
		if colon < len(p.s) && p.s[colon] == ':' && p.blankAt(colon+1) {
			return end, colon
		}
		return 0, -1
	}
	for i := p.pos; i < len(p.s) && p.s[i] != '\n'; i++ {
		switch {
		case p.s[i] == ':' && p.blankAt(i+1):
			return i, i
		case p.s[i] == '#' && i > p.pos && isBlank(p.s[i-1]):
			return 0, -1
		}
	}
	return 0, -1
}

// closingQuote is the position behind the quote that closes the one at pos, on
// the same line, or -1.
func closingQuote(s string, pos int) int {
	q := s[pos]
	for i := pos + 1; i < len(s) && s[i] != '\n'; i++ {
		switch {
		case s[i] == '\\' && q == '"':
			i++
		case s[i] == q && q == '\'' && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return -1
}

// key reads the key at pos and moves behind its colon.
func (p *parser) key() string {
	end, colon := p.findKey()
	var k string
	if c := p.s[p.pos]; c == '"' || c == '\'' {
		k = p.quoted().Text
	} else {
		k = strings.TrimRight(p.s[p.pos:end], " \t")
	}
	p.pos = colon + 1
	return k
}

// scalar reads a scalar or a flow collection that starts at pos, inside a
// collection at column col, and checks that nothing follows it on its line.
func (p *parser) scalar(col int) Value {
	if p.pos >= len(p.s) {
		return Value{Line: int32(p.num)}
	}
	var v Value
	switch c := p.s[p.pos]; {
	case c == '|' || c == '>':
		return p.blockScalar(col)
	case c == '"' || c == '\'':
		v = p.quoted()
	case c == '[' || c == '{':
		v = p.flow()
	case c == '@' || c == '`' || c == '%' || c == ',' || c == ']' || c == '}' || p.dash():
		p.fail("%.40q cannot start a value; put it in quotes", p.rest())
	default:
		return p.plain(col)
	}
	if !p.restIsEmpty() {
		p.fail("%.40q behind a value; expected the end of the line", p.rest())
	}
	p.endLine()
	return v
}

// plain reads an unquoted scalar. It goes on over lines that are indented by
// more than col.
func (p *parser) plain(col int) Value {
	v := Value{Kind: Scalar, Line: int32(p.num)}
	v.Text = p.plainLine(nil)
	var parts []string
	for {
		empty := 0
		for p.pos < len(p.s) && strings.Trim(p.rest(), " \t") == "" {
			p.endLine()
			empty++
		}
		pos, num, start := p.pos, p.num, p.start
		p.spaces()
		if p.pos >= len(p.s) || p.col() <= col || p.s[p.pos] == '#' || p.atMarker() {
			p.pos, p.num, p.start = pos, num, start
			break
		}
		if parts == nil {
			parts = []string{v.Text}
		}
		parts = append(parts, foldGap(empty), p.plainLine(&v))
	}
	if parts != nil {
		v.Text = strings.Join(parts, "")
	}
	if isNull(v.Text) {
		return Value{Line: v.Line}
	}
	return v
}

// isNull reports whether an unquoted scalar says that there is no value.
func isNull(s string) bool {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// foldGap is what a line break with so many empty lines behind it becomes.
func foldGap(empty int) string {
	if empty == 0 {
		return " "
	}
	return strings.Repeat("\n", min(empty, 64))
}

// plainLine reads an unquoted scalar up to the end of its line or a comment and
// moves to the next line. It goes on with a scalar that began
// before, or nil.
func (p *parser) plainLine(since *Value) string {
	r := p.rest()
	for i := 0; i < len(r); i++ {
		switch {
		case r[i] == ':' && (i+1 == len(r) || isBlank(r[i+1])):
			if since != nil {
				p.fail("%.40q: a second \": \" in one value, which begins as %.40q on line %d; indent both alike or take one out",
					r, since.Text,
					since.Line)
			}
			p.fail("%.40q: a second \": \" in one value; put it in quotes or on a line of its own", r)
		case r[i] == '#' && i > 0 && isBlank(r[i-1]):
			r = r[:i]
		}
	}
	p.endLine()
	return strings.TrimRight(r, " \t")
}

// blockScalar reads a literal (|) or folded (>) scalar.
func (p *parser) blockScalar(col int) Value {
	v := Value{Kind: Scalar, Quoted: true, Line: int32(p.num)}
	folded := p.s[p.pos] == '>'
	p.pos++
	keep, indent := byte(0), -1
	for ; p.pos < len(p.s) && !isBlank(p.s[p.pos]); p.pos++ {
		switch c := p.s[p.pos]; {
		case (c == '+' || c == '-') && keep == 0:
			keep = c
		case c >= '1' && c <= '9' && indent < 0:
			indent = max(col, 0) + int(c-'0')
		default:
			p.fail("%q behind | or >; expected +, - or a digit", c)
		}
	}
	if !p.restIsEmpty() {
		p.fail("%.40q behind | or >; expected the end of the line", p.rest())
	}
	p.endLine()
	from := p.pos
	to := from   // behind the last line that holds text
	deepest := 0 // spaces on an empty line above the text
	for p.pos < len(p.s) && !p.atMarker() {
		r := p.rest()
		n := len(r) - len(strings.TrimLeft(r, " "))
		if n < len(r) {
			if indent < 0 {
				if n <= col {
					break
				}
				if indent = n; deepest > n {
					p.fail("indented by less than the empty line above it")
				}
			}
			if n < indent {
				break
			}
		}
		p.endLine()
		if n < len(r) || indent >= 0 && n > indent {
			to = p.pos // spaces beyond the indentation are text too
		} else if indent < 0 {
			deepest = max(deepest, n)
		}
	}
	if p.quiet == 0 {
		v.Text = blockText(p.s[from:to], p.s[to:p.pos], indent, folded, keep)
	}
	return v
}

// blockText joins the lines of a block scalar: text and the empty lines after it.
func blockText(text, after string, indent int, folded bool, keep byte) string {
	if text == "" && keep != '+' {
		return ""
	}
	var b strings.Builder
	more := func(l string) bool { return l[0] == ' ' || l[0] == '\t' }
	gap, last := -1, "" // line breaks since the last line that holds text; -1 at the start
	for l := range strings.SplitSeq(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n") {
		l = l[min(max(indent, 0), len(l)):]
		gap++
		if l == "" {
			continue
		}
		switch {
		case last == "" || !folded || more(l) || more(last):
			b.WriteString(strings.Repeat("\n", gap))
		case gap == 1:
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Repeat("\n", gap-1))
		}
		b.WriteString(l)
		gap, last = 0, l
	}
	if keep != '-' && strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	if keep == '+' {
		b.WriteString(strings.Repeat("\n", strings.Count(after, "\n")))
	}
	return b.String()
}
