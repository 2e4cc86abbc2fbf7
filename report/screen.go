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
// switches. Few nodes show their devices; of more, groups are boxes with a cell for each.
type screen struct {
	c      *cluster.Cluster
	net    *strip
	cloud  *box // stands for a network that nobody described
	groups []*Group
	nodes  []*panel // per host, small; nil where nodes are cells
	of     []int    // per host: its group
	most   int      // nodes of the largest group
	cols   int      // cells in a row of a group
	across int      // groups in a row
	ends   int      // of cables from groups to boxes of switches
	framed bool     // cables end at a frame around all groups: each to its group would be too many
	frame  box      // of the groups

	cellForm
	head  float64 // room above the cells for what the group is
	least float64 // width of a group
	pad   float64 // between its edge and what it holds
}

// cellForm is how large the cells of nodes are.
type cellForm struct {
	w, h, gap float64
	names     bool // they have room for the names of nodes
}

func newScreen(c *cluster.Cluster) *screen {
	s := &screen{c: c, net: newStrip(c), of: make([]int, len(c.Hosts)), most: 1, pad: 8}
	if s.net.empty() && len(c.Hosts) > 1 && c.Summary().NICs > 0 {
		s.cloud = &box{}
	}
	leaves := make([][]int, len(c.Hosts)) // of each host, in the order of links
	c.EachHostLink(func(_ *cluster.NetLink, sw, h int) {
		if !slices.Contains(leaves[h], sw) {
			leaves[h] = append(leaves[h], sw)
		}
	})
	s.showDevices()
	s.collect(leaves)
	s.arrange()
	return s
}

// width is that of the whole.
func (s *screen) width() float64 {
	return max(max(s.groupsWidth(), s.net.width())+captionW+3*edge, 760)
}

func (s *screen) groupsWidth() float64 {
	return float64(s.across)*(s.size(s.most).w+s.groupGap()) - s.groupGap()
}

