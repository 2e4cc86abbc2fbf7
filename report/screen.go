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

// screen is a cluster as it is drawn: the network, and below it all nodes.
type screen struct {
	c      *cluster.Cluster
	net    *strip
	cloud  *box // stands for a network that nobody described
	leaves [][]int
	area   hostArea
	groups []Group
}

// hostArea is the nodes below the switches.
type hostArea interface {
	width() float64
	// lay places the nodes and returns where they end.
	lay(x, y, w float64) float64
	cables(w *wiring)
	draw(pic *picture)
	// middle is where what the nodes have in common is said.
	middle() float64
}

func newScreen(c *cluster.Cluster) *screen {
	s := &screen{c: c, net: newStrip(c), leaves: hostLeaves(c)}
	if s.net.empty() && len(c.Hosts) > 1 && c.Summary().NICs > 0 {
		s.cloud = &box{}
	}
	grid := newGroupGrid(s)
	if s.area = grid; fewHosts(c) {
		s.area = newDeviceRow(s)
	}
	return s
}

// width is that of the whole.
func (s *screen) width() float64 {
	return math.Max(math.Max(s.area.width(), s.net.width())+captionW+3*edge, 760)
}

// draw places everything from y down and draws it; it returns where it ends.
func (s *screen) draw(pic *picture, y, w float64) float64 {
	const indent = captionW + 2*edge
	wires, inner := &wiring{}, w-indent-edge
	if !s.net.empty() {
		y = s.net.lay(indent, y, inner) + tierGap(w)
	}
	if s.cloud != nil {
		*s.cloud = box{indent, y, inner, 36}
		y += 36 + tierGap(w)
	}
	bottom := s.area.lay(indent, y, inner)
	s.net.trunks(wires)
	s.area.cables(wires)
	s.area.draw(pic)
	pic.drawWires(wires.list)
	if s.cloud != nil {
		s.drawCloud(pic)
	}
	s.net.draw(pic)
	captions := s.net.captions()
	if len(s.c.Hosts) > 0 {
		captions = append(captions, caption{s.area.middle(), ink, hostCaption(s.c)})
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
	pic.Rect(b.x, b.y, b.w, b.h, 18, svg.Paint{Fill: "cloud", Stroke: netViol, Dash: "6 5"})
	ty := svg.Type{Size: 12, Fill: netViol, Anchor: svg.Middle, Italic: true}
	pic.Text(b.mid(), b.y+b.h/2+4, svg.Fit(text, ty, b.w-20), ty)
	pic.Close()
}

// eachHostLink calls a function for every host that a link of the network joins to a switch.
func eachHostLink(c *cluster.Cluster, call func(l *cluster.NetLink, sw, host int)) {
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
			for h := s.First; h < s.First+s.N && h < len(c.Hosts); h++ {
				call(l, sw.Switch, h)
			}
		}
	}
}

// hostLeaves are the switches of each host, in the order of links.
func hostLeaves(c *cluster.Cluster) [][]int {
	on := make([][]int, len(c.Hosts))
	eachHostLink(c, func(_ *cluster.NetLink, sw, h int) {
		if !slices.Contains(on[h], sw) {
			on[h] = append(on[h], sw)
		}
	})
	return on
}

// hostCaption says how many hosts there are and what each has to the network.
func hostCaption(c *cluster.Cluster) []string {
	all := make([]wire, len(c.Hosts))
	eachHostLink(c, func(l *cluster.NetLink, _, h int) { all[h].addLink(l) })
	each := make([]string, len(all))
	for h := range all {
		if each[h] = all[h].cables(); each[h] != "" && len(all) > 1 {
			each[h] += " each"
		} else if each[h] == "" && all[h].members == 0 {
			each[h] = "no cables known"
		}
	}
	return nonEmpty(words.Plural(len(all), "host"), mostly(each))
}

// Sizes of nodes that show their devices.
const (
	maxDeviceRow  = 1300.0 // width beyond which nodes are cells
	devicesPerRow = 18
	devicePitch   = 26.0
	deviceH       = 19.0
	deviceRowH    = 22.0
	nodeGap       = 14.0
	maxDevices    = 144 // of a kind in one node
)

