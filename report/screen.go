package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// screenEdge is the room around a scene on a page, which has a frame of its own.
const screenEdge = 14.0

// NewScene arranges a cluster for a page: the switches on top as SVG has them, below them every node. Few nodes show
// their NICs and GPUs, more are boxes, many are cells in groups of those that hang on the same switches. A cluster of
// one node is that node.
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
	return &Scene{
		Title: sceneTitle(c), Width: cent(s.w), Height: cent(s.h), Marks: pic.marks, Groups: s.groups,
		Legend: pic.namedLegend(),
	}
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

// Sizes of nodes that show their devices.
const (
	maxDeviceRow  = 1300.0 // width beyond which nodes are boxes
	maxDeviceHost = 16
	devicesPerRow = 18
	devicePitch   = 26.0
	deviceH       = 19.0
	deviceRowH    = 22.0
	nodeGap       = 14.0
	maxDevices    = 144 // of a kind in one node
)

// fewHosts reports whether there is room for the devices of every node.
func fewHosts(c *cluster.Cluster) bool {
	if len(c.Hosts) == 0 || len(c.Hosts) > maxDeviceHost {
		return false
	}
	w := 0.0
	for h := range c.Hosts {
		t := c.TypeOf(h)
		if t == nil {
			return false
		}
		w += nodeSize(t).w + nodeGap
	}
	return w <= maxDeviceRow
}

// nodeSize is the box that a node needs for its devices.
func nodeSize(t *cluster.NodeType) box {
	gpus, nics := min(t.Count(cluster.GPU), maxDevices), min(t.Count(cluster.NIC), maxDevices)
	n := min(max(gpus, nics, 4), devicesPerRow)
	return box{w: float64(n)*devicePitch + 18, h: 64 + deviceRowH*float64(deviceRows(gpus)+deviceRows(nics))}
}

func deviceRows(n int) int { return (n + devicesPerRow - 1) / devicesPerRow }

// deviceRow is nodes that show their NICs and, below them, their GPUs.
type deviceRow struct {
	*hostRow
	nodes []deviceNode
}

type deviceNode struct {
	host       int
	name       string
	t          *cluster.NodeType
	box        box
	nics, gpus []box
}

func newDeviceRow(net *strip, row *hostRow) *deviceRow {
	c := net.v.c
	r := &deviceRow{hostRow: row, nodes: make([]deviceNode, len(c.Hosts))}
	for h := range c.Hosts {
		r.nodes[h] = deviceNode{host: h, name: c.Hosts[h].Name, t: c.TypeOf(h), box: nodeSize(c.TypeOf(h))}
	}
	return r
}

func (r *deviceRow) width() float64 {
	w := -nodeGap
	for i := range r.nodes {
		w += r.nodes[i].box.w + nodeGap
	}
	return w
}

func (r *deviceRow) lay(x, y, w float64) float64 {
	gap := math.Min(80, (w-r.width())/float64(len(r.nodes)+1)) + nodeGap
	x += (w - r.width() - (gap-nodeGap)*float64(len(r.nodes)-1)) / 2
	bottom := y
	for i := range r.nodes {
		n := &r.nodes[i]
		n.lay(x, y)
		x += n.box.w + gap
		bottom = math.Max(bottom, n.box.bottom())
	}
	return bottom
}

func (n *deviceNode) lay(x, y float64) {
	n.box.x, n.box.y = x, y
	row := func(count int, top float64) []box {
		if count = min(count, maxDevices); count == 0 {
			return nil
		}
		pitch := (n.box.w - 16) / float64(min(devicesPerRow, count))
		w := math.Min(24, pitch-2)
		list := make([]box, count)
		for i := range list {
			list[i] = box{
				x + 8 + (float64(i%devicesPerRow)+0.5)*pitch - w/2, top + deviceRowH*float64(i/devicesPerRow), w, deviceH,
			}
		}
		return list
	}
	nics := n.t.Count(cluster.NIC)
	n.nics = row(nics, y+8)
	n.gpus = row(n.t.Count(cluster.GPU), y+28+deviceRowH*float64(deviceRows(min(nics, maxDevices))))
}

