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
	"busbar.dev/internal/words"
	"busbar.dev/unit"
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
	keys := []func(h int) string{
		func(h int) string { return r.key(c.Hosts[h].Type, ends[h]) },
		func(h int) string { return r.switchKey(ends[h]) },
	}
	if one {
		keys = []func(h int) string{func(h int) string { return fmt.Sprint(h) }}
	}
	// Hosts of several kinds on the same switches share a box only where there
	// would be too many boxes.
	for _, key := range keys {
		r.collect(ends, key)
		if len(r.items) <= maxBoxes {
			break
		}
	}
	r.order()
	if len(r.items) > maxBoxes {
		r.leaveOut(maxBoxes - 1)
	}
	return r
}

// collect puts the hosts whose key is the same into one item.
func (r *hostRow) collect(ends [][]hostEnd, key func(h int) string) {
	hosts := r.net.v.c.Hosts
	index := make(map[string]int)
	r.items = nil
	for h := range hosts {
		at := key(h)
		k, ok := index[at]
		if !ok {
			k = len(r.items)
			index[at] = k
			r.items = append(r.items, hostItem{typ: hosts[h].Type, ends: ends[h]})
		}
		it := &r.items[k]
		it.hosts = append(it.hosts, h)
		if hosts[h].Type != it.typ {
			it.typ = -1
		}
	}
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

// switchKey is equal for hosts on the same switches.
func (r *hostRow) switchKey(ends []hostEnd) string {
	var b strings.Builder
	for _, e := range ends {
		fmt.Fprintf(&b, "|%p", e.sw)
	}
	return b.String()
}

// order puts hosts below their first switch, by name.
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
	at, name := make(map[int]int, len(r.items)), make(map[int]string, len(r.items))
	for _, it := range r.items {
		at[it.hosts[0]] = first(it)
		if names := hostNames(r.net.v.c, it.hosts); len(names) > 0 {
			name[it.hosts[0]] = names[0]
		}
	}
	slices.SortStableFunc(r.items, func(a, b hostItem) int {
		x, y := a.hosts[0], b.hosts[0]
		return cmp.Or(cmp.Compare(at[x], at[y]), natural.Compare(name[x], name[y]))
	})
}

// width is what the boxes with their names need side by side.
func (r *hostRow) width() float64 {
	each := hostBW * 0.72
	for i := range r.items {
		title := tightRange(cluster.FormatHosts(hostNames(r.net.v.c, r.items[i].hosts)))
		each = math.Max(each, math.Min(maxHost, svg.TextWidth(title, nameType)+9))
	}
	n := float64(len(r.items))
	return math.Min(n*(each+hostGap), math.Max(maxRow, n*(hostBW*0.72+hostGap)))
}

func (r *hostRow) lay(x, y, w float64) float64 {
	pitch := w / float64(max(1, len(r.items)))
	bw := math.Min(190, pitch-hostGap)
	mid := make([]float64, len(r.items))
	for i := range r.items {
		mid[i] = x + pitch*(float64(i)+0.5)
	}
	if r.under() {
		for i := range r.items {
			mid[i] = x + w
			if len(r.items[i].ends) > 0 {
				mid[i] = r.items[i].ends[0].sw.box.mid()
			}
		}
		spread(mid, bw+hostGap, x, x+w)
	}
	for i := range r.items {
		r.items[i].box = box{mid[i] - bw/2, y, bw, hostBH}
	}
	return y + hostBH
}

// under reports whether hosts hang on one switch each, below which they can stand.
func (r *hostRow) under() bool {
	return !slices.ContainsFunc(r.items, func(it hostItem) bool { return len(it.ends) > 1 })
}

