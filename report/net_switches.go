package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
)

// Sizes of the network part.
const (
	maxBoxes = 32     // switches of a tier or hosts drawn one by one
	maxRow   = 2600.0 // width beyond which a tier is folded
	maxWires = 80     // cables of hosts drawn one by one
	switchBH = 50.0
	hostBW   = 86.0
	hostBH   = 42.0
	hostGap  = 8.0
	maxHost  = 116.0 // room for the names of hosts
	boxGap   = 14.0
	maxName  = 140.0 // room for a name
)

// netBox is a switch, or switches that are alike.
type netBox struct {
	ids []int
	box box
}

// strip is the network as it is drawn: rows of boxes, the lowest tier last, and
// the cables between them.
type strip struct {
	v     *netView
	rows  [][]netBox // highest tier first
	at    [][2]int   // per switch: row and position, -1 when it is not drawn
	name  []string   // per switch, short enough for a box where that can be had
	wires []wire
	arcs  []arc
}

func newStrip(c *cluster.Cluster) *strip {
	s := &strip{v: newNetView(c), name: make([]string, len(c.Network.Switches))}
	parents := s.parents()
	place := make(map[int]float64) // of a switch in its row, from 0 to 1
	for i := len(s.v.tiers) - 1; i >= 0; i-- {
		row := s.row(belowParents(s.v.tiers[i], parents, place))
		for k := range row {
			for _, id := range row[k].ids {
				place[id] = (float64(k) + 0.5) / float64(len(row))
			}
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// parents lists, per switch, the switches of higher tiers that it hangs on.
func (s *strip) parents() [][]int {
	of := make([][]int, len(s.v.tier))
	for i := range s.v.c.Network.Links {
		l := &s.v.c.Network.Links[i]
		if l.A.ToHosts() || l.B.ToHosts() || !s.v.usable(l) {
			continue
		}
		switch a, b := l.A.Switch, l.B.Switch; {
		case s.v.tier[a] > s.v.tier[b]:
			of[b] = append(of[b], a)
		case s.v.tier[b] > s.v.tier[a]:
			of[a] = append(of[a], b)
		}
	}
	return of
}

// belowParents orders the switches of a tier by the middle of what they hang on,
// so that cables cross little. A switch that hangs on nearly all of the tier above
// may stand anywhere; those stay in the order of their names.
func belowParents(tier []int, parents [][]int, place map[int]float64) []int {
	above := make(map[float64]bool)
	for _, id := range tier {
		for _, p := range parents[id] {
			above[place[p]] = true
		}
	}
	middle := make(map[int]float64, len(tier))
	for _, id := range tier {
		own, sum := make(map[float64]bool), 0.0
		for _, p := range parents[id] {
			if at := place[p]; !own[at] {
				own[at] = true
				sum += at
			}
		}
		middle[id] = 0.5
		if len(own) > 0 && 2*len(own) <= len(above) {
			middle[id] = sum / float64(len(own))
		}
	}
	tier = slices.Clone(tier)
	slices.SortStableFunc(tier, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
	return tier
}

// row makes the boxes of a tier: with full names where those fit, else with what
// tells them apart, and where there is still no room, several switches in a box.
func (s *strip) row(tier []int) []netBox {
	row, full := make([]netBox, len(tier)), make([]string, len(tier))
	for i, id := range tier {
		row[i].ids = []int{id}
		full[i] = s.v.c.Network.Switches[id].Name
	}
	short := shortNames(full)
	fits := func(row []netBox, names []string) bool {
		for i, id := range tier {
			s.name[id] = names[i]
		}
		return len(row) <= maxBoxes && s.rowWidth(row) <= maxRow && !slices.ContainsFunc(row, s.cut)
	}
	if fits(row, full) || fits(row, short) {
		return row
	}
	if len(row) > maxBoxes || s.rowWidth(row) > maxRow {
		row = s.fold(tier)
		_ = fits(row, full) || fits(row, short)
	}
	return row
}

// cut reports whether the names of a box are too long for it.
func (s *strip) cut(n netBox) bool {
	lead, names := s.names(&n, s.name)
	return svg.TextWidth(lead+cluster.FormatHosts(names), nameType) > maxName-8
}

// fold puts switches that are alike into one box, and where all are, those that belong together; when there are still too many
// boxes, all of them.
func (s *strip) fold(tier []int) []netBox {
	kinds := s.v.alike(tier)
	row := make([]netBox, len(kinds))
	for i, a := range kinds {
		row[i].ids = a.ids
	}
	if g := s.groups(tier); len(kinds) == 1 && g != nil {
		row = make([]netBox, len(g))
		for i := range g {
			row[i].ids = g[i]
		}
	}
	if len(row) > maxBoxes/2 || s.rowWidth(row) > maxRow {
		return []netBox{{ids: tier}}
	}
	return row
}

// drop leaves the lowest tier out, for a picture that shows it elsewhere.
func (s *strip) drop() {
	s.rows = s.rows[:len(s.rows)-1]
	s.at = nil
}

func (s *strip) empty() bool { return len(s.rows) == 0 }

// width is what the widest row needs.
func (s *strip) width() float64 {
	w := 0.0
	for _, r := range s.rows {
		w = math.Max(w, s.rowWidth(r))
	}
	return w
}

// rowWidth is what boxes with their names need side by side.
func (s *strip) rowWidth(row []netBox) float64 {
	each := 60.0
	for i := range row {
		lead, names := s.shortNames(&row[i])
		title := lead + cluster.FormatHosts(names)
		each = math.Max(each, math.Min(maxName, svg.TextWidth(title, svg.Type{Size: boxType + 1.5, Bold: true})+10))
	}
	return float64(len(row)) * (each + boxGap)
}

// tierGap is the room between rows of boxes: more where cables go far sideways.
func tierGap(w float64) float64 { return math.Max(62, math.Min(w/13, 130)) }

// lay places the rows in a width from the top down and returns where they end.
func (s *strip) lay(x, y, w float64) float64 {
	for i := range s.rows {
		row := s.rows[i]
		if s.hasArcs(row) {
			y += arcRoom
		}
		pitch := w / float64(len(row))
		bw := math.Min(150, pitch-boxGap)
		for j := range row {
			row[j].box = box{x + pitch*(float64(j)+0.5) - bw/2, y, bw, switchBH}
		}
		y += switchBH
		if i < len(s.rows)-1 {
			y += tierGap(w)
		}
	}
	return y
}

// boxOf finds the box of a switch, nil for a domain, which is not drawn.
func (s *strip) boxOf(sw int) *netBox {
	if s.at == nil {
		s.at = make([][2]int, len(s.v.tier))
		for i := range s.at {
			s.at[i] = [2]int{-1, -1}
		}
		for r := range s.rows {
			for k := range s.rows[r] {
				for _, id := range s.rows[r][k].ids {
					s.at[id] = [2]int{r, k}
				}
			}
		}
	}
	if p := s.at[sw]; p[0] >= 0 {
		return &s.rows[p[0]][p[1]]
	}
	return nil
}

// trunks collects the cables between switches.
func (s *strip) trunks() {
	c := s.v.c
	index := make(map[[2]*netBox]int)
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		if l.A.ToHosts() || l.B.ToHosts() || !s.v.usable(l) {
			continue
		}
		a, b := s.boxOf(l.A.Switch), s.boxOf(l.B.Switch)
		if a == nil || b == nil || a == b {
			continue
		}
		if a.box.y == b.box.y {
			s.addArc(a, b, l)
			continue
		}
		if a.box.y > b.box.y {
			a, b = b, a
		}
		k, ok := index[[2]*netBox{a, b}]
		if !ok {
			k = len(s.wires)
			index[[2]*netBox{a, b}] = k
			s.wires = append(s.wires, wire{up: &a.box, down: &b.box, off: true, key: "trunk/" + s.first(b) + "/" + s.first(a)})
		}
		s.wires[k].add(l, l.Cables())
	}
}

// draw paints the switches.
func (s *strip) draw(p *picture) {
	s.drawGroups(p)
	s.drawArcs(p)
	for _, row := range s.rows {
		for i := range row {
			s.drawBox(p, &row[i])
		}
	}
}

// texts is what a box of switches says below its title: rail, oversubscription.
func (s *strip) texts(n *netBox) []string {
	rail := ""
	if r := s.rail(n); r >= 0 {
		rail = fmt.Sprintf("rail %d", r)
	}
	over := ""
	switch r := s.v.oversubscription(n.ids[0]); {
	case r > 1+even:
		over = ratio(r) + " oversubscribed"
	case r >= 1-even:
		over = overWords(r)
	}
	return nonEmpty(rail, over)
}

// names lists the switches of a box by one of their names, with their number before
// them.
func (s *strip) names(n *netBox, of []string) (lead string, names []string) {
	if boxes := s.boxes(n); boxes > 1 {
		lead = fmt.Sprintf("%d × ", boxes)
	}
	for _, id := range n.ids {
		names = append(names, of[id])
	}
	return lead, natural.Sort(names)
}

// title names all switches of a box in full.
func (s *strip) title(n *netBox) string {
	full := make([]string, len(s.name))
	for _, id := range n.ids {
		full[id] = s.v.c.Network.Switches[id].Name
	}
	lead, names := s.names(n, full)
	return lead + cluster.FormatHosts(names)
}

// first is the switch that a box is known by.
func (s *strip) first(n *netBox) string { return s.v.c.Network.Switches[n.ids[0]].Name }

func switchNames(c *cluster.Cluster, ids []int) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = c.Network.Switches[id].Name
	}
	return names
}

// boxes is how many switches a box stands for.
func (s *strip) boxes(n *netBox) int {
	count := 0
	for _, id := range n.ids {
		count += max(s.v.c.Network.Switches[id].Count, 1)
	}
	return count
}

func (s *strip) drawBox(p *picture, n *netBox) {
	b := n.box
	p.Open("switch "+s.v.tierName(n.ids[0]), strings.TrimSpace(s.title(n)+" "+s.v.c.Network.Switches[n.ids[0]].Model))
	p.about("switch/"+s.first(n), switchNames(s.v.c, n.ids)...)
	for i := min(s.boxes(n)-1, 2); i > 0; i-- {
		o := float64(i) * 3
		p.Rect(b.x+o, b.y-o, b.w, b.h, 6, svg.Paint{Fill: netFill, Stroke: netViol})
	}
	p.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.5})
	lead, names := s.names(n, s.name)
	if svg.TextWidth(lead+cluster.FormatHosts(names), nameType) > b.w-8 {
		lead, names = s.shortNames(n)
	}
	p.lines(b, boxType, ink, append([]string{fitList(lead, names, nameType, b.w-8)}, s.texts(n)...)...)
	p.Close()
}