// fewHosts reports whether there is room for the devices of every node.
func fewHosts(c *cluster.Cluster) bool {
	w := 0.0
	for h := range c.Hosts {
		if c.TypeOf(h) == nil || w > maxDeviceRow {
			return false
		}
		w += nodeSize(c.TypeOf(h)).w + nodeGap
	}
	return w > 0 && w <= maxDeviceRow
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
	*screen
	nodes []deviceNode
}

// deviceNode is a node as a box with its NICs and GPUs; it is drawn with the keys of a panel.
type deviceNode struct {
	panel
	nics, gpus []box
}

func newDeviceRow(s *screen) *deviceRow {
	r := &deviceRow{screen: s, nodes: make([]deviceNode, len(s.c.Hosts))}
	for h := range r.nodes {
		t := s.c.TypeOf(h)
		r.nodes[h].panel = panel{
			t: t, host: s.c.Hosts[h].Name, frame: nodeSize(t), titles: deviceTitles(t), fast: fastSets(t),
		}
	}
	return r
}

func (r *deviceRow) width() float64 {
	w := -nodeGap
	for i := range r.nodes {
		w += r.nodes[i].frame.w + nodeGap
	}
	return w
}

func (r *deviceRow) lay(x, y, w float64) float64 {
	n := float64(len(r.nodes))
	gap := math.Min(80, (w-r.width())/(n+1)) + nodeGap
	x += (w - r.width() - (gap-nodeGap)*(n-1)) / 2
	bottom := y
	for i := range r.nodes {
		n := &r.nodes[i]
		n.lay(x, y)
		x += n.frame.w + gap
		bottom = math.Max(bottom, n.frame.bottom())
	}
	return bottom
}

func (n *deviceNode) lay(x, y float64) {
	n.frame.x, n.frame.y = x, y
	row := func(kind cluster.Kind, top float64) []box {
		list := make([]box, min(n.t.Count(kind), maxDevices))
		pitch := (n.frame.w - 16) / float64(max(1, min(devicesPerRow, len(list))))
		w := math.Min(24, pitch-2)
		for i := range list {
			list[i] = box{
				x + 8 + (float64(i%devicesPerRow)+0.5)*pitch - w/2, top + deviceRowH*float64(i/devicesPerRow), w, deviceH,
			}
		}
		return list
	}
	n.nics = row(cluster.NIC, y+8)
	n.gpus = row(cluster.GPU, y+28+deviceRowH*float64(deviceRows(len(n.nics))))
}

// port is where the cable of a NIC ends: at the NIC, or at the node where NICs stand in several rows.
func (n *deviceNode) port(nic int) *box {
	if len(n.nics) > devicesPerRow {
		return &n.frame
	}
	return &n.nics[slices.Index(n.t.Of(cluster.NIC), nic)]
}

func (r *deviceRow) cables(w *wiring) {
	routes := cluster.NewRoutes(r.c)
	for h := range r.nodes {
		r.net.hostCables(w, routes, r.cloud, h, r.nodes[h].port)
	}
}

func (r *deviceRow) middle() float64 { return r.nodes[0].frame.y + r.nodes[0].frame.h/2 }

func (r *deviceRow) draw(pic *picture) {
	for i := range r.nodes {
		r.nodes[i].draw(pic)
	}
}

