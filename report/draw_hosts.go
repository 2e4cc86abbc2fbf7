package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar/cluster"
	"busbar/internal/svg"
	"busbar/unit"
)

// hostRow is the hosts below the switches, each as a small box; many hosts that
// hang on the same switches are one box.
type hostRow struct {
	net   *strip
	items []hostItem
	more  int // hosts that are not drawn
}

// hostItem is a host, or hosts that hang on the same switches.
type hostItem struct {
	hosts []int
	typ   int
	ends  []hostEnd
	box   box
}

// hostEnd is what a host has to one box of switches.
type hostEnd struct {
	sw *netBox
	wire
}

func newHostRow(net *strip) *hostRow {
	c := net.v.c
	r := &hostRow{net: net}
	ends := make([][]hostEnd, len(c.Hosts))
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		sw, hosts := l.A, l.B
		if l.A.ToHosts() {
			sw, hosts = l.B, l.A
		}
		if sw.ToHosts() || !hosts.ToHosts() || !net.v.usable(l) {
			continue
		}
		b := net.boxOf(sw.Switch)
		if b == nil {
			continue
		}
		for _, s := range hosts.Hosts {
			for h := s.First; h < s.First+s.N && h < len(ends); h++ {
				ends[h] = addEnd(ends[h], b, l)
			}
		}
	}
	cables := 0
	for _, e := range ends {
		cables += len(e)
	}
	one := len(c.Hosts) <= maxBoxes && cables <= maxWires
	index := make(map[string]int)
	for h := range c.Hosts {
		key := fmt.Sprint(h)
		if !one {
			key = r.key(c.Hosts[h].Type, ends[h])
		}
		k, ok := index[key]
		if !ok {
			k = len(r.items)
			index[key] = k
			r.items = append(r.items, hostItem{typ: c.Hosts[h].Type, ends: ends[h]})
		}
		r.items[k].hosts = append(r.items[k].hosts, h)
	}
	r.order()
	limit := maxBoxes
	if !one && float64(maxBoxes)*hostBW > net.width()+400 {
		limit = maxBoxes / 2
	}
	if len(r.items) > limit {
		r.leaveOut(limit - 1)
	}
	return r
}

// leaveOut keeps the n boxes with the most hosts, in their order.
func (r *hostRow) leaveOut(n int) {
	size := make([]int, len(r.items))
	for i := range r.items {
		size[i] = len(r.items[i].hosts)
	}
	slices.SortFunc(size, func(a, b int) int { return b - a })
	least, kept := size[n-1], r.items[:0:0]
	for _, bigger := range []bool{true, false} {
		for _, it := range r.items {
			if len(it.hosts) > least == bigger && len(it.hosts) >= least && len(kept) < n {
				kept = append(kept, it)
			}
		}
	}
	for _, it := range r.items {
		r.more += len(it.hosts)
	}
	for _, it := range kept {
		r.more -= len(it.hosts)
	}
	r.items = kept
	r.order()
}

func addEnd(ends []hostEnd, b *netBox, l *cluster.NetLink) []hostEnd {
	for i := range ends {
		if ends[i].sw == b {
			ends[i].add(l, l.Cables())
			return ends
		}
	}
	e := hostEnd{sw: b, wire: wire{off: true}}
	e.add(l, l.Cables())
	return append(ends, e)
}

// key is equal for hosts that are drawn as one.
func (r *hostRow) key(typ int, ends []hostEnd) string {
	var b strings.Builder
	fmt.Fprint(&b, typ)
	for _, e := range ends {
		fmt.Fprintf(&b, "|%p %d %v %v %v", e.sw, e.cables, e.rate, e.bad, e.off)
	}
	return b.String()
}

// order puts hosts below their first switch.
func (r *hostRow) order() {
	first := func(it hostItem) int {
		for _, row := range r.net.rows {
			for i := range row {
				if len(it.ends) > 0 && it.ends[0].sw == &row[i] {
					return i
				}
			}
		}
		return math.MaxInt
	}
	at := make(map[int]int, len(r.items))
	for _, it := range r.items {
		at[it.hosts[0]] = first(it)
	}
	slices.SortStableFunc(r.items, func(a, b hostItem) int { return at[a.hosts[0]] - at[b.hosts[0]] })
}

func (r *hostRow) width() float64 { return float64(len(r.items)) * (hostBW*0.72 + 8) }

func (r *hostRow) lay(x, y, w float64) float64 {
	pitch := w / float64(max(1, len(r.items)))
	bw := math.Min(190, pitch-8)
	for i := range r.items {
		r.items[i].box = box{x + pitch*(float64(i)+0.5) - bw/2, y, bw, hostBH}
	}
	return y + hostBH
}

func (r *hostRow) wires() []wire {
	var out []wire
	for i := range r.items {
		for _, e := range r.items[i].ends {
			w := e.wire
			w.up, w.down = &e.sw.box, &r.items[i].box
			out = append(out, w)
		}
	}
	return out
}

// boxOf is the box that a host is in, nil when it is not drawn.
func (r *hostRow) boxOf(host int) *box {
	for i := range r.items {
		if slices.Contains(r.items[i].hosts, host) {
			return &r.items[i].box
		}
	}
	return nil
}

// texts is what a box of hosts says.
func (r *hostRow) texts(it *hostItem) (title, sub string) {
	c := r.net.v.c
	if it.typ >= 0 && it.typ < len(c.Types) {
		if g := c.Types[it.typ].Count(cluster.GPU); g > 0 {
			sub = plural(g, "GPU")
		}
	}
	if n := len(it.hosts); n > 1 {
		count := plural(n, "host")
		if sub != "" {
			count += " × " + sub
		}
		sub = count
	}
	return hostList(hostNames(c, it.hosts), 60), sub
}

func (r *hostRow) draw(p *picture) {
	for i := range r.items {
		it := &r.items[i]
		title, sub := r.texts(it)
		b := it.box
		p.Open("host", title)
		for k := min(len(it.hosts)-1, 2); k > 0; k-- {
			o := float64(k) * 3
			p.Rect(b.x+o, b.y+o, b.w, b.h, 6, svg.Paint{Fill: paper, Stroke: panelLine})
		}
		p.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: "#9aa3b2", Width: 1.3})
		p.lines(b, boxType, ink, fitName(title, b), sub)
		p.Close()
	}
}

func (r *hostRow) caption() caption {
	c := r.net.v.c
	text := []string{plural(len(c.Hosts), "host")}
	var each []string
	for i := range r.items {
		for range r.items[i].hosts {
			each = append(each, r.items[i].uplinks())
		}
	}
	if e := mostly(each); e != "" {
		text = append(text, e+" each")
	}
	if r.more > 0 {
		text = append(text, fmt.Sprintf("%d of them not drawn", r.more))
	}
	y := 0.0
	if len(r.items) > 0 {
		y = r.items[0].box.y + hostBH/2
	}
	return caption{y, ink, text}
}

// uplinks says what a host has to the network.
func (it *hostItem) uplinks() string {
	cables, rate := 0, unit.Rate(0)
	for _, e := range it.ends {
		cables += e.cables
		rate += e.rate
	}
	switch {
	case cables == 0:
		return "no cable"
	case rate == 0:
		return plural(cables, "cable")
	}
	return fmt.Sprintf("%d × %s", cables, (rate / unit.Rate(cables)).Bits())
}