// port is where the cable of a NIC ends: at the NIC, or at the node where NICs stand in several rows.
func (n *deviceNode) port(nic int) *box {
	if len(n.nics) > devicesPerRow {
		return &n.box
	}
	for i, d := range n.t.Of(cluster.NIC) {
		if d == nic {
			return &n.nics[i]
		}
	}
	return nil
}

func (r *deviceRow) wires(cloud *box) []wire {
	routes := cluster.NewRoutes(r.net.v.c)
	var out []wire
	for i := range r.nodes {
		out = append(out, r.net.hostCables(routes, cloud, r.nodes[i].host, r.nodes[i].port)...)
	}
	return out
}

func (r *deviceRow) draw(pic *picture) {
	for i := range r.nodes {
		r.nodes[i].draw(pic)
	}
}

func (n *deviceNode) draw(pic *picture) {
	b := n.box
	gpus, nics := n.t.Of(cluster.GPU), n.t.Of(cluster.NIC)
	pic.Open("host devices",
		fmt.Sprintf("%s: %s, %s", n.name, words.Plural(len(gpus), "GPU"), words.Plural(len(nics), "NIC")))
	if n.name != "" {
		pic.about("node/" + n.name)
	}
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: idleLine, Width: 1.3})
	ty := svg.Type{Size: boxType, Fill: ink, Anchor: svg.Middle, Bold: true}
	pic.Text(b.mid(), b.bottom()-6, svg.FitEnds(n.name, ty, b.w-8), ty)
	pic.Close()
	if joined := fastSets(n.t); len(joined) > 0 {
		pic.note(joined[0].kind.String())
		pic.Open("link "+joined[0].kind.String(), joined[0].name+" between the GPUs")
		pic.about("bus/" + n.name)
		pic.Line(b.x+8, b.bottom()-24, b.right()-8, b.bottom()-24, svg.Paint{Stroke: linkColor(joined[0].kind), Width: 3})
		pic.Close()
	}
	n.devices(pic, "nic", nics, n.nics, svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.2})
	n.devices(pic, "gpu", gpus, n.gpus, svg.Paint{Fill: nvFill, Stroke: nvGreen, Width: 1.2})
}

// devices paints the devices of a kind by their numbers.
func (n *deviceNode) devices(pic *picture, class string, ids []int, at []box, paint svg.Paint) {
	titles := deviceTitles(n.t)
	ty := svg.Type{Size: smallType, Fill: ink, Anchor: svg.Middle}
	for i, b := range at {
		look, dev := paint, &n.t.Devices[ids[i]]
		if nicDown(dev) {
			look.Fill, look.Stroke, look.Dash = redBg, red, degradedDashes
		}
		pic.Open(class, titles[ids[i]]+" of "+n.name+", "+dev.Model.Value)
		pic.about(deviceKey(n.name, n.t, ids[i]))
		pic.Rect(b.x, b.y, b.w, b.h, 3, look)
		if b.w > 13 {
			pic.Text(b.mid(), b.y+13.5, fmt.Sprint(i), ty)
		}
		pic.Close()
	}
}

func (r *deviceRow) captions() []caption {
	list := r.hostRow.captions()
	list[0].y = r.nodes[0].box.y + r.nodes[0].box.h/2
	return list
}

// hostGroup is hosts that hang on the same switches.
type hostGroup struct {
	hosts  []int
	leaves []int
	box    box
}

