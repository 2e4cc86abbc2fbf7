package report

import (
	"fmt"
	"math"

	"busbar.dev/internal/svg"
	"busbar.dev/unit"
)

// Measures of a timeline.
const (
	lineLeft   = 110.0
	lineWide   = 1060.0
	lineTop    = 64.0
	lineHigh   = 22.0
	lineGap    = 6.0
	maxTracks  = 128
	leastTicks = 5
)

// Bar is a span with what colours it.
type bar struct {
	Span
	Kind byte // f forward, b backward, w gradients of weights, e encoding, h copies to the host, t traffic, u update
}

var barFill = map[byte]string{
	'f': "#4c78a8", 'b': "#72b7b2", 'w': "#2f7f79", 'e': "#9d7fb8", 'h': "#e8923c", 't': "#e45756", 'u': "#b8a35a",
}

// Timeline draws bars over time, a line for every track of every group, in the order in which
// they come, and a mark where the step ends. Neighbours of one kind that are thinner than a dot are drawn as one.
func timeline(title string, bars []bar, ends unit.Time) (*svg.Picture, error) {
	type line struct{ group, track string }
	rows := map[line]int{}
	var names []line
	end := unit.Time(0)
	has := map[byte]bool{}
	for _, b := range bars {
		has[b.Kind] = true
		k := line{b.Group, b.Track}
		if _, ok := rows[k]; !ok {
			rows[k] = len(names)
			names = append(names, k)
		}
		end = max(end, b.To)
	}
	if len(bars) == 0 || end <= 0 {
		return nil, fmt.Errorf("nothing to draw")
	}
	played := end
	end = max(end, ends)
	if len(names) > maxTracks {
		return nil, fmt.Errorf("a picture of %d lines; at most %d can be drawn, write the trace", len(names), maxTracks)
	}
	c := &svg.Canvas{}
	small := svg.Type{Size: 11, Fill: "#333333"}
	c.Text(lineLeft, 24, svg.Fit(title, svg.Type{Size: 14}, lineWide), svg.Type{Size: 14, Fill: "#111111"})
	x := func(t unit.Time) float64 { return lineLeft + lineWide*float64(t)/float64(end) }
	bottom := lineTop + float64(len(names))*(lineHigh+lineGap)
	ticks(c, end, x, bottom)
	last := make([]float64, len(names))
	kinds := make([]byte, len(names))
	for i, n := range names {
		y := lineTop + float64(i)*(lineHigh+lineGap)
		c.Text(lineLeft-8, y+lineHigh-7, svg.Fit(n.group+" "+n.track, small, lineLeft-12), svg.Type{
			Size: 11, Fill: "#333333", Anchor: svg.End,
		})
	}
	for _, b := range bars {
		i := rows[line{b.Group, b.Track}]
		from, to := x(b.From), x(b.To)
		if to-last[i] < 0.5 && kinds[i] == b.Kind {
			continue // thinner than what is there already
		}
		y := lineTop + float64(i)*(lineHigh+lineGap)
		c.Open("bar", fmt.Sprintf("%s: %v from %v", b.Name, b.To-b.From, b.From))
		edge := svg.Paint{Fill: barFill[b.Kind]}
		if to-from > 3 {
			edge.Stroke, edge.Width = "#ffffff", 0.5
		}
		c.Rect(from, y, math.Max(0.5, to-from), lineHigh, 0, edge)
		if label := svg.Fit(b.Name, svg.Type{Size: 9}, to-from-4); len(label) > 4 && to-from > 40 {
			c.Text(from+3, y+lineHigh-8, label, svg.Type{Size: 9, Fill: "#ffffff"})
		}
		c.Close()
		last[i], kinds[i] = to, b.Kind
	}
	stepEnd(c, x, ends, played, bottom)
	at := lineLeft
	for _, k := range []struct {
		kind byte
		name string
	}{
		{'f', "forward"},
		{'b', "backward"},
		{'w', "weights' gradients"},
		{'e', "encoding"},
		{'h', "copies to the host"},
		{'t', "traffic"},
		{'u', "update"},
	} {
		if !has[k.kind] {
			continue
		}
		c.Rect(at, bottom+30, 12, 12, 0, svg.Paint{Fill: barFill[k.kind]})
		c.Text(at+17, bottom+40, k.name, small)
		at += 30 + svg.TextWidth(k.name, small)
	}
	return c.Picture(lineLeft+lineWide+30, bottom+56, title, "#ffffff"), nil
}

// stepEnd marks where the step ends, and says why the last bar ends elsewhere. Traffic behind the mark runs beside the
// next step's forward pass, and takes no time of its own.
func stepEnd(c *svg.Canvas, x func(unit.Time) float64, ends, played unit.Time, bottom float64) {
	if ends <= 0 {
		return
	}
	p := x(ends)
	c.Line(p, lineTop-6, p, bottom+8, svg.Paint{Stroke: "#111111", Width: 1.5, Dash: "5 3"})
	text := fmt.Sprintf("step ends: %v", ends)
	switch gap := float64(played-ends) / float64(ends); {
	case gap > 0.01:
		text += "; what follows overlaps with the next step"
	case gap < -0.01:
		text += "; before it, the host's work between steps and estimated waiting, which have no bars"
	}
	c.Text(p, bottom+20, text, svg.Type{Size: 11, Fill: "#111111", Anchor: svg.End})
}

// ticks draws the axis of time, at round figures.
func ticks(c *svg.Canvas, end unit.Time, x func(unit.Time) float64, bottom float64) {
	each := math.Pow(10, math.Floor(math.Log10(float64(end)/leastTicks)))
	for _, k := range []float64{5, 2} {
		if float64(end)/(each*k) >= leastTicks {
			each *= k
			break
		}
	}
	for t := 0.0; t <= float64(end); t += each {
		p := x(unit.Time(t))
		label := "0" // in whatever unit
		if t > 0 {
			label = unit.Time(t).String()
		}
		c.Line(p, lineTop-6, p, bottom, svg.Paint{Stroke: "#dddddd"})
		c.Text(p, lineTop-12, label, svg.Type{Size: 10, Fill: "#666666", Anchor: svg.Middle})
	}
}
