package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// netView is the network sorted by tier, with what every switch has below and
// above it.
type netView struct {
	c       *cluster.Cluster
	tier    []int   // per switch; a tier nobody stated is its distance from the hosts
	tiers   [][]int // boxes of each tier, lowest first, by name
	toHosts []trunk // per switch
	down    []trunk // per switch: to switches of lower tiers
	up      []trunk
	across  []trunk // to switches of its own tier
}

func newNetView(c *cluster.Cluster) *netView {
	n := len(c.Network.Switches)
	v := &netView{
		c: c, tier: make([]int, n), toHosts: make([]trunk, n), down: make([]trunk, n), up: make([]trunk, n),
		across: make([]trunk, n),
	}
	v.findTiers()
	for i := range c.Network.Links {
		v.addLink(&c.Network.Links[i])
	}
	for s, t := range v.tier {
		if c.Network.Switches[s].Domain {
			continue
		}
		for len(v.tiers) <= t {
			v.tiers = append(v.tiers, nil)
		}
		v.tiers[t] = append(v.tiers[t], s)
	}
	for _, t := range v.tiers {
		slices.SortStableFunc(t, func(a, b int) int {
			return natural.Compare(c.Network.Switches[a].Name, c.Network.Switches[b].Name)
		})
	}
	v.tiers = slices.DeleteFunc(v.tiers, func(t []int) bool { return len(t) == 0 })
	return v
}

// findTiers takes the stated tiers, and for the rest the distance from the hosts.
func (v *netView) findTiers() {
	net := &v.c.Network
	next := make([][]int, len(net.Switches))
	var queue []int
	seen := make([]bool, len(net.Switches))
	reach := func(s, tier int) {
		if seen[s] {
			return
		}
		seen[s] = true
		v.tier[s] = tier
		if stated := net.Switches[s].Tier; stated != cluster.TierUnknown {
			v.tier[s] = max(0, int(stated))
		}
		queue = append(queue, s)
	}
	for i := range net.Links {
		a, b := net.Links[i].A, net.Links[i].B
		if !v.usable(&net.Links[i]) {
			continue
		}
		switch {
		case a.ToHosts() && !b.ToHosts():
			reach(b.Switch, 0)
		case b.ToHosts() && !a.ToHosts():
			reach(a.Switch, 0)
		case !a.ToHosts():
			next[a.Switch] = append(next[a.Switch], b.Switch)
			next[b.Switch] = append(next[b.Switch], a.Switch)
		}
	}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		for _, to := range next[s] {
			reach(to, v.tier[s]+1)
		}
	}
	for s := range net.Switches {
		reach(s, 0)
	}
}

// usable reports whether both ends of a link exist.
func (v *netView) usable(l *cluster.NetLink) bool {
	n := len(v.c.Network.Switches)
	return l.A.Switch < n && l.B.Switch < n && !(l.A.ToHosts() && l.B.ToHosts())
}

func (v *netView) addLink(l *cluster.NetLink) {
	if l.State == cluster.Down || !v.usable(l) {
		return
	}
	for _, e := range [2][2]cluster.End{{l.A, l.B}, {l.B, l.A}} {
		self, far := e[0], e[1]
		if self.ToHosts() {
			continue
		}
		n, to := l.Cables(), &v.toHosts[self.Switch]
		switch {
		case far.ToHosts():
			n *= spanLen(far.Hosts)
		case v.tier[far.Switch] > v.tier[self.Switch]:
			to = &v.up[self.Switch]
		case v.tier[far.Switch] < v.tier[self.Switch]:
			to = &v.down[self.Switch]
		default:
			to = &v.across[self.Switch]
		}
		switch {
		case !belongs(l):
			to.add(n, l.Rate.Value)
		case far.ToHosts():
			to.join(n, 0)
		default:
			to.join(n, v.tier[far.Switch])
		}
	}
}

func spanLen(spans []cluster.Span) int {
	n := 0
	for _, s := range spans {
		n += s.N
	}
	return n
}

