package report

import (
	"fmt"
	"math"
	"strings"

	"busbar/cluster"
	"busbar/internal/svg"
)

// Sizes of the network part.
const (
	maxBoxes = 32     // switches of a tier or hosts drawn one by one
	maxRow   = 2600.0 // width beyond which a tier is folded
	maxWires = 80     // cables of hosts drawn one by one
	switchBH = 50.0
	hostBW   = 86.0
	hostBH   = 42.0
	boxGap   = 14.0
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
	wires []wire
}

func newStrip(c *cluster.Cluster) *strip {
	s := &strip{v: newNetView(c)}
	for i := len(s.v.tiers) - 1; i >= 0; i-- {
		tier := s.v.tiers[i]
		var row []netBox
		for _, id := range tier {
			row = append(row, netBox{ids: []int{id}})
		}
		if len(row) > maxBoxes || s.rowWidth(row) > maxRow {
			row = s.fold(tier)
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// fold puts switches that are alike into one box; when there are still too many
// kinds, all of them.
func (s *strip) fold(tier []int) []netBox {
	kinds := s.v.alike(tier)
	row := make([]netBox, len(kinds))
	for i, a := range kinds {
		row[i].ids = a.ids
	}
	if len(row) > maxBoxes/2 || s.rowWidth(row) > maxRow {
		return []netBox{{ids: tier}}
	}
	return row
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
		each = math.Max(each, math.Min(140, svg.TextWidth(s.texts(&row[i])[0], svg.Type{Size: boxType + 1.5, Bold: true})+10))
	}
	return float64(len(row)) * (each + boxGap)
}

// tierGap is the room between rows of boxes: more where cables go far sideways.
func tierGap(w float64) float64 { return math.Max(62, math.Min(w/13, 130)) }

// lay places the rows in a width from the top down and returns where they end.
func (s *strip) lay(x, y, w float64) float64 {
	for i := range s.rows {
		row := s.rows[i]
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
		if a == nil || b == nil || a == b || a.box.y == b.box.y {
			continue
		}
		if a.box.y > b.box.y {
			a, b = b, a
		}
		k, ok := index[[2]*netBox{a, b}]
		if !ok {
			k = len(s.wires)
			index[[2]*netBox{a, b}] = k
			s.wires = append(s.wires, wire{up: &a.box, down: &b.box, off: true})
		}
		s.wires[k].add(l, l.Cables())
	}
}

// draw paints the switches.
func (s *strip) draw(p *picture) {
	for _, row := range s.rows {
		for i := range row {
			s.drawBox(p, &row[i])
		}
	}
}

// texts is what a box of switches says: name and number, rail, oversubscription.
func (s *strip) texts(n *netBox) []string {
	net := &s.v.c.Network
	names := make([]string, len(n.ids))
	for i, id := range n.ids {
		names[i] = net.Switches[id].Name
	}
	title := cluster.FormatHosts(names)
	if boxes := s.boxes(n); boxes > 1 {
		title = fmt.Sprintf("%d × %s", boxes, title)
	}
	rail := ""
	if r := net.Switches[n.ids[0]].Rail; r >= 0 && net.Rails > 1 && len(n.ids) == 1 {
		rail = fmt.Sprintf("rail %d", r)
	}
	over := ratio(s.v.oversubscription(n.ids[0]))
	if s.v.oversubscription(n.ids[0]) > 1.001 {
		over += " oversubscribed"
	}
	return nonEmpty(title, rail, over)
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
	b, texts := n.box, s.texts(n)
	p.Open("switch "+s.v.tierName(n.ids[0]), strings.TrimSpace(texts[0]+" "+s.v.c.Network.Switches[n.ids[0]].Model))
	for i := min(s.boxes(n)-1, 2); i > 0; i-- {
		o := float64(i) * 3
		p.Rect(b.x+o, b.y-o, b.w, b.h, 6, svg.Paint{Fill: netFill, Stroke: netViol})
	}
	p.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: netFill, Stroke: netViol, Width: 1.5})
	texts[0] = fitName(texts[0], b)
	p.lines(b, boxType, ink, texts...)
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
				down, up = append(down, s.v.down[k].String()), append(up, s.v.up[k].String())
			}
		}
		name := s.v.tierName(id)
		if boxes > 1 {
			name += "s"
		}
		text := []string{fmt.Sprintf("%d %s", boxes, strings.Replace(name, "leafs", "leaves", 1))}
		if model != "" {
			text[0] += " · " + model
		}
		if d := mostly(down); d != "" {
			text = append(text, "down "+d)
		}
		if u := mostly(up); u != "" {
			text = append(text, "up "+u)
		}
		out = append(out, caption{row[0].box.y + switchBH/2, netViol, text})
	}
	return out
}

// mostly is the text that more than half of a list have, said as such when others
// differ; nothing when there is none or when it says that there is nothing.
func mostly(list []string) string {
	count := make(map[string]int)
	for _, s := range list {
		count[s]++
	}
	for _, s := range list {
		switch n := count[s]; {
		case s == "" || s == "–" || 2*n <= len(list):
		case n == len(list):
			return s
		default:
			return "mostly " + s
		}
	}
	return ""
}