// hostGroups puts hosts on the same switches together; those without a switch by their kind.
func hostGroups(c *cluster.Cluster) []hostGroup {
	on := make([][]int, len(c.Hosts)) // per host: its switches, in the order of links
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		sw, hosts := l.A, l.B
		if l.A.ToHosts() {
			sw, hosts = l.B, l.A
		}
		if sw.ToHosts() || sw.Switch >= len(c.Network.Switches) || c.Network.Switches[sw.Switch].Domain {
			continue
		}
		for _, s := range hosts.Hosts {
			for h := s.First; h < s.First+s.N && h < len(on); h++ {
				if !slices.Contains(on[h], sw.Switch) {
					on[h] = append(on[h], sw.Switch)
				}
			}
		}
	}
	var list []hostGroup
	index := make(map[string]int)
	for h := range c.Hosts {
		key := fmt.Sprint(on[h])
		if len(on[h]) == 0 {
			key = fmt.Sprint("kind ", c.Hosts[h].Type)
		}
		k, ok := index[key]
		if !ok {
			k = len(list)
			index[key] = k
			list = append(list, hostGroup{leaves: on[h]})
		}
		list[k].hosts = append(list[k].hosts, h)
	}
	return list
}

// groupList is the groups as a page knows them.
func groupList(groups []hostGroup, c *cluster.Cluster) []Group {
	list := make([]Group, len(groups))
	for i, g := range groups {
		names := hostNames(c, g.hosts)
		list[i] = Group{
			ID: fmt.Sprintf("pod%d", i), Name: hostList(names, 40), Hosts: cluster.FormatHosts(names),
			Leaves: switchNames(c, g.leaves),
		}
	}
	return list
}

// cellForm is how nodes are drawn as cells: fewer are larger.
type cellForm struct {
	w, h, gap float64
	name      bool    // cells have room for the names of nodes
	head      float64 // room above the cells for the name of the group
	chip      float64 // height of a switch of the group
	gutter    float64 // between groups
	least     float64 // width of a group
	pad       float64 // between its edge and what it holds
}

func formFor(hosts int) cellForm {
	switch {
	case hosts <= 96:
		return cellForm{w: 78, h: 30, gap: 6, name: true, head: 24, chip: 20, gutter: 24, least: 150, pad: 8}
	case hosts <= 2000:
		return cellForm{w: 15, h: 15, gap: 4, head: 22, chip: 17, gutter: 22, least: 104, pad: 8}
	}
	return cellForm{w: 4, h: 4, gap: 1, head: 8, chip: 4, gutter: 6, least: 44, pad: 3}
}

// groupGrid is groups of nodes as boxes with a cell for each node, and, where a row of the leaves would be too long,
// with their leaves.
type groupGrid struct {
	cellForm
	net    *strip
	row    *hostRow // for its caption
	groups []hostGroup
	out    []Group // what the page is told about them
	leaves caption // of the tier that stands in the groups; no text where it stands above
	chips  bool
	cols   int // cells in a row of a group
	across int // groups in a row
	frame  box
	of     []int // per host: its group
}

func newGroupGrid(net *strip, row *hostRow, groups []hostGroup, out []Group) *groupGrid {
	g := &groupGrid{
		cellForm: formFor(len(net.v.c.Hosts)), net: net, row: row, groups: groups, out: out, cols: 1, across: 1,
	}
	g.of = make([]int, len(net.v.c.Hosts))
	for i, x := range groups {
		for _, h := range x.hosts {
			g.of[h] = i
		}
	}
	g.takeLeaves()
	g.arrange()
	return g
}

// takeLeaves moves the lowest tier of switches from its row into the groups, where the row had to fold it.
func (g *groupGrid) takeLeaves() {
	last := len(g.net.rows) - 1
	if last < 0 || !slices.ContainsFunc(g.net.rows[last], func(n netBox) bool { return len(n.ids) > 1 }) {
		return
	}
	in := make(map[int]bool)
	for _, x := range g.groups {
		for _, id := range x.leaves {
			in[id] = true
		}
	}
	for _, n := range g.net.rows[last] {
		for _, id := range n.ids {
			if !in[id] {
				return // a switch without nodes would not be drawn at all
			}
		}
	}
	g.chips, g.leaves = true, g.net.captions()[last]
	g.net.drop()
}