// captions says what the tiers consist of.
func (s *strip) captions() []caption {
	net := &s.v.c.Network
	var out []caption
	for _, row := range s.rows {
		id := row[0].ids[0]
		boxes, model := 0, net.Switches[id].Model
		var down, up []string
		for _, n := range row {
			for _, k := range n.ids {
				boxes += max(net.Switches[k].Count, 1)
				model = same(model, net.Switches[k].Model)
				down, up = append(down, s.v.downWords(k, false)), append(up, s.v.upWords(k))
			}
		}
		text := []string{tierCount(boxes, s.v.tier[id])}
		if model != "" {
			text[0] += " · " + model
		}
		downLead, downEnd, upLead := "down ", "", "up "
		if s.v.grouped(id) {
			downLead, downEnd, upLead = "", " each", ""
			if boxes == 1 {
				downEnd = ""
			}
		}
		if d := mostly(down); d != "" {
			text = append(text, downLead+d+downEnd)
		}
		if u := mostly(up); u != "" {
			text = append(text, upLead+u)
		}
		if s.hasArcs(row) {
			text = append(text, s.acrossWords(row)...)
		} else if s.v.tier[id] == 0 {
			text = append(text, nonEmpty(apartWords[net.Topology])...)
		}
		text = append(text, nonEmpty(s.groupCaption(row))...)
		out = append(out, caption{row[0].box.y + switchBH/2, netViol, text})
	}
	return out
}