// downWords says what a switch has towards the hosts: "20 hosts" where only that
// is known, else its cables, with what they lead to when where is set.
func (v *netView) downWords(s int, where bool) string {
	boxes := v.c.Network.Switches[s].Count
	h, d := v.toHosts[s].each(boxes), v.down[s].each(boxes)
	var parts []string
	if c := h.cables(); c != "" {
		if where {
			c += " to hosts"
		}
		parts = append(parts, c)
	}
	if h.members > 0 {
		parts = append(parts, words.Plural(h.members, "host"))
	}
	if c := d.cables(); c != "" {
		if where && len(parts) > 0 {
			c += " to switches"
		}
		parts = append(parts, c)
	}
	if d.members > 0 {
		parts = append(parts, tierCount(d.members, d.tier))
	}
	return orDash(strings.Join(parts, ", "))
}

// upWords says what a switch has away from the hosts: "under a spine" where only
// that is known.
func (v *netView) upWords(s int) string {
	u := v.up[s].each(v.c.Network.Switches[s].Count)
	parts := nonEmpty(u.cables())
	switch {
	case u.members == 1:
		parts = append(parts, "under a "+strings.TrimPrefix(tierCount(1, u.tier), "1 "))
	case u.members > 1:
		parts = append(parts, "under "+tierCount(u.members, u.tier))
	}
	return orDash(strings.Join(parts, ", "))
}

// grouped reports whether nothing but belonging is known of a switch.
func (v *netView) grouped(s int) bool {
	return len(v.toHosts[s].speeds)+len(v.down[s].speeds)+len(v.up[s].speeds) == 0 &&
		v.toHosts[s].members+v.down[s].members+v.up[s].members > 0
}

// rated reports whether the rate of any cable is known.
func (v *netView) rated() bool {
	for s := range v.tier {
		if v.toHosts[s].rated() || v.down[s].rated() || v.up[s].rated() {
			return true
		}
	}
	return false
}

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

// tierName is how a tier is called: by its own name where that is stated.
func (v *netView) tierName(s int) string { return cluster.Tier(v.tier[s]).String() }

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

// groups is how the switches of a tier belong together, in the order of their names: by rail, by group of a dragonfly,
// by rows or planes of a torus or a hyperx; nil where they do not.
func (s *strip) groups(tier []int) [][]int {
	net := &s.v.c.Network
	railed := net.Rails > 1 && !slices.ContainsFunc(tier, func(id int) bool { return net.Switches[id].Rail < 0 })
	each := s.groupSize()
	if !railed && (each < 2 || len(tier) <= each || s.v.tier[tier[0]] != 0) {
		return nil
	}
	var out [][]int
	for i, id := range tier {
		next := i == 0 || !railed && i%each == 0 || railed && net.Switches[id].Rail != net.Switches[tier[i-1]].Rail
		if next {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], id)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// groupSize is how many leaves of the described topology belong together; 0 where it has no groups.
func (s *strip) groupSize() int {
	kind, sizes, _ := strings.Cut(s.v.c.Network.Topology, ":")
	list := strings.Split(sizes, "x")
	if kind == "torus" || kind == "hyperx" {
		list = list[:len(list)-1] // the last dimension counts the groups
	}
	each := 1
	for _, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1<<16 {
			return 0
		}
		each = min(each*n, 1<<20)
	}
	return each
}

// groupWords says what belongs together.
func (s *strip) groupWords() string {
	kind, sizes, _ := strings.Cut(s.v.c.Network.Topology, ":")
	list := strings.Split(sizes, "x")
	inner := strings.Join(list[:len(list)-1], "x")
	switch {
	case s.v.c.Network.Rails > 1:
		return "one rail"
	case kind == "torus" && len(list) == 2:
		return "one ring of the torus"
	case kind == "hyperx" && len(list) == 2:
		return "one row, all joined"
	case len(list) > 2:
		return "one " + inner + " layer"
	}
	return "one group"
}