// size is the box of a group of so many nodes.
func (g *groupGrid) size(hosts, cols int) box {
	rows := (hosts + cols - 1) / cols
	return box{
		w: math.Max(float64(cols)*(g.w+g.gap)-g.gap+2*g.pad, g.least), h: g.top() + float64(rows)*(g.h+g.gap) - g.gap + g.pad,
	}
}

// top is the room above the cells of a group.
func (g *groupGrid) top() float64 {
	if g.chips {
		return g.head + g.chip + g.gap + g.pad/2
	}
	return g.head
}

// most is the number of nodes of the largest group.
func (g *groupGrid) most() int {
	n := 1
	for _, x := range g.groups {
		n = max(n, len(x.hosts))
	}
	return n
}

// arrange chooses how many cells stand in a row of a group and how many groups side by side, so that the whole is about
// as wide as a screen and groups are neither towers nor ribbons.
func (g *groupGrid) arrange() {
	n, most := len(g.groups), g.most()
	above := float64(len(g.net.rows)) * (switchBH + 90)
	best := math.Inf(1)
	off := func(b box, ideal float64) float64 { return math.Abs(math.Log(b.w / b.h / ideal)) }
	for cols := 1; cols <= min(most, 64); cols++ {
		one := g.size(most, cols)
		for across := 1; across <= n; across++ {
			rows := (n + across - 1) / across
			all := box{w: float64(across)*(one.w+g.gutter) + captionW, h: float64(rows)*(one.h+g.gutter) + above}
			bad := off(all, 1.7) + 0.35*off(one, 1.5) + 0.3*unfilled(n, across) + unfilled(most, cols)
			if across == n && !g.chips && !g.net.empty() {
				bad -= 0.6 // in one row each can hang on its own switches
			}
			if bad < best {
				best, g.cols, g.across = bad, cols, across
			}
		}
	}
}

// unfilled is the share of rows of so many places that n things leave empty.
func unfilled(n, places int) float64 {
	all := (n + places - 1) / places * places
	return float64(all-n) / float64(all)
}

func (g *groupGrid) width() float64 {
	return float64(g.across)*(g.size(g.most(), g.cols).w+g.gutter) - g.gutter
}

func (g *groupGrid) lay(x, y, w float64) float64 {
	one := g.size(g.most(), g.cols)
	gutter := math.Min(3*g.gutter, (w-float64(g.across)*one.w)/float64(max(1, g.across-1)))
	left := x + (w-float64(g.across)*(one.w+gutter)+gutter)/2
	bar := y
	if g.rows() > 1 && !g.net.empty() {
		y += g.gutter
	}
	top, bottom := y, y
	for i := range g.groups {
		if i > 0 && i%g.across == 0 {
			top = bottom + g.gutter
		}
		b := g.size(len(g.groups[i].hosts), g.cols)
		g.groups[i].box = box{left + float64(i%g.across)*(one.w+gutter), top, one.w, b.h}
		bottom = math.Max(bottom, top+b.h)
		o := &g.out[i]
		o.X, o.Y, o.W, o.H = cent(g.groups[i].box.x), cent(top), cent(one.w), cent(b.h)
	}
	g.below()
	g.frame = box{left - g.side() - 4, bar, float64(g.across)*(one.w+gutter) - gutter + g.side() + 4, bottom - bar}
	g.leaves.y = y + 20
	return bottom
}

// below moves groups that hang on one drawn switch each to below it.
func (g *groupGrid) below() {
	if g.chips || g.across < len(g.groups) || g.net.empty() {
		return
	}
	mid := make([]float64, len(g.groups))
	for i := range g.groups {
		if len(g.groups[i].leaves) != 1 {
			return
		}
		mid[i] = g.net.boxOf(g.groups[i].leaves[0]).box.mid()
		if i > 0 && mid[i] < mid[i-1] {
			return
		}
	}
	w := g.groups[0].box.w
	last := g.net.rows[len(g.net.rows)-1]
	spread(mid, w+g.gutter, math.Min(last[0].box.x, g.groups[0].box.x),
		math.Max(last[len(last)-1].box.right(), g.groups[len(g.groups)-1].box.right()))
	for i := range g.groups {
		g.groups[i].box.x, g.out[i].X = mid[i]-w/2, cent(mid[i]-w/2)
	}
}

