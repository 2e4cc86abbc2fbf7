package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
)

// Sizes of the network part.
const (
	maxBoxes = 32     // switches of a tier drawn one by one
	maxRow   = 1440.0 // width beyond which a tier is folded
	switchBH = 50.0
	boxGap   = 9.0
	maxName  = 140.0 // room for a name
	arcRoom  = 120.0 // above a row whose switches are joined to each other
)

// nameType is how the names of hosts and switches are set when they need room.
var nameType = font{Size: (boxType + 1.5) * 0.88, Bold: true}

// netBox is a switch, or switches that are alike.
type netBox struct {
	ids   []int
	names []string // short enough for the box where that can be had
	first string   // what it is known by
	count int      // of switches that it stands for
	lead  string   // that count, before their names
	box   box
	at    int // in its row
}

// strip is the network as it is drawn: rows of boxes, the lowest tier last.
type strip struct {
	v    *netView
	rows []netRow  // highest tier first
	of   []*netBox // per switch; nil when it is not drawn
}

// netRow is a tier as it is drawn.
type netRow struct {
	boxes []*netBox
	says  string // what a box, or what is shaded, has in common
	shade int    // so many boxes belong together and are shaded; 0 none
}

// netParts is a way to put the switches of a tier into boxes.
type netParts struct {
	ids  [][]int
	says string
}

