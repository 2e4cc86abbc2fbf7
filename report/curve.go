package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/query"
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
	if len(d.Sides) == 0 {
		return nil, query.ErrDecoded
	}
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
		return nil, fmt.Errorf("%d lines are more than a picture can show (%d); name the algorithms with --algo", len(list), maxLines)
	}
	ringed := len(list) > 1 && f.contested()
	f.heading(c, f.key("bands", ringed))
	left := &plot{x: plotLeft, y: plotTop, title: "time", across: sizeScale(list, plotLeft), lines: list, value: func(r query.PredictRow) float64 { return r.Time.Micros() }}
	left.low, left.high = func(r query.PredictRow) float64 { return r.Low.Micros() }, func(r query.PredictRow) float64 { return r.High.Micros() }
	left.up = logScale(left.extent())
	right := &plot{x: plotLeft + plotW + plotGap, y: plotTop, title: "busbw in GB/s", lines: list, value: func(r query.PredictRow) float64 { return r.BusBW.GBps() }}
	right.across = sizeScale(list, right.x)
	right.low = func(r query.PredictRow) float64 { return r.Row.Op.BusBW(r.Ranks, r.High).GBps() }
	right.high = func(r query.PredictRow) float64 { return r.Row.Op.BusBW(r.Ranks, r.Low).GBps() }
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
	c.Text(24, 34, svg.Fit(f.Op.String()+" on "+f.Cluster, svg.Type{Size: 19, Bold: true}, curveW-48), svg.Type{Size: 19, Bold: true, Fill: dark})
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
	if slices.ContainsFunc(f.Rows, func(r query.PredictRow) bool { return r.Row.Margin > 1 }) {
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
		return slices.ContainsFunc(f.Rows, func(r query.PredictRow) bool { return r.Chosen == chosen })
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
	rows []query.PredictRow
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
			name += " " + r.Row.Setting.Proto
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
		name, x := r.Algo+" "+r.Row.Setting.Proto, p.across.at(float64(max(r.Asked, 1)))
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
