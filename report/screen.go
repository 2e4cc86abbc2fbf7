package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// screen is a cluster as it is drawn: the network, and below it all nodes in groups of those that hang on the same
// switches. Few nodes show their devices; of more, groups are boxes with a cell for each, and, where a row of the
// leaves would be too long, with their leaves.
type screen struct {
	c      *cluster.Cluster
	net    *strip
	cloud  *box // stands for a network that nobody described
	groups []*Group
	nodes  []*panel // per host, small; nil where nodes are cells
	leaf   *caption // of the tier that stands in the groups; nil where it stands above
	of     []int    // per host: its group
	most   int      // nodes of the largest group
	cols   int      // cells in a row of a group
	across int      // groups in a row
	frame  box      // of the groups

	w, h, gap float64 // of a cell
	names     bool    // cells have room for the names of nodes
	head      float64 // room above the cells for the name of the group
	least     float64 // width of a group
	pad       float64 // between its edge and what it holds
}

func newScreen(c *cluster.Cluster) *screen {
	s := &screen{c: c, net: newStrip(c), of: make([]int, len(c.Hosts)), most: 1, pad: 8, head: 24}
	if s.net.empty() && len(c.Hosts) > 1 && c.Summary().NICs > 0 {
		s.cloud = &box{}
	}
	leaves := make([][]int, len(c.Hosts)) // of each host, in the order of links
	eachHostLink(c, func(_ *cluster.NetLink, sw, h int) {
		if !slices.Contains(leaves[h], sw) {
			leaves[h] = append(leaves[h], sw)
		}
	})
	s.showDevices()
	switch n := len(c.Hosts); { // fewer cells are larger
	case s.nodes != nil:
		s.gap, s.pad, s.head = nodeGap, 0, 0
		for _, p := range s.nodes {
			s.w, s.h = max(s.w, p.frame.w), max(s.h, p.frame.h)
		}
	case n <= 96:
		s.w, s.h, s.gap, s.names, s.least = 78, 30, 6, true, 94
	default:
		s.w, s.h, s.gap, s.least = 15, 15, 4, 104
	}
	s.takeLeaves(leaves)
	s.collect(leaves)
	s.arrange()
	return s
}

// width is that of the whole.
func (s *screen) width() float64 {
	w := float64(s.across)*(s.size(s.most).w+groupGap) - groupGap
	return max(max(w, s.net.width())+captionW+3*edge, 760)
}

// draw places everything from y down and draws it; it returns where it ends.
func (s *screen) draw(pic *picture, y, w float64) float64 {
	const indent = captionW + 2*edge
	wires, inner := &wiring{at: map[[2]*box]*wire{}}, w-indent-edge
	if !s.net.empty() {
		y = s.net.lay(indent, y, inner) + tierGap(w)
	}
	if s.cloud != nil {
		*s.cloud = box{indent, y, inner, 36}
		y += 36 + tierGap(w)
	}
	bottom := s.lay(indent, y, inner)
	s.net.trunks(wires)
	s.cables(wires)
	if s.bus() {
		s.drawBus(pic)
	}
	for _, g := range s.groups {
		s.drawGroup(pic, g)
	}
	pic.drawWires(wires.list)
	if s.cloud != nil {
		s.drawCloud(pic)
	}
	s.net.draw(pic)
	captions, at := s.net.captions(), s.frame.y+40
	if s.leaf != nil {
		s.leaf.y = s.frame.y + 30
		at += 14 * float64(len(s.leaf.text)+1)
		captions = append(captions, *s.leaf)
	}
	if len(s.c.Hosts) > 0 {
		captions = append(captions, caption{at, ink, hostCaption(s.c)})
	}
	for _, c := range captions {
		c.draw(pic, edge)
	}
	return bottom
}

