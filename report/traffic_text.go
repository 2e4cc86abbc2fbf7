package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// How much of a run's traffic the text prints before it counts the rest.
const (
	maxTextNICs  = 64
	maxTextFlows = 24
	maxTreeText  = 1200 // bytes of one tree
)

// TrafficText prints a run's traffic for a terminal: NICs with what an all-reduce
// of size sends through each, who talks to whom, rings, trees, what is odd.
func TrafficText(page *Page, r *traffic.Run, size unit.Bytes) {
	p := &printer{Page: page}
	v := newTrafficView(r)
	v.size = size
	p.lines(p.bold(v.what()))
	p.para("", v.facts())
	p.transports(r)
	p.trafficNICs(v)
	p.flows(v)
	for _, s := range v.channels() {
		p.heading(s.title)
		lists := s.like.lists()
		for _, list := range lists[:min(len(lists), maxRings)] {
			p.para("  ", p.dim(channelNumbers(list)+": ")+s.text(list[0]))
		}
		p.printf("%s", when(len(lists) > maxRings, "  and more that differ: --json\n"))
	}
	p.oddities(r)
}

// amount is a part of the all-reduce in bytes, with three digits.
func (v *trafficView) amount(part float64) string {
	b := part * float64(v.size)
	for i, name := range []string{"GiB", "MiB", "KiB"} {
		if size := float64(unit.GiB >> (10 * i)); b >= size {
			return fmt.Sprintf("%.3g %s", b/size, name)
		}
	}
	return cmp.Or(when(b > 0, fmt.Sprintf("%.0f B", b)), "-")
}

func (p *printer) transports(r *traffic.Run) {
	p.heading("Transports")
	t := p.columns("transport", ">hops", ">pairs of ranks")
	for _, x := range r.Transports {
		t.Add(x.Via, x.Hops, x.Pairs)
	}
	p.table(t)
	if r.P2P > 0 {
		p.printf("  and %s for send and receive, not part of collectives\n", words.Plural(r.P2P, "connection"))
	}
}

// trafficNICs is the table of loads.
func (p *printer) trafficNICs(v *trafficView) {
	if len(v.NICs) == 0 {
		return
	}
	p.heading(fmt.Sprintf("NICs, for an all-reduce of %v", v.size))
	t := p.columns("host", "NIC", ">ring out", ">in", ">tree out", ">in", ">GDR", "channels", "ranks", "")
	for _, g := range v.likeHosts(4) {
		name := cluster.FormatHosts(v.hostNames(g))
		for _, i := range v.Hosts[g[0]].NICs {
			n := &v.NICs[i]
			note := ""
			switch {
			case n.Hops == 0:
				note = p.yellow("idle")
			case n.Busiest && v.unlike:
				note = p.yellow("busiest")
			}
			t.Row(name, v.NICName(i), v.amount(n.Ring.Out), v.amount(n.Ring.In), v.amount(n.Tree.Out), v.amount(n.Tree.In),
				cmp.Or(when(n.Hops > 0, fmt.Sprintf("%d/%d", n.GDR, n.Hops)), "-"), words.Numbers(n.Channels),
				when(len(g) == 1, words.Numbers(n.Ranks)), note)
		}
	}
	p.first(t, maxTextNICs, ": --json")
	p.bound(v)
}

// likeHosts puts hosts together whose NICs carry the same; up to so many hosts stand alone.
func (v *trafficView) likeHosts(alone int) [][]int {
	var like grouped[string, int]
	for h := range v.Hosts {
		key := when(len(v.Hosts) <= alone, fmt.Sprint(h))
		for _, i := range v.Hosts[h].NICs {
			n := &v.NICs[i]
			key += fmt.Sprintln(v.NICName(i), n.Ring, n.Tree, n.GDR, n.Hops, n.Channels)
		}
		like.put(key, h)
	}
	return like.lists()
}

func (v *trafficView) hostNames(hosts []int) []string {
	var names []string
	for _, h := range hosts {
		names = append(names, v.Hosts[h].Name)
	}
	return names
}

// bound says what the busiest NIC allows, where its rate is known.
func (p *printer) bound(v *trafficView) {
	for _, n := range v.NICs {
		if !n.Busiest || n.Rate <= 0 || v.most <= 0 {
			continue
		}
		p.para("  ", fmt.Sprintf("At %v, the busiest NIC holds an all-reduce by these rings to %v of bus bandwidth.", n.Rate,
			unit.Rate(float64(n.Rate)/v.most*2*float64(v.NRanks-1)/float64(v.NRanks))))
		return
	}
}

// flows says who talks to whom over the network.
func (p *printer) flows(v *trafficView) {
	if len(v.Flows) == 0 {
		return
	}
	p.heading("Between hosts")
	t := p.columns("from", "NIC", "to", "NIC", ">by ring", ">by tree", "channels")
	for _, f := range v.Flows {
		name := func(h int) string {
			if h < 0 {
				return "(not in the log)"
			}
			return v.Hosts[h].Name
		}
		t.Row(name(f.From), v.NICName(f.Out), name(f.To), v.NICName(f.In), v.amount(f.Ring), v.amount(f.Tree),
			words.Numbers(f.Channels))
	}
	p.first(t, maxTextFlows, ": --json")
}

// stretch is what a ring has on one host, and by which NICs it goes on to the next, as NCCL numbers them: 0›1.
type stretch struct {
	ranks, nics string
	host        int
}