func (g *groupGrid) draw(pic *picture) {
	if g.rows() > 1 && !g.net.empty() {
		g.drawBus(pic)
	}
	for i := range g.groups {
		g.drawGroup(pic, &g.groups[i], &g.out[i])
	}
}

// rows is how many rows of groups there are.
func (g *groupGrid) rows() int { return (len(g.groups) + g.across - 1) / g.across }

// drawBus paints a bar above rows of groups, at which the cables from above end, and what leads from it to each of
// them.
func (g *groupGrid) drawBus(pic *picture) {
	paint := svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}
	for i := range g.groups {
		b := g.groups[i].box
		x := b.x - g.side()
		if i+g.across >= len(g.groups) { // the last of its column
			pic.Line(x, g.frame.y, x, b.y+g.head/2, paint)
		}
		key, tip := "cables/", "cables of "
		if g.chips {
			key, tip = "uplinks/", "uplinks of "
		}
		pic.Open("link network", tip+g.out[i].Name)
		pic.about(key + g.out[i].ID)
		pic.Line(x, b.y+g.head/2, b.x, b.y+g.head/2, paint)
		pic.Close()
	}
	pic.Rect(g.frame.x, g.frame.y-1.5, g.frame.w, 3, 1.5, svg.Paint{Fill: netViol})
}

// side is how far on the left of a group the line to it runs.
func (g *groupGrid) side() float64 { return math.Min(9, g.gutter/2) }

func (g *groupGrid) drawGroup(pic *picture, x *hostGroup, as *Group) {
	b, c := x.box, g.net.v.c
	tip := as.Name + ": " + words.Plural(len(x.hosts), "node")
	if len(x.leaves) > 0 {
		tip += " behind " + tierCount(len(x.leaves), int(cluster.Leaf))
	}
	pic.Open("pod", tip)
	pic.about("pod/" + as.ID)
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: panelLine})
	ty := svg.Type{Size: math.Min(g.head*0.52, boxType+1), Fill: ink, Bold: true}
	name := fitList("", hostNames(c, x.hosts), ty, b.w-2*g.pad)
	pic.Text(b.x+g.pad, b.y+g.head*0.7, name, ty)
	note := svg.Type{Size: ty.Size, Fill: inkSoft, Anchor: svg.End}
	if count := words.Plural(len(x.hosts), "node"); svg.TextWidth(name, ty)+svg.TextWidth(count, note)+30 < b.w {
		pic.Text(b.right()-g.pad, b.y+g.head*0.7, count, note)
	}
	pic.Close()
	if g.chips {
		g.drawLeaves(pic, x, as.ID)
	}
	cells := Mark{
		Is: isCells, X: cent(b.x + g.pad), Y: cent(b.y + g.top()), W: g.w, H: g.h, R: 2,
		Paint: named(svg.Paint{Fill: paper, Stroke: idleLine}),
		Type:  &svg.Type{Size: boxType, Fill: role(ink), Anchor: svg.Middle},
		Cells: &Cells{
			What: "node", In: as.ID, Hosts: as.Hosts, Cols: g.cols, N: len(hostNames(c, x.hosts)), DX: g.w + g.gap,
			DY: g.h + g.gap,
		},
	}
	if g.name {
		for _, n := range hostNames(c, x.hosts) {
			cells.Cells.Labels = append(cells.Cells.Labels, svg.FitEnds(n, *cells.Type, g.w-6))
		}
	}
	pic.add(cells)
}