func (s *screen) drawCloud(pic *picture) {
	text, b := "a network that no source describes", *s.cloud
	if k := s.c.Network.Kind; k != "" {
		text = netName(k) + " network; no source describes its switches"
	}
	pic.Open("cloud", text, "")
	pic.rect(b, 18, brush{Fill: "cloud", Stroke: netViol, Dash: "6 5"})
	ty := font{Size: 12, Fill: netViol, Anchor: svg.Middle, Italic: true}
	pic.say(b.mid(), b.y+b.h/2+4, b.w-20, text, ty)
	pic.Close()
}

// eachHostLink calls a function for every host that a link of the network joins to a switch.
func eachHostLink(c *cluster.Cluster, call func(l *cluster.NetLink, sw, host int)) {
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		hosts, sw, ok := l.HostEnd()
		if !ok || sw.Switch >= len(c.Network.Switches) || c.Network.Switches[sw.Switch].Domain {
			continue
		}
		for h := range hosts.EachHost(len(c.Hosts)) {
			call(l, sw.Switch, h)
		}
	}
}

// hostCaption says how many hosts there are and what each has to the network.
func hostCaption(c *cluster.Cluster) []string {
	all := make([]wire, len(c.Hosts))
	eachHostLink(c, func(l *cluster.NetLink, _, h int) { all[h].addLink(l) })
	var each []string
	for _, w := range all {
		text := w.cables() + when(len(all) > 1 && w.cables() != "", " each")
		each = append(each, cmp.Or(text, when(w.members == 0, "no cables known")))
	}
	return nonEmpty(words.Plural(len(all), "host"), mostly(each))
}

// Sizes of nodes that show their devices.
const (
	maxDeviceRow  = 1300.0 // width beyond which nodes are cells
	devicesPerRow = 18
	deviceRowH    = 22.0
	nodeGap       = 14.0
	groupGap      = 24.0 // between groups
	chipH         = 18.0 // of a switch in a group
)

// showDevices makes the nodes that show their devices, where there is room for those of all.
func (s *screen) showDevices() {
	w := 0.0
	for h := range s.c.Hosts {
		t := s.c.TypeOf(h)
		if t == nil || w > maxDeviceRow {
			w = math.Inf(1)
			break
		}
		gpus, nics := t.Count(cluster.GPU), t.Count(cluster.NIC)
		p := &panel{t: t, host: s.c.Hosts[h].Name, titles: t.Titles(), fast: t.FastSets(), small: true}
		p.frame.w = 26*float64(min(max(gpus, nics, 4), devicesPerRow)) + 18
		p.frame.h = 64 + deviceRowH*(deviceRows(gpus)+deviceRows(nics))
		s.nodes = append(s.nodes, p)
		w += p.frame.w + nodeGap
	}
	if w > maxDeviceRow {
		s.nodes = nil
	}
}

func deviceRows(n int) float64 { return math.Ceil(float64(n) / devicesPerRow) }

// laySmall places a node as a box with its NICs and, below them, its GPUs.
func (p *panel) laySmall(x, y float64) {
	p.frame.x, p.frame.y = x, y
	p.box = make([]box, len(p.t.Devices))
	top := y + 8
	for _, kind := range []cluster.Kind{cluster.NIC, cluster.GPU} {
		ids := p.t.Of(kind)
		for i, d := range ids {
			b := place(p.frame, i%devicesPerRow, min(len(ids), devicesPerRow), 24)
			b.y, b.h = top+deviceRowH*float64(i/devicesPerRow), 19
			p.box[d] = b
		}
		top += 20 + deviceRowH*deviceRows(len(ids))
	}
}

