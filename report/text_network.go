package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/words"
)

// network prints the switches, tier by tier, those that are alike in one line.
func (p *printer) network() {
	net := &p.c.Network
	v := newNetView(p.c)
	if net.Kind == "" && len(net.Switches) == 0 && len(net.Links) == 0 {
		return
	}
	p.heading("Network")
	p.list("  ", "  ", p.networkWords(v))
	if len(net.Switches) > 0 {
		p.rates = p.rates || v.rated()
		p.switches(v)
	}
	p.domains()
	p.badCables()
}

func (p *printer) networkWords(v *netView) []string {
	net := &p.c.Network
	var w []string
	if net.Kind != "" {
		w = append(w, netName(net.Kind))
	}
	if net.Name != "" && !strings.EqualFold(net.Name, netName(net.Kind)) {
		w = append(w, net.Name)
	}
	if n := len(v.tiers); n > 0 {
		w = append(w, words.Plural(n, "tier"))
	}
	if t := topologyWords(net); t != "" {
		w = append(w, t)
	}
	if net.Rails > 1 {
		w = append(w, fmt.Sprintf("%d rails (NIC i of every node on rail i)", net.Rails))
	}
	if o := net.Oversubscription; o.Known() {
		w = append(w, v.statedWords(o))
	}
	switch net.Reduction {
	case cluster.Yes:
		w = append(w, "in-network reduction (SHARP)")
	case cluster.No:
		w = append(w, "no in-network reduction")
	}
	if len(w) == 0 {
		w = []string{"kind unknown"}
	}
	return w
}

// alike is switches that a reader of the table need not tell apart.
type alike struct {
	first int
	ids   []int
	names []string
	boxes int
}

func (p *printer) switches(v *netView) {
	tab := p.columns("tier", ">count", "switches", "model", ">ports", "downlinks each", "uplinks each", ">oversubscribed")
	var rows [][]string
	left := 0
	for _, tier := range v.tiers {
		for _, a := range v.alike(tier) {
			if len(rows) == maxSwitches {
				left += a.boxes
				continue
			}
			rows = append(rows, p.switchRow(v, a))
		}
	}
	for i := range tab.Columns { // one of which no source says anything takes no room
		tab.Columns[i].Hidden = !slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" })
	}
	for _, r := range rows {
		tab.Row(r...)
	}
	if left > 0 {
		tab.Row(p.dim(fmt.Sprintf("… and %d more", left)))
	}
	p.table(tab)
}

func (p *printer) switchRow(v *netView, a alike) []string {
	s := &v.c.Network.Switches[a.first]
	ports := ""
	if s.Ports > 0 {
		ports = fmt.Sprint(s.Ports)
	}
	r := v.oversubscription(a.first)
	over := overWords(r)
	if r > 1+even {
		over = p.yellow(over)
	}
	return []string{v.tierName(a.first), fmt.Sprint(a.boxes), hostList(a.names, 44), s.Model, ports, v.downWords(a.first, true), v.upWords(a.first), over}
}

// alike folds the switches of a tier that have the same model and the same
// cables, in the order of the first of each kind.
func (v *netView) alike(tier []int) []alike {
	type key struct {
		model  string
		ports  int
		cables string
		reduce cluster.Tri
	}
	var order []key
	by := make(map[key]*alike)
	for _, i := range tier {
		s := &v.c.Network.Switches[i]
		k := key{s.Model, s.Ports, fmt.Sprint(v.toHosts[i], v.down[i], v.up[i]), s.Reduction}
		if by[k] == nil {
			by[k] = &alike{first: i}
			order = append(order, k)
		}
		by[k].ids = append(by[k].ids, i)
		by[k].names = append(by[k].names, s.Name)
		by[k].boxes += max(s.Count, 1)
	}
	out := make([]alike, len(order))
	for i, k := range order {
		out[i] = *by[k]
	}
	return out
}

// domains prints what schedulers group nodes by.
func (p *printer) domains() {
	var names []string
	for _, s := range p.c.Network.Switches {
		if s.Domain {
			names = append(names, s.Name)
		}
	}
	p.schedulerSwitches()
	if len(names) > 0 {
		p.para("  ", fmt.Sprintf("%s that schedulers group nodes by: %s", words.Plural(len(names), "domain"), hostList(natural.Sort(names), 2*p.width)))
	}
}

// schedulerSwitches prints which hosts a scheduler's own tree holds together, where the cables are known beside it.
func (p *printer) schedulerSwitches() {
	var leaves []string
	for _, s := range p.c.Network.Scheduler {
		if len(s.Hosts) > 0 {
			leaves = append(leaves, s.Name+" "+cluster.FormatHosts(s.Hosts))
		}
	}
	if n := len(leaves) - maxLinks; n > 0 {
		leaves = append(leaves[:maxLinks], fmt.Sprintf("… and %d more", n))
	}
	if len(leaves) > 0 {
		p.list("  Slurm groups nodes by ", "    ", leaves)
	}
}

// badCables names links that are down, slower than their ends could be, or that
// counted errors.
func (p *printer) badCables() {
	var bad []string
	for i := range p.c.Network.Links {
		if s := cableTrouble(&p.c.Network.Links[i]); s != "" {
			l := &p.c.Network.Links[i]
			bad = append(bad, p.c.EndName(l.A)+" – "+p.c.EndName(l.B)+": "+s)
		}
	}
	for i, s := range bad {
		if i == maxLinks {
			p.printf("  … and %s more\n", words.Plural(len(bad)-i, "such link"))
			break
		}
		p.para("  ", p.red("link ")+s)
	}
}

// cableTrouble says what is wrong with a cable, or nothing.
func cableTrouble(l *cluster.NetLink) string {
	var s []string
	switch {
	case l.State == cluster.Down && l.Loose(): // nothing is plugged in
	case l.State == cluster.Down || l.State == cluster.Init:
		s = append(s, l.State.String())
	case l.Rate.Known() && l.Max.Known() && l.Rate.Value < l.Max.Value:
		s = append(s, l.Rate.Value.Bits()+" of "+l.Max.Value.Bits()+" possible")
	}
	for _, k := range slices.Sorted(maps.Keys(l.Counters)) {
		if l.Counters[k] > 0 {
			s = append(s, fmt.Sprintf("%s %d", k, l.Counters[k]))
		}
	}
	return strings.Join(s, ", ")
}