// spread moves points, which are in order, as little apart as keeps a distance
// between them, and keeps half of it to the edges. Points that push each other
// move as one, around the middle of where they wanted to be.
func spread(at []float64, gap, left, right float64) {
	type run struct {
		sum float64 // of where the first point would be for each to be right
		n   int
	}
	var runs []run
	for i, x := range at {
		runs = append(runs, run{x - float64(i)*gap, 1})
		for k := len(runs) - 1; k > 0; k-- {
			a, b := &runs[k-1], runs[k]
			if a.sum/float64(a.n) <= b.sum/float64(b.n) {
				break
			}
			a.sum, a.n = a.sum+b.sum, a.n+b.n
			runs = runs[:k]
		}
	}
	// What is left after the distances is the room that the first point has.
	room := right - left - float64(len(at))*gap
	i := 0
	for _, r := range runs {
		first := math.Max(left+gap/2, math.Min(left+gap/2+room, r.sum/float64(r.n)))
		for range r.n {
			at[i] = first + float64(i)*gap
			i++
		}
	}
}

func (r *hostRow) wires(*box) []wire {
	var out []wire
	for i := range r.items {
		for _, e := range r.items[i].ends {
			w := e.wire
			w.up, w.down = &e.sw.box, &r.items[i].box
			if name, ok := r.only(&r.items[i]); ok {
				w.key = w.portKey(name, r.net.first(e.sw))
			}
			out = append(out, w)
		}
	}
	return out
}

// only is the name of the one host of a box.
func (r *hostRow) only(it *hostItem) (string, bool) {
	name := r.net.v.c.Hosts[it.hosts[0]].Name
	return name, len(it.hosts) == 1 && name != ""
}

// single reports whether every host has a box of its own.
func (r *hostRow) single() bool {
	return r.more == 0 && !slices.ContainsFunc(r.items, func(it hostItem) bool { return len(it.hosts) > 1 })
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
			sub = words.Plural(g, "GPU")
		}
	}
	if n := len(it.hosts); n > 1 {
		count := words.Plural(n, "host")
		if sub != "" {
			count += " × " + sub
		}
		sub = count
	}
	return hostList(hostNames(c, it.hosts), 120), sub
}

func (r *hostRow) draw(p *picture) {
	for i := range r.items {
		it := &r.items[i]
		title, sub := r.texts(it)
		b := it.box
		if small := (svg.Type{Size: smallType}); svg.TextWidth(sub, small) > b.w-8 { // 4 × 8 GPUs, where 4 hosts × 8 GPUs has no room
			sub = strings.Replace(sub, " hosts ×", " ×", 1)
		}
		p.Open("host", title)
		if name, ok := r.only(it); ok {
			p.about("node/" + name)
		}
		for k := min(len(it.hosts)-1, 2); k > 0; k-- {
			o := float64(k) * 3
			p.Rect(b.x+o, b.y+o, b.w, b.h, 6, svg.Paint{Fill: paper, Stroke: panelLine})
		}
		p.Rect(b.x, b.y, b.w, b.h, 6, svg.Paint{Fill: panelFill, Stroke: idleLine, Width: 1.3})
		p.lines(b, boxType, ink, fitList("", hostNames(r.net.v.c, it.hosts), nameType, b.w-8), sub)
		p.Close()
	}
}

func (r *hostRow) captions() []caption {
	c := r.net.v.c
	text := []string{words.Plural(len(c.Hosts), "host")}
	var each []string
	for i := range r.items {
		for range r.items[i].hosts {
			each = append(each, r.items[i].uplinks(len(c.Hosts) > 1))
		}
	}
	if e := mostly(each); e != "" {
		text = append(text, e)
	}
	if r.more > 0 {
		text = append(text, fmt.Sprintf("%d of them not drawn", r.more))
	}
	y := 0.0
	if len(r.items) > 0 {
		y = r.items[0].box.y + hostBH/2
	}
	return []caption{{y, ink, text}}
}

// uplinks says what a host has to the network; several says that there are other hosts.
func (it *hostItem) uplinks(several bool) string {
	cables, rate := 0, unit.Rate(0)
	for _, e := range it.ends {
		if e.member {
			continue
		}
		cables += e.cables
		rate += e.rate
	}
	switch {
	case cables == 0 && len(it.ends) > 0:
		return ""
	case cables == 0:
		return "no cables known"
	}
	text := words.Plural(cables, "cable")
	if rate > 0 {
		text = fmt.Sprintf("%d × %s", cables, (rate / unit.Rate(cables)).Bits())
	}
	if several {
		text += " each"
	}
	return text
}
