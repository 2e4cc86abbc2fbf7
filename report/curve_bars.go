package report

import (
	"io"

	"busbar/internal/svg"
	"busbar/result"
	"busbar/unit"
)

const (
	barH    = 22.0
	barStep = 38.0
	barX    = 210.0
	barW    = 560.0
)

// bars draws the rows of one size: how long each takes, and what limits it.
func (f *Forecast) bars(c *svg.Canvas, w io.Writer) error {
	f.heading(c)
	most := unit.Time(1)
	for _, r := range f.Rows {
		most = max(most, High(r.Run))
	}
	y := 84.0
	for _, r := range f.Rows {
		f.bar(c, r, y, most)
		y += barStep
	}
	return c.Write(w, curveW, y+14, f.title(), paper)
}

func (f *Forecast) bar(c *svg.Canvas, r ForecastRow, y float64, most unit.Time) {
	c.Open("bar", r.Limit.Text)
	defer c.Close()
	name := svg.Type{Size: 13, Fill: dark, Anchor: svg.End, Bold: r.Chosen}
	text := r.Algo + " " + r.Setting.Proto
	if f.Compared {
		text = r.Layout + "  " + text
	}
	c.Text(barX-12, y+barH-6, svg.Fit(text, name, barX-36), name)
	long := func(t unit.Time) float64 { return barX + float64(t)/float64(most)*barW }
	c.Rect(barX, y, long(r.Time)-barX, barH, 0, svg.Paint{Fill: barColor(r.Limit.Kind)})
	if r.Margin > 1 {
		lo, hi, mid := long(Low(r.Run)), long(High(r.Run)), y+barH/2
		p := svg.Paint{Stroke: dark, Width: 1.2}
		c.Line(lo, mid, hi, mid, p)
		c.Line(lo, mid-4, lo, mid+4, p)
		c.Line(hi, mid-4, hi, mid+4, p)
	}
	end := long(High(r.Run)) + 10
	value := svg.Type{Size: 13, Bold: true, Fill: dark}
	c.Text(end, y+barH-6, r.Time.String(), value)
	end += svg.TextWidth(r.Time.String(), value) + 12
	note := svg.Type{Size: 11.5, Fill: quiet}
	text = r.BusBW().String() + " busbw, " + where(r.Limit)
	if r.Chosen {
		text += ", NCCL's choice"
	}
	c.Text(end, y+barH-6, svg.Fit(text, note, curveW-end-16), note)
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
