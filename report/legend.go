package report

import (
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// Sample explains a kind of link or box.
type Sample struct {
	Text  string    `json:"text"`
	Paint svg.Paint `json:"paint"`
	Solid bool      `json:"solid,omitempty"` // a box, not a line
	key   string
}

// legend explains what the picture has.
func (p *picture) legend() []Sample {
	return slices.DeleteFunc(legendSamples(), func(s Sample) bool { return !p.used[s.key] })
}

func legendSamples() []Sample {
	line := func(k cluster.LinkKind, text string, w float64) Sample {
		return Sample{key: k.String(), Text: text, Paint: svg.Paint{Stroke: linkColor(k), Width: w}}
	}
	return []Sample{
		line(cluster.NVLink, "NVLink", 5),
		line(cluster.XGMI, "xGMI (Infinity Fabric)", 4),
		line(cluster.C2C, "C2C (CPU–GPU)", 4),
		line(cluster.Gaudi, "RoCE on board", 3),
		line(cluster.Direct, "direct link", 3),
		line(cluster.PCIe, "PCIe", 3),
		{key: "smp", Text: "link between CPUs", Paint: svg.Paint{Stroke: smpBrown, Width: 3}},
		{key: "network", Text: "network cable", Paint: svg.Paint{Stroke: netViol, Width: 3, Opacity: 0.75}},
		{key: "member", Text: "belongs to; no source says by which cables", Paint: svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}},
		{key: "degraded", Text: "slower than it could be or than its like, or down", Paint: svg.Paint{Stroke: red, Width: 2.5, Dash: degradedDashes}},
		{key: "root", Text: "PCIe root complex", Paint: svg.Paint{Fill: cpuLine, Stroke: cpuLine}, Solid: true},
		{key: "shared", Text: "NIC shared by several GPUs", Paint: svg.Paint{Fill: amberBg, Stroke: amber, Width: 2}, Solid: true},
		{key: "far", Text: "GPU whose nearest NIC is across CPU sockets or NUMA domains (SYS)", Paint: svg.Paint{Fill: nvFill, Stroke: amber, Width: 2, Dash: degradedDashes}, Solid: true},
		{key: "idle", Text: "NIC that is nearest to no GPU", Paint: svg.Paint{Fill: idleFill, Stroke: idleLine}, Solid: true},
	}
}

// drawLegend explains what the picture uses, and returns the height it took.
func (p *picture) drawLegend(x, y, w float64, sources string) float64 {
	top := y
	ty := svg.Type{Size: 11.5, Fill: ink}
	p.Open("legend", "")
	at := x
	for _, s := range p.legend() {
		need := 40 + svg.TextWidth(s.Text, ty) + 22
		if at > x && at+need > x+w {
			at = x
			y += 22
		}
		if s.Solid {
			p.Rect(at, y-5, 30, 10, 3, s.Paint)
		} else {
			p.Line(at, y, at+30, y, s.Paint)
		}
		p.Text(at+38, y+4, s.Text, ty)
		at += need
	}
	y += 24
	note := svg.Type{Size: 11, Fill: inkSoft}
	text := "Lines are wider the faster the link. All rates are one direction; GB = 10⁹ bytes. "
	for _, l := range svg.Wrap(text+sources, note, w, 3) {
		p.Text(x, y, l, note)
		y += 15
	}
	p.Close()
	return y - top
}

// drawCaption sets the words on the left of a row; a line that is too long goes on
// in the next.
func (p *picture) drawCaption(x float64, c caption) {
	type line struct {
		text string
		bold bool
	}
	var lines []line
	for i, s := range c.text {
		for _, l := range svg.Wrap(s, svg.Type{Size: captionType, Bold: i == 0}, captionW-2, 2) {
			lines = append(lines, line{l, i == 0})
		}
	}
	y := c.y - float64(len(lines))*6.5 + 10
	for _, l := range lines {
		p.Text(x, y, l.text, svg.Type{Size: captionType, Fill: c.color, Bold: l.bold})
		y += 13.5
	}
}