func (n *deviceNode) draw(pic *picture) {
	b, key := n.frame, ""
	gpus, nics := n.t.Of(cluster.GPU), n.t.Of(cluster.NIC)
	if n.host != "" {
		key = "node/" + n.host
	}
	pic.Open("host devices",
		fmt.Sprintf("%s: %s, %s", n.host, words.Plural(len(gpus), "GPU"), words.Plural(len(nics), "NIC")), key)
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: idleLine, Width: 1.3})
	ty := svg.Type{Size: boxType, Fill: ink, Anchor: svg.Middle, Bold: true}
	pic.Text(b.mid(), b.bottom()-6, svg.FitEnds(n.host, ty, b.w-8), ty)
	pic.Close()
	if len(n.fast) > 0 {
		kind := n.fast[0].kind
		pic.note(kind.String())
		pic.Open("link "+kind.String(), n.fast[0].name+" between the GPUs", "bus/"+n.host)
		pic.Line(b.x+8, b.bottom()-24, b.right()-8, b.bottom()-24, svg.Paint{Stroke: linkColor(kind), Width: 3})
		pic.Close()
	}
	n.drawDevices(pic, "nic", nics, n.nics, svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.2})
	n.drawDevices(pic, "gpu", gpus, n.gpus, svg.Paint{Fill: nvFill, Stroke: nvGreen, Width: 1.2})
}

// drawDevices paints the devices of a kind by their numbers.
func (n *deviceNode) drawDevices(pic *picture, class string, ids []int, at []box, paint svg.Paint) {
	ty := svg.Type{Size: smallType, Fill: ink, Anchor: svg.Middle}
	for i, b := range at {
		look := paint
		if nicDown(&n.t.Devices[ids[i]]) {
			look.Fill, look.Stroke, look.Dash = redBg, red, degradedDashes
		}
		n.openDevice(pic, class, ids[i])
		pic.Rect(b.x, b.y, b.w, b.h, 3, look)
		if b.w > 13 {
			pic.Text(b.mid(), b.y+13.5, fmt.Sprint(i), ty)
		}
		pic.Close()
	}
}

// hostGroup is hosts that hang on the same switches, or on the same boxes of switches.
type hostGroup struct {
	hosts  []int
	leaves []int
	box    box
}

// groupGrid is groups of nodes as boxes with a cell for each node, and, where a row of the leaves would be too long,
// with their leaves.
type groupGrid struct {
	*screen
	list   []hostGroup
	leaf   *caption // of the tier that stands in the groups; nil where it stands above
	of     []int    // per host: its group
	most   int      // nodes of the largest group
	cols   int      // cells in a row of a group
	across int      // groups in a row
	frame  box

	w, h, gap float64 // of a cell
	names     bool    // cells have room for the names of nodes
	head      float64 // room above the cells for the name of the group
	chip      float64 // height of a switch of the group
	gutter    float64 // between groups
	least     float64 // width of a group
	pad       float64 // between its edge and what it holds
}

func newGroupGrid(s *screen) *groupGrid {
	g := &groupGrid{screen: s, of: make([]int, len(s.c.Hosts)), most: 1, pad: 8}
	switch n := len(s.c.Hosts); { // fewer cells are larger
	case n <= 96:
		g.w, g.h, g.gap, g.names, g.head, g.chip, g.gutter, g.least = 78, 30, 6, true, 24, 20, 24, 94
	case n <= 2000:
		g.w, g.h, g.gap, g.head, g.chip, g.gutter, g.least = 15, 15, 4, 22, 17, 22, 104
	default:
		g.w, g.h, g.gap, g.head, g.chip, g.gutter, g.least, g.pad = 4, 4, 1, 8, 4, 6, 44, 3
	}
	g.takeLeaves()
	g.collect()
	g.arrange()
	return g
}

// takeLeaves moves the lowest tier of switches from its row into the groups, where the row had to fold it and nothing
// joins them to each other.
func (g *groupGrid) takeLeaves() {
	if g.net.empty() {
		return
	}
	row := g.net.rows[len(g.net.rows)-1]
	if g.net.across(row) || !slices.ContainsFunc(row, func(n *netBox) bool { return len(n.ids) > 1 }) {
		return
	}
	in := make(map[int]bool)
	for _, list := range g.screen.leaves {
		for _, id := range list {
			in[id] = true
		}
	}
	for _, n := range row {
		if slices.ContainsFunc(n.ids, func(id int) bool { return !in[id] }) {
			return // a switch without nodes would not be drawn at all
		}
	}
	list := g.net.captions()
	g.leaf = &list[len(list)-1]
	g.net.drop()
}

