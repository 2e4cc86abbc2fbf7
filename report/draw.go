package report

import (
	"math"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/unit"
)

// Colours. Each kind of link has one; red is kept for what is wrong and orange
// for what is shared.
const (
	paper     = "#ffffff"
	ink       = "#1f2430"
	inkSoft   = "#5d6675"
	panelFill = "#f6f7f9"
	panelLine = "#cfd5de"

	nvGreen  = "#5b9a1f"
	nvFill   = "#eaf4dd"
	pcieBlue = "#2f78bf"
	pcieFill = "#e1edf9"
	netViol  = "#7a52c7"
	netFill  = "#ede6fa"
	smpBrown = "#8c6a3f"
	cpuFill  = "#efe9e0"
	cpuLine  = "#b39d7d"
	xgmiTeal = "#0f8f86"
	c2cOlive = "#7d8a1e"
	sockFill = "#faf8f4"
	amber    = "#d97706"
	amberBg  = "#ffe8c7"
	amberInk = "#a85a00"
	red      = "#d22f2f"
	redBg    = "#fde3e3"
)

// Sizes of a node's parts.
const (
	gpuW, plainH   = 90.0, 70.0 // a GPU
	farH           = 84.0       // a GPU box with room to say that its NIC is far
	nicH           = 56.0
	sharedW        = 122.0 // a NIC alone in its column, with room for long words
	sharedH        = 86.0  // a NIC box with room to say who shares it
	boxType        = 11.0
	gutter         = 16.0 // beside a GPU, for the link of the NIC above it
	rowGap         = 34.0 // between rows, for links and their labels
	switchH        = 26.0
	rootH          = 8.0
	numaH          = 58.0
	pad            = 14.0
	socketGap      = 78.0 // between sockets, for the link between them
	captionW       = 158.0
	cableTop       = 16.0
	smallType      = 10.0
	captionType    = 10.5
	maxStroke      = 9.0
	unknownStroke  = 1.4
	degradedDashes = "5 3"
)

// box is a place on the canvas.
type box struct{ x, y, w, h float64 }

func (b box) mid() float64    { return b.x + b.w/2 }
func (b box) bottom() float64 { return b.y + b.h }
func (b box) right() float64  { return b.x + b.w }

// meets reports whether two boxes overlap.
func (b box) meets(o box) bool {
	return b.x < o.right() && o.x < b.right() && b.y < o.bottom() && o.y < b.bottom()
}

// stroke is the width of a link: it grows with the root of the rate, so that a
// tenfold rate is plainly thicker and still fits beside its label.
func stroke(r cluster.Fact[unit.Rate]) float64 {
	if !r.Known() {
		return unknownStroke
	}
	return math.Min(maxStroke, math.Max(1.2, 0.42*math.Sqrt(r.Value.GBps())))
}

// linkColor is the colour of a kind of link.
func linkColor(k cluster.LinkKind) string {
	switch k {
	case cluster.NVLink:
		return nvGreen
	case cluster.XGMI:
		return xgmiTeal
	case cluster.C2C:
		return c2cOlive
	case cluster.SMP, cluster.OnDie:
		return smpBrown
	case cluster.PCIe:
		return pcieBlue
	}
	return inkSoft
}

// linkPaint is how a link is drawn; one trained low is red and dashed.
func linkPaint(l *cluster.Link) svg.Paint {
	p := svg.Paint{Stroke: linkColor(l.Kind), Width: stroke(l.Rate)}
	if trainedLow(l) != "" {
		p.Stroke, p.Dash, p.Width = red, degradedDashes, math.Max(p.Width, 2)
	}
	return p
}

// picture is a canvas with the shapes that reports are made of.
type picture struct {
	svg.Canvas
	used map[string]bool // what the legend has to explain
}

// note marks something as drawn, for the legend.
func (p *picture) note(what string) {
	if p.used == nil {
		p.used = make(map[string]bool)
	}
	p.used[what] = true
}

// over draws a line that passes over others: with a margin in the colour of what
// lies below, so that a crossing does not look like a joint.
func (p *picture) over(x1, y1, x2, y2 float64, paint svg.Paint, ground string) {
	p.Line(x1, y1, x2, y2, svg.Paint{Stroke: ground, Width: paint.Width + 4})
	p.Line(x1, y1, x2, y2, paint)
}

// lines sets texts below each other in the middle of a box, each line no wider
// than the box. The first line is bold.
func (p *picture) lines(b box, size float64, fill string, texts ...string) {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	step := size * 1.25
	y := b.y + (b.h-step*float64(len(all)))/2 + size
	for i, t := range all {
		ty := svg.Type{Size: size, Fill: fill, Anchor: svg.Middle}
		if i == 0 {
			ty.Bold, ty.Size = true, size+1.5
		}
		// A little smaller is better than cut.
		if full := ty.Size; svg.TextWidth(t, ty) > b.w-8 {
			ty.Size = math.Max(full*0.86, full*(b.w-8.1)/svg.TextWidth(t, ty))
		}
		p.Text(b.mid(), y, svg.Fit(t, ty, b.w-8), ty)
		y += step
	}
}

// nameType is how the names of hosts and switches are set when they need room.
var nameType = svg.Type{Size: (boxType + 1.5) * 0.88, Bold: true}

// gpuTitle is GPU 0 for gpu0.
func gpuTitle(name string) string {
	if rest, ok := strings.CutPrefix(name, "gpu"); ok && rest != "" {
		return "GPU " + rest
	}
	return name
}
