package report

import (
	"math"
	"slices"

	"busbar.dev/internal/svg"
	"busbar.dev/unit"
)

// The parts that all charts have: a heading, axes with ticks, curves, bars over time, and samples that explain them.

// box is a place on the canvas.
type box struct{ x, y, w, h float64 }

func (b box) mid() float64    { return b.x + b.w/2 }
func (b box) bottom() float64 { return b.y + b.h }
func (b box) right() float64  { return b.x + b.w }

// overlaps reports whether two boxes overlap.
func (b box) overlaps(o box) bool {
	return b.x < o.right() && o.x < b.right() && b.y < o.bottom() && o.y < b.bottom()
}

// place is the i-th of n boxes that stand evenly in another, no wider than most.
func place(b box, i, n int, most float64) box {
	step := (b.w - pad) / float64(n)
	w := min(step-2, most)
	return box{b.x + pad/2 + step*(float64(i)+0.5) - w/2, b.y, w, b.h}
}

// edge is the room around a picture.
const edge = 24.0

// heading writes what a picture shows and what to know about it, and returns where that ends.
func (p *picture) heading(w float64, title string, under ...string) float64 {
	big, small := font{Size: 19, Bold: true, Fill: ink}, font{Size: 12, Fill: inkSoft}
	p.say(edge, 34, w-2*edge, title, big)
	y := 56.0
	for _, line := range nonEmpty(under...) {
		p.say(edge, y, w-2*edge, line, small)
		y += 17
	}
	return y
}

// Sample explains a kind of link or box.
type Sample struct {
	Text  string `json:"text"`
	Paint brush  `json:"paint"`
	Solid bool   `json:"solid,omitempty"` // a box, not a line
	key   string
}

// fillSample explains a colour.
func fillSample(fill, text string) Sample {
	return Sample{key: fill, Text: text, Paint: brush{Fill: fill}, Solid: true}
}

// samples explains colours and lines side by side, and returns where that ends.
func (p *picture) samples(x, y, w float64, list []Sample) float64 {
	ty, at := font{Size: 11.5, Fill: ink}, x
	p.Open("legend", "", "")
	for _, s := range list {
		need := 60 + svg.TextWidth(s.Text, ty)
		if at > x && at+need > x+w {
			at, y = x, y+22
		}
		if s.Solid {
			p.Rect(at, y-5, 30, 10, 3, s.Paint)
		} else {
			p.Line(at, y, at+30, y, s.Paint)
		}
		p.Text(at+38, y+4, s.Text, ty)
		at += need
	}
	p.Close()
	return y + 24
}

// lineLooks tell lines from others: in colour, brightness and dash, so that they can be printed in grey.
var lineLooks = []brush{
	{Stroke: "#14406b"},
	{Stroke: "#d1495b", Dash: "7 3"},
	{Stroke: "#2a9d8f", Dash: "2 3"},
	{Stroke: "#e09f00", Dash: "9 3 2 3"},
	{Stroke: "#7a4fa3"},
	{Stroke: "#4f4f4f", Dash: "7 3"},
	{Stroke: "#5aa9e6", Dash: "2 3"},
	{Stroke: "#8a5a2b", Dash: "9 3 2 3"},
	{Stroke: "#c2185b"},
	{Stroke: "#33691e", Dash: "7 3"},
	{Stroke: "#9e9e9e", Dash: "2 3"},
	{Stroke: "#000000", Dash: "9 3 2 3"},
}

// point is a value of a line; between low and high it may lie too.
type point struct {
	x, y, low, high float64
	tip, note       string
	ringed          bool
}

// plot is lines over an axis of doublings, each line in its look.
type plot struct {
	box
	title, across string
	least         float64 // of an axis upwards in powers of ten; 0 where it goes evenly from zero
	xTick, yTick  func(float64) string
	lines         [][]point
	x, y          svg.Axis
}

func (p *plot) draw(c *picture) {
	low, high := point{x: math.Inf(1), y: math.Inf(1)}, point{y: 1e-6}
	for _, v := range slices.Concat(p.lines...) {
		low.x, low.y = min(low.x, v.x), min(low.y, v.low, v.y)
		high.x, high.y = max(high.x, v.x), max(high.y, v.high, v.y)
	}
	p.x, p.y = svg.PowerAxis(2, low.x, high.x, p.box.x, p.right()), svg.EvenAxis(high.y, p.bottom(), p.box.y)
	if p.least > 0 {
		p.y = svg.PowerAxis(10, max(low.y, p.least), high.y, p.bottom(), p.box.y)
	}
	c.Open("plot", p.title, "")
	left, middle := font{Size: 11, Fill: inkSoft, Anchor: svg.End},
		font{Size: 11, Fill: inkSoft, Anchor: svg.Middle}
	c.Text(p.box.x-50, p.box.y-12, p.title, font{Size: 13, Bold: true, Fill: ink})
	for _, v := range p.y.Ticks {
		c.Line(p.box.x, p.y.At(v), p.right(), p.y.At(v), brush{Stroke: panelLine})
		c.Text(p.box.x-8, p.y.At(v)+4, p.yTick(v), left)
	}
	for _, v := range p.x.Ticks {
		c.Line(p.x.At(v), p.bottom(), p.x.At(v), p.bottom()+5, brush{Stroke: inkSoft})
		c.Text(p.x.At(v), p.bottom()+19, p.xTick(v), middle)
	}
	c.Line(p.box.x, p.bottom(), p.right(), p.bottom(), brush{Stroke: inkSoft})
	c.Text(p.mid(), p.bottom()+37, p.across, middle)
	for i := range p.lines {
		p.drawLine(c, lineLooks[i], p.lines[i])
	}
	c.Close()
}