// drawLeaves paints the switches of a group above its nodes.
func (g *groupGrid) drawLeaves(pic *picture, x *hostGroup, id string) {
	if len(x.leaves) == 0 {
		return
	}
	c := g.net.v.c
	n := float64(len(x.leaves))
	gap := math.Min(3, g.gap)
	w := (x.box.w - 2*g.pad - gap*(n-1)) / n
	ty := svg.Type{Size: smallType, Fill: role(ink), Anchor: svg.Middle}
	m := Mark{
		Is: isCells, X: cent(x.box.x + g.pad), Y: cent(x.box.y + g.head), W: cent(w), H: g.chip, R: 3, Type: &ty,
		Paint: named(svg.Paint{Fill: netFill, Stroke: netViol}),
		Cells: &Cells{
			What: "switch", In: id, Names: switchNames(c, x.leaves), Cols: len(x.leaves), N: len(x.leaves), DX: cent(w + gap),
		},
	}
	if g.chip > 10 {
		for _, id := range x.leaves {
			sw := &c.Network.Switches[id]
			label := sw.Name
			if svg.TextWidth(label, ty) > w-4 {
				if label = ""; sw.Rail >= 0 && w > 14 {
					label = fmt.Sprintf("r%d", sw.Rail)
				}
			}
			m.Cells.Labels = append(m.Cells.Labels, label)
		}
	}
	pic.add(m)
}

func (g *groupGrid) captions() []caption {
	list := g.row.captions()
	list[0].y = g.frame.y + math.Min(20, g.frame.h/2)
	if g.leaves.text != nil {
		list[0].y = g.leaves.y + 14*float64(len(g.leaves.text)+2)
		list = append(list, g.leaves)
	}
	return list
}

// maxGroupWires is how many cables are drawn to groups one by one.
const maxGroupWires = 160

// wires joins the groups with the switches above them: each where they stand in one row, else all as one.
func (g *groupGrid) wires(cloud *box) []wire {
	single := g.across >= len(g.groups)
	out := g.collect(cloud, single)
	if single && len(out) > maxGroupWires {
		out = g.collect(cloud, false)
	}
	return out
}

func (g *groupGrid) collect(cloud *box, single bool) []wire {
	var out []wire
	if cloud != nil {
		for i := range g.groups {
			if single {
				out = append(out, wire{up: cloud, down: &g.groups[i].box, member: true, cables: 1, plumb: true})
			}
		}
		return out
	}
	of := make([]int, len(g.net.v.c.Network.Switches)) // per switch: its group, with one added
	several := make([]bool, len(of))
	for i, x := range g.groups {
		for _, id := range x.leaves {
			several[id] = of[id] > 0
			of[id] = i + 1
		}
	}
	index := make(map[[2]*box]int)
	add := func(up *netBox, group int, l *cluster.NetLink, n int, what string) {
		down, id, plumb := &g.frame, "all", true
		if single && group >= 0 {
			down, id, plumb = &g.groups[group].box, g.out[group].ID, false
		}
		k, ok := index[[2]*box{&up.box, down}]
		if !ok {
			k = len(out)
			index[[2]*box{&up.box, down}] = k
			out = append(out, wire{
				up: &up.box, down: down, off: true, plumb: plumb, key: what + "/" + id + "/" + g.net.first(up),
			})
		}
		out[k].add(l, n)
	}
	links := g.net.v.c.Network.Links
	for i := range links {
		l := &links[i]
		switch {
		case !g.net.v.usable(l):
		case l.A.ToHosts() || l.B.ToHosts():
			sw, hosts := l.A, l.B
			if l.A.ToHosts() {
				sw, hosts = l.B, l.A
			}
			if up := g.net.boxOf(sw.Switch); up != nil && !g.chips {
				g.toHosts(hosts, func(group, n int) { add(up, group, l, n*l.Cables(), "cables") })
			}
		case g.chips:
			for _, e := range [][2]int{{l.A.Switch, l.B.Switch}, {l.B.Switch, l.A.Switch}} {
				if up := g.net.boxOf(e[0]); up != nil && of[e[1]] > 0 && g.net.boxOf(e[1]) == nil {
					group := of[e[1]] - 1
					if several[e[1]] {
						group = -1
					}
					add(up, group, l, l.Cables(), "uplinks")
				}
			}
		}
	}
	return out
}