// stretches are those of a ring in the order that it passes hosts; a last one says what is left out.
func (v *trafficView) stretches(c *traffic.Channel) (list []stretch) {
	hop := func(from, to int) *traffic.Hop { return v.hops[[3]int{c.Index, from, to}] }
	var ranks [][]int // of one host
	for i, k := range c.Ring {
		if i > 0 && v.Ranks[k].Host == v.Ranks[c.Ring[i-1]].Host {
			// Of hosts that the log does not show, the network tells one from the next.
			if h := hop(c.Ring[i-1], k); v.Ranks[k].Host >= 0 || h == nil || h.Transport != "NET" {
				last := &ranks[len(ranks)-1]
				*last = append(*last, k)
				continue
			}
		}
		ranks = append(ranks, []int{k})
	}
	number := func(nic int) string {
		if nic < 0 {
			return "?"
		}
		return fmt.Sprint(v.NICs[nic].Dev)
	}
	for i, on := range ranks {
		if i == maxStretches {
			more := fmt.Sprintf("… and on, %d times more to another host", len(ranks)-i)
			return append(list, stretch{ranks: more, host: -1})
		}
		s := stretch{strings.Trim(fmt.Sprint(on), "[]"), "?›?", v.Ranks[on[0]].Host}
		if len(c.Ring) > maxTreeRanks {
			s.ranks = words.Numbers(slices.Sorted(slices.Values(on)))
		}
		if h := hop(on[len(on)-1], ranks[(i+1)%len(ranks)][0]); h != nil {
			s.nics = number(h.Out) + "›" + number(h.In)
		}
		s.nics = when(len(ranks) > 1, s.nics)
		list = append(list, s)
	}
	if c.Cut {
		list = append(list, stretch{ranks: "… cut in the log", host: -1})
	}
	return list
}

// ringText writes a ring as it passes hosts, with its NICs in brackets.
func (v *trafficView) ringText(c *traffic.Channel) string {
	var parts []string
	for _, s := range v.stretches(c) {
		parts = append(parts, s.ranks+when(s.nics != "", " ("+s.nics+")"))
	}
	return strings.Join(parts, " ")
}

// rankTree is a tree of ranks or, where those are too many, of hosts.
type rankTree struct {
	names []string
	host  []int
	kids  [][]int
	roots []int // then branches whose upper part the log does not show
}

func (v *trafficView) treeOf(c *traffic.Channel) *rankTree {
	parent, t := c.Parent, &rankTree{}
	for i, r := range v.Ranks {
		t.names, t.host = append(t.names, fmt.Sprint(i)), append(t.host, r.Host)
	}
	if v.NRanks > maxTreeRanks && len(v.Hosts) > 0 {
		t.host = t.host[:0]
		for i := range v.Hosts {
			t.host = append(t.host, i)
		}
		parent, t.names = v.hostTree(c), cluster.ShortNames(v.hostNames(t.host))
	}
	t.kids = make([][]int, len(parent))
	// Children of the same host come first, so that a host's chain runs straight on.
	for _, own := range []bool{true, false} {
		for i, p := range parent {
			if p >= 0 && p < len(parent) && (t.host[i] == t.host[p]) == own {
				t.kids[p] = append(t.kids[p], i)
			}
		}
	}
	for _, above := range []int{-1, -2} {
		for i, p := range parent {
			if p == above && (p == -1 || len(t.kids[i]) > 0) {
				t.roots = append(t.roots, i)
			}
		}
	}
	return t
}

// branch writes what hangs on a rank with brackets: root(child child(grandchild)).
func (t *rankTree) branch(i int) string {
	var parts []string
	for _, k := range t.kids[i] {
		parts = append(parts, cmp.Or(when(t.host[i] != t.host[k], "="), when(len(t.kids[i]) == 1, "-"))+t.branch(k))
	}
	text := strings.Join(parts, " ")
	return t.names[i] + either(len(parts) > 1, " ("+text+")", text)
}

func (v *trafficView) treeText(c *traffic.Channel) string {
	t := v.treeOf(c)
	var trees []string
	for _, i := range t.roots {
		trees = append(trees, t.branch(i))
	}
	text := strings.Join(trees, "; ")
	if len(text) > maxTreeText {
		return text[:maxTreeText] + " … (--json has all)"
	}
	return text
}

// hostTree is the tree between hosts: each hangs from the host that one of its
// ranks sends to.
func (v *trafficView) hostTree(c *traffic.Channel) []int {
	up := slices.Repeat([]int{-2}, len(v.Hosts))
	for k, p := range c.Parent {
		h := v.Ranks[k].Host
		switch {
		case h < 0:
		case p == -1:
			up[h] = -1
		case p >= 0 && v.Ranks[p].Host >= 0 && v.Ranks[p].Host != h:
			up[h] = v.Ranks[p].Host
		}
	}
	return up
}

func (p *printer) oddities(r *traffic.Run) {
	if len(r.Odd) > 0 {
		p.heading("Noteworthy")
	}
	for _, o := range r.Odd {
		p.para("  ", o.Text+when(o.Line > 0, fmt.Sprintf(" (line %d)", o.Line)))
	}
	if len(r.Others) == 0 {
		return
	}
	p.heading("Other communicators of this log")
	for i, o := range r.Others {
		if i == 8 {
			p.printf("  and %d more\n", len(r.Others)-i)
			break
		}
		p.printf("  %s: %s, %d in the log, %s\n", cmp.Or(o.Comm, "without id"), words.Plural(o.Ranks, "rank"), o.Seen,
			words.Plural(o.Channels, "channel"))
	}
}