func (p *panel) drawSmall(pic *picture) {
	b := p.frame
	pic.Open("host devices", fmt.Sprintf("%s: %s, %s", p.host, words.Plural(p.t.Count(cluster.GPU), "GPU"),
		words.Plural(p.t.Count(cluster.NIC), "NIC")), when(p.host != "", "node/"+p.host))
	pic.rect(b, 6, brush{Fill: panelFill, Stroke: idleLine, Width: 1.3})
	ty := font{Size: boxType, Fill: ink, Anchor: svg.Middle, Bold: true}
	pic.Text(b.mid(), b.bottom()-6, svg.FitEnds(p.host, ty, b.w-8), ty)
	pic.Close()
	if len(p.fast) > 0 {
		kind := p.fast[0].Kind
		pic.note(kind.String())
		pic.Open("link "+kind.String(), fastName(p.t, p.fast[0])+" between the GPUs", "bus/"+p.host)
		pic.Line(b.x+8, b.bottom()-24, b.right()-8, b.bottom()-24, brush{Stroke: linkColor(kind), Width: 3})
		pic.Close()
	}
	p.drawKinds(pic, deviceLooks[4:])
}

// takeLeaves moves the lowest tier of switches from its row into the groups, where the row had to fold it and nothing
// joins them to each other.
func (s *screen) takeLeaves(leaves [][]int) {
	if s.net.empty() || s.nodes != nil {
		return
	}
	last := len(s.net.rows) - 1
	row := s.net.rows[last]
	if s.net.across(row) || !slices.ContainsFunc(row, func(n *netBox) bool { return len(n.ids) > 1 }) {
		return
	}
	in := make(map[int]bool)
	for _, list := range leaves {
		for _, id := range list {
			in[id] = true
		}
	}
	for _, n := range row {
		if slices.ContainsFunc(n.ids, func(id int) bool { return !in[id] }) {
			return // a switch without nodes would not be drawn at all
		}
	}
	s.leaf = &s.net.captions()[last]
	s.net.rows = s.net.rows[:last]
	for id := range in {
		s.net.of[id] = nil
	}
}

// collect puts hosts on the same boxes of switches together, or on the same switches where those have none; hosts
// without a switch by their kind.
func (s *screen) collect(leaves [][]int) {
	var like grouped[string, int]
	for h, leaves := range leaves {
		key := when(leaves == nil, fmt.Sprint("kind ", s.c.Hosts[h].Type))
		for _, id := range leaves {
			if n := s.net.of[id]; n != nil {
				id = n.ids[0]
			}
			key += fmt.Sprint(id, " ")
		}
		like.put(key, h)
	}
	for _, hosts := range like.all() {
		g := &Group{
			hosts: hosts, Name: hostList(s.c.NamesOf(hosts), 40), Hosts: cluster.FormatHosts(s.c.NamesOf(hosts)),
		}
		for _, h := range hosts {
			for _, id := range leaves[h] {
				if !slices.Contains(g.leaves, id) {
					g.leaves = append(g.leaves, id)
				}
			}
		}
		g.Leaves = switchNames(s.c, g.leaves)
		s.groups = append(s.groups, g)
	}
	at := func(g *Group) int {
		if len(g.leaves) == 0 || s.net.of[g.leaves[0]] == nil {
			return math.MaxInt
		}
		return s.net.of[g.leaves[0]].at
	}
	slices.SortStableFunc(s.groups, func(a, b *Group) int { return cmp.Compare(at(a), at(b)) })
	for i, g := range s.groups {
		g.ID = fmt.Sprintf("pod%d", i)
		s.most = max(s.most, len(g.hosts))
		if s.leaf != nil {
			s.least = max(s.least, 20*float64(len(g.leaves)))
		}
		for _, h := range g.hosts {
			s.of[h] = i
		}
	}
}

// size is the box of a group of so many nodes.
func (s *screen) size(hosts int) box {
	rows := (hosts + s.cols - 1) / s.cols
	return box{
		w: max(float64(s.cols)*(s.w+s.gap)-s.gap+2*s.pad, s.least),
		h: s.top() + float64(rows)*(s.h+s.gap) - s.gap + s.pad,
	}
}

// top is the room above the cells of a group.
func (s *screen) top() float64 {
	if s.leaf != nil {
		return s.head + chipH + s.gap + s.pad/2
	}
	return s.head
}