// collect puts hosts on the same boxes of switches together, or on the same switches where those have none; hosts
// without a switch by their kind.
func (g *groupGrid) collect() {
	index := make(map[string]int)
	for h, leaves := range g.screen.leaves {
		key := ""
		for _, id := range leaves {
			if n := g.net.of[id]; n != nil {
				id = n.ids[0]
			}
			key += fmt.Sprint(id, " ")
		}
		if key == "" {
			key = fmt.Sprint("kind ", g.c.Hosts[h].Type)
		}
		k, ok := index[key]
		if !ok {
			k, index[key] = len(g.list), len(g.list)
			g.list = append(g.list, hostGroup{})
		}
		x := &g.list[k]
		x.hosts = append(x.hosts, h)
		for _, id := range leaves {
			if !slices.Contains(x.leaves, id) {
				x.leaves = append(x.leaves, id)
			}
		}
	}
	at := func(x hostGroup) int {
		if len(x.leaves) == 0 || g.net.of[x.leaves[0]] == nil {
			return math.MaxInt
		}
		return g.net.of[x.leaves[0]].at
	}
	slices.SortStableFunc(g.list, func(a, b hostGroup) int { return cmp.Compare(at(a), at(b)) })
	for i, x := range g.list {
		g.most = max(g.most, len(x.hosts))
		if g.leaf != nil && g.chip > 10 {
			g.least = math.Max(g.least, 20*float64(len(x.leaves)))
		}
		for _, h := range x.hosts {
			g.of[h] = i
		}
		names := hostNames(g.c, x.hosts)
		g.groups = append(g.groups, Group{
			ID: fmt.Sprintf("pod%d", i), Name: hostList(names, 40), Hosts: cluster.FormatHosts(names),
			Leaves: switchNames(g.c, x.leaves),
		})
	}
}

// size is the box of a group of so many nodes.
func (g *groupGrid) size(hosts int) box {
	rows := (hosts + g.cols - 1) / g.cols
	return box{
		w: math.Max(float64(g.cols)*(g.w+g.gap)-g.gap+2*g.pad, g.least),
		h: g.top() + float64(rows)*(g.h+g.gap) - g.gap + g.pad,
	}
}

// top is the room above the cells of a group.
func (g *groupGrid) top() float64 {
	if g.leaf != nil {
		return g.head + g.chip + g.gap + g.pad/2
	}
	return g.head
}

// arrange chooses how many cells stand in a row of a group, so that groups are neither towers nor ribbons, and how many
// groups side by side: all of them where they can hang on switches above, else so that the whole is about as wide as a
// screen.
func (g *groupGrid) arrange() {
	shape := func(n int, each box, ideal float64) int {
		return max(1, min(n, int(math.Round(math.Sqrt(float64(n)*ideal*each.h/each.w)))))
	}
	cell, n := box{w: g.w + g.gap, h: g.h + g.gap}, len(g.list)
	wide := func() float64 { return float64(n) * (g.size(g.most).w + g.gutter) }
	best := shape(g.most, cell, 1.5)
	if g.leaf == nil && !g.net.empty() {
		for g.cols = best; g.cols > 1 && wide() > maxRow; {
			g.cols--
		}
		if g.across = n; wide() <= maxRow && g.size(g.most).h < maxRow/2 {
			return
		}
	}
	g.cols = best
	one := g.size(g.most)
	one.w, one.h = one.w+g.gutter, one.h+g.gutter
	g.across = min(n, max(shape(n, one, 1.7), int(1000/one.w)))
	rows := (n + g.across - 1) / max(1, g.across)
	g.across = (n + rows - 1) / max(1, rows) // rows of about the same length
}

func (g *groupGrid) width() float64 {
	return float64(g.across)*(g.size(g.most).w+g.gutter) - g.gutter
}

