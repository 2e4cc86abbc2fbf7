package report

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Scene is a drawing of a cluster or of one of its nodes: where everything stands, how it looks and what it is about.
// The page draws it; nobody else computes positions.
type Scene struct {
	svg.Picture
	// Groups are the nodes that hang on the same switches, where nodes are drawn as cells.
	Groups []*Group `json:"groups,omitempty"`
	// Legend explains the kinds of links and boxes that the scene has.
	Legend []Sample `json:"legend,omitempty"`
}

// Group is nodes that hang on the same switches, drawn as a box with a cell for each.
type Group struct {
	ID     string   `json:"id"`
	Name   string   `json:"name"`
	Hosts  string   `json:"hosts"` // a hostlist
	Leaves []string `json:"leaves,omitempty"`
	X      float64  `json:"x"`
	Y      float64  `json:"y"`
	W      float64  `json:"w"`
	H      float64  `json:"h"`

	hosts, leaves []int
	box           box
}

// Picture is a drawing that can be written as SVG.
type Picture = svg.Picture

// What texts and shapes are drawn with.
type (
	font  = svg.Type
	brush = svg.Paint
)

// Colours, by their names in svg.Colors.
const (
	paper     = "paper"
	ink       = "ink"
	inkSoft   = "soft"
	panelFill = "panel"
	panelLine = "panel-line"
	nvGreen   = "nvlink"
	nvFill    = "gpu"
	pcieBlue  = "pcie"
	pcieFill  = "pci"
	netViol   = "net"
	netFill   = "nic"
	smpBrown  = "smp"
	cpuFill   = "numa"
	cpuLine   = "numa-line"
	sockFill  = "socket"
	amber     = "shared-line"
	amberBg   = "shared"
	amberInk  = "shared-ink"
	red       = "wrong-line"
	redBg     = "wrong"
	idleFill  = "idle"
	idleLine  = "idle-line"
	trayLine  = "tray-line"
	onBar     = "on-bar" // words on a green bar
)

const (
	pad            = 14.0 // also the room around a scene on a page, which has a frame of its own
	captionW       = 158.0
	boxType        = 11.0
	smallType      = 10.0
	captionType    = 10.5
	unknownStroke  = 1.4
	degradedDashes = "5 3"
)

// NewScene arranges a cluster for a page: the switches on top, below them every node. Few nodes show their NICs and
// GPUs, more are cells in groups of those that hang on the same switches. A cluster of one node is that node.
func NewScene(c *cluster.Cluster) *Scene {
	if len(c.Hosts) == 1 && c.TypeOf(0) != nil {
		return NodeScene(c, 0)
	}
	s, pic := newScreen(c), &picture{}
	w := s.width()
	bottom := s.draw(pic, pad, w)
	return pic.scene(sceneTitle(c), w, bottom+pad, s.groups)
}

// NodeScene draws one node in full.
func NodeScene(c *cluster.Cluster, host int) *Scene {
	t, pic := c.TypeOf(host), &picture{}
	p := newPanel(c, t, []int{host})
	p.lay(pad, pad)
	p.draw(pic)
	return pic.scene(p.title, p.frame.right()+pad, p.frame.bottom()+pad, newScreen(c).groups)
}

func sceneTitle(c *cluster.Cluster) string { return cmp.Or(c.Name, "cluster") }

// maxPanels is how many kinds of node are drawn in full.
const maxPanels = 6

