package yamldoc

import (
	"io"
	"strconv"
	"strings"
)

const (
	width = 100      // columns that a map on one line may reach
	chunk = 64 << 10 // bytes written at once
)

// write prints a tree: collections as blocks, indented by two, and short maps of
// scalars on one line.
func write(w io.Writer, v *Value) error {
	p := printer{w: w}
	if v.Kind == Scalar || len(v.Items) == 0 {
		p.scalar(v, false)
		p.newline()
	} else {
		p.block(v, 0)
	}
	p.flush()
	return p.err
}

type printer struct {
	w    io.Writer
	buf  []byte
	line int // where the line being written starts in buf
	err  error
}

func (p *printer) flush() {
	if p.err == nil {
		_, p.err = p.w.Write(p.buf)
	}
	p.buf = p.buf[:0]
}

// newline ends a line.
func (p *printer) newline() {
	p.buf = append(p.buf, '\n')
	if len(p.buf) >= chunk {
		p.flush()
	}
	p.line = len(p.buf)
}

func (p *printer) indent(n int) {
	for range n {
		p.buf = append(p.buf, ' ')
	}
}

// block prints a map or a list that has items. Its first line starts where the
// text stands, behind a dash or at the start of a line.
func (p *printer) block(v *Value, indent int) {
	p.indent(indent - (len(p.buf) - p.line))
	for i := range v.Items {
		if i > 0 {
			p.indent(indent)
		}
		e := &v.Items[i]
		if v.Kind == Map {
			p.key(e.Key)
			p.buf = append(p.buf, ':')
		} else {
			p.buf = append(p.buf, '-')
		}
		p.buf = append(p.buf, ' ')
		switch {
		case len(e.Items) == 0:
			p.scalar(e, false)
			p.newline()
		case e.Kind == Map && p.flowMap(e, v.Kind == Map):
			p.newline()
		case v.Kind == Map:
			p.buf = p.buf[:len(p.buf)-1]
			p.newline()
			fallthrough
		default:
			p.block(e, indent+2)
		}
	}
}

// scalar prints a scalar or an empty collection.
func (p *printer) scalar(v *Value, flow bool) {
	switch {
	case v.Kind == Null:
		p.buf = append(p.buf, "null"...)
	case v.Kind == Map:
		p.buf = append(p.buf, "{}"...)
	case v.Kind == List:
		p.buf = append(p.buf, "[]"...)
	case v.Quoted && !isPlain(v.Text, flow):
		p.quote(v.Text)
	default:
		p.buf = append(p.buf, v.Text...)
	}
}

// flowMap prints {a: b, c: d} and reports that it did. It does not when the map
// holds collections or is too long for a line, or when a text would need quotes
// only for this and quotes are not welcome.
func (p *printer) flowMap(v *Value, quotes bool) bool {
	from := len(p.buf)
	for i := range v.Items {
		e := &v.Items[i]
		if i == 0 {
			p.buf = append(p.buf, '{')
		} else {
			p.buf = append(p.buf, ", "...)
		}
		p.key(e.Key)
		p.buf = append(p.buf, ": "...)
		p.scalar(e, true)
		fits := len(e.Items) == 0 && len(p.buf)-p.line < width &&
			(quotes || e.Kind != Scalar || !e.Quoted || isPlain(e.Text, true) || !isPlain(e.Text, false))
		if !fits {
			p.buf = p.buf[:from]
			return false
		}
	}
	p.buf = append(p.buf, '}')
	return true
}

// key prints a key, in quotes where a reader might see two of them.
func (p *printer) key(s string) {
	if isPlain(s, true) && !strings.ContainsAny(s, ":<") {
		p.buf = append(p.buf, s...)
	} else {
		p.quote(s)
	}
}

// quote prints text in quotes. What Go escapes YAML knows too; bytes that are no UTF-8 become U+FFFD.
func (p *printer) quote(s string) {
	p.buf = strconv.AppendQuoteToGraphic(p.buf, string([]rune(s)))
}

// isPlain reports whether every reader of YAML takes s, unquoted, for that text.
func isPlain(s string, flow bool) bool {
	if s == "" || strings.IndexByte(" -?:,[]{}#&*!|>'\"%@`=<~", s[0]) >= 0 || s[len(s)-1] == ' ' || s[len(s)-1] == ':' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return false
		case c == ':' && s[i+1] == ' ', c == ' ' && i+1 < len(s) && s[i+1] == '#':
			return false
		case flow && strings.IndexByte(",[]{}?", c) >= 0:
			return false
		}
	}
	return !looksElse(s)
}

// looksElse reports whether some reader of YAML takes a word for a number, a
// date, a truth value or nothing. YAML 1.1 has more of them than 1.2: 0000:07:00.0
// is a number to it, in base sixty.
func looksElse(s string) bool {
	switch c := s[0]; {
	case c >= '0' && c <= '9' || c == '.':
		number := strings.Trim(s, "0123456789_.:,eE+-") == ""
		prefixed := len(s) > 1 && c == '0' && strings.IndexByte("xXoObB", s[1]) >= 0
		date := len(s) > 4 && s[4] == '-' && strings.Trim(s[:4], "0123456789") == ""
		return number || prefixed || date || strings.EqualFold(s, ".inf") || strings.EqualFold(s, ".nan")
	case c == '+':
		return true
	}
	switch strings.ToLower(s[:min(len(s), 6)]) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}
