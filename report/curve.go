package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Sizes of the picture of a forecast.
const (
	curveW      = 1230.0
	plotW       = 400.0
	plotH       = 360.0
	plotTop     = 112.0
	plotLeft    = 74.0
	plotGap     = 210.0 // room for the labels of the lines, and the next axis
	maxLines    = 12
	labelHeight = 15.0
)

// Curves draws a forecast: time and busbw over size, a line for every layout and
// algorithm with its name at its end, the model's margin as a band; of a single
// size, bars. Lines differ in colour, brightness, dash and mark, so that the
// picture can be printed in grey.
func Curves(d *query.PredictDoc) (*svg.Picture, error) {
	f := &forecast{PredictDoc: d}
	list := f.lines()
	if len(list) == 0 {
		return nil, fmt.Errorf("no rows to draw")
	}
	most := 0
	for _, l := range list {
		most = max(most, len(l.rows))
	}
	c := &svg.Canvas{}
	if most == 1 {
		return f.bars(c), nil
	}
	if len(list) > maxLines {
		return nil, fmt.Errorf("%d lines are more than a picture can show (%d); name the algorithms with --algo", len(list),
			maxLines)
	}
	ringed := len(list) > 1 && f.contested()
	f.heading(c, f.key("bands", ringed))
	left := &plot{
		x: plotLeft, y: plotTop, title: "time", across: sizeScale(list, plotLeft), lines: list,
		value: func(r predict.Row) float64 { return r.Time.Micros() },
	}
	left.low, left.high = func(r predict.Row) float64 { return r.Low.Micros() },
		func(r predict.Row) float64 { return r.High.Micros() }
	left.up = logScale(left.extent())
	right := &plot{
		x: plotLeft + plotW + plotGap, y: plotTop, title: "busbw in GB/s", lines: list,
		value: func(r predict.Row) float64 { return r.BusBW.GBps() },
	}
	right.across = sizeScale(list, right.x)
	right.low = func(r predict.Row) float64 { return r.BusBW.GBps() * float64(r.Time) / float64(r.High) }
	right.high = func(r predict.Row) float64 { return r.BusBW.GBps() * float64(r.Time) / float64(r.Low) }
	right.up = flatScale(right.extent())
	left.tick = func(v float64) string { return unit.Micros(v).String() }
	right.tick = func(v float64) string { return fmt.Sprintf("%g", v) }
	left.ringed, right.ringed = ringed, ringed
	left.draw(c)
	right.draw(c)
	h := plotTop + plotH + 56
	if len(list) == 1 {
		h += list[0].choices(c, left, h)
	}
	return c.Picture(curveW, h+12, f.title(), paper), nil
}

// heading writes what the picture shows, and a key to it.
func (f *forecast) heading(c *svg.Canvas, key string) {
	c.Text(24, 34, svg.Fit(f.Op.String()+" on "+f.Cluster, svg.Type{Size: 19, Bold: true}, curveW-48), svg.Type{
		Size: 19, Bold: true, Fill: dark,
	})
	c.Text(24, 56, svg.Fit(f.under(), svg.Type{Size: 12}, curveW-48), svg.Type{Size: 12, Fill: quiet})
	c.Text(24, 73, svg.Fit(key, svg.Type{Size: 12}, curveW-48), svg.Type{Size: 12, Fill: quiet})
}

func (f *forecast) under() string {
	text := "predicted for " + library(f.PredictDoc)
	if one := f.Rows[0].Asked; one > 0 && one == f.Rows[len(f.Rows)-1].Asked {
		text = one.String() + ", " + text
	}
	if len(f.Sides) == 1 {
		x := f.Sides[0]
		text += fmt.Sprintf(" on %s (%s on %s)", x.Layout, words.Plural(x.Ranks, "rank"), words.Plural(x.Nodes, "node"))
	}
	return text
}

// key says what bands, whiskers and rings mean.
func (f *forecast) key(band string, ringed bool) string {
	var list []string
	if slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Barred() }) {
		text := band + ": error bar; holds about 90% of measured points of this class"
		if f.Unmeasured {
			text = band + ": widest error bar; no published measurements of this class"
		}
		list = append(list, text)
	}
	if ringed {
		list = append(list, "ringed: "+f.runs()+"'s choice")
	}
	return strings.Join(list, "; ")
}

// contested reports whether rows stand beside those that NCCL takes.
func (f *forecast) contested() bool {
	has := func(chosen bool) bool {
		return slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Chosen == chosen })
	}
	return has(true) && has(false)
}

const (
	dark  = "#1a1a1a"
	quiet = "#5c5c5c"
	faint = "#e2e2e2"
)