func newStrip(c *cluster.Cluster) *strip {
	s := &strip{v: newNetView(c), of: make([]*netBox, len(c.Network.Switches))}
	for _, tier := range slices.Backward(s.v.tiers) {
		row := s.row(tier)
		for i, n := range row.boxes {
			n.at = i
			for _, id := range n.ids {
				s.of[id] = n
			}
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// row makes the boxes of a tier: one for each switch where those have room, with full names or with what tells them
// apart; else one for those that belong together, for those that are alike, or for all.
func (s *strip) row(tier []int) (row netRow) {
	ways := append([]netParts{{ids: slices.Collect(slices.Chunk(tier, 1))}}, s.together(tier)...)
	for i, way := range append(ways, netParts{ids: [][]int{tier}}) {
		if row = (netRow{says: when(way.says != "", "each box: "+way.says)}); i > 0 && len(way.ids) == len(tier) {
			continue
		}
		for _, ids := range way.ids {
			n := &netBox{ids: ids, first: s.v.c.Network.Switches[ids[0]].Name, count: s.v.boxes(ids)}
			n.lead = when(n.count > 1, fmt.Sprintf("%d × ", n.count))
			row.boxes = append(row.boxes, n)
		}
		if s.named(row.boxes, false) || s.named(row.boxes, true) ||
			len(row.boxes) <= maxBoxes && rowWidth(row.boxes) <= maxRow {
			break
		}
	}
	if each, says := s.topologyGroup(tier); len(row.boxes) == len(tier) && each > 1 {
		row.shade, row.says = each, "shaded: "+says
	}
	return row
}

// topologyGroup is how many of a tier belong together by the topology, and what those are; 0 where none do.
func (s *strip) topologyGroup(tier []int) (each int, says string) {
	each, says = hardware.TopologyGroup(s.v.c.Network.Topology)
	if s.v.tier(tier[0]) != cluster.Leaf || len(tier) <= each {
		return 0, ""
	}
	return each, says
}

// together are the ways in which switches of a tier belong together, the one that says most first: as the topology has
// them; by what they hang on, as rails that are not joined do; by their hosts; by their rails; those that are alike.
func (s *strip) together(tier []int) (ways []netParts) {
	if each, says := s.topologyGroup(tier); each > 1 {
		ways = []netParts{{slices.Collect(slices.Chunk(tier, each)), says}}
	}
	ways = append(ways, netParts{s.v.c.UnderSame(tier), "under the same switches"},
		netParts{s.v.c.AboveSame(tier), "above the same hosts"}, netParts{s.v.c.OfSameRail(tier), "one rail"})
	ways = slices.DeleteFunc(ways, func(w netParts) bool { return len(w.ids) == 1 })
	kinds := s.v.alike(tier)
	return append(ways, netParts{kinds, when(len(kinds) > 1, "switches that are alike")})
}

// named gives boxes the names of their switches, whole or only what tells them apart, and reports whether all fit.
func (s *strip) named(row []*netBox, short bool) bool {
	name, all := switchNames, []string(nil)
	if short {
		name = railless
	}
	for _, n := range row {
		n.names = natural.Sort(name(s.v.c, n.ids))
		all = append(all, n.names...)
	}
	if short {
		all = cluster.ShortNames(all)
	}
	fit := len(row) <= maxBoxes
	for _, n := range row {
		n.names, all = all[:len(n.names)], all[len(n.names):]
		fit = fit && n.nameWidth() <= maxName
	}
	return fit && rowWidth(row) <= maxRow
}

func (s *strip) empty() bool { return len(s.rows) == 0 }

// width is what the widest row needs.
func (s *strip) width() float64 {
	w := 0.0
	for _, r := range s.rows {
		w = max(w, rowWidth(r.boxes))
	}
	return w
}

// nameWidth is what a box needs for its name.
func (n *netBox) nameWidth() float64 {
	return svg.TextWidth(n.lead+cluster.FormatHosts(n.names), nameType) + 10
}

// rowWidth is what boxes with their names need side by side.
func rowWidth(row []*netBox) float64 {
	each := 44.0
	for _, n := range row {
		each = max(each, min(maxName, n.nameWidth()))
	}
	return float64(len(row)) * (each + boxGap)
}

// tierGap is the room between rows of boxes: more where cables go far sideways.
func tierGap(w float64) float64 { return max(62, min(w/18, 90)) }

// lay places the rows in a width from the top down and returns where they end.
func (s *strip) lay(x, y, w float64) float64 {
	for i, row := range s.rows {
		if len(row.boxes) > 1 && s.across(row.boxes) {
			y += arcRoom
		}
		for j, n := range row.boxes {
			n.box = place(box{x, y, w, switchBH}, j, len(row.boxes), min(150, w/float64(len(row.boxes))-boxGap))
		}
		y += switchBH
		if i < len(s.rows)-1 {
			y += tierGap(w)
		}
	}
	return y
}

// across reports whether switches of a row are joined to each other.
func (s *strip) across(row []*netBox) bool {
	return slices.ContainsFunc(row, func(n *netBox) bool {
		return slices.ContainsFunc(n.ids, func(id int) bool { return len(s.v.sides[id].Across.Speeds) > 0 })
	})
}

// trunks collects the cables between switches.
func (s *strip) trunks(w *wiring) {
	for _, l := range s.v.trunks {
		a, b := s.of[l.A.Switch], s.of[l.B.Switch]
		if a == nil || b == nil || a == b {
			continue
		}
		if a.box.y > b.box.y || a.box.y == b.box.y && a.box.x > b.box.x {
			a, b = b, a
		}
		t := w.between(&a.box, &b.box)
		t.key = "trunk/" + b.first + "/" + a.first
		t.addLink(l)
	}
}

func (s *strip) draw(p *picture) {
	for _, row := range s.rows {
		for _, n := range row.boxes {
			s.drawBox(p, n)
		}
	}
}

// drawShades shades the boxes that belong together.
func (s *strip) drawShades(p *picture) {
	for _, row := range s.rows {
		for group := range slices.Chunk(row.boxes, max(row.shade, 1)) {
			if b := group[0].box; row.shade > 0 {
				p.Rect(b.x-3, b.y-6, group[len(group)-1].box.right()-b.x+6, b.h+12, 8, brush{Fill: netViol, Opacity: 0.2})
			}
		}
	}
}

// railless are the names of switches without the rail that a picture says anyway, each once.
func railless(c *cluster.Cluster, ids []int) []string {
	names := switchNames(c, ids)
	for i, id := range ids {
		names[i] = strings.TrimPrefix(names[i], fmt.Sprintf("rail%d-", c.Network.Switches[id].Rail))
	}
	return slices.Compact(natural.Sort(names))
}

func switchNames(c *cluster.Cluster, ids []int) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = c.Network.Switches[id].Name
	}
	return names
}

// overText says by how much switches are oversubscribed, from the least to the most.
func (s *strip) overText(ids []int) string {
	low, high := s.v.overRange(ids)
	switch {
	case high < 1-even:
		return ""
	case high > max(low, 1)*(1+even):
		return strings.TrimSuffix(ratio(max(low, 1)), ":1") + "–" + ratio(high) + " oversubscribed"
	}
	return ratio(max(high, 1)) + when(high > 1+even, " oversubscribed")
}

func (s *strip) drawBox(p *picture, n *netBox) {
	net := &s.v.c.Network
	first, names := &net.Switches[n.ids[0]], switchNames(s.v.c, n.ids)
	other := slices.ContainsFunc(n.ids, func(id int) bool { return net.Switches[id].Rail != first.Rail })
	p.Open("switch "+s.v.tier(n.ids[0]).String(),
		strings.TrimSpace(n.lead+cluster.FormatHosts(natural.Sort(slices.Clone(names)))+" "+first.Model),
		"switch/"+n.first, names...)
	p.pile(n.box, n.count, 6, brush{Fill: netFill, Stroke: netViol, Width: 1.5})
	p.lines(n.box, boxType, ink, fitList(n.lead, n.names, nameType, n.box.w-8),
		when(net.Rails > 1 && first.Rail >= 0 && !other, fmt.Sprintf("rail %d", first.Rail)), s.overText(n.ids))
	p.Close()
}

// captions says what the tiers consist of.
func (s *strip) captions() []caption {
	net := &s.v.c.Network
	var out []caption
	for _, row := range s.rows {
		id := row.boxes[0].ids[0]
		boxes, model := 0, net.Switches[id].Model
		var down, up, across []string
		for _, n := range row.boxes {
			boxes += n.count
			for _, k := range n.ids {
				model = when(model == net.Switches[k].Model, model)
				down, up = append(down, s.v.downWords(k, false)), append(up, s.v.upWords(k))
				across = append(across, cablesText(s.v.sides[k].Across.Each(net.Switches[k].Count)))
			}
		}
		text := []string{strings.Join(nonEmpty(tierCount(boxes, s.v.tier(id)), model), " · ")}
		say := func(lead, words, end string) { text = append(text, nonEmpty(when(words != "", lead+words+end))...) }
		belongs := s.v.grouped(id)
		say(when(!belongs, "down "), mostly(down), when(belongs && boxes > 1, " each"))
		say(when(!belongs, "up "), mostly(up), "")
		if s.across(row.boxes) {
			say("across ", mostly(across), "")
			say("", topologyWords(net), "")
		} else if s.v.tier(id) == cluster.Leaf {
			say("", apartWords[net.Topology], "")
		}
		say("", row.says, "")
		out = append(out, caption{row.boxes[0].box.y + switchBH/2, netViol, text})
	}
	return out
}

// wire is the cables between two boxes.
type wire struct {
	cluster.Trunk
	up, down *box // of one row: the left and the right one
	broken   int  // cables that are down
	bad      bool // one is slower than it could be, or than its like
	x1, x2   float64
	key      string // what a page knows it by
	nics     []int  // of a host, by their position among its NICs
	plumb    bool   // goes straight down, to something wide
}

// wiring is the wires of a picture, one between any two boxes.
type wiring struct {
	list []*wire
	at   map[[2]*box]*wire
}

// between is the wire between two boxes.
func (w *wiring) between(up, down *box) *wire {
	ends := [2]*box{up, down}
	if w.at[ends] == nil {
		w.at[ends] = &wire{up: up, down: down}
		w.list = append(w.list, w.at[ends])
	}
	return w.at[ends]
}

func (w *wire) addLink(l *cluster.NetLink) {
	for _, e := range []cluster.End{l.A, l.B} {
		if e.ToHosts() && e.NIC >= 0 && !slices.Contains(w.nics, e.NIC) {
			w.nics = append(w.nics, e.NIC)
		}
	}
	w.AddLink(l, l.Cables(), cluster.Leaf)
	if l.State == cluster.Down {
		w.broken += l.Cables()
	}
	w.bad = w.bad || l.State == cluster.Down || cableTrouble(l) != ""
}

// label says what is wrong with the cables.
func (w *wire) label() string {
	switch all := w.Faster(-1); {
	case w.broken > 0 && w.broken == all:
		return "down"
	case w.broken > 0:
		return fmt.Sprintf("%d of %d down", w.broken, all)
	case w.bad && w.Slowest() > 0:
		return w.Slowest().Bits()
	}
	return ""
}

// hostCables joins the NICs of a host, or the node where those stand in several rows, with their switches; without one,
// with the cloud that stands for a network that nobody described.
func (s *strip) hostCables(w *wiring, routes *cluster.Routes, cloud *box, host int, p *panel) {
	c, nics := s.v.c, p.t.Of(cluster.NIC)
	for i, nic := range nics {
		end, up, far := &p.box[nic], cloud, "network"
		if len(nics) > devicesPerRow {
			end = &p.frame
		}
		l := cluster.NetLink{A: cluster.End{Switch: -1, NIC: i, Hosts: []cluster.Span{{First: host, N: 1}}}}
		if sw, link := routes.Leaf(host, nic); sw >= 0 && s.of[sw] != nil {
			up, far, l = &s.of[sw].box, s.of[sw].first, c.Network.Links[link]
		}
		if up == nil {
			continue
		}
		if dev := &p.t.Devices[nic]; !l.Rate.Known() && dev.NIC != nil {
			l.Rate = dev.NIC.Rate()
		}
		cable := w.between(up, end)
		cable.addLink(&l)
		if cable.key = p.key("ports", far); len(cable.nics) == 1 {
			cable.key = p.key("port", cable.nics[0])
		}
	}
}

// markOdd marks the few cables of a tier that are slower than nearly all others
// of that tier: an eighth at most, so that a network of two speeds stays as it is.
func markOdd(wires []*wire) {
	tiers := make(map[[2]float64]*cluster.Trunk)
	for _, w := range wires {
		k := [2]float64{w.up.y, w.down.y}
		if tiers[k] == nil {
			tiers[k] = &cluster.Trunk{}
		}
		for _, s := range w.Speeds {
			tiers[k].Add(s.N, s.Rate)
		}
	}
	for _, w := range wires {
		all := tiers[[2]float64{w.up.y, w.down.y}]
		if r := w.Slowest(); r > 0 && 8*all.Faster(r) >= 7*all.Faster(-1) {
			w.bad = true
		}
	}
}

// fan spreads the ends of wires along the edges of their boxes, the more the farther they lead, so that they do not run
// over each other; and returns how far sideways the farthest goes. Arcs join boxes of one row: a longer one stands
// nearer to the middle and passes over the shorter ones.
func fan(wires []*wire) (widest float64) {
	widest = 1
	for _, w := range wires {
		widest = max(widest, math.Abs(w.down.mid()-w.up.mid()))
	}
	for _, w := range wires {
		far := (w.down.mid() - w.up.mid()) / widest
		if w.up.y == w.down.y {
			far = 1 - far
		}
		// Not at the corners, which are round.
		w.x1, w.x2 = w.up.mid()+far*min(w.up.w/2-10, 40), w.down.mid()-far*min(w.down.w/2-10, 40)
		if w.plumb {
			w.x1 = w.up.mid()
			w.x2 = max(w.down.x+6, min(w.x1, w.down.right()-6))
		}
	}
	return widest
}

// arc draws a wire between boxes of one row, in the room above it: the higher the farther apart they stand, so that
// groups of neighbours show.
func (p *picture) arc(w *wire, room, widest float64, paint brush) {
	y := w.up.y
	top := y - 4*room/3*(0.25+0.75*(w.x2-w.x1)/widest)
	p.Path(paint, "M", w.x1, y, "C", w.x1, top, w.x2, top, w.x2, y)
}

// drawWires draws cables: straight down, and between switches of one row, as in a torus or a dragonfly, as arcs.
func (p *picture) drawWires(wires []*wire) {
	widest, most := fan(wires), 5.0
	if len(wires) > maxCables/2 {
		most = 2
	}
	markOdd(wires)
	for _, w := range wires {
		// Many cables meet at a switch: they are drawn thinner than links inside a
		// node, on the same scale among themselves.
		rate, _ := w.Rate()
		paint := brush{Stroke: netViol, Width: min(most, max(unknownStroke, 0.7*stroke(rate))), Opacity: 0.75}
		what, tip := "network", cablesText(&w.Trunk)
		if tip == "" {
			what, tip = "member", "belongs to; cables unknown"
		}
		arc := w.up.y == w.down.y // which shares its cables with others: slower than those is no fault
		if w.bad && (!arc || w.broken > 0) {
			p.note("degraded")
			paint.Stroke, paint.Dash, paint.Opacity, paint.Width = red, degradedDashes, 1, max(2, paint.Width)
			tip += ", something is wrong"
		}
		p.note(what)
		p.Open("link network", tip, w.key)
		if arc {
			p.arc(w, arcRoom-28, widest, paint)
		} else {
			p.Line(w.x1, w.up.bottom(), w.x2, w.down.y, paint)
		}
		p.Close()
	}
	p.labelWires(wires)
}

// labelWires says on the cables that are wrong what is wrong with them; where many are, labels would only
// cover each other.
func (p *picture) labelWires(wires []*wire) {
	var used []box
	for _, w := range wires {
		ty := font{Size: 10.5, Fill: red, Anchor: svg.Middle, Bold: true}
		width := svg.TextWidth(w.label(), ty) + 6
		b := box{(w.x1+w.x2)/2 - width/2, (w.up.bottom()+w.down.y)/2 - 8, width, 16}
		if w.label() == "" || w.up.y == w.down.y || len(used) == 12 || slices.ContainsFunc(used, b.overlaps) {
			continue
		}
		used = append(used, b)
		p.Open("label", "", "")
		p.rect(b, 3, brush{Fill: paper, Opacity: 0.9})
		p.Text(b.mid(), b.y+12, w.label(), ty)
		p.Close()
	}
}