// arrange chooses how many cells stand in a row of a group, so that groups are neither towers nor ribbons, and how many
// groups side by side: all of them where they can hang on switches above, else so that the whole is about as wide as a
// screen.
func (s *screen) arrange() {
	shape := func(n int, each box, ideal float64) int {
		return max(1, min(n, int(math.Round(math.Sqrt(float64(n)*ideal*each.h/each.w)))))
	}
	n := len(s.groups)
	if s.cols, s.across = s.most, n; s.nodes != nil {
		return
	}
	best := shape(s.most, box{w: s.w + s.gap, h: s.h + s.gap}, 1.5)
	for s.cols = best; s.leaf == nil && !s.net.empty() && s.cols > 0; s.cols-- {
		if one := s.size(s.most); float64(n)*(one.w+groupGap) <= maxRow && one.h < maxRow/2 {
			return
		}
	}
	s.cols = best
	one := s.size(s.most)
	one.w, one.h = one.w+groupGap, one.h+groupGap
	s.across = min(n, max(shape(n, one, 1.7), int(1000/one.w)))
	rows := (n + s.across - 1) / max(1, s.across)
	s.across = (n + rows - 1) / max(1, rows) // rows of about the same length
}

func (s *screen) lay(x, y, w float64) float64 {
	s.frame = box{x, y, w, 0}
	if s.bus() {
		y += groupGap
	}
	top, bottom := y, y
	for i, g := range s.groups {
		if i > 0 && i%s.across == 0 {
			top = bottom + groupGap
		}
		b := place(box{x, top, w, s.size(len(g.hosts)).h}, i%s.across, s.across, s.size(s.most).w)
		bottom = max(bottom, b.bottom())
		g.box, g.X, g.Y, g.W, g.H = b, svg.Cent(b.x), svg.Cent(b.y), svg.Cent(b.w), svg.Cent(b.h)
		for k, h := range g.hosts {
			if s.nodes != nil {
				s.nodes[h].laySmall(b.x+float64(k)*(s.w+s.gap), top)
			}
		}
	}
	return bottom
}

// single reports whether the groups stand in one row, where each can hang on its own switches.
func (s *screen) single() bool { return s.across >= len(s.groups) }

// bus reports whether cables end at a bar above the rows of groups.
func (s *screen) bus() bool { return !s.single() && !s.net.empty() }

// drawBus paints the bar above rows of groups, and what leads from it to each of them.
func (s *screen) drawBus(pic *picture) {
	paint := brush{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}
	for i, g := range s.groups {
		x, y := g.box.x-9, g.box.y+s.head/2
		if i+s.across >= len(s.groups) { // the last of its column
			pic.Line(x, s.frame.y, x, y, paint)
		}
		pic.Open("link network", s.what()+" of "+g.Name, s.what()+"/"+g.ID)
		pic.Line(x, y, g.box.x, y, paint)
		pic.Close()
	}
	pic.Rect(s.frame.x, s.frame.y-1.5, s.frame.w, 3, 1.5, brush{Fill: netViol})
}

// what leads to the groups: cables of nodes, or uplinks of their leaves.
func (s *screen) what() string { return cmp.Or(when(s.leaf != nil, "uplinks"), "cables") }

func (s *screen) drawGroup(pic *picture, g *Group) {
	if s.nodes != nil {
		for _, h := range g.hosts {
			s.nodes[h].drawSmall(pic)
		}
		return
	}
	b, names := g.box, s.c.NamesOf(g.hosts)
	pic.Open("pod", g.Name+": "+words.Plural(len(g.hosts), "node")+
		when(len(g.leaves) > 0, " behind "+tierCount(len(g.leaves), int(cluster.Leaf))), "pod/"+g.ID)
	pic.rect(b, 6, brush{Fill: panelFill, Stroke: panelLine})
	ty := font{Size: boxType, Fill: ink, Bold: true}
	pic.Text(b.x+s.pad, b.y+17, fitList("", names, ty, b.w-2*s.pad), ty)
	pic.Close()
	if s.leaf != nil && len(g.leaves) > 0 {
		s.drawLeaves(pic, g)
	}
	cells := svg.Cells{
		What: "node", In: g.ID, Hosts: g.Hosts, Cols: s.cols, N: len(names), DX: s.w + s.gap, DY: s.h + s.gap,
	}
	for i := 0; s.names && i < len(names); i++ {
		cells.Labels = append(cells.Labels, svg.FitEnds(names[i], cellType, s.w-6))
	}
	pic.cells(box{b.x + s.pad, b.y + s.top(), s.w, s.h}, brush{Fill: paper, Stroke: idleLine}, cells)
}

