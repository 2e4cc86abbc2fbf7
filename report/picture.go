package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/texttab"
	"busbar.dev/internal/words"
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

// Open begins a group: what belongs together, with a class for programs and a tip for people who point at it. Close
// ends it.
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

const (
	margin    = 24.0
	titleH    = 62.0
	panelGap  = 26.0
	rowWidth  = 1900.0 // panels beyond this go to the next row
	maxPanels = 6
	zoomGap   = 46.0
)

// Picture is a drawing that can be written as SVG.
type Picture = svg.Picture

// Drawing draws a cluster. One or two nodes are drawn in full below the network;
// of more, the first of each kind, below a row that shows how all of them hang on
// the switches.
func Drawing(c *cluster.Cluster) *svg.Picture {
	return newSheet(c).scene().picture()
}

// scene arranges and draws the sheet.
func (s *sheet) scene() *Scene {
	s.lay()
	pic := &picture{}
	s.draw(pic)
	s.h += pic.drawLegend(margin, s.h, s.w-2*margin, s.sources()) + margin
	return &Scene{Title: s.title(), Width: cent(s.w), Height: cent(s.h), Marks: pic.marks}
}

// node is a node that is drawn in full: as a panel, or as a rack of trays.
type node interface {
	bounds() *box
	move(x, y float64)
	draw(pic *picture)
	// port is the edge that the cable of a NIC leaves from.
	port(nic int) *box
}

// sheet is a picture for paper: the network on top, hosts below it, then the kinds of node in full.
type sheet struct {
	c      *cluster.Cluster
	net    *strip
	hosts  *hostRow // nil when the nodes themselves are drawn below the switches
	nodes  []node
	of     []int // per node: its host, -1 none
	cloud  *box  // stands for a network that nobody described
	wires  []wire
	w, h   float64
	more   int // kinds of node that are not drawn
	indent float64
}

func newSheet(c *cluster.Cluster) *sheet {
	s := &sheet{c: c, net: newStrip(c)}
	var kinds []group
	described := true
	for _, g := range groups(c) {
		if g.t == nil {
			described = false
			continue
		}
		kinds = append(kinds, g)
	}
	each := len(c.Hosts) <= 2 && described
	for _, g := range kinds {
		each = each && (trayCount(g.t) < 2 || len(c.Hosts) <= 1)
	}
	if each && len(c.Hosts) > 0 {
		order := []int{0, 1}[:len(c.Hosts)]
		slices.SortStableFunc(order, func(a, b int) int { return natural.Compare(c.Hosts[a].Name, c.Hosts[b].Name) })
		for i, h := range order {
			t := c.TypeOf(h)
			s.add(t, h, c.Hosts[h].Name, i > 0 && t == c.TypeOf(order[0]), 0, false)
		}
	} else {
		if !s.net.empty() && len(c.Hosts) > 0 {
			s.hosts = newHostRow(s.net)
		}
		s.kinds(kinds)
	}
	if s.net.empty() && len(c.Hosts) > 1 && c.Summary().NICs > 0 {
		s.cloud = &box{}
	}
	return s
}

// kinds adds the first node of each kind.
func (s *sheet) kinds(all []group) {
	for _, g := range all {
		inside := g.t.Count(cluster.GPU) + g.t.Count(cluster.NUMA)
		if s.hosts != nil && inside == 0 {
			continue // the row of hosts says it all
		}
		if len(s.nodes) == maxPanels {
			s.more++
			continue
		}
		host := -1
		if len(g.hosts) > 0 {
			host = g.hosts[0]
		}
		title := g.t.Name
		if n := len(g.hosts); n > 1 {
			title += fmt.Sprintf("  × %d", n)
		}
		s.add(g.t, host, title, false, len(g.hosts)-1, s.hosts != nil)
		if p, ok := s.nodes[len(s.nodes)-1].(*panel); ok {
			p.note = hostList(g.names(s.c), 90)
			if g.t.Tree == cluster.Assumed {
				p.note += "  (PCIe tree assumed)"
			}
		}
	}
}

// add appends a node. The second of two equal ones needs no captions.
func (s *sheet) add(t *cluster.NodeType, host int, title string, again bool, more int, stubs bool) {
	s.of = append(s.of, host)
	title = cmp.Or(title, t.Name)
	if trayCount(t) > 1 {
		s.nodes = append(s.nodes, newRack(t, title))
		return
	}
	p := newPanel(t, !again, stubs)
	p.title, p.stack = title, more
	if more == 0 && t.Name != title {
		p.note = t.Name
	}
	if t.Tree == cluster.Assumed {
		p.note += "  (PCIe tree assumed)"
	}
	if stubs && s.c.Network.Rails > 1 {
		p.ends = s.rails(t, host)
	}
	s.nodes = append(s.nodes, p)
}

