package report

import (
	"math"

	"busbar.dev/internal/svg"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// scale maps values to the picture.
type scale struct {
	log          bool
	lo, hi       float64 // values
	start, extra float64 // in the picture: of lo, and from there to hi
	ticks        []float64
}

func (s *scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log2(math.Max(v, s.lo/2)), math.Log2(lo), math.Log2(hi)
	}
	if hi <= lo {
		return s.start
	}
	return s.start + (v-lo)/(hi-lo)*s.extra
}

// sizeScale is the axis of sizes, with a tick at every second to sixteenth power
// of two, as many as there is room for.
func sizeScale(list []line, x float64) scale {
	s := scale{log: true, lo: math.Inf(1), start: x, extra: plotW}
	for _, l := range list {
		for _, r := range l.rows {
			s.lo, s.hi = math.Min(s.lo, float64(max(r.Asked, 1))), math.Max(s.hi, float64(r.Asked))
		}
	}
	first, last := math.Ceil(math.Log2(s.lo)), math.Floor(math.Log2(s.hi))
	step := math.Max(1, math.Ceil((last-first)/8))
	for e := first; e <= last; e += step {
		s.ticks = append(s.ticks, math.Exp2(e))
	}
	return s
}

// logScale is an upward axis with a tick at powers of ten.
func logScale(lo, hi float64) scale {
	lo, hi = math.Max(lo, 1e-3), math.Max(hi, 2e-3)
	from, to := math.Floor(math.Log10(lo)), math.Ceil(math.Log10(hi))
	if to == from {
		to++
	}
	s := scale{log: true, lo: math.Pow(10, from), hi: math.Pow(10, to), start: plotTop + plotH, extra: -plotH}
	for e := from; e <= to; e++ {
		s.ticks = append(s.ticks, math.Pow(10, e))
	}
	return s
}

// flatScale is an upward axis from zero in round steps.
func flatScale(_, hi float64) scale {
	hi = math.Max(hi, 1e-6)
	step := math.Pow(10, math.Floor(math.Log10(hi)))
	for _, f := range []float64{0.2, 0.5, 1, 2} {
		if hi/(step*f) <= 6 {
			step *= f
			break
		}
	}
	n := math.Ceil(hi / step)
	s := scale{hi: n * step, start: plotTop + plotH, extra: -plotH}
	for i := range int(n) + 1 {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

// plot is one of the two diagrams.
type plot struct {
	x, y             float64
	title            string
	across, up       scale
	lines            []line
	value, low, high func(query.PredictRow) float64
	tick             func(float64) string
	ringed           bool // what NCCL chooses
}

// extent is the range of values, margins included.
func (p *plot) extent() (lo, hi float64) {
	lo = math.Inf(1)
	for _, l := range p.lines {
		for _, r := range l.rows {
			lo, hi = math.Min(lo, p.low(r)), math.Max(hi, p.high(r))
		}
	}
	return lo, hi
}

// at is where a row's value lies.
func (p *plot) at(r query.PredictRow, value func(query.PredictRow) float64) (x, y float64) {
	return p.across.at(float64(max(r.Asked, 1))), p.up.at(value(r))
}

// along goes through a line's values.
func (p *plot) along(l *line, value func(query.PredictRow) float64) *svg.Pen {
	pen := &svg.Pen{}
	for i, r := range l.rows {
		if i == 0 {
			pen.Move(p.at(r, value))
			continue
		}
		pen.Line(p.at(r, value))
	}
	return pen
}

func (p *plot) draw(c *svg.Canvas) {
	c.Open("plot", p.title)
	defer c.Close()
	c.Text(p.x-50, p.y-12, p.title, svg.Type{Size: 13, Bold: true, Fill: dark})
	for _, v := range p.up.ticks {
		y := p.up.at(v)
		c.Line(p.x, y, p.x+plotW, y, svg.Paint{Stroke: faint})
		c.Text(p.x-8, y+4, p.tick(v), svg.Type{Size: 11, Fill: quiet, Anchor: svg.End})
	}
	for _, v := range p.across.ticks {
		x := p.across.at(v)
		c.Line(x, p.y+plotH, x, p.y+plotH+5, svg.Paint{Stroke: quiet})
		c.Text(x, p.y+plotH+19, sizeTick(v), svg.Type{Size: 11, Fill: quiet, Anchor: svg.Middle})
	}
	c.Line(p.x, p.y+plotH, p.x+plotW, p.y+plotH, svg.Paint{Stroke: quiet})
	c.Text(p.x+plotW/2, p.y+plotH+37, "size", svg.Type{Size: 12, Fill: quiet, Anchor: svg.Middle})
	for i := range p.lines {
		p.band(c, &p.lines[i])
	}
	for i := range p.lines {
		p.curve(c, &p.lines[i])
	}
	for _, l := range p.labels() {
		last := l.line.rows[len(l.line.rows)-1]
		x, y := p.at(last, p.value)
		c.Line(x+5, y, p.x+plotW+14, l.y, svg.Paint{Stroke: l.line.color, Width: 0.8})
		t := svg.Type{Size: 12, Fill: l.line.color, Bold: true}
		c.Text(p.x+plotW+17, l.y+4, svg.Fit(l.line.name, t, plotGap-90), t)
	}
}

func sizeTick(v float64) string { return unit.Bytes(v).String() }

// band is the model's margin.
func (p *plot) band(c *svg.Canvas, l *line) {
	if len(l.rows) < 2 || l.rows[0].Row.Margin <= 1 {
		return
	}
	pen := p.along(l, p.high)
	for i := len(l.rows) - 1; i >= 0; i-- {
		pen.Line(p.at(l.rows[i], p.low))
	}
	c.Path(pen.Shut().String(), svg.Paint{Fill: l.color, Opacity: 0.12})
}

func (p *plot) curve(c *svg.Canvas, l *line) {
	c.Open("line", l.name)
	c.Path(p.along(l, p.value).String(), svg.Paint{Stroke: l.color, Width: 1.8, Dash: l.dash, Round: true})
	for _, r := range l.rows {
		x, y := p.at(r, p.value)
		c.Open("point", r.Layout+" "+sizeTick(float64(r.Asked))+": "+r.Time.String()+", "+r.BusBW.String()+" busbw, "+r.Algo+" "+r.Row.Setting.Proto+", limited by "+where(r.Bottleneck))
		l.spot(c, x, y)
		if p.ringed && r.Chosen {
			c.Circle(x, y, 6, svg.Paint{Stroke: dark, Width: 1.2})
		}
		c.Close()
	}
	c.Close()
}

// spot draws the line's mark.
func (l *look) spot(c *svg.Canvas, x, y float64) {
	fill := svg.Paint{Fill: l.color}
	switch l.mark {
	case 1:
		c.Rect(x-2.8, y-2.8, 5.6, 5.6, 0, fill)
	case 2:
		c.Path((&svg.Pen{}).Move(x, y-3.6).Line(x+3.4, y+2.6).Line(x-3.4, y+2.6).Shut().String(), fill)
	case 3:
		c.Path((&svg.Pen{}).Move(x, y-3.8).Line(x+3.8, y).Line(x, y+3.8).Line(x-3.8, y).Shut().String(), fill)
	default:
		c.Circle(x, y, 2.9, fill)
	}
}
