// Package svg draws pictures: boxes, lines, curves and text on a canvas of a
// stated size, written as SVG or, as the marks themselves, as JSON.
//
// Everything is written as plain attributes, without style sheets or scripts,
// because slide programs import those badly. Numbers are rounded to a hundredth,
// so that the same picture is the same bytes on every machine.
package svg

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"

	"busbar.dev/internal/words"
)

// Font is the font stack of every text.
const Font = "'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"

// Paint is how a shape is filled and outlined. Colours are names of Colors or what SVG knows; empty ones mean none.
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
	Anchor string  `json:"anchor,omitempty"`
	Bold   bool    `json:"bold,omitempty"`
	Italic bool    `json:"italic,omitempty"`
}

// Anchors: which part of a text stands at its point, where that is not its start.
const (
	Middle = "middle"
	End    = "end"
)

// Mark is one element of a picture. Is says which: a rect, line, path or text has a place and a look; a group holds
// marks that belong together; cells are many equal boxes in rows.
type Mark struct {
	Is    string   `json:"is"`
	Class string   `json:"class,omitempty"` // group: what it is, such as gpu or switch leaf
	Tip   string   `json:"tip,omitempty"`   // group: for those who point at it
	Key   string   `json:"key,omitempty"`   // group: the thing that it stands for, such as device/node0/gpu0
	Names []string `json:"names,omitempty"` // group: the switches or devices it stands for, where those are several
	Marks []Mark   `json:"marks,omitempty"` // group: painted in this order

	X  float64 `json:"x,omitempty"`
	Y  float64 `json:"y,omitempty"`
	W  float64 `json:"w,omitempty"`
	H  float64 `json:"h,omitempty"`
	R  float64 `json:"r,omitempty"`  // rect, cells: radius of corners
	X2 float64 `json:"x2,omitempty"` // line: where it ends
	Y2 float64 `json:"y2,omitempty"`
	D  string  `json:"d,omitempty"` // path: as SVG writes it

	Text  string `json:"text,omitempty"`
	Type  *Type  `json:"type,omitempty"`
	Paint *Paint `json:"paint,omitempty"`
	Cells *Cells `json:"cells,omitempty"`
}

// Names of marks.
const (
	Rect  = "rect"
	Line  = "line"
	Path  = "path"
	Text  = "text"
	Group = "group"
	Grid  = "cells"
)

// Cells are equal boxes, the first of which is at the place and of the size of their mark, row by row.
type Cells struct {
	What   string   `json:"what"`             // node or switch
	In     string   `json:"in"`               // the group that they belong to
	Hosts  string   `json:"hosts,omitempty"`  // the nodes, as a hostlist
	Names  []string `json:"names,omitempty"`  // the switches
	Labels []string `json:"labels,omitempty"` // of each, where there is room for words
	Cols   int      `json:"cols"`             // in a row
	N      int      `json:"n"`                // in all
	DX     float64  `json:"dx"`               // from one to the next
	DY     float64  `json:"dy"`
}

