package svg

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// SVG writes the whole picture.
func (p *Picture) SVG(out io.Writer) error {
	w := &writer{}
	for i := range p.canvas.list {
		w.element(&p.canvas.list[i])
	}
	_, err := fmt.Fprintf(out,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" font-family="%[3]s">
<title>%[4]s</title>
<rect width="%[1]s" height="%[2]s" fill="%[5]s"/>
%[6]s</svg>
`, num(p.W), num(p.H), escape(Font), escape(p.Title), p.background, w.b.String())
	return err
}

// writer writes elements as XML.
type writer struct {
	b     strings.Builder
	depth int
}

func (w *writer) element(e *element) {
	switch e.is {
	case box:
		w.begin("rect", "x", num(e.x), "y", num(e.y), "width", num(e.w), "height", num(e.h))
		if e.r > 0 {
			w.attr("rx", num(e.r))
		}
		w.paint(e.paint)
	case line:
		w.begin("line", "x1", num(e.x), "y1", num(e.y), "x2", num(e.w), "y2", num(e.h))
		w.paint(e.paint)
	case path:
		w.begin("path", "d", e.text)
		p := e.paint
		p.Fill = cmp.Or(p.Fill, "none")
		w.paint(p)
	case disc:
		w.begin("circle", "cx", num(e.x), "cy", num(e.y), "r", num(e.r))
		w.paint(e.paint)
	case text:
		w.text(e)
		return
	case opened:
		w.open(e)
		return
	case closed:
		w.depth--
		w.indent()
		w.b.WriteString("</g>\n")
		return
	}
	w.b.WriteString("/>\n")
}

func (w *writer) text(e *element) {
	w.begin("text", "x", num(e.x), "y", num(e.y), "font-size", num(e.set.size()))
	if e.set.Fill != "" {
		w.attr("fill", e.set.Fill)
	}
	if e.set.Anchor != Start {
		w.attr("text-anchor", e.set.Anchor.String())
	}
	if e.set.Bold {
		w.attr("font-weight", "bold")
	}
	if e.set.Italic {
		w.attr("font-style", "italic")
	}
	w.b.WriteString(">" + escape(e.text) + "</text>\n")
}

func (w *writer) open(e *element) {
	w.begin("g")
	if e.text != "" {
		w.attr("class", e.text)
	}
	w.b.WriteString(">\n")
	w.depth++
	if e.tip != "" {
		w.indent()
		w.b.WriteString("<title>" + escape(e.tip) + "</title>\n")
	}
}

func (w *writer) indent() { w.b.WriteString(strings.Repeat(" ", w.depth)) }

func (w *writer) begin(name string, attrs ...string) {
	w.indent()
	w.b.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		w.attr(attrs[i], attrs[i+1])
	}
}

func (w *writer) attr(name, value string) {
	w.b.WriteString(" " + name + `="` + escape(value) + `"`)
}

func (w *writer) paint(p Paint) {
	if p.Fill != "" {
		w.attr("fill", p.Fill)
	} else if p.Stroke != "" {
		w.attr("fill", "none")
	}
	if p.Stroke != "" {
		w.attr("stroke", p.Stroke)
		if p.Width != 0 && p.Width != 1 {
			w.attr("stroke-width", num(p.Width))
		}
		if p.Dash != "" {
			w.attr("stroke-dasharray", p.Dash)
		}
		if p.Round {
			w.attr("stroke-linecap", "round")
			w.attr("stroke-linejoin", "round")
		}
	}
	if p.Opacity != 0 && p.Opacity != 1 {
		w.attr("opacity", num(p.Opacity))
	}
}

// num prints a coordinate with at most two decimals.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	r := math.Round(v*100) / 100
	if r == 0 {
		r = 0 // no minus zero
	}
	return strconv.FormatFloat(r, 'f', -1, 64)
}

// escape makes a text safe inside XML: markup is quoted, and characters that XML
// cannot hold become the replacement character.
func escape(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == utf8.RuneError || r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF:
			b.WriteString("\uFFFD")
		default:
			b.WriteString(s[i : i+utf8.RuneLen(r)])
		}
	}
	return b.String()
}