// drawGroups shades what belongs together in rows whose switches are drawn one by one.
func (s *strip) drawGroups(p *picture) {
	const margin = 5
	for _, row := range s.rows {
		for _, g := range s.shaded(row) {
			first, last := s.boxOf(g[0]), s.boxOf(g[len(g)-1])
			p.Open("switches", s.groupWords())
			p.Rect(first.box.x-margin, first.box.y-margin, last.box.x+last.box.w-first.box.x+2*margin, switchBH+2*margin, 9,
				svg.Paint{Fill: netViol, Opacity: 0.16})
			p.Close()
		}
	}
}

// shaded are the groups of a row that are shaded.
func (s *strip) shaded(row []netBox) [][]int {
	var tier []int
	for _, n := range row {
		if len(n.ids) > 1 {
			return nil
		}
		tier = append(tier, n.ids[0])
	}
	g := s.groups(tier)
	if len(g) == len(tier) {
		return nil // one switch each
	}
	return g
}

// groupCaption says what shading, or a box of several switches, stands for.
func (s *strip) groupCaption(row []netBox) string {
	switch {
	case s.shaded(row) != nil:
		return "shaded: " + s.groupWords()
	case len(row) > 1 && len(row[0].ids) > 1 && len(s.groups(slices.Concat(idsOf(row)...))) == len(row):
		return "each box: " + s.groupWords()
	}
	return ""
}

func idsOf(row []netBox) (out [][]int) {
	for _, n := range row {
		out = append(out, n.ids)
	}
	return out
}

// shortNames are the names that a box shows: without the rail that the box says anyway, so that many boxes fit side by
// side.
func (s *strip) shortNames(n *netBox) (lead string, names []string) {
	lead, names = s.names(n, s.name)
	if rail := s.rail(n); rail >= 0 {
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], fmt.Sprintf("rail%d-", rail))
		}
	}
	return lead, names
}