// Picture is marks on paper of a stated size. Coordinates grow to the right and downwards; one unit is a pixel at the
// natural size.
type Picture struct {
	Title  string  `json:"title"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	Marks  []Mark  `json:"marks"`
}

// Canvas collects the marks of a picture in the order they are painted.
type Canvas struct {
	marks []Mark
	open  []Mark // groups that are not closed yet, the outermost first
}

// Add paints a mark.
func (c *Canvas) Add(m Mark) {
	to := &c.marks
	if n := len(c.open); n > 0 {
		to = &c.open[n-1].Marks
	}
	*to = append(*to, m)
}

// Open begins a group: what belongs together, with a class for programs and a tip for people who point at it. The key
// is what a page knows it by; without one it cannot be chosen. Several names are those of what it stands for.
func (c *Canvas) Open(class, tip, key string, names ...string) {
	m := Mark{Is: Group, Class: class, Tip: tip, Key: key}
	if key != "" && len(names) > 1 {
		m.Names = names
	}
	c.open = append(c.open, m)
}

// Close ends the group that Open began last.
func (c *Canvas) Close() {
	n := len(c.open) - 1
	m := c.open[n]
	c.open = c.open[:n]
	c.Add(m)
}

// Rect draws a box with corners of radius r.
func (c *Canvas) Rect(x, y, w, h, r float64, p Paint) {
	c.Add(Mark{
		Is: Rect, X: Cent(x), Y: Cent(y), W: Cent(math.Max(w, 0)), H: Cent(math.Max(h, 0)), R: Cent(r), Paint: rounded(p),
	})
}

// Line draws a straight line.
func (c *Canvas) Line(x1, y1, x2, y2 float64, p Paint) {
	c.Add(Mark{Is: Line, X: Cent(x1), Y: Cent(y1), X2: Cent(x2), Y2: Cent(y2), Paint: rounded(p)})
}

// Path draws letters of SVG's path language, each before its coordinates: "M", x, y, "L", x, y.
func (c *Canvas) Path(p Paint, steps ...any) {
	words := make([]string, len(steps))
	for i, s := range steps {
		if v, ok := s.(float64); ok {
			s = Cent(v)
		}
		words[i] = fmt.Sprint(s)
	}
	c.Add(Mark{Is: Path, D: strings.Join(words, " "), Paint: rounded(p)})
}

// Text sets one line of text with its baseline at y.
func (c *Canvas) Text(x, y float64, s string, t Type) {
	if s != "" {
		c.Add(Mark{Is: Text, X: Cent(x), Y: Cent(y), Text: s, Type: &t})
	}
}

// Picture is what was drawn so far, on paper of a size.
func (c *Canvas) Picture(title string, w, h float64) *Picture {
	return &Picture{Title: title, Width: Cent(w), Height: Cent(h), Marks: c.marks}
}

func rounded(p Paint) *Paint {
	p.Width = Cent(p.Width)
	return &p
}

// Cent rounds a coordinate to what a picture shows of it.
func Cent(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*100)/100 + 0 // no minus zero
}

// SVG writes the whole picture, on a background of its own, so that it looks the same in light and dark viewers.
func (p *Picture) SVG(out io.Writer) error {
	var whole bytes.Buffer // written at once: standard output is cleaned write by write, and half a character is none
	w := writer{xml.NewEncoder(&whole)}
	w.Indent("", " ")
	width, height := fmt.Sprint(p.Width), fmt.Sprint(p.Height)
	end := w.start("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", "0 0 "+width+" "+height, "width", width,
		"height", height, "role", "img", "font-family", Font)
	w.words("title", p.Title)
	w.words("rect", "", "width", width, "height", height, "fill", Colors["paper"])
	w.marks(p.Marks)
	end()
	if err := w.Close(); err != nil {
		return err
	}
	_, err := whole.WriteTo(out)
	return err
}

// writer writes marks as XML. What goes wrong on the way shows when it is closed.
type writer struct{ *xml.Encoder }

// start begins an element, leaving empty attributes out; what it returns ends it.
func (w writer) start(name string, attrs ...string) (end func()) {
	e := xml.StartElement{Name: xml.Name{Local: name}}
	for i := 0; i+1 < len(attrs); i += 2 {
		if attrs[i+1] != "" {
			e.Attr = append(e.Attr, xml.Attr{Name: xml.Name{Local: attrs[i]}, Value: attrs[i+1]})
		}
	}
	_ = w.EncodeToken(e)
	return func() { _ = w.EncodeToken(e.End()) }
}

// words writes an element that holds a text, or nothing.
func (w writer) words(name, text string, attrs ...string) {
	end := w.start(name, attrs...)
	_ = w.EncodeToken(xml.CharData(text))
	end()
}

func (w writer) marks(list []Mark) {
	for i := range list {
		m := &list[i]
		var place []string
		switch m.Is {
		case Group:
			end := w.start("g", "class", m.Class)
			if m.Tip != "" {
				w.words("title", m.Tip)
			}
			w.marks(m.Marks)
			end()
			continue
		case Text:
			w.words(m.Is, m.Text, m.Type.attrs(m.X, m.Y)...)
			continue
		case Grid:
			w.cells(m)
			continue
		case Rect:
			place = []string{"x", num(m.X), "y", num(m.Y), "width", num(m.W), "height", num(m.H), "rx", some(m.R)}
		case Line:
			place = []string{"x1", num(m.X), "y1", num(m.Y), "x2", num(m.X2), "y2", num(m.Y2)}
		case Path:
			place = []string{"d", m.D}
		}
		w.words(m.Is, "", append(place, m.Paint.attrs()...)...)
	}
}

// cells writes cells as one path, and their labels.
func (w writer) cells(m *Mark) {
	c, one := m.Cells, fmt.Sprintf("h%vv%vh%vz", m.W, m.H, -m.W)
	var d strings.Builder
	for i := 0; i < c.N; i += c.Cols {
		fmt.Fprintf(&d, "M%v %v%s", m.X, Cent(m.Y+float64(i/c.Cols)*c.DY), one)
		d.WriteString(strings.Repeat(fmt.Sprintf("m%v 0%s", c.DX, one), min(c.Cols, c.N-i)-1))
	}
	w.words(Path, "", append([]string{"d", d.String()}, m.Paint.attrs()...)...)
	for i, text := range c.Labels {
		x, y := m.X+float64(i%c.Cols)*c.DX+m.W/2, m.Y+float64(i/c.Cols)*c.DY+m.H/2+m.Type.Size*0.36
		w.words("text", text, m.Type.attrs(Cent(x), Cent(y))...)
	}
}

func (t *Type) attrs(x, y float64) []string {
	weight, style := "", ""
	if t.Bold {
		weight = "bold"
	}
	if t.Italic {
		style = "italic"
	}
	return []string{
		"x", num(x), "y", num(y), "font-size", num(t.size()), "fill", color(t.Fill), "text-anchor", t.Anchor,
		"font-weight", weight, "font-style", style,
	}
}

func (p *Paint) attrs() []string {
	list := []string{"fill", cmp.Or(color(p.Fill), "none"), "opacity", some(p.Opacity)}
	if p.Stroke != "" {
		list = append(list, "stroke", color(p.Stroke), "stroke-width", some(p.Width), "stroke-dasharray", p.Dash)
	}
	if p.Round {
		list = append(list, "stroke-linecap", "round", "stroke-linejoin", "round")
	}
	return list
}

func num(v float64) string { return fmt.Sprint(v) }

// some is a number that is left out where it is zero.
func some(v float64) string {
	if v == 0 {
		return ""
	}
	return num(v)
}

// Colors are the colours with names, in the light of paper; a page has others for the dark. Each kind of link has one;
// red is kept for what is wrong and orange for what is shared.
var Colors = words.Pairs("paper=#ffffff|ink=#1f2430|soft=#5d6675|panel=#f6f7f9|panel-line=#cfd5de|nvlink=#5b9a1f|gpu=#eaf4dd|" +
	"pcie=#2f78bf|pci=#e1edf9|net=#7a52c7|nic=#ede6fa|smp=#8c6a3f|numa=#efe9e0|numa-line=#b39d7d|xgmi=#0f8f86|" +
	"c2c=#7d8a1e|socket=#faf8f4|shared=#ffe8c7|shared-line=#d97706|shared-ink=#a85a00|wrong=#fde3e3|" +
	"wrong-line=#d22f2f|idle=#f0f1f4|idle-line=#9aa3b2|cloud=#faf8fe|tray-line=#b4bcc8|on-bar=#ffffff")

func color(name string) string { return cmp.Or(Colors[name], name) }