// line is one curve.
type line struct {
	name string
	rows []predict.Row
	look
}

// look is how a line is told from others.
type look struct {
	color, dash string
	mark        int
}

// Colours differ in brightness too, for grey printers.
var looks = []look{
	{"#14406b", "", 0},
	{"#d1495b", "7 3", 1},
	{"#2a9d8f", "2 3", 2},
	{"#e09f00", "9 3 2 3", 3},
	{"#7a4fa3", "", 1},
	{"#4f4f4f", "7 3", 2},
	{"#5aa9e6", "2 3", 3},
	{"#8a5a2b", "9 3 2 3", 0},
	{"#c2185b", "", 2},
	{"#33691e", "7 3", 3},
	{"#9e9e9e", "2 3", 0},
	{"#000000", "9 3 2 3", 1},
}

// lines puts rows together: by layout, and by algorithm and protocol where a
// layout has several rows of one size.
func (f *forecast) lines() []line {
	several, protos := false, false
	seen := map[string]int{}
	for _, r := range f.Rows {
		at := fmt.Sprint(r.Layout, r.Asked)
		seen[at]++
		several = several || seen[at] > 1 && !r.Beyond
		by := at + r.Algo
		seen[by]++
		protos = protos || seen[by] > 1
	}
	var list []line
	index := map[string]int{}
	for _, r := range f.Rows {
		name := ""
		if f.Compared {
			name = r.Layout
		}
		if several || r.Beyond {
			name += " " + r.Algo
		}
		if protos {
			name += " " + r.Proto
		}
		if r.Beyond {
			name = "not NCCL" // whatever was fastest
		}
		if name = strings.TrimSpace(name); name == "" {
			name = f.only()
		}
		i, ok := index[name]
		if !ok {
			i = len(list)
			index[name] = i
			list = append(list, line{name: name, look: looks[i%len(looks)]})
		}
		list[i].rows = append(list[i].rows, r)
	}
	return list
}

// only is the name of the one line of a layout: whose choice, or which algorithm.
func (f *forecast) only() string {
	algo, chosen := f.Rows[0].Algo, true
	for _, r := range f.Rows {
		chosen = chosen && r.Chosen
		if r.Algo != algo {
			algo = ""
		}
	}
	switch {
	case algo != "":
		return algo
	case chosen:
		return f.runs() + "'s choice"
	}
	return f.Rows[0].Layout
}

// choices writes below a plot which algorithm and protocol is taken where, and
// returns the room it took.
func (l *line) choices(c *svg.Canvas, p *plot, y float64) float64 {
	type run struct {
		name     string
		from, to float64
	}
	var runs []run
	for _, r := range l.rows {
		name, x := r.Algo+" "+r.Proto, p.across.at(float64(max(r.Asked, 1)))
		if n := len(runs); n > 0 && runs[n-1].name == name {
			runs[n-1].to = x
			continue
		}
		runs = append(runs, run{name, x, x})
	}
	t := svg.Type{Size: 11, Fill: quiet, Anchor: svg.Middle}
	ends := make([]float64, 3)
	for i, r := range runs {
		c.Line(r.from-3, y, r.to+3, y, svg.Paint{Stroke: []string{dark, "#9a9a9a"}[i%2], Width: 4})
		mid, w := (r.from+r.to)/2, svg.TextWidth(r.name, t)
		row := slices.IndexFunc(ends, func(end float64) bool { return mid-w/2 > end })
		if row < 0 {
			continue // no room: the table has it
		}
		ends[row] = mid + w/2 + 6
		c.Text(mid, y+15+13*float64(row), r.name, t)
	}
	return 52
}

// label is the name of a line beside its end.
type label struct {
	line *line
	y    float64
}