// Drawing draws a cluster for paper: the scene of its nodes below their switches, then the first node of each kind in
// full, and a legend.
func Drawing(c *cluster.Cluster) *Picture {
	s, pic := newScreen(c), &picture{}
	w, scene := 760.0, len(c.Hosts) != 1 || c.TypeOf(0) == nil
	if scene {
		w = s.width()
	}
	var panels []*panel
	more := 0
	for _, g := range c.ByType() {
		switch {
		case g.Type == nil || scene && len(g.Hosts) > 0 && g.Type.Count(cluster.GPU)+g.Type.Count(cluster.NUMA) == 0:
		case len(panels) == maxPanels:
			more++
		default:
			p := newPanel(c, g.Type, g.Hosts)
			p.lay(0, 0)
			w = max(w, p.frame.w+2*edge)
			panels = append(panels, p)
		}
	}
	y := pic.heading(w, sceneTitle(c), strings.Join(titleParts(c, more), " · "))
	if scene {
		y = s.draw(pic, y, w) + 1.5*edge
	}
	for i, p := range panels {
		p.lay((w-p.frame.w)/2, y)
		if scene && i == 0 && len(p.hosts) > 0 {
			s.zoom(pic, p)
		}
		p.draw(pic)
		y = p.frame.bottom() + edge
	}
	y = pic.samples(edge, y, w-2*edge, pic.legend())
	note := font{Size: 11, Fill: inkSoft}
	text := "Lines are wider the faster the link. All rates are one direction; GB = 10⁹ bytes. " + sourceText(c)
	for _, l := range svg.Wrap(text, note, w-2*edge, 3) {
		pic.Text(edge, y, l, note)
		y += 15
	}
	return pic.Picture(sceneTitle(c), w, y+pad)
}

// titleParts sum up what is drawn, and how many kinds of node are not.
func titleParts(c *cluster.Cluster, more int) []string {
	net := &c.Network
	return nonEmpty(append(c.Summary().Parts(), netName(net.Kind),
		when(net.Rails > 1, words.Plural(net.Rails, "rail")), when(net.Reduction == cluster.Yes, "in-network reduction"),
		when(more > 0, words.Plural(more, "more kind")+" of node not drawn"))...)
}

// sourceText says where the picture comes from.
func sourceText(c *cluster.Cluster) string {
	shown := firstOf(slices.Clone(c.Sources), 4, "")
	for i, src := range shown {
		// Of a file only the name: where it lay is nobody's business in a talk.
		file, rest, _ := strings.Cut(src, " ")
		shown[i] = strings.TrimSpace(path.Base(file) + " " + rest)
	}
	return when(len(shown) > 0, "Source: "+strings.TrimRight(strings.Join(shown, ", "), "; .")+".")
}

// picture is a canvas that knows what its legend has to explain.
type picture struct {
	svg.Canvas
	used map[string]bool // keys of samples
}

func (p *picture) note(what string) {
	if p.used == nil {
		p.used = make(map[string]bool)
	}
	p.used[what] = true
}

func (p *picture) scene(title string, w, h float64, groups []*Group) *Scene {
	return &Scene{Picture: *p.Picture(title, w, h), Groups: groups, Legend: p.legend()}
}

// legend explains what the picture has.
func (p *picture) legend() []Sample {
	link := func(k cluster.LinkKind, text string, w float64) Sample {
		return Sample{key: k.String(), Text: text, Paint: brush{Stroke: linkColor(k), Width: w}}
	}
	solid := func(key, text string, paint brush) Sample {
		return Sample{key: key, Text: text, Paint: paint, Solid: true}
	}
	cable := brush{Stroke: netViol, Width: 3, Opacity: 0.75}
	member := cable
	member.Width = unknownStroke
	return p.noted(
		link(cluster.NVLink, "NVLink", 5),
		link(cluster.XGMI, "xGMI (Infinity Fabric)", 4),
		link(cluster.C2C, "C2C (CPU–GPU)", 4),
		link(cluster.Gaudi, "RoCE on board", 3),
		link(cluster.Direct, "direct link", 3),
		link(cluster.PCIe, "PCIe", 3),
		link(cluster.SMP, "link between CPUs", 3),
		Sample{key: "network", Text: "network cable", Paint: cable},
		Sample{key: "member", Text: "belongs to; no source says by which cables", Paint: member},
		Sample{
			key: "degraded", Text: "slower than it could be or than its like, or down",
			Paint: brush{Stroke: red, Width: 2.5, Dash: degradedDashes},
		},
		solid("root", "PCIe root complex", brush{Fill: cpuLine, Stroke: cpuLine}),
		solid("shared", "NIC shared by several GPUs", brush{Fill: amberBg, Stroke: amber, Width: 2}),
		solid("far", "GPU whose nearest NIC is across CPU sockets or NUMA domains (SYS)",
			brush{Fill: nvFill, Stroke: amber, Width: 2, Dash: degradedDashes}),
		solid("idle", "NIC that is nearest to no GPU", brush{Fill: idleFill, Stroke: idleLine}),
	)
}