// toHosts says to how many nodes of which group a link goes.
func (g *groupGrid) toHosts(e cluster.End, say func(group, n int)) {
	count := make(map[int]int)
	var order []int
	for _, s := range e.Hosts {
		for h := s.First; h < s.First+s.N && h < len(g.of); h++ {
			k := g.of[h]
			if count[k] == 0 {
				order = append(order, k)
			}
			count[k]++
		}
	}
	for _, k := range order {
		say(k, count[k])
	}
}

// group is the hosts of one node type; t is nil for hosts whose inside nobody
// described.
type group struct {
	t     *cluster.NodeType
	hosts []int // indexes into Cluster.Hosts, in order
}

// groups sorts the hosts by type, in the order of the types. Types without a host
// are kept, so that a bare node can be shown. Hosts without a type come last.
func groups(c *cluster.Cluster) []group {
	all := make([]group, len(c.Types))
	for i, t := range c.Types {
		all[i].t = t
	}
	var rest []int
	for i, h := range c.Hosts {
		if h.Type >= 0 && h.Type < len(all) {
			all[h.Type].hosts = append(all[h.Type].hosts, i)
			continue
		}
		rest = append(rest, i)
	}
	if len(rest) > 0 {
		all = append(all, group{hosts: rest})
	}
	return all
}

// names lists the hosts that have a name.
func (g group) names(c *cluster.Cluster) []string { return hostNames(c, g.hosts) }

// hostNames lists the names of hosts in the order people count them; the order of
// a file is that of a log or of a cabling plan.
func hostNames(c *cluster.Cluster, hosts []int) []string {
	var names []string
	for _, h := range hosts {
		if n := c.Hosts[h].Name; n != "" {
			names = append(names, n)
		}
	}
	return natural.Sort(names)
}

// hostList writes names as a hostlist of at most width runes; what does not fit
// is counted. A width below 1 means no limit.
func hostList(names []string, width int) string {
	s := cluster.FormatHosts(names)
	if width < 1 || len([]rune(s)) <= width {
		return s
	}
	// The list is cut between its items, which are what commas outside of
	// brackets separate.
	depth, cut := 0, -1
	for i, r := range s {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 && i+14 <= width {
				cut = i
			}
		}
	}
	if cut < 0 {
		return cut1(s, width)
	}
	head := s[:cut]
	shown, err := cluster.ParseHosts(head)
	if err != nil {
		return cut1(s, width)
	}
	return fmt.Sprintf("%s, … and %d more", head, len(names)-len(shown))
}

// cut1 shortens one item.
func cut1(s string, width int) string {
	r := []rune(s)
	return strings.TrimRight(string(r[:max(1, width-1)]), ",-") + "…"
}

// children lists what hangs on each device, in order, and what hangs on nothing.
func children(t *cluster.NodeType) (of [][]int, top []int) {
	of = make([][]int, len(t.Devices))
	for i := range t.Devices {
		p := t.Devices[i].Parent
		if p < 0 || p >= len(t.Devices) {
			top = append(top, i)
			continue
		}
		of[p] = append(of[p], i)
	}
	return of, top
}

// uplinks finds the link of each device to its parent, -1 where there is none.
func uplinks(t *cluster.NodeType) []int {
	up := make([]int, len(t.Devices))
	for i := range up {
		up[i] = -1
	}
	for i, l := range t.Links {
		switch {
		case t.Devices[l.B].Parent == l.A:
			up[l.B] = i
		case t.Devices[l.A].Parent == l.B:
			up[l.A] = i
		}
	}
	return up
}

// deviceTitles is what people call each device. A system label that several
// devices of the node have (every tray its own mlx5_0) does not tell them apart;
// those go by their name.
func deviceTitles(t *cluster.NodeType) []string {
	used := make(map[string]int)
	for i := range t.Devices {
		used[t.Devices[i].Title()]++
	}
	titles := make([]string, len(t.Devices))
	for i := range t.Devices {
		titles[i] = t.Devices[i].Title()
		if used[titles[i]] > 1 {
			titles[i] = t.Devices[i].Name
		}
	}
	return titles
}

