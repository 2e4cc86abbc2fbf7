package svg

import "strings"

// Pen writes the description of a path.
type Pen struct{ b strings.Builder }

// Move lifts the pen to a point.
func (p *Pen) Move(x, y float64) *Pen { return p.add("M", x, y) }

// Line draws to a point.
func (p *Pen) Line(x, y float64) *Pen { return p.add("L", x, y) }

// Curve draws a cubic Bézier to (x, y) with two control points.
func (p *Pen) Curve(x1, y1, x2, y2, x, y float64) *Pen { return p.add("C", x1, y1, x2, y2, x, y) }

// Shut closes the figure.
func (p *Pen) Shut() *Pen { return p.add("Z") }

func (p *Pen) add(op string, v ...float64) *Pen {
	if p.b.Len() > 0 {
		p.b.WriteByte(' ')
	}
	p.b.WriteString(op)
	for i, f := range v {
		if i > 0 {
			p.b.WriteByte(' ')
		}
		p.b.WriteString(num(f))
	}
	return p
}

// String is the path so far.
func (p *Pen) String() string { return p.b.String() }