// groupGap is the room between groups.
func (s *screen) groupGap() float64 { return max(s.pad, s.gap) + 4 }

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
	if s.framed {
		pic.rect(s.frame, 8, brush{Fill: paper, Stroke: netViol, Dash: "2 3"})
	}
	for _, g := range s.groups {
		s.drawGroup(pic, g)
	}
	s.net.drawShades(pic)
	pic.drawWires(wires.list)
	if s.cloud != nil {
		s.drawCloud(pic)
	}
	s.net.draw(pic)
	captions := s.net.captions()
	if len(s.c.Hosts) > 0 {
		captions = append(captions, caption{s.frame.y + 40, ink, s.hostCaption()})
	}
	for _, c := range captions {
		c.draw(pic, edge, 0)
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

// hostCaption says how many hosts there are, which where groups have no room for that, what each has to the network,
// and how they are grouped.
func (s *screen) hostCaption() []string {
	all := make([]wire, len(s.c.Hosts))
	s.c.EachHostLink(func(l *cluster.NetLink, _, h int) { all[h].addLink(l) })
	var each, names []string
	for h, w := range all {
		names = append(names, s.c.Hosts[h].Name)
		text := cablesText(&w.Trunk)
		text += when(len(all) > 1 && text != "", " each")
		each = append(each, cmp.Or(text, when(w.Members == 0, "no cables known")))
	}
	return nonEmpty(words.Plural(len(all), "host"), when(s.nodes == nil && s.least == 0, hostList(names, 40)),
		mostly(each),
		when(s.framed && len(s.groups) > 1, fmt.Sprintf("%d groups, each under leaves of its own", len(s.groups))))
}

// Sizes of nodes that show their devices.
const (
	maxDeviceRow  = 1300.0 // width beyond which nodes are cells
	devicesPerRow = 18
	deviceRowH    = 22.0
	nodeGap       = 14.0
	maxCables     = 48    // drawn to groups one by one
	maxGroups     = 470.0 // height of all groups
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

// collect puts hosts on the same boxes of switches together, or on the same switches where all are on the same boxes;
// hosts without a switch by their kind.
func (s *screen) collect(leaves [][]int) {
	boxOf := func(id int) int {
		if n := s.net.of[id]; n != nil {
			return n.ids[0]
		}
		return id
	}
	like := s.hostsBy(leaves, boxOf)
	if len(like.order) == 1 && s.nodes == nil {
		if exact := s.hostsBy(leaves, func(id int) int { return id }); 2*len(exact.order) <= len(s.c.Hosts) {
			like = exact
		}
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
		for _, h := range g.hosts {
			s.of[h] = i
		}
		ends := map[int]bool{}
		for _, id := range g.leaves {
			ends[boxOf(id)] = true
		}
		s.ends += len(ends)
	}
	if s.cloud != nil {
		s.ends = len(s.groups)
	}
}

// hostsBy groups hosts by what a function says of their switches.
func (s *screen) hostsBy(leaves [][]int, of func(id int) int) (like grouped[string, int]) {
	for h, leaves := range leaves {
		on := map[int]bool{}
		for _, id := range leaves {
			on[of(id)] = true
		}
		like.put(when(leaves == nil, fmt.Sprint("kind ", s.c.Hosts[h].Type))+fmt.Sprint(on), h)
	}
	return like
}

// size is the box of a group of so many nodes.
func (s *screen) size(hosts int) box {
	rows := (hosts + s.cols - 1) / s.cols
	return box{
		w: max(float64(s.cols)*(s.w+s.gap)-s.gap+2*s.pad, s.least),
		h: s.head + float64(rows)*(s.h+s.gap) - s.gap + s.pad,
	}
}

// arrange chooses the largest cells with which all groups fit a screen: side by side, where each can hang on its own
// switches, or in rows.
func (s *screen) arrange() {
	if s.nodes != nil {
		s.across, s.cols, s.gap, s.pad = len(s.groups), s.most, nodeGap, 0
		for _, p := range s.nodes {
			s.w, s.h = max(s.w, p.frame.w), max(s.h, p.frame.h)
		}
		return
	}
	name := 22.0
	for _, h := range s.c.Hosts {
		name = max(name, min(78, svg.TextWidth(h.Name, cellType)+8))
	}
	forms := []cellForm{{name, 24, 5, true}, {12, 12, 3, false}, {8, 8, 2, false}, {4, 4, 1, false}}
	// Smaller cells in one row say more than larger ones in several, as long as there is room for words.
	for i, form := range slices.Concat(forms[:2], forms) {
		s.cellForm, s.head, s.least, s.pad = form, 38, 76, 8
		for _, g := range s.groups {
			s.least = max(s.least, min(150, svg.TextWidth(cluster.TightRange(g.Name), groupType)+2*s.pad))
		}
		if s.h < 10 {
			s.head, s.least, s.pad = 4, 0, 4
		}
		if s.fits() && (i > 1 || s.across == len(s.groups)) {
			return
		}
	}
}

// fits reports whether groups of the present cells fit a screen, and chooses how many cells stand in a row of a group,
// so that groups are neither towers nor ribbons, and how many groups in a row.
func (s *screen) fits() bool {
	n := max(1, len(s.groups))
	best := max(1, int(math.Round(math.Sqrt(1.5*float64(s.most)*(s.h+s.gap)/(s.w+s.gap)))))
	for s.cols = best; s.cols < 2*best && s.most%s.cols > 0; s.cols++ { // full rows where that can be had
	}
	for s.across = n; s.cols > best/2 && s.groupsWidth() > maxRow; s.cols-- {
	}
	if s.cols = max(s.cols, 1); s.groupsWidth() > maxRow {
		s.cols = best
		each := max(1, math.Floor(maxRow/(s.size(s.most).w+s.groupGap())))
		rows := math.Ceil(float64(n) / each)
		s.across = int(math.Ceil(float64(n) / rows)) // rows of about the same length
	}
	s.framed = s.ends > maxCables || s.across < n && s.ends > 0
	return float64((n+s.across-1)/s.across)*(s.size(s.most).h+s.groupGap()) < maxGroups
}

func (s *screen) lay(x, y, w float64) float64 {
	s.frame = box{x, y, w, 0}
	top, bottom := y, y
	if s.framed {
		top += s.groupGap()
	}
	for i, g := range s.groups {
		if i > 0 && i%s.across == 0 {
			top = bottom + s.groupGap()
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
	if s.framed {
		bottom += s.groupGap()
	}
	s.frame.h = bottom - y
	return bottom
}

// zoom leads from where the first node of a panel is drawn small to the panel.
func (s *screen) zoom(pic *picture, p *panel) {
	from, to := s.frame, p.frame
	if s.nodes != nil {
		from = s.nodes[p.hosts[0]].frame
	} else if !s.framed {
		from = s.groups[s.of[p.hosts[0]]].box
	}
	for _, x := range [][2]float64{{from.x, to.x + 8}, {from.right(), to.right() - 8}} {
		pic.Line(x[0], from.bottom(), x[1], to.y, brush{Stroke: inkSoft, Dash: "2 4"})
	}
}

// drawGroup paints a group with what it is, and a cell for each of its nodes.
func (s *screen) drawGroup(pic *picture, g *Group) {
	if s.nodes != nil {
		for _, h := range g.hosts {
			s.nodes[h].drawSmall(pic)
		}
		return
	}
	b, names := g.box, s.c.NamesOf(g.hosts)
	behind := when(len(g.leaves) > 0, tierCount(len(g.leaves), cluster.Leaf))
	pic.Open("pod", g.Name+": "+words.Plural(len(g.hosts), "node")+when(behind != "", " behind "+behind), "pod/"+g.ID)
	pic.rect(b, 6, brush{Fill: panelFill, Stroke: panelLine})
	if s.least > 0 {
		pic.Text(b.x+s.pad, b.y+16, fitList("", names, groupType, b.w-2*s.pad), groupType)
		pic.say(b.x+s.pad, b.y+30, b.w-2*s.pad, s.note(g, b.w-2*s.pad), noteType)
	}
	pic.Close()
	cells := svg.Cells{
		What: "node", In: g.ID, Hosts: g.Hosts, Cols: s.cols, N: len(names), DX: s.w + s.gap, DY: s.h + s.gap,
	}
	for i := 0; s.names && i < len(names); i++ {
		cells.Labels = append(cells.Labels, svg.FitEnds(names[i], cellType, s.w-6))
	}
	paint := brush{Fill: paper, Stroke: idleLine}
	pic.Add(svg.Mark{
		Is: svg.Grid, X: svg.Cent(b.x + s.pad), Y: svg.Cent(b.y + s.head), W: svg.Cent(s.w), H: s.h, R: 2, Paint: &paint,
		Type: &cellType, Cells: &cells,
	})
}

// note says how many GPUs a group has and, where its cables do not show that, below which leaves it is.
func (s *screen) note(g *Group, room float64) string {
	note := words.Plural(len(g.hosts), "host")
	if t := s.c.TypeOf(g.hosts[0]); t != nil && t.Count(cluster.GPU) > 0 {
		note = when(len(g.hosts) > 1, fmt.Sprintf("%d × ", len(g.hosts))) + words.Plural(t.Count(cluster.GPU), "GPU")
	}
	under := cluster.FormatHosts(railless(s.c, g.leaves))
	for _, text := range []string{under + " · " + note, under} {
		if s.framed && under != "" && svg.TextWidth(text, noteType) <= room {
			return text
		}
	}
	return note
}

// How cells and groups are labelled.
var (
	cellType  = font{Size: smallType, Fill: ink, Anchor: svg.Middle}
	groupType = font{Size: boxType, Fill: ink, Bold: true}
	noteType  = font{Size: smallType, Fill: inkSoft}
)

// cables joins nodes that show their devices, or groups or their frame, with the switches above them.
func (s *screen) cables(w *wiring) {
	if s.nodes != nil {
		routes := cluster.NewRoutes(s.c)
		for h, p := range s.nodes {
			s.net.hostCables(w, routes, s.cloud, h, p)
		}
		return
	}
	end := func(up *box, group int) (*wire, string) {
		if s.framed {
			t := w.between(up, &s.frame)
			t.plumb = true
			return t, "all"
		}
		return w.between(up, &s.groups[group].box), s.groups[group].ID
	}
	for i := range s.groups {
		if s.cloud != nil {
			t, _ := end(s.cloud, i)
			t.Members, t.plumb = 1, true
		}
	}
	s.c.EachHostLink(func(l *cluster.NetLink, sw, h int) {
		if up := s.net.of[sw]; up != nil {
			t, id := end(&up.box, s.of[h])
			t.key = "cables/" + id + "/" + up.first
			t.addLink(l)
		}
	})
}
