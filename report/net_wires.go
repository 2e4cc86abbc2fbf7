package report

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// wire is the cables between two boxes.
type wire struct {
	up, down *box
	rate     unit.Rate
	slowest  unit.Rate // of one cable
	label    string    // what is wrong, once that is known
	cables   int
	bad      bool // slower than it could be
	off      bool // all down
	member   bool // no cable is known, only that one end belongs to the other
	x1, x2   float64
	key      string // what a page knows it by
	nics     []int  // of a host, by their position among its NICs
	plumb    bool   // goes straight down, to something wide
}

// portKey is what the cables of a host to a switch are known by: the port of the one NIC, or all of them.
func (w *wire) portKey(host, sw string) string {
	if len(w.nics) == 1 {
		return fmt.Sprintf("port/%s/%d", host, w.nics[0])
	}
	return "ports/" + host + "/" + sw
}

func (w *wire) add(l *cluster.NetLink, n int) {
	for _, e := range []cluster.End{l.A, l.B} {
		if e.ToHosts() && e.NIC >= 0 && !slices.Contains(w.nics, e.NIC) {
			w.nics = append(w.nics, e.NIC)
		}
	}
	w.member = belongs(l) && (w.member || w.cables == 0)
	w.cables += n
	if l.Rate.Known() {
		w.rate += l.Rate.Value * unit.Rate(n)
		if w.slowest == 0 || l.Rate.Value < w.slowest {
			w.slowest = l.Rate.Value
		}
	}
	if l.State != cluster.Down {
		w.off = false
	} else {
		w.bad = true
	}
	if cableTrouble(l) != "" {
		w.bad = true
	}
}

// hostCables joins the NICs of a host, which end at what port says, with their switches; without one, with the cloud that
// stands for a network that nobody described.
func (s *strip) hostCables(routes *cluster.Routes, cloud *box, host int, port func(nic int) *box) []wire {
	var out []wire
	c := s.v.c
	t := c.TypeOf(host)
	index := make(map[[2]*box]int)
	for i, nic := range t.Of(cluster.NIC) {
		end := port(nic)
		up, name, link := cloud, "network", -1
		if sw, l := routes.Leaf(host, nic); sw >= 0 && s.boxOf(sw) != nil {
			up, name, link = &s.boxOf(sw).box, s.first(s.boxOf(sw)), l
		}
		if up == nil || end == nil {
			continue
		}
		k, ok := index[[2]*box{up, end}]
		if !ok {
			k = len(out)
			index[[2]*box{up, end}] = k
			out = append(out, wire{up: up, down: end, off: true})
		}
		l := cluster.NetLink{}
		if link >= 0 {
			l = c.Network.Links[link]
		} else {
			out[k].nics = append(out[k].nics, i)
		}
		if dev := &t.Devices[nic]; !l.Rate.Known() && dev.NIC != nil {
			l.Rate = dev.NIC.Rate()
		}
		out[k].add(&l, l.Cables())
		if h := c.Hosts[host].Name; h != "" {
			out[k].key = out[k].portKey(h, name)
		}
	}
	return out
}

// markOdd marks the few cables of a tier that are slower than nearly all others
// of that tier: an eighth at most, so that a network of two speeds stays as it is.
func markOdd(wires []wire) {
	type tier struct{ up, down float64 }
	rates := make(map[tier]map[unit.Rate]int)
	total := make(map[tier]int)
	for i := range wires {
		w := &wires[i]
		k := tier{w.up.y, w.down.y}
		if rates[k] == nil {
			rates[k] = make(map[unit.Rate]int)
		}
		rates[k][w.slowest]++
		total[k]++
	}
	for i := range wires {
		w := &wires[i]
		k := tier{w.up.y, w.down.y}
		faster := 0
		for r, n := range rates[k] {
			if r > w.slowest {
				faster += n
			}
		}
		if w.slowest > 0 && 8*faster >= 7*total[k] {
			w.bad = true
		}
		if w.bad && w.slowest > 0 {
			w.label = w.slowest.Bits()
		}
		if w.off {
			w.label = "down"
		}
	}
}

