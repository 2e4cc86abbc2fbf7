// Package svg writes pictures: boxes, lines, curves and text on a canvas of a
// stated size.
//
// Everything is written as plain attributes, without style sheets or scripts,
// because slide programs import those badly. Numbers are rounded to a hundredth,
// so that the same picture is the same bytes on every machine.
package svg

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Font is the font stack of every text.
const Font = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

// Paint is how a shape is filled and outlined. Empty colours mean none.
type Paint struct {
	Fill    string  `json:"fill,omitempty"`
	Stroke  string  `json:"stroke,omitempty"`
	Width   float64 `json:"width,omitempty"`   // of the outline or line; 1 when zero
	Dash    string  `json:"dash,omitempty"`    // as SVG writes it: "4 3"
	Opacity float64 `json:"opacity,omitempty"` // 1 when zero
	Round   bool    `json:"round,omitempty"`   // round line ends and joins
}

// Type is how a text is set.
type Type struct {
	Size   float64 `json:"size,omitempty"` // 12 when zero
	Fill   string  `json:"fill,omitempty"` // black when empty
	Anchor Anchor  `json:"anchor,omitzero"`
	Bold   bool    `json:"bold,omitempty"`
	Italic bool    `json:"italic,omitempty"`
}

// Anchor says which part of a text stands at its point.
type Anchor uint8

// Anchors.
const (
	Start Anchor = iota
	Middle
	End
)

// String is the anchor as SVG writes it.
func (a Anchor) String() string { return [...]string{"start", "middle", "end"}[a] }

// MarshalText writes what String says.
func (a Anchor) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// Canvas collects the elements of a picture in the order they are painted.
type Canvas struct {
	b     strings.Builder
	depth int
}

// Rect draws a box with corners of radius r.
func (c *Canvas) Rect(x, y, w, h, r float64, p Paint) {
	c.begin("rect", "x", num(x), "y", num(y), "width", num(math.Max(w, 0)), "height", num(math.Max(h, 0)))
	if r > 0 {
		c.attr("rx", num(r))
	}
	c.paint(p)
	c.b.WriteString("/>\n")
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, p Paint) {
	c.begin("line", "x1", num(x1), "y1", num(y1), "x2", num(x2), "y2", num(y2))
	c.paint(p)
	c.b.WriteString("/>\n")
}

// Path draws a path given in SVG's own language; make it with Pen.
func (c *Canvas) Path(d string, p Paint) {
	c.begin("path", "d", d)
	if p.Fill == "" {
		p.Fill = "none"
	}
	c.paint(p)
	c.b.WriteString("/>\n")
}

// Circle draws a disc.
func (c *Canvas) Circle(x, y, r float64, p Paint) {
	c.begin("circle", "cx", num(x), "cy", num(y), "r", num(r))
	c.paint(p)
	c.b.WriteString("/>\n")
}

// Text sets one line of text with its baseline at y.
func (c *Canvas) Text(x, y float64, s string, t Type) {
	if s == "" {
		return
	}
	c.begin("text", "x", num(x), "y", num(y), "font-size", num(t.size()))
	if t.Fill != "" {
		c.attr("fill", t.Fill)
	}
	if t.Anchor != Start {
		c.attr("text-anchor", t.Anchor.String())
	}
	if t.Bold {
		c.attr("font-weight", "bold")
	}
	if t.Italic {
		c.attr("font-style", "italic")
	}
	c.b.WriteString(">" + escape(s) + "</text>\n")
}

func (t Type) size() float64 {
	if t.Size == 0 {
		return 12
	}
	return t.Size
}

// Open begins a group: what belongs together, with a class for programs and a
// tip for people who point at it. Close ends it.
func (c *Canvas) Open(class, tip string) {
	c.begin("g")
	if class != "" {
		c.attr("class", class)
	}
	c.b.WriteString(">\n")
	c.depth++
	if tip != "" {
		c.indent()
		c.b.WriteString("<title>" + escape(tip) + "</title>\n")
	}
}

// Close ends the group that Open began last.
func (c *Canvas) Close() {
	if c.depth == 0 {
		return
	}
	c.depth--
	c.indent()
	c.b.WriteString("</g>\n")
}

// Write writes the whole picture, w by h, on a background of its own so that it
// looks the same in light and dark viewers.
func (c *Canvas) Write(out io.Writer, w, h float64, title, background string) error {
	for c.depth > 0 {
		c.Close()
	}
	_, err := fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width="%[1]s" height="%[2]s" role="img" font-family="%[3]s">
<title>%[4]s</title>
<rect width="%[1]s" height="%[2]s" fill="%[5]s"/>
%[6]s</svg>
`, num(w), num(h), escape(Font), escape(title), background, c.b.String())
	return err
}

func (c *Canvas) indent() { c.b.WriteString(strings.Repeat(" ", c.depth)) }

func (c *Canvas) begin(name string, attrs ...string) {
	c.indent()
	c.b.WriteString("<" + name)
	for i := 0; i+1 < len(attrs); i += 2 {
		c.attr(attrs[i], attrs[i+1])
	}
}

func (c *Canvas) attr(name, value string) {
	c.b.WriteString(" " + name + `="` + escape(value) + `"`)
}

func (c *Canvas) paint(p Paint) {
	if p.Fill != "" {
		c.attr("fill", p.Fill)
	} else if p.Stroke != "" {
		c.attr("fill", "none")
	}
	if p.Stroke != "" {
		c.attr("stroke", p.Stroke)
		if p.Width != 0 && p.Width != 1 {
			c.attr("stroke-width", num(p.Width))
		}
		if p.Dash != "" {
			c.attr("stroke-dasharray", p.Dash)
		}
		if p.Round {
			c.attr("stroke-linecap", "round")
			c.attr("stroke-linejoin", "round")
		}
	}
	if p.Opacity != 0 && p.Opacity != 1 {
		c.attr("opacity", num(p.Opacity))
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