// labels are the names, moved apart so that none covers another.
func (p *plot) labels() []label {
	var list []label
	for i := range p.lines {
		l := &p.lines[i]
		list = append(list, label{l, p.up.at(p.value(l.rows[len(l.rows)-1]))})
	}
	slices.SortStableFunc(list, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := 1; i < len(list); i++ {
		list[i].y = max(list[i].y, list[i-1].y+labelHeight)
	}
	if n := len(list); n > 0 {
		list[n-1].y = min(list[n-1].y, p.y+plotH)
		for i := n - 2; i >= 0; i-- {
			list[i].y = min(list[i].y, list[i+1].y-labelHeight)
		}
	}
	return list
}

const (
	barH    = 22.0
	barStep = 38.0
	barX    = 210.0
	barW    = 560.0
)

// bars draws the rows of one size: how long each takes, and what limits it.
func (f *forecast) bars(c *svg.Canvas) *svg.Picture {
	f.heading(c, f.key("whiskers", false))
	most := unit.Time(1)
	for _, r := range f.Rows {
		most = max(most, r.High)
	}
	y := 98.0
	for _, r := range f.Rows {
		f.bar(c, r, y, most)
		y += barStep
	}
	f.colours(c, y+6)
	y += 28
	return c.Picture(curveW, y+14, f.title(), paper)
}

func (f *forecast) bar(c *svg.Canvas, r predict.Row, y float64, most unit.Time) {
	c.Open("bar", r.Limit.Text)
	defer c.Close()
	name := svg.Type{Size: 13, Fill: dark, Anchor: svg.End, Bold: r.Chosen}
	text := r.Algo + " " + r.Proto
	if f.Compared {
		text = r.Layout + "  " + text
	}
	c.Text(barX-12, y+barH-6, svg.Fit(text, name, barX-36), name)
	long := func(t unit.Time) float64 { return barX + float64(t)/float64(most)*barW }
	c.Rect(barX, y, long(r.Time)-barX, barH, 0, svg.Paint{Fill: barColor(r.Limit.Kind)})
	if r.Barred() {
		lo, hi, mid := long(r.Low), long(r.High), y+barH/2
		// White below the line, so that it shows on a dark bar too.
		for _, p := range []svg.Paint{{Stroke: "#ffffff", Width: 3}, {Stroke: dark, Width: 1.2}} {
			c.Line(lo, mid, hi, mid, p)
			c.Line(lo, mid-4, lo, mid+4, p)
			c.Line(hi, mid-4, hi, mid+4, p)
		}
	}
	end := long(r.High) + 10
	value := svg.Type{Size: 13, Bold: true, Fill: dark}
	c.Text(end, y+barH-6, r.Time.String(), value)
	end += svg.TextWidth(r.Time.String(), value) + 12
	note := svg.Type{Size: 11.5, Fill: quiet}
	text = r.BusBW.String() + " busbw, " + f.where(r.Limit)
	if r.Chosen {
		text += ", NCCL's choice"
	}
	c.Text(end, y+barH-6, svg.Fit(text, note, curveW-end-16), note)
}

// colours tells what the bars' colours mean, of those in use.
func (f *forecast) colours(c *svg.Canvas, y float64) {
	t := svg.Type{Size: 12, Fill: quiet}
	c.Text(barX-12, y+11, "limited by", svg.Type{Size: 12, Fill: quiet, Anchor: svg.End})
	x, seen := barX, map[string]bool{}
	for _, k := range barKinds {
		used := slices.ContainsFunc(f.Rows,
			func(r predict.Row) bool { return barColor(r.Limit.Kind) == barColor(k.kind) })
		if !used || seen[barColor(k.kind)] {
			continue
		}
		seen[barColor(k.kind)] = true
		c.Rect(x, y, 14, 14, 0, svg.Paint{Fill: barColor(k.kind)})
		c.Text(x+20, y+11, k.text, t)
		x += 20 + svg.TextWidth(k.text, t) + 24
	}
}

// barKinds are what a bar's colour can stand for, the nearest to the GPU first.
var barKinds = []struct {
	kind result.LimitKind
	text string
}{
	{result.ByNVLink, "links between GPUs, or memory"},
	{result.ByPCIe, "PCIe"},
	{result.ByNIC, "NIC or network"},
	{result.ByHost, "copies through host memory"},
	{result.ByLatency, "launch, latency or threads"},
}

// barColor is darker the farther data has to go.
func barColor(k result.LimitKind) string {
	switch k {
	case result.ByNVLink, result.ByMemory:
		return "#9cc3e6"
	case result.ByPCIe:
		return "#6f9fd0"
	case result.ByNIC, result.ByFabric:
		return "#3d6fa8"
	case result.ByHost:
		return "#14406b"
	}
	return "#b8b8b8"
}

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
	value, low, high func(predict.Row) float64
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
func (p *plot) at(r predict.Row, value func(predict.Row) float64) (x, y float64) {
	return p.across.at(float64(max(r.Asked, 1))), p.up.at(value(r))
}

// along goes through a line's values.
func (p *plot) along(l *line, value func(predict.Row) float64) *svg.Pen {
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
	if len(l.rows) < 2 || !l.rows[0].Barred() {
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
		c.Open("point", r.Layout+" "+sizeTick(float64(r.Asked))+": "+r.Time.String()+", "+r.BusBW.String()+" busbw, "+r.Algo+
			" "+r.Proto+", limited by "+where(r.Limit))
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