// noted are the samples of what the picture has.
func (p *picture) noted(list ...Sample) []Sample {
	return slices.DeleteFunc(list, func(s Sample) bool { return !p.used[s.key] })
}

// stroke is the width of a link: it grows with the root of the rate, so that a
// tenfold rate is plainly thicker and still fits beside its label.
func stroke(r unit.Rate) float64 {
	if r <= 0 {
		return unknownStroke
	}
	return min(9, max(1.2, 0.42*math.Sqrt(r.GBps())))
}

// linkColor is the colour of a kind of link.
func linkColor(k cluster.LinkKind) string {
	switch k {
	case cluster.NVLink, cluster.XGMI, cluster.C2C, cluster.PCIe:
		return k.String()
	case cluster.SMP, cluster.OnDie:
		return smpBrown
	}
	return inkSoft
}

// linkPaint is how a link is drawn; one trained low is red and dashed.
func linkPaint(l *cluster.Link) brush {
	p := brush{Stroke: linkColor(l.Kind), Width: stroke(l.Rate.Value)}
	if trainedLow(l) != "" {
		p.Stroke, p.Dash, p.Width = red, degradedDashes, max(p.Width, 2)
	}
	return p
}

// rect draws a box with corners of radius r.
func (p *picture) rect(b box, r float64, paint brush) { p.Rect(b.x, b.y, b.w, b.h, r, paint) }

// pile draws a box, on others where it stands for several things that are equal.
func (p *picture) pile(b box, n int, r float64, paint brush) {
	for i := min(n-1, 2); i > 0; i-- {
		p.Rect(b.x+3*float64(i), b.y-3*float64(i), b.w, b.h, r, paint)
	}
	p.rect(b, r, paint)
}

// say sets a text in a room, cut where it is longer.
func (p *picture) say(x, y, room float64, text string, ty font) {
	p.Text(x, y, svg.Fit(text, ty, room), ty)
}

// lines sets texts below each other in the middle of a box, each line no wider
// than the box, as many as it has room for. The first line is bold.
func (p *picture) lines(b box, size float64, fill string, texts ...string) {
	step := size * 1.25
	all := nonEmpty(texts...)
	all = all[:min(len(all), int(b.h/step))]
	y := b.y + (b.h-step*float64(len(all)))/2 + size
	for i, t := range all {
		ty := font{Size: size, Fill: fill, Anchor: svg.Middle}
		if i == 0 {
			ty.Bold, ty.Size = true, size+1.5
		}
		// A little smaller is better than cut.
		if full := ty.Size; svg.TextWidth(t, ty) > b.w-8 {
			ty.Size = max(full*0.86, full*(b.w-8.1)/svg.TextWidth(t, ty))
		}
		p.say(b.mid(), y, b.w-8, t, ty)
		y += step
	}
}

// caption explains a row, on the left of it.
type caption struct {
	y     float64 // middle
	color string
	text  []string
}

// draw sets the words on the left of a row, not above a place, and returns where they end; a line that is too long goes
// on in the next.
func (c *caption) draw(pic *picture, x, top float64) float64 {
	var lines []string
	for i, s := range c.text {
		lines = append(lines, svg.Wrap(s, font{Size: captionType, Bold: i == 0}, captionW, 2)...)
	}
	y := max(c.y-float64(len(lines))*6.5, top) + 10
	for i, text := range lines {
		pic.Text(x, y, text, font{Size: captionType, Fill: c.color, Bold: i == 0})
		y += 13.5
	}
	return y - 10
}
