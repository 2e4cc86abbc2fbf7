package report

import (
	"cmp"
	"fmt"
	"io"
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
func TrafficText(w io.Writer, r *traffic.Run, size unit.Bytes, o TextOptions) error {
	return write(w, o, func(s style) string {
		p := &printer{style: s, width: o.width(), terminal: o.Width}
		v := newTrafficView(r)
		p.printf("%s\n", p.bold(v.what()))
		p.para("", v.facts())
		p.transports(r)
		p.trafficNICs(v, size)
		p.flows(v, size)
		p.channels("Rings", v.channelsBy(ringLike), v.ringText)
		p.channels("Trees", v.channelsBy(treeLike), v.treeText)
		p.oddities(r)
		return p.b.String()
	})
}

// roundBytes prints an amount with three digits.
func roundBytes(b float64) string {
	if b == 0 {
		return "-"
	}
	for _, u := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if b >= u.size {
			return fmt.Sprintf("%.3g %s", b/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0f B", b)
}

func (p *printer) transports(r *traffic.Run) {
	p.heading("Transports")
	t := p.columns("transport", ">hops", ">pairs of ranks")
	for _, x := range r.Transports {
		t.Row(x.Via, fmt.Sprint(x.Hops), fmt.Sprint(x.Pairs))
	}
	p.table(t)
	if r.P2P > 0 {
		p.printf("  and %s for send and receive, not part of collectives\n", words.Plural(r.P2P, "connection"))
	}
}

// trafficNICs is the table of loads.
func (p *printer) trafficNICs(v *trafficView, size unit.Bytes) {
	if len(v.NICs) == 0 {
		return
	}
	p.heading(fmt.Sprintf("NICs, for an all-reduce of %v", size))
	t := p.columns("host", "NIC", ">ring out", ">in", ">tree out", ">in", ">GDR", "channels", "ranks", "")
	amount := func(part float64) string { return roundBytes(part * float64(size)) }
	shown := 0
	for _, g := range v.likeHosts(4) {
		name := cluster.FormatHosts(v.hostNames(g))
		for _, i := range v.Hosts[g[0]].NICs {
			shown++
			n := &v.NICs[i]
			note, gdr, ranks := "", "-", words.Numbers(n.Ranks)
			switch {
			case n.Hops == 0:
				note = p.yellow("idle")
			case n.Busiest && v.unlike():
				note = p.yellow("busiest")
			}
			if n.Hops > 0 {
				gdr = fmt.Sprintf("%d/%d", n.GDR, n.Hops)
			}
			if len(g) > 1 {
				ranks = ""
			}
			t.Row(name, v.NICName(i), amount(n.Ring.Out), amount(n.Ring.In), amount(n.Tree.Out), amount(n.Tree.In), gdr,
				words.Numbers(n.Channels), ranks, note)
		}
	}
	t.Most = maxTextNICs
	p.table(t)
	if n := shown - maxTextNICs; n > 0 {
		p.printf("  and %d more: --json\n", n)
	}
	p.bound(v)
}

// likeHosts puts hosts together whose NICs carry the same; up to so many hosts stand alone.
func (v *trafficView) likeHosts(alone int) [][]int {
	var list [][]int
	index := map[string]int{}
	for h := range v.Hosts {
		var key strings.Builder
		if len(v.Hosts) <= alone {
			fmt.Fprint(&key, h)
		}
		for _, i := range v.Hosts[h].NICs {
			n := &v.NICs[i]
			fmt.Fprintln(&key, v.NICName(i), n.Ring, n.Tree, n.GDR, n.Hops, n.Channels)
		}
		at, ok := index[key.String()]
		if !ok {
			at = len(list)
			index[key.String()] = at
			list = append(list, nil)
		}
		list[at] = append(list[at], h)
	}
	return list
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
	for i := range v.NICs {
		n := &v.NICs[i]
		if !n.Busiest || n.Rate <= 0 || v.most <= 0 {
			continue
		}
		alg := float64(n.Rate) / v.most
		bus := unit.Rate(alg * 2 * float64(v.NRanks-1) / float64(v.NRanks))
		p.para("  ", fmt.Sprintf("At %v, the busiest NIC holds an all-reduce by these rings to %v of bus bandwidth.", n.Rate,
			bus))
		return
	}
}

// flows says who talks to whom over the network.
func (p *printer) flows(v *trafficView, size unit.Bytes) {
	if len(v.Flows) == 0 {
		return
	}
	p.heading("Between hosts")
	t := p.columns("from", "NIC", "to", "NIC", ">by ring", ">by tree", "channels")
	t.Most = maxTextFlows
	for _, f := range v.Flows {
		amount := func(part float64) string { return roundBytes(part * float64(size)) }
		name := func(h int) string {
			if h < 0 {
				return "(not in the log)"
			}
			return v.Hosts[h].Name
		}
		t.Row(name(f.From), v.NICName(f.Out), name(f.To), v.NICName(f.In), amount(f.Ring), amount(f.Tree),
			words.Numbers(f.Channels))
	}
	p.table(t)
	if n := len(v.Flows) - maxTextFlows; n > 0 {
		p.printf("  and %d more: --json\n", n)
	}
}

// channels prints what channels have, those that have the same in one line.
func (p *printer) channels(title string, all [][]*traffic.Channel, text func(*traffic.Channel) string) {
	for i, list := range all {
		if i == 0 {
			p.heading(title)
		}
		if i == maxRings {
			p.printf("  and more that differ: --json\n")
			return
		}
		p.para("  ", p.dim(indexes(list)+": ")+text(list[0]))
	}
}

// ringText writes a ring as it passes hosts.
func (v *trafficView) ringText(c *traffic.Channel) string {
	var parts []string
	list := v.stretches(c)
	for k, s := range list {
		if k == maxStretches {
			parts = append(parts, fmt.Sprintf("… and on, %d times more to another host", len(list)-k))
			break
		}
		text := strings.Trim(fmt.Sprint(s.ranks), "[]")
		if len(c.Ring) > maxTreeRanks {
			text = words.Numbers(slices.Sorted(slices.Values(s.ranks)))
		}
		if len(list) > 1 {
			text += " (" + s.nics + ")"
		}
		parts = append(parts, text)
	}
	if c.Cut {
		parts = append(parts, "… cut in the log")
	}
	return strings.Join(parts, " ")
}

// treeText writes a tree with brackets: root(child child(grandchild)). Where ranks are too many, it is that of hosts.
func (v *trafficView) treeText(c *traffic.Channel) string {
	parent, name, host := c.Parent, func(i int) string { return fmt.Sprint(i) }, func(i int) int { return v.Ranks[i].Host }
	if v.NRanks > maxTreeRanks && len(v.Hosts) > 0 {
		names := make([]string, len(v.Hosts))
		for i := range v.Hosts {
			names[i] = v.Hosts[i].Name
		}
		names = shortNames(names)
		parent, name, host = v.hostTree(c), func(i int) string { return names[i] }, func(i int) int { return i }
	}
	kids := make([][]int, len(parent))
	// Children of the same host come first, so that a host's chain runs straight on.
	for _, own := range []bool{true, false} {
		for i, p := range parent {
			if p >= 0 && p < len(parent) && (host(i) == host(p)) == own {
				kids[p] = append(kids[p], i)
			}
		}
	}
	var b strings.Builder
	seen := make([]bool, len(parent))
	var walk func(i int)
	walk = func(i int) {
		seen[i] = true
		b.WriteString(name(i))
		fork := len(kids[i]) > 1
		for n, k := range kids[i] {
			switch {
			case fork && n == 0:
				b.WriteString(" (")
			case fork:
				b.WriteString(" ")
			}
			switch crosses := host(i) != host(k); {
			case crosses:
				b.WriteString("=")
			case !fork:
				b.WriteString("-")
			}
			if !seen[k] {
				walk(k)
			}
		}
		if fork {
			b.WriteString(")")
		}
	}
	for _, root := range []bool{true, false} { // then branches whose upper part the log does not show
		for i, p := range parent {
			if seen[i] || (p == -1) != root || p >= 0 || !root && len(kids[i]) == 0 {
				continue
			}
			if b.Len() > 0 {
				b.WriteString("; ")
			}
			walk(i)
		}
	}
	if b.Len() > maxTreeText {
		return b.String()[:maxTreeText] + " … (--json has all)"
	}
	return b.String()
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
		for _, o := range r.Odd {
			text := o.Text
			if o.Line > 0 {
				text += fmt.Sprintf(" (line %d)", o.Line)
			}
			p.para("  ", text)
		}
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
		id := cmp.Or(o.Comm, "without id")
		p.printf("  %s: %s, %d in the log, %s\n", id, words.Plural(o.Ranks, "rank"), o.Seen,
			words.Plural(o.Channels, "channel"))
	}
}