// fan spreads the ends of wires along the edges of their boxes, in the order of
// what they lead to, so that they do not run over each other.
func fan(wires []wire) {
	spread := func(end func(*wire) *box, far func(*wire) float64, set func(*wire, float64)) {
		by := make(map[*box][]int)
		var order []*box
		for i := range wires {
			b := end(&wires[i])
			if by[b] == nil {
				order = append(order, b)
			}
			by[b] = append(by[b], i)
		}
		for _, b := range order {
			ids := by[b]
			slices.SortStableFunc(ids, func(i, j int) int {
				return int(math.Round(far(&wires[i]) - far(&wires[j])))
			})
			room := math.Min(b.w-12, float64(len(ids)-1)*11)
			for k, i := range ids {
				x := b.mid()
				if len(ids) > 1 {
					x += room * (float64(k)/float64(len(ids)-1) - 0.5)
				}
				set(&wires[i], x)
			}
		}
	}
	spread(func(w *wire) *box { return w.up }, func(w *wire) float64 { return w.down.mid() }, func(w *wire, x float64) { w.x1 = x })
	spread(func(w *wire) *box { return w.down }, func(w *wire) float64 { return w.up.mid() }, func(w *wire, x float64) { w.x2 = x })
	for i := range wires {
		if w := &wires[i]; w.plumb {
			w.x2 = math.Max(w.down.x+6, math.Min(w.x1, w.down.right()-6))
		}
	}
}

func (p *picture) drawWires(wires []wire) {
	fan(wires)
	markOdd(wires)
	for i := range wires {
		w := &wires[i]
		// Many cables meet at a switch: they are drawn thinner than links inside a
		// node, on the same scale among themselves.
		paint := svg.Paint{Stroke: netViol, Width: unknownStroke, Opacity: 0.75}
		if w.rate > 0 {
			paint.Width = math.Min(5, 0.7*stroke(cluster.Fact[unit.Rate]{Value: w.rate, Origin: cluster.Read}))
		}
		what, tip := "network", words.Plural(w.cables, "cable")
		switch {
		case w.member:
			what, tip = "member", "belongs to; cables unknown"
		case w.rate > 0:
			tip += ", " + w.rate.Bits()
		default:
			tip += ", rate unknown"
		}
		if w.bad || w.off {
			p.note("degraded")
			paint.Stroke, paint.Dash, paint.Opacity, paint.Width = red, degradedDashes, 1, math.Max(2, paint.Width)
			tip += ", something is wrong"
		}
		p.note(what)
		y1, y2 := w.up.bottom(), w.down.y
		p.Open("link network", tip)
		p.about(w.key)
		p.Line(w.x1, y1, w.x2, y2, paint)
		p.Close()
	}
	p.labelWires(wires)
}

// maxLabels bounds the words on cables; where more are wrong, they would only
// cover each other.
const maxLabels = 12

// labelWires says on the cables that are wrong what is wrong with them.
func (p *picture) labelWires(wires []wire) {
	var used []box
	for i := range wires {
		w := &wires[i]
		if w.label == "" || len(used) == maxLabels {
			continue
		}
		ty := svg.Type{Size: 10.5, Fill: red, Anchor: svg.Middle, Bold: true}
		width := svg.TextWidth(w.label, ty) + 6
		b := box{(w.x1+w.x2)/2 - width/2, (w.up.bottom()+w.down.y)/2 - 8, width, 16}
		if slices.ContainsFunc(used, b.overlaps) {
			continue
		}
		used = append(used, b)
		p.Open("label", "")
		p.Rect(b.x, b.y, b.w, b.h, 3, svg.Paint{Fill: paper, Opacity: 0.9})
		p.Text(b.mid(), b.y+12, w.label, ty)
		p.Close()
	}
}