// deviceNames lists devices by what people call them, with runs of numbers folded.
func deviceNames(titles []string, ids []int) string {
	names := make([]string, len(ids))
	for i, d := range ids {
		names[i] = titles[d]
	}
	return strings.ReplaceAll(cluster.FormatHosts(names), ",", ", ")
}

// numaOf is the NUMA domain of a device: what the tree says, else what a tool
// read, else unknown (-1).
func numaOf(t *cluster.NodeType, d int) int {
	if n := t.Above(d, cluster.NUMA); n >= 0 && t.Devices[n].Index >= 0 {
		return t.Devices[n].Index
	}
	dev := &t.Devices[d]
	if dev.GPU != nil && dev.GPU.NUMA.Known() {
		return dev.GPU.NUMA.Value
	}
	if dev.NIC != nil && dev.NIC.NUMA.Known() {
		return dev.NIC.NUMA.Value
	}
	return -1
}

// domainTitle is NUMA 1, and for a domain whose number no source says NUMA ?, with
// a letter where there are several of those.
func domainTitle(t *cluster.NodeType, numa int) string {
	if i := t.Devices[numa].Index; i >= 0 {
		return "NUMA " + strconv.Itoa(i)
	}
	at, n := 0, 0
	for _, d := range t.Of(cluster.NUMA) {
		if t.Devices[d].Index >= 0 {
			continue
		}
		if d == numa {
			at = n
		}
		n++
	}
	switch {
	case n < 2:
		return "NUMA ?"
	case n <= 26:
		return "NUMA ?" + string(rune('a'+at))
	}
	return "NUMA ?" + strconv.Itoa(at+1)
}

// unnumbered reports a NUMA domain whose number no source says: it was put there
// to fit what the sources say, and its name would pass for a number.
func unnumbered(dev *cluster.Device) bool { return dev.Kind == cluster.NUMA && dev.Index < 0 }

// deviceName is the name of a device in the model, or domainTitle.
func deviceName(t *cluster.NodeType, d int) string {
	if unnumbered(&t.Devices[d]) {
		return domainTitle(t, d)
	}
	return t.Devices[d].Name
}

// coresOf is the cpulist that belongs to a device.
func coresOf(t *cluster.NodeType, d int) string {
	if g := t.Devices[d].GPU; g != nil && g.Cores != "" {
		return g.Cores
	}
	if n := t.Above(d, cluster.NUMA); n >= 0 && t.Devices[n].CPU != nil {
		return t.Devices[n].CPU.Cores
	}
	return ""
}

// trayCount is the number of trays of a node; what a file claims is held against
// what it shows, so that a number alone makes nothing grow.
func trayCount(t *cluster.NodeType) int {
	last := 0
	for i := range t.Devices {
		last = max(last, t.Devices[i].Tray)
	}
	return min(t.Trays, last+1, len(t.Devices))
}

// shortCores writes a cpulist in few characters: every second core of a socket as
// 0-62:2, which taskset reads too, and a list that is still longer than width cut.
func shortCores(list string, width int) string {
	if len(list) <= width/2 {
		return list
	}
	parts := strings.Split(list, ",")
	if step, ok := stride(parts); ok && len(parts) > 2 {
		list = fmt.Sprintf("%s-%s:%d", parts[0], parts[len(parts)-1], step)
	}
	if len(list) > width {
		list = cut1(list, width)
	}
	return list
}

// stride is the step between numbers that all differ by the same.
func stride(parts []string) (int, bool) {
	prev, step := 0, 0
	for i, s := range parts {
		n, err := strconv.Atoi(s)
		switch {
		case err != nil:
			return 0, false
		case i == 1:
			step = n - prev
		case i > 1 && n-prev != step:
			return 0, false
		}
		prev = n
	}
	return step, step > 0
}
