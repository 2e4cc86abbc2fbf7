package report

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

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
