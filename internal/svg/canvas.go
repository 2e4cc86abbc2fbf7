// Package svg draws pictures: boxes, lines, curves and text on a canvas of a
// stated size, written as SVG.
//
// Everything is written as plain attributes, without style sheets or scripts,
// because slide programs import those badly. Numbers are rounded to a hundredth,
// so that the same picture is the same bytes on every machine.
package svg

import (
	"cmp"
	"math"
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
	list  []element
	depth int
}

// element is one call of a Canvas.
type element struct {
	is         kind
	x, y, w, h float64 // of a line, w and h are its other end
	r          float64
	text       string // a path's description, a group's class
	tip        string
	paint      Paint
	set        Type
}

type kind uint8

const (
	box kind = iota
	line
	path
	disc
	text
	opened
	closed
)

// Rect draws a box with corners of radius r.
func (c *Canvas) Rect(x, y, w, h, r float64, p Paint) {
	c.add(element{is: box, x: x, y: y, w: math.Max(w, 0), h: math.Max(h, 0), r: r, paint: p})
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, p Paint) {
	c.add(element{is: line, x: x1, y: y1, w: x2, h: y2, paint: p})
}

// Path draws a path given in SVG's own language; make it with Pen.
func (c *Canvas) Path(d string, p Paint) { c.add(element{is: path, text: d, paint: p}) }

// Circle draws a disc.
func (c *Canvas) Circle(x, y, r float64, p Paint) {
	c.add(element{is: disc, x: x, y: y, r: r, paint: p})
}

// Text sets one line of text with its baseline at y.
func (c *Canvas) Text(x, y float64, s string, t Type) {
	if s != "" {
		c.add(element{is: text, x: x, y: y, text: s, set: t})
	}
}

func (t Type) size() float64 {
	return cmp.Or(t.Size, 12)
}

// Open begins a group: what belongs together, with a class for programs and a
// tip for people who point at it. Close ends it.
func (c *Canvas) Open(class, tip string) {
	c.add(element{is: opened, text: class, tip: tip})
	c.depth++
}

// Close ends the group that Open began last.
func (c *Canvas) Close() {
	if c.depth == 0 {
		return
	}
	c.depth--
	c.add(element{is: closed})
}

func (c *Canvas) add(e element) { c.list = append(c.list, e) }

// Picture is a canvas of a stated size on a background of its own, so that it
// looks the same in light and dark viewers.
type Picture struct {
	canvas     *Canvas
	W, H       float64
	Title      string
	background string
}

// Picture ends the drawing: w by h.
func (c *Canvas) Picture(w, h float64, title, background string) *Picture {
	for c.depth > 0 {
		c.Close()
	}
	return &Picture{c, w, h, title, background}
}