func (g *groupGrid) lay(x, y, w float64) float64 {
	one := g.size(g.most)
	pitch := w / float64(max(1, g.across))
	if !g.single() {
		pitch = math.Min(pitch, one.w+3*g.gutter)
	}
	left := x + (w-pitch*float64(g.across)+pitch-one.w)/2
	g.frame = box{left - g.side() - 4, y, pitch*float64(g.across-1) + one.w + g.side() + 4, 0}
	if g.bus() {
		y += g.gutter
	}
	top, bottom := y, y
	for i := range g.list {
		if i > 0 && i%g.across == 0 {
			top = bottom + g.gutter
		}
		b := box{left + float64(i%g.across)*pitch, top, one.w, g.size(len(g.list[i].hosts)).h}
		bottom = math.Max(bottom, b.bottom())
		g.list[i].box = b
		o := &g.groups[i]
		o.X, o.Y, o.W, o.H = svg.Cent(b.x), svg.Cent(b.y), svg.Cent(b.w), svg.Cent(b.h)
	}
	return bottom
}

// single reports whether the groups stand in one row, where each can hang on its own switches.
func (g *groupGrid) single() bool { return g.across >= len(g.list) }

// bus reports whether cables end at a bar above the rows of groups.
func (g *groupGrid) bus() bool { return !g.single() && !g.net.empty() }

// middle is where what all hosts have in common is said, below what the leaves in the groups have.
func (g *groupGrid) middle() float64 {
	y := g.frame.y + 40
	if g.leaf != nil {
		y += 14 * float64(len(g.leaf.text)+1)
	}
	return y
}

func (g *groupGrid) draw(pic *picture) {
	if g.leaf != nil {
		g.leaf.y = g.frame.y + 30
		g.leaf.draw(pic, edge)
	}
	if g.bus() {
		g.drawBus(pic)
	}
	for i := range g.list {
		g.drawGroup(pic, &g.list[i], &g.groups[i])
	}
}

// drawBus paints the bar above rows of groups, and what leads from it to each of them.
func (g *groupGrid) drawBus(pic *picture) {
	paint := svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}
	for i := range g.list {
		b := g.list[i].box
		x, y := b.x-g.side(), b.y+g.head/2
		if i+g.across >= len(g.list) { // the last of its column
			pic.Line(x, g.frame.y, x, y, paint)
		}
		pic.Open("link network", g.what()+" of "+g.groups[i].Name, g.what()+"/"+g.groups[i].ID)
		pic.Line(x, y, b.x, y, paint)
		pic.Close()
	}
	pic.Rect(g.frame.x, g.frame.y-1.5, g.frame.w, 3, 1.5, svg.Paint{Fill: netViol})
}

// what leads to the groups: cables of nodes, or uplinks of their leaves.
func (g *groupGrid) what() string {
	if g.leaf != nil {
		return "uplinks"
	}
	return "cables"
}

// side is how far on the left of a group the line to it runs.
func (g *groupGrid) side() float64 { return math.Min(9, g.gutter/2) }

func (g *groupGrid) drawGroup(pic *picture, x *hostGroup, as *Group) {
	b, names := x.box, hostNames(g.c, x.hosts)
	count := words.Plural(len(x.hosts), "node")
	tip := as.Name + ": " + count
	if len(x.leaves) > 0 {
		tip += " behind " + tierCount(len(x.leaves), int(cluster.Leaf))
	}
	pic.Open("pod", tip, "pod/"+as.ID)
	pic.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: panelLine})
	ty := svg.Type{Size: math.Min(g.head*0.52, boxType+1), Fill: ink, Bold: true}
	name := fitList("", names, ty, b.w-2*g.pad)
	pic.Text(b.x+g.pad, b.y+g.head*0.7, name, ty)
	note := svg.Type{Size: ty.Size, Fill: inkSoft, Anchor: svg.End}
	if svg.TextWidth(name, ty)+svg.TextWidth(count, note)+30 < b.w {
		pic.Text(b.right()-g.pad, b.y+g.head*0.7, count, note)
	}
	pic.Close()
	if g.leaf != nil && len(x.leaves) > 0 {
		g.drawLeaves(pic, x, as.ID)
	}
	cells := svg.Mark{
		Is: svg.Grid, X: svg.Cent(b.x + g.pad), Y: svg.Cent(b.y + g.top()), W: g.w, H: g.h, R: 2,
		Paint: &svg.Paint{Fill: paper, Stroke: idleLine}, Type: &svg.Type{Size: boxType, Fill: ink, Anchor: svg.Middle},
		Cells: &svg.Cells{
			What: "node", In: as.ID, Hosts: as.Hosts, Cols: g.cols, N: len(names), DX: g.w + g.gap, DY: g.h + g.gap,
		},
	}
	for i := 0; g.names && i < len(names); i++ {
		cells.Cells.Labels = append(cells.Cells.Labels, svg.FitEnds(names[i], *cells.Type, g.w-6))
	}
	pic.Add(cells)
}

