package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Sizes of the picture of a forecast.
const (
	curveW   = 1230.0
	plotW    = 500.0
	plotLeft = 74.0
	plotGap  = 100.0
	maxLines = 12
)

// Curves draws a forecast: time and busbw over size, a line for every layout and
// algorithm, the model's margin as a band; of a single size, bars.
func Curves(d *query.PredictDoc) (*Picture, error) {
	f := &forecast{PredictDoc: d}
	if len(f.Rows) == 0 {
		return nil, fmt.Errorf("no rows to draw")
	}
	lines := f.lines()
	if len(f.sizes()) == 1 {
		return f.bars(), nil
	}
	if n := len(lines.order); n > maxLines {
		return nil, fmt.Errorf("%d lines are more than a picture can show (%d); name the algorithms with --algo", n, maxLines)
	}
	c := &picture{}
	ringed := len(lines.order) > 1 && f.has(true) && f.has(false)
	area := box{plotLeft, f.heading(c, "bands", ringed) + 39, plotW, 360}
	draw := func(p plot, value func(r *predict.Row, t unit.Time) float64) {
		p.across, p.xTick = "size", func(v float64) string { return unit.Bytes(v).String() }
		for _, rows := range lines.all() {
			var points []point
			for _, r := range rows {
				a, b := value(&r, r.Low), value(&r, r.High)
				points = append(points, point{
					x: float64(max(r.Asked, 1)), y: value(&r, r.Time), low: min(a, b), high: max(a, b),
					ringed: ringed && r.Chosen,
					tip: fmt.Sprintf("%s %v: %v, %v busbw, %s %s, limited by %s", r.Layout, r.Asked, r.Time, r.BusBW, r.Algo, r.Proto,
						where(r.Limit)),
				})
			}
			p.lines = append(p.lines, points)
		}
		p.draw(c)
	}
	draw(plot{
		box: area, title: "time", least: float64(unit.Nanosecond),
		yTick: func(v float64) string { return unit.Time(v).String() },
	}, func(_ *predict.Row, t unit.Time) float64 { return float64(t) })
	right := area
	right.x += plotW + plotGap
	draw(plot{box: right, title: "busbw in GB/s", yTick: func(v float64) string { return fmt.Sprint(v) }},
		func(r *predict.Row, t unit.Time) float64 { return r.BusBW.GBps() * float64(r.Time) / float64(t) })
	var samples []Sample
	for name, rows := range lines.all() {
		var used []string // from the smallest size to the largest
		for _, r := range rows {
			used = append(used, r.Algo+" "+r.Proto)
		}
		look := lineLooks[len(samples)]
		look.Width = 2.5
		samples = append(samples, Sample{
			Text:  cmp.Or(name, when(!f.has(false), f.runs()+"'s choice: ")+strings.Join(slices.Compact(used), ", then ")),
			Paint: look,
		})
	}
	return c.Picture(f.title(), curveW, c.samples(plotLeft, area.bottom()+64, 2*plotW, samples)), nil
}

// heading writes what the picture shows, and what bands, whiskers and rings mean.
func (f *forecast) heading(c *picture, band string, ringed bool) float64 {
	text := "predicted for " + library(f.PredictDoc)
	if list := f.sizes(); len(list) == 1 {
		text = list[0].String() + ", " + text
	}
	if len(f.Sides) == 1 {
		text += " on " + f.side()
	}
	var key []string
	if f.barred() {
		guess := slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Grade == predict.Guess })
		key = append(key, band+either(guess, ": widest error bar; no published measurements of this class",
			": error bar; holds about 90% of measured points of this class"))
	}
	if ringed {
		key = append(key, "ringed: "+f.runs()+"'s choice")
	}
	return c.heading(curveW, f.Op.String()+" on "+f.Cluster, text, strings.Join(key, "; "))
}

// has reports whether there are rows that NCCL chooses, or does not.
func (f *forecast) has(chosen bool) bool {
	return slices.ContainsFunc(f.Rows, func(r predict.Row) bool { return r.Chosen == chosen })
}

// lines puts rows together: by layout, and by algorithm and protocol where a
// layout has several rows of one size.
func (f *forecast) lines() (lines grouped[string, predict.Row]) {
	several, protos := false, false
	seen := map[string]bool{}
	for _, r := range f.Rows {
		at := fmt.Sprint(r.Layout, r.Asked)
		several = several || seen[at] && !r.Beyond
		protos = protos || seen[at+r.Algo]
		seen[at], seen[at+r.Algo] = true, true
	}
	for _, r := range f.Rows {
		name := strings.Join(nonEmpty(when(f.Compared, r.Layout), when(several, r.Algo), when(protos, r.Proto)), " ")
		if r.Beyond {
			name = "not NCCL" // whatever was fastest
		}
		lines.put(name, r)
	}
	return lines
}

// limitColour is what a bar's colour stands for.
type limitColour struct {
	kinds      []result.LimitKind
	fill, text string
}

// limitColours begin with the nearest to the GPU: darker the farther data has to go.
var limitColours = []limitColour{
	{[]result.LimitKind{result.ByNVLink, result.ByMemory}, "#9cc3e6", "links between GPUs, or memory"},
	{[]result.LimitKind{result.ByPCIe}, "#6f9fd0", "PCIe"},
	{[]result.LimitKind{result.ByNIC, result.ByFabric}, "#3d6fa8", "NIC or network"},
	{[]result.LimitKind{result.ByHost}, "#14406b", "copies through host memory"},
	{nil, "#b8b8b8", "launch, latency or threads"},
}

// bars draws the rows of one size: how long each takes, and what limits it.
func (f *forecast) bars() *Picture {
	c := &picture{}
	samples := []Sample{{Text: "limited by", key: "limited by"}}
	c.note("limited by")
	var bars []bar
	for _, k := range limitColours {
		samples = append(samples, fillSample(k.fill, k.text))
	}
	for _, r := range f.Rows {
		k := slices.IndexFunc(limitColours,
			func(k limitColour) bool { return k.kinds == nil || slices.Contains(k.kinds, r.Limit.Kind) })
		bars = append(bars, bar{
			Span: Span{Group: when(f.Compared, r.Layout+" "), Track: r.Algo + " " + r.Proto, To: r.Time},
			fill: limitColours[k].fill, low: r.Low, high: r.High,
			note: fmt.Sprintf("%v, %v busbw, %s", r.Time, r.BusBW, f.where(r.Limit)) +
				when(r.Chosen, ", "+f.runs()+"'s choice"),
		})
	}
	_, bottom := drawBars(c, f.heading(c, "whiskers", false)+26, 560, bars, 0)
	bottom = c.samples(edge, bottom+20, curveW-2*edge, c.noted(samples...))
	return c.Picture(f.title(), curveW, bottom)
}
