package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Links between switches of one tier, as in a torus or a dragonfly, are arcs above their row: the farther apart two
// switches stand, the higher the arc, so that groups of neighbours show.

// arcRoom is the room above a row for its arcs.
const arcRoom = 120.0

// arc is the links between two boxes of a row.
type arc struct {
	a, b   *netBox
	cables int
	rate   unit.Rate // of all together; 0 unknown
}

// hasArcs reports whether switches of a row are joined to each other.
func (s *strip) hasArcs(row []netBox) bool {
	for i := range row {
		for _, id := range row[i].ids {
			if len(s.v.across[id].speeds) > 0 {
				return true
			}
		}
	}
	return false
}

func (s *strip) addArc(a, b *netBox, l *cluster.NetLink) {
	if a.box.x > b.box.x {
		a, b = b, a
	}
	k := -1
	for i := range s.arcs {
		if s.arcs[i].a == a && s.arcs[i].b == b {
			k = i
		}
	}
	if k < 0 {
		k = len(s.arcs)
		s.arcs = append(s.arcs, arc{a: a, b: b})
	}
	s.arcs[k].cables += l.Cables()
	s.arcs[k].rate += l.Rate.Value * unit.Rate(l.Cables())
}

func (s *strip) drawArcs(p *picture) {
	widest := 1.0
	for i := range s.arcs {
		widest = math.Max(widest, s.arcs[i].b.box.mid()-s.arcs[i].a.box.mid())
	}
	s.drawLoops(p)
	for i := range s.arcs {
		x := &s.arcs[i]
		from, to, y := x.a.box.mid(), x.b.box.mid(), x.a.box.y
		rise := 12 + (arcRoom-28)*(to-from)/widest
		paint := svg.Paint{Fill: "none", Stroke: netViol, Width: unknownStroke, Opacity: 0.7}
		tip := words.Plural(x.cables, "cable") + ", rate unknown"
		if x.rate > 0 {
			paint.Width = math.Min(5, 0.7*stroke(cluster.Fact[unit.Rate]{Value: x.rate, Origin: cluster.Read}))
			tip = fmt.Sprintf("%s, %s together", words.Plural(x.cables, "cable"), x.rate.Bits())
		}
		p.note("network")
		p.Open("link network", tip)
		p.about("trunk/" + s.first(x.a) + "/" + s.first(x.b))
		third, top := (to-from)/3, y-4*rise/3 // a parabola of that rise as a cubic curve
		p.Path(new(svg.Pen).Move(from, y).Curve(from+third, top, to-third, top, to, y).String(), paint)
		p.Close()
	}
}

// drawLoops shows that switches which one box stands for are joined to each other.
func (s *strip) drawLoops(p *picture) {
	for _, row := range s.rows {
		for i := range row {
			b := &row[i]
			if len(b.ids) < 2 || !s.hasArcs(row[i:i+1]) || s.joined(b) {
				continue
			}
			p.note("network")
			p.Open("link network", "the switches of this box are joined to each other")
			x, y := b.box.mid(), b.box.y
			p.Path(new(svg.Pen).Move(x-30, y).Curve(x-44, y-60, x+44, y-60, x+30, y).String(), svg.Paint{Fill: "none", Stroke: netViol, Width: 2, Opacity: 0.7})
			p.Close()
		}
	}
}

// joined says that a box has an arc to another.
func (s *strip) joined(b *netBox) bool {
	return slices.ContainsFunc(s.arcs, func(a arc) bool { return a.a == b || a.b == b })
}

// acrossWords says what the switches of a row have towards each other, and how traffic is taken to find its way.
func (s *strip) acrossWords(row []netBox) []string {
	var list []string
	for i := range row {
		for _, id := range row[i].ids {
			list = append(list, s.v.across[id].each(max(s.v.c.Network.Switches[id].Count, 1)).cables())
		}
	}
	var out []string
	if t := mostly(list); t != "" {
		out = append(out, "across "+t)
	}
	return append(out, nonEmpty(topologyWords(&s.v.c.Network))...)
}

// apartWords say of networks without links across that this is meant so.
var apartWords = map[string]string{"rail-only": "rail-only: rails are not joined", "planes": "planes: a network per NIC"}

// topologyWords names a network that is not leaves below spines, with its routing, which is assumed.
func topologyWords(n *cluster.Network) string {
	if n.Topology == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s routing", n.Topology, cmp.Or(n.Routing, "minimal"))
}