// drawLine draws a line with its points, and shades where its values may lie.
func (p *plot) drawLine(c *picture, paint brush, points []point) {
	var high, low, line []any
	for k, v := range points {
		x := p.x.At(v.x)
		high, low = append(high, "L", x, p.y.At(v.high)), append([]any{"L", x, p.y.At(v.low)}, low...)
		line = append(line, []string{"M", "L"}[min(k, 1)], x, p.y.At(v.y))
	}
	if high[0] = "M"; points[0].low < points[0].high {
		c.Path(brush{Fill: paint.Stroke, Opacity: 0.12}, append(append(high, low...), "Z")...)
	}
	paint.Width, paint.Round = 1.8, true
	c.Path(paint, line...)
	for _, v := range points {
		x, y := p.x.At(v.x), p.y.At(v.y)
		c.Open("point", v.tip, "")
		c.Rect(x-2.8, y-2.8, 5.6, 5.6, 2.8, brush{Fill: paint.Stroke})
		if v.ringed {
			c.Rect(x-6, y-6, 12, 12, 6, brush{Stroke: ink, Width: 1.2})
		}
		c.Text(x+6, y-9, v.note, font{Size: 11, Fill: ink})
		c.Close()
	}
}

// bar is a span as it is drawn: in a colour, with where it may end, and a note behind it.
type bar struct {
	Span
	fill      string
	low, high unit.Time
	note      string
}

const barStep, barHigh = 28.0, 22.0

// drawBars draws bars over time, a row for every track of every group in the order in which they come, and returns the
// axis and where they end. Neighbours of one colour that are thinner than a dot are drawn as one.
func drawBars(c *picture, top, wide float64, bars []bar, end unit.Time) (time svg.Axis, bottom float64) {
	type row struct {
		y, drawn float64
		fill     string
	}
	names, rows, left := font{Size: 11, Fill: ink, Anchor: svg.End}, map[string]*row{}, 0.0
	for _, b := range bars {
		left = max(left, svg.TextWidth(b.Group+" "+b.Track, names))
		end = max(end, b.To, b.high)
	}
	left = edge + min(left, 200) + 8
	for _, b := range bars {
		if name := b.Group + " " + b.Track; rows[name] == nil {
			rows[name] = &row{y: top + barStep*float64(len(rows))}
			c.say(left-8, rows[name].y+15, left-edge, name, names)
		}
	}
	time, bottom = svg.EvenAxis(float64(end), left, left+wide), top+barStep*float64(len(rows))
	time.High = float64(end)
	for _, v := range time.Ticks {
		if v > time.High {
			break
		}
		c.Line(time.At(v), top-6, time.At(v), bottom, brush{Stroke: panelLine})
		text := "0" // in whatever unit
		if v > 0 {
			text = unit.Time(v).String()
		}
		c.Text(time.At(v), top-12, text, font{Size: 10, Fill: inkSoft, Anchor: svg.Middle})
	}
	for i := range bars {
		c.note(bars[i].fill)
		r := rows[bars[i].Group+" "+bars[i].Track]
		if to := time.At(float64(bars[i].To)); to-r.drawn >= 0.5 || r.fill != bars[i].fill {
			bars[i].draw(c, &time, r.y)
			r.drawn, r.fill = to, bars[i].fill
		}
	}
	return time, bottom
}

func (b *bar) draw(c *picture, time *svg.Axis, y float64) {
	from, to := time.At(float64(b.From)), time.At(float64(b.To))
	c.Open("bar", b.Name+": "+(b.To-b.From).String()+" from "+b.From.String(), "")
	paint := brush{Fill: b.fill}
	if to-from > 3 {
		paint.Stroke, paint.Width = paper, 0.5
	}
	c.Rect(from, y, max(0.5, to-from), barHigh, 0, paint)
	inside := font{Size: 9, Fill: paper}
	if text := svg.Fit(b.Name, inside, to-from-4); len(text) > 4 && to-from > 40 && b.note == "" {
		c.Text(from+3, y+14, text, inside)
	}
	if b.low < b.high {
		// White below the line, so that it shows on a dark bar too.
		lo, hi, mid := time.At(float64(b.low)), time.At(float64(b.high)), y+barHigh/2
		for _, p := range []brush{{Stroke: paper, Width: 3}, {Stroke: ink, Width: 1.2}} {
			c.Path(p, "M", lo, mid, "L", hi, mid, "M", lo, mid-4, "L", lo, mid+4, "M", hi, mid-4, "L", hi, mid+4)
		}
		to = max(to, hi)
	}
	c.Text(to+10, y+15, b.note, font{Size: 12, Fill: ink})
	c.Close()
}