// rails finds the rail of each NIC of a host.
func (s *sheet) rails(t *cluster.NodeType, host int) map[int]string {
	routes := cluster.NewRoutes(s.c)
	rails := make(map[int]string)
	for _, nic := range t.Of(cluster.NIC) {
		if sw, _ := routes.Leaf(host, nic); sw >= 0 && s.c.Network.Switches[sw].Rail >= 0 {
			rails[nic] = fmt.Sprintf("rail %d", s.c.Network.Switches[sw].Rail)
		}
	}
	return rails
}

// lay places everything: the network on top, then hosts, then nodes.
func (s *sheet) lay() {
	s.indent = margin + captionW + pad
	width := s.nodeRows()
	netWidth := 0.0
	if !s.net.empty() {
		netWidth = s.net.width()
	}
	if s.hosts != nil {
		netWidth = math.Max(netWidth, s.hosts.width())
	}
	if netWidth > 0 {
		netWidth = math.Max(netWidth+s.indent+margin, 900)
	}
	s.w = math.Max(math.Max(width+2*margin, netWidth), 760)
	y := margin + titleH
	if !s.net.empty() {
		y = s.net.lay(s.indent, y, s.w-margin-s.indent)
	}
	if s.hosts != nil {
		y = s.hosts.lay(s.indent, y+tierGap(s.w), s.w-margin-s.indent)
	}
	switch {
	case s.cloud != nil:
		*s.cloud = box{s.indent, y, s.w - margin - s.indent, 36}
		y += 36 + tierGap(s.w)
	case len(s.nodes) == 0:
		y += 24
	case s.hosts != nil:
		y += zoomGap
	case !s.net.empty():
		y += tierGap(s.w)
	}
	s.h = s.placeNodes(y)
	s.cables()
}

// nodeRows is the width that the nodes need when they are dealt into rows.
func (s *sheet) nodeRows() float64 {
	widest, x := 0.0, 0.0
	for _, n := range s.nodes {
		w := n.bounds().w
		if x > 0 && x+panelGap+w > rowWidth && s.hosts != nil {
			x = 0
		}
		if x > 0 {
			x += panelGap
		}
		x += w
		widest = math.Max(widest, x)
	}
	return widest
}

// placeNodes sets the nodes into rows, each row in the middle of the picture.
func (s *sheet) placeNodes(y float64) float64 {
	bottom := y
	for first := 0; first < len(s.nodes); {
		last, w := first, 0.0
		for last < len(s.nodes) {
			need := s.nodes[last].bounds().w
			if last > first {
				need += panelGap
			}
			if last > first && w+need > s.w-2*margin+1 {
				break
			}
			w += need
			last++
		}
		x := (s.w - w) / 2
		for _, n := range s.nodes[first:last] {
			n.move(x, y)
			x += n.bounds().w + panelGap
			bottom = math.Max(bottom, n.bounds().bottom()+pileHeight(n))
		}
		first, y = last, bottom+panelGap
	}
	return bottom + 18
}

// pileHeight is what the nodes behind the first one stick out.
func pileHeight(n node) float64 {
	if p, ok := n.(*panel); ok {
		return float64(min(p.stack, 3)) * 5
	}
	return 0
}

// cables joins the NICs of the drawn nodes with their switches.
func (s *sheet) cables() {
	if !s.net.empty() {
		s.net.trunks()
		s.wires = append(s.wires, s.net.wires...)
	}
	if s.hosts != nil {
		s.wires = append(s.wires, s.hosts.wires(nil)...)
		return
	}
	routes := cluster.NewRoutes(s.c)
	for i, n := range s.nodes {
		if s.of[i] >= 0 {
			s.wires = append(s.wires, s.net.hostCables(routes, s.cloud, s.of[i], n.port)...)
		}
	}
}

func (s *sheet) draw(pic *picture) {
	s.drawTitle(pic)
	for _, n := range s.nodes {
		n.draw(pic)
	}
	pic.drawWires(s.wires)
	if s.cloud != nil {
		drawCloud(pic, s.c, *s.cloud)
	}
	if !s.net.empty() {
		s.net.draw(pic)
		for _, c := range s.net.captions() {
			pic.drawCaption(margin+pad, c)
		}
	}
	if s.hosts != nil {
		s.hosts.draw(pic)
		for _, c := range s.hosts.captions() {
			pic.drawCaption(margin+pad, c)
		}
		for i, n := range s.nodes {
			s.zoom(pic, n, s.of[i])
		}
	}
}