// rail is the one that all switches of a box serve, -1 where there is none.
func (s *strip) rail(n *netBox) int {
	net := &s.v.c.Network
	r := net.Switches[n.ids[0]].Rail
	if net.Rails < 2 || slices.ContainsFunc(n.ids, func(id int) bool { return net.Switches[id].Rail != r }) {
		return -1
	}
	return r
}

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
		// 4 × 8 GPUs, where 4 hosts × 8 GPUs has no room
		if small := (svg.Type{Size: smallType}); svg.TextWidth(sub, small) > b.w-8 {
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

// fold puts switches that are alike into one box, and where all are, those that belong together; when there are still
// too many boxes, all of them.
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

// trunk is what a switch has in one direction: cables, or, where a scheduler only
// says what belongs to what, hosts or switches without a cable being known.
type trunk struct {
	speeds  []speed // slowest first; a rate of 0 is one that nobody knows
	members int     // hosts or switches to which no cable is known
	tier    int     // of the switches among them; the lowest
	most    bool    // some boxes have fewer
}

// speed is how many cables run at a rate.
type speed struct {
	rate unit.Rate
	n    int
}

func (t *trunk) add(n int, r unit.Rate) {
	if n == 0 {
		return
	}
	at, ok := slices.BinarySearchFunc(t.speeds, r, func(s speed, r unit.Rate) int { return cmp.Compare(s.rate, r) })
	if !ok {
		t.speeds = slices.Insert(t.speeds, at, speed{rate: r})
	}
	t.speeds[at].n += n
}

// join adds hosts or switches to which no cable is known.
func (t *trunk) join(n, tier int) {
	if t.members == 0 || tier < t.tier {
		t.tier = tier
	}
	t.members += n
}

// rate is all cables together, one direction; ok is false when a cable's rate is
// not known or when it is not known what the cables are.
func (t *trunk) rate() (sum unit.Rate, ok bool) {
	for _, s := range t.speeds {
		if s.rate == 0 {
			return 0, false
		}
		sum += s.rate * unit.Rate(s.n)
	}
	return sum, t.members == 0
}

// rated reports whether the rate of any cable is known.
func (t *trunk) rated() bool { return len(t.speeds) > 0 && t.speeds[len(t.speeds)-1].rate > 0 }

// each is the part of one of several boxes that an entry of the network stands for; the greatest where they cannot have
// equal parts.
func (t *trunk) each(boxes int) *trunk {
	if boxes < 2 {
		return t
	}
	one := trunk{members: t.members, tier: t.tier, speeds: slices.Clone(t.speeds)}
	for i := range one.speeds {
		one.most = one.most || one.speeds[i].n%boxes != 0
		one.speeds[i].n = (one.speeds[i].n + boxes - 1) / boxes
	}
	return &one
}

// maxSpeeds is how many rates are told apart in one cell of a table.
const maxSpeeds = 3

// cables says how many cables there are of which rate.
func (t *trunk) cables() string {
	n := 0
	for _, s := range t.speeds {
		n += s.n
	}
	switch {
	case n == 0:
		return ""
	case !t.rated():
		return words.Plural(n, "cable")
	case len(t.speeds) > maxSpeeds:
		low, high := t.speeds[0].rate.Bits(), t.speeds[len(t.speeds)-1].rate.Bits()
		if t.speeds[0].rate == 0 {
			low = "unknown"
		}
		return fmt.Sprintf("%s, %s to %s", words.Plural(n, "cable"), low, high)
	}
	parts := make([]string, len(t.speeds))
	for i, s := range t.speeds {
		parts[i] = fmt.Sprintf("%d × %s", s.n, s.rate.Bits())
		if s.rate == 0 {
			parts[i] = fmt.Sprintf("%d × ?", s.n)
		}
	}
	if t.most {
		parts[0] = "up to " + parts[0]
	}
	return strings.Join(parts, ", ")
}

// tierCount counts the switches of a tier: "20 leaves".
func tierCount(n, tier int) string {
	name := cluster.Tier(tier).String()
	switch {
	case tier > int(cluster.Core):
		return words.Plural(n, name+" switch")
	case tier == int(cluster.Leaf) && n != 1:
		return fmt.Sprint(n, " leaves")
	}
	return words.Plural(n, name)
}

// belongs reports a link of which nothing is known but what it joins: a tree that
// a scheduler was told, and not cables that somebody saw.
func belongs(l *cluster.NetLink) bool {
	for _, e := range []cluster.End{l.A, l.B} {
		if e.Port > 0 || e.ToHosts() && e.NIC >= 0 {
			return false
		}
	}
	return !l.Rate.Known() && !l.Max.Known() && l.Speed == "" && l.Lanes == 0 && l.Count <= 1 &&
		l.State == cluster.StateUnknown
}

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

// hostCables joins the NICs of a host, which end at what port says, with their switches; without one, with the cloud
// that stands for a network that nobody described.
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
	spread(func(w *wire) *box { return w.up }, func(w *wire) float64 { return w.down.mid() },
		func(w *wire, x float64) { w.x1 = x })
	spread(func(w *wire) *box { return w.down }, func(w *wire) float64 { return w.up.mid() },
		func(w *wire, x float64) { w.x2 = x })
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
			p.Path(new(svg.Pen).Move(x-30, y).Curve(x-44, y-60, x+44, y-60, x+30, y).String(), svg.Paint{
				Fill: "none", Stroke: netViol, Width: 2, Opacity: 0.7,
			})
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
var apartWords = map[string]string{
	"rail-only": "rail-only: rails are not joined", "planes": "planes: a network per NIC",
}

// topologyWords names a network that is not leaves below spines, with its routing, which is assumed.
func topologyWords(n *cluster.Network) string {
	if n.Topology == "" {
		return ""
	}
	return fmt.Sprintf("%s, %s routing", n.Topology, cmp.Or(n.Routing, "minimal"))
}