// cellType is how cells are labelled.
var cellType = font{Size: smallType, Fill: ink, Anchor: svg.Middle}

// cells draws cells, the first of which is at a place.
func (p *picture) cells(b box, paint brush, cells svg.Cells) {
	p.Add(svg.Mark{
		Is: svg.Grid, X: svg.Cent(b.x), Y: svg.Cent(b.y), W: svg.Cent(b.w), H: b.h, R: 2, Paint: &paint, Type: &cellType,
		Cells: &cells,
	})
}

// drawLeaves paints the switches of a group above its nodes.
func (s *screen) drawLeaves(pic *picture, g *Group) {
	n, gap := len(g.leaves), 3.0
	w := (g.box.w-2*s.pad+gap)/float64(n) - gap
	cells := svg.Cells{What: "switch", In: g.ID, Names: g.Leaves, Cols: n, N: n, DX: svg.Cent(w + gap)}
	for i, label := range g.Leaves {
		if rail := s.c.Network.Switches[g.leaves[i]].Rail; svg.TextWidth(label, cellType) > w-4 {
			label = when(rail >= 0 && w > 14, fmt.Sprintf("r%d", rail))
		}
		cells.Labels = append(cells.Labels, label)
	}
	pic.cells(box{g.box.x + s.pad, g.box.y + s.head, w, chipH}, brush{Fill: netFill, Stroke: netViol}, cells)
}

// cables joins nodes that show their devices, or groups, with the switches above them: each group where they stand in
// one row and cables are few, else all as one.
func (s *screen) cables(w *wiring) {
	if s.nodes == nil {
		boxes := 1
		for _, row := range s.net.rows {
			boxes = len(row) // of the lowest, in the end
		}
		s.join(w, s.single() && len(s.groups)*boxes <= 640)
		return
	}
	routes := cluster.NewRoutes(s.c)
	for h, p := range s.nodes {
		s.net.hostCables(w, routes, s.cloud, h, p)
	}
}

func (s *screen) join(w *wiring, each bool) {
	for _, g := range s.groups {
		if s.cloud != nil && each {
			t := w.between(s.cloud, &g.box)
			t.members, t.plumb = 1, true
		}
	}
	add := func(sw, group int, l *cluster.NetLink) {
		up, down, id := s.net.of[sw], &s.frame, "all"
		if up == nil {
			return
		}
		if each && group >= 0 {
			down, id = &s.groups[group].box, s.groups[group].ID
		}
		t := w.between(&up.box, down)
		t.plumb, t.key = down == &s.frame, s.what()+"/"+id+"/"+up.first
		t.addLink(l)
	}
	if s.leaf == nil {
		eachHostLink(s.c, func(l *cluster.NetLink, sw, h int) { add(sw, s.of[h], l) })
		return
	}
	in := make(map[int]int) // of the switches in groups: which, -1 where it is in several
	for i, g := range s.groups {
		for _, id := range g.leaves {
			_, other := in[id]
			if in[id] = i; other {
				in[id] = -1
			}
		}
	}
	for _, l := range s.net.v.trunks {
		for _, e := range [][2]int{{l.A.Switch, l.B.Switch}, {l.B.Switch, l.A.Switch}} {
			if group, ok := in[e[1]]; ok {
				add(e[0], group, l)
			}
		}
	}
}
