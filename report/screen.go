package report

import (
	"cmp"
	"math"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
)

// screenEdge is the room around a scene on a page, which has a frame of its own.
const screenEdge = 14.0

// NewScene arranges a cluster for a page: the switches on top as SVG has them, below them every node. Few nodes show their
// NICs and GPUs, more are boxes, many are cells in groups of those that hang on the same switches. A cluster of one node is
// that node.
func NewScene(c *cluster.Cluster) *Scene {
	if len(c.Hosts) == 1 && c.TypeOf(0) != nil {
		return NodeScene(c, 0)
	}
	s := newScreen(c)
	s.lay()
	pic := &picture{}
	s.area.draw(pic)
	pic.drawWires(s.wires)
	if s.cloud != nil {
		drawCloud(pic, c, *s.cloud)
	}
	s.net.draw(pic)
	for _, t := range s.net.captions() {
		pic.drawCaption(screenEdge, t)
	}
	for _, t := range s.area.captions() {
		pic.drawCaption(screenEdge, t)
	}
	return &Scene{Title: sceneTitle(c), Width: cent(s.w), Height: cent(s.h), Marks: pic.marks, Groups: s.groups, Legend: pic.namedLegend()}
}

// NodeScene draws one node in full.
func NodeScene(c *cluster.Cluster, host int) *Scene {
	t, name := c.TypeOf(host), c.Hosts[host].Name
	title := cmp.Or(name, t.Name)
	var n node
	if trayCount(t) > 1 {
		r := newRack(t, title)
		r.host = name
		n = r
	} else {
		p := newPanel(t, true, len(c.Network.Switches) > 0)
		p.host, p.title, p.note, p.ends = name, title, t.Name, leafNames(c, host)
		if t.Tree == cluster.Assumed {
			p.note += "  (PCIe tree assumed)"
		}
		n = p
	}
	n.move(screenEdge, screenEdge)
	pic := &picture{}
	n.draw(pic)
	b := n.bounds()
	return &Scene{
		Title: title, Width: cent(b.right() + screenEdge), Height: cent(b.bottom() + screenEdge),
		Marks: pic.marks, Groups: groupList(hostGroups(c), c), Legend: pic.namedLegend(),
	}
}

// leafNames says to which switch the cable of each NIC leads.
func leafNames(c *cluster.Cluster, host int) map[int]string {
	routes := cluster.NewRoutes(c)
	to := make(map[int]string)
	for _, nic := range c.TypeOf(host).Of(cluster.NIC) {
		if sw, _ := routes.Leaf(host, nic); sw >= 0 {
			to[nic] = c.Network.Switches[sw].Name
		}
	}
	return to
}

// namedLegend is the legend with the names of its colours.
func (p *picture) namedLegend() []Sample {
	list := p.legend()
	for i := range list {
		list[i].Paint = *named(list[i].Paint)
	}
	return list
}

// screen is a cluster as a page shows it.
type screen struct {
	c      *cluster.Cluster
	net    *strip
	cloud  *box
	area   hostArea
	groups []Group
	wires  []wire
	w, h   float64
}

// hostArea is the nodes below the switches.
type hostArea interface {
	width() float64
	// lay places the nodes and returns where they end.
	lay(x, y, w float64) float64
	wires(cloud *box) []wire
	draw(pic *picture)
	captions() []caption
}

func newScreen(c *cluster.Cluster) *screen {
	s := &screen{c: c, net: newStrip(c)}
	if s.net.empty() && len(c.Hosts) > 1 && c.Summary().NICs > 0 {
		s.cloud = &box{}
	}
	found := hostGroups(c)
	s.groups = groupList(found, c)
	row := newHostRow(s.net)
	switch {
	case fewHosts(c):
		s.area = newDeviceRow(s.net, row)
	case row.single() && !s.net.empty():
		s.area = row
	default:
		s.area = newGroupGrid(s.net, row, found, s.groups)
	}
	return s
}

// lay places everything from the top down.
func (s *screen) lay() {
	indent := screenEdge + captionW + pad
	width := s.area.width()
	if !s.net.empty() {
		width = math.Max(width, s.net.width())
	}
	s.w = math.Max(width+indent+screenEdge, 760)
	y, inner := screenEdge, s.w-screenEdge-indent
	if !s.net.empty() {
		y = s.net.lay(indent, y, inner) + tierGap(s.w)
	}
	if s.cloud != nil {
		*s.cloud = box{indent, y, inner, 36}
		y += 36 + tierGap(s.w)
	}
	s.h = s.area.lay(indent, y, inner) + screenEdge
	if !s.net.empty() {
		s.net.trunks()
		s.wires = append(s.wires, s.net.wires...)
	}
	s.wires = append(s.wires, s.area.wires(s.cloud)...)
}

// drawCloud stands for a network that nobody described.
func drawCloud(pic *picture, c *cluster.Cluster, b box) {
	text := "a network that no source describes"
	if k := c.Network.Kind; k != "" {
		text = netName(k) + " network; no source describes its switches"
	}
	pic.Open("cloud", text)
	pic.Rect(b.x, b.y, b.w, b.h, 18, svg.Paint{Fill: cloudFill, Stroke: netViol, Dash: "6 5"})
	ty := svg.Type{Size: 12, Fill: netViol, Anchor: svg.Middle, Italic: true}
	pic.Text(b.mid(), b.y+b.h/2+4, svg.Fit(text, ty, b.w-20), ty)
	pic.Close()
}

func sceneTitle(c *cluster.Cluster) string { return cmp.Or(c.Name, "cluster") }