// drawLeaves paints the switches of a group above its nodes.
func (g *groupGrid) drawLeaves(pic *picture, x *hostGroup, id string) {
	n, gap := float64(len(x.leaves)), math.Min(3, g.gap)
	w := (x.box.w - 2*g.pad - gap*(n-1)) / n
	ty := svg.Type{Size: smallType, Fill: ink, Anchor: svg.Middle}
	names := switchNames(g.c, x.leaves)
	m := svg.Mark{
		Is: svg.Grid, X: svg.Cent(x.box.x + g.pad), Y: svg.Cent(x.box.y + g.head), W: svg.Cent(w), H: g.chip, R: 3,
		Type: &ty, Paint: &svg.Paint{Fill: netFill, Stroke: netViol},
		Cells: &svg.Cells{
			What: "switch", In: id, Names: names, Cols: len(names), N: len(names), DX: svg.Cent(w + gap),
		},
	}
	for i := 0; g.chip > 10 && i < len(names); i++ {
		label, rail := names[i], g.c.Network.Switches[x.leaves[i]].Rail
		if svg.TextWidth(label, ty) > w-4 {
			if label = ""; rail >= 0 && w > 14 {
				label = fmt.Sprintf("r%d", rail)
			}
		}
		m.Cells.Labels = append(m.Cells.Labels, label)
	}
	pic.Add(m)
}

// maxGroupWires is how many cables are drawn to groups one by one.
const maxGroupWires = 160

// cables joins the groups with the switches above them: each where they stand in one row, else all as one.
func (g *groupGrid) cables(w *wiring) {
	each := *w
	each.list, each.at = slices.Clone(w.list), nil
	if g.single() {
		g.join(&each, true)
	}
	if !g.single() || len(each.list)-len(w.list) > maxGroupWires {
		g.join(w, false)
		return
	}
	*w = each
}

func (g *groupGrid) join(w *wiring, each bool) {
	if g.cloud != nil {
		for i := range g.list {
			if each {
				t := w.between(g.cloud, &g.list[i].box)
				t.members, t.plumb = 1, true
			}
		}
		return
	}
	add := func(up *netBox, group int, l *cluster.NetLink) {
		down, id := &g.frame, "all"
		if each && group >= 0 {
			down, id = &g.list[group].box, g.groups[group].ID
		}
		t := w.between(&up.box, down)
		t.plumb, t.key = down == &g.frame, g.what()+"/"+id+"/"+g.net.first(up)
		t.addLink(l)
	}
	if g.leaf == nil {
		eachHostLink(g.c, func(l *cluster.NetLink, sw, h int) {
			if up := g.net.of[sw]; up != nil {
				add(up, g.of[h], l)
			}
		})
		return
	}
	in := make(map[int]int) // of the switches in groups: which, -1 where it is in several
	for i, x := range g.list {
		for _, id := range x.leaves {
			if _, other := in[id]; other {
				i = -1
			}
			in[id] = i
		}
	}
	for i := range g.c.Network.Links {
		l := &g.c.Network.Links[i]
		if !g.net.v.usable(l) || l.A.ToHosts() || l.B.ToHosts() {
			continue
		}
		for _, e := range [][2]int{{l.A.Switch, l.B.Switch}, {l.B.Switch, l.A.Switch}} {
			if group, ok := in[e[1]]; ok && g.net.of[e[0]] != nil {
				add(g.net.of[e[0]], group, l)
			}
		}
	}
}
