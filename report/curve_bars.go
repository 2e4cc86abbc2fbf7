package report

import (
	"slices"

	"busbar.dev/internal/svg"
	"busbar.dev/query"
	"busbar.dev/result"
	"busbar.dev/unit"
)

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

func (f *forecast) bar(c *svg.Canvas, r query.PredictRow, y float64, most unit.Time) {
	c.Open("bar", r.Bottleneck.Text)
	defer c.Close()
	name := svg.Type{Size: 13, Fill: dark, Anchor: svg.End, Bold: r.Chosen}
	text := r.Algo + " " + r.Row.Setting.Proto
	if f.Compared {
		text = r.Layout + "  " + text
	}
	c.Text(barX-12, y+barH-6, svg.Fit(text, name, barX-36), name)
	long := func(t unit.Time) float64 { return barX + float64(t)/float64(most)*barW }
	c.Rect(barX, y, long(r.Time)-barX, barH, 0, svg.Paint{Fill: barColor(r.Bottleneck.Kind)})
	if r.Row.Margin > 1 {
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
	text = r.BusBW.String() + " busbw, " + f.where(r.Bottleneck)
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
		used := slices.ContainsFunc(f.Rows, func(r query.PredictRow) bool { return barColor(r.Bottleneck.Kind) == barColor(k.kind) })
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
