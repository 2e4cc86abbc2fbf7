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

	idleFill  = "#f0f1f4"
	idleLine  = "#9aa3b2"
	cloudFill = "#faf8fe"
	trayLine  = "#b4bcc8"
	onBar     = "on-bar" // words on a green bar: white in every light
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
	endW           = 72.0 // for where a cable leads
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

// overlaps reports whether two boxes overlap.
func (b box) overlaps(o box) bool {
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

// picture collects the marks of a scene.
type picture struct {
	marks []Mark
	open  []Mark          // groups that are not closed yet, the outermost first
	used  map[string]bool // what the legend has to explain
}

// note marks something as drawn, for the legend.
func (p *picture) note(what string) {
	if p.used == nil {
		p.used = make(map[string]bool)
	}
	p.used[what] = true
}

func (p *picture) add(m Mark) {
	to := &p.marks
	if n := len(p.open); n > 0 {
		to = &p.open[n-1].Marks
	}
	*to = append(*to, m)
}

// Open begins a group: what belongs together, with a class for programs and a tip for people who point at it. Close ends
// it.
func (p *picture) Open(class, tip string) {
	p.open = append(p.open, Mark{Is: isGroup, Class: class, Tip: tip})
}

// about says what the open group stands for, and the names of all where that is several. Without a key it cannot be
// chosen.
func (p *picture) about(key string, names ...string) {
	g := &p.open[len(p.open)-1]
	g.Key = key
	if key != "" && len(names) > 1 {
		g.Names = names
	}
}

// Close ends the group that Open began last.
func (p *picture) Close() {
	n := len(p.open) - 1
	m := p.open[n]
	p.open = p.open[:n]
	p.add(m)
}

// Rect draws a box with corners of radius r.
func (p *picture) Rect(x, y, w, h, r float64, paint svg.Paint) {
	p.add(Mark{Is: isRect, X: cent(x), Y: cent(y), W: cent(w), H: cent(h), R: r, Paint: named(paint)})
}

// Line draws a straight line.
func (p *picture) Line(x1, y1, x2, y2 float64, paint svg.Paint) {
	p.add(Mark{Is: isLine, X: cent(x1), Y: cent(y1), X2: cent(x2), Y2: cent(y2), Paint: named(paint)})
}

// Path draws what a pen wrote.
func (p *picture) Path(d string, paint svg.Paint) {
	p.add(Mark{Is: isPath, D: d, Paint: named(paint)})
}

// Text sets one line of text with its baseline at y.
func (p *picture) Text(x, y float64, s string, ty svg.Type) {
	if s == "" {
		return
	}
	ty.Fill = role(ty.Fill)
	p.add(Mark{Is: isText, X: cent(x), Y: cent(y), Text: s, Type: &ty})
}

// named is a paint with the names of its colours.
func named(p svg.Paint) *svg.Paint {
	p.Fill, p.Stroke = role(p.Fill), role(p.Stroke)
	p.Width = cent(p.Width)
	return &p
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