// zoom draws the lines that lead from a small host to the node drawn in full.
func (s *sheet) zoom(pic *picture, n node, host int) {
	b, to := s.hosts.boxOf(host), n.bounds()
	if b == nil || to.y > s.nodes[0].bounds().y {
		return // from the second row on, the lines would cross the first
	}
	paint := svg.Paint{Stroke: inkSoft, Dash: "2 4"}
	pic.Line(b.x, b.bottom(), to.x+8, to.y, paint)
	pic.Line(b.right(), b.bottom(), to.right()-8, to.y, paint)
}

func (s *sheet) title() string { return sceneTitle(s.c) }

func (s *sheet) drawTitle(pic *picture) {
	room := s.w - 2*margin
	ty := svg.Type{Size: 24, Fill: ink, Bold: true}
	pic.Text(margin, margin+18, svg.Fit(s.title(), ty, room), ty)
	parts := summaryParts(s.c.Summary())
	if k := s.c.Network.Kind; k != "" {
		parts = append(parts, netName(k))
	}
	if r := s.c.Network.Rails; r > 1 {
		parts = append(parts, words.Plural(r, "rail"))
	}
	if s.c.Network.Reduction == cluster.Yes {
		parts = append(parts, "in-network reduction")
	}
	if s.more > 0 {
		parts = append(parts, words.Plural(s.more, "more kind")+" of node not drawn")
	}
	sub := svg.Type{Size: 13.5, Fill: inkSoft}
	pic.Text(margin, margin+40, svg.Fit(strings.Join(parts, " · "), sub, room), sub)
}

// sources says where the picture comes from.
func (s *sheet) sources() string {
	if len(s.c.Sources) == 0 {
		return ""
	}
	shown := slices.Clone(s.c.Sources[:min(4, len(s.c.Sources))])
	for i, src := range shown {
		// Of a file only the name: where it lay is nobody's business in a talk.
		if file, rest, _ := strings.Cut(src, " "); strings.Contains(file, "/") {
			shown[i] = strings.TrimSpace(path.Base(file) + " " + rest)
		}
	}
	text := "Source: " + strings.TrimRight(strings.Join(shown, ", "), "; .")
	if n := len(s.c.Sources) - len(shown); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + "."
}

// write prints a text that is made as a whole. A writer that takes tables gets those of the text.
func write(w io.Writer, o TextOptions, render func(style) string) error {
	var tables []*texttab.Table
	text := printed(o, func(s style) string {
		tables, s.tables = nil, &tables
		return render(s)
	})
	for _, t := range tables {
		if _, err := t.Send(w); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// printed is a text for o, free of what a name in a file could send to a
// terminal. render is asked without colour first: an escape in what comes is the
// input's own, and nobody can tell it from ours once there is colour, so such a
// text stays without.
func printed(o TextOptions, render func(style) string) string {
	text := render(style{})
	if o.Color && !strings.ContainsRune(text, '\x1b') {
		return keepSGR(render(style{on: true}))
	}
	return texttab.Clean(text)
}

// keepSGR cleans a text whose only escapes are ours.
func keepSGR(s string) string {
	parts := strings.Split(s, "\x1b")
	for i := range parts {
		parts[i] = texttab.Clean(parts[i])
	}
	return strings.Join(parts, "\x1b")
}

// style colours text for a terminal, or does not.
type style struct {
	on     bool
	tables *[]*texttab.Table // that were laid out; nil where nobody asks
}

// fit lays a table out for a terminal with so many columns; 0 is any number.
func (s style) fit(t *texttab.Table, columns int) string {
	t.Style = s.bold
	if s.tables != nil {
		*s.tables = append(*s.tables, t)
	}
	return t.Fit(columns)
}

func (s style) sgr(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(t string) string   { return s.sgr("1", t) }
func (s style) dim(t string) string    { return s.sgr("2", t) }
func (s style) red(t string) string    { return s.sgr("31", t) }
func (s style) green(t string) string  { return s.sgr("32", t) }
func (s style) yellow(t string) string { return s.sgr("33", t) }
func (s style) cyan(t string) string   { return s.sgr("36", t) }

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
		{
			key: "member", Text: "belongs to; no source says by which cables",
			Paint: svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75},
		},
		{
			key: "degraded", Text: "slower than it could be or than its like, or down",
			Paint: svg.Paint{Stroke: red, Width: 2.5, Dash: degradedDashes},
		},
		{key: "root", Text: "PCIe root complex", Paint: svg.Paint{Fill: cpuLine, Stroke: cpuLine}, Solid: true},
		{
			key: "shared", Text: "NIC shared by several GPUs", Paint: svg.Paint{Fill: amberBg, Stroke: amber, Width: 2},
			Solid: true,
		},
		{
			key: "far", Text: "GPU whose nearest NIC is across CPU sockets or NUMA domains (SYS)",
			Paint: svg.Paint{Fill: nvFill, Stroke: amber, Width: 2, Dash: degradedDashes}, Solid: true,
		},
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
