package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/unit"
)

// network looks at switches and the cables between them.
func (a *auditor) network() {
	net := &a.c.Network
	if len(net.Switches) == 0 {
		return
	}
	for i := range net.Links {
		a.netLink(&net.Links[i])
	}
	a.slowCables()
	a.slowerThanNIC()
	if partial(a.c) {
		return
	}
	sides := a.c.Network.Sides()
	a.oversubscribed(sides)
	a.uplinks(sides)
	a.loose()
	a.uncabled()
	a.swappedRails()
}

func (a *auditor) linkName(l *cluster.NetLink) string {
	return a.c.EndName(l.A) + "–" + a.c.EndName(l.B)
}

func (a *auditor) netLink(l *cluster.NetLink) {
	if l.State == cluster.Down && !l.Loose() {
		a.say("link-down", a.linkName(l))
	}
	if len(l.Counters) == 0 {
		return
	}
	for i, end := range []cluster.End{l.A, l.B} {
		c := map[string]uint64{}
		for k, v := range l.Counters {
			if rest, ok := strings.CutPrefix(k, [2]string{"A.", "B."}[i]); ok {
				c[rest] = v
			}
		}
		a.errorCounters(a.c.EndName(end), c)
	}
}

// tierPair groups cables that ought to be alike.
func (a *auditor) tierPair(l *cluster.NetLink) string {
	side := func(e cluster.End) string {
		if e.ToHosts() {
			return "host"
		}
		return a.c.Network.Switches[e.Switch].Tier.String()
	}
	x, y := side(l.A), side(l.B)
	if x > y {
		x, y = y, x
	}
	return x + " to " + y
}

// slowCables reports cables slower than their kind, or than their ends could do.
func (a *auditor) slowCables() {
	rates := map[string]map[unit.Rate]int{} // cables
	links := a.c.Network.Links
	for i := range links {
		if l := &links[i]; l.Rate.Known() && l.State != cluster.Down {
			g := a.tierPair(l)
			if rates[g] == nil {
				rates[g] = map[unit.Rate]int{}
			}
			rates[g][l.Rate.Value] += hostsOf(l)
		}
	}
	for i := range links {
		l := &links[i]
		if !l.Rate.Known() || l.State == cluster.Down {
			continue
		}
		g := a.tierPair(l)
		most := usual(rates[g])
		switch {
		case l.Max.Known() && l.Rate.Value < l.Max.Value*0.97:
			a.say("link-slow", a.linkName(l), l.Rate.Value.Bits(), speedOf(l), l.Max.Value.Bits())
		case l.Rate.Value < most*0.97:
			a.say("link-slow/kind", a.linkName(l), l.Rate.Value.Bits(), speedOf(l), g, most.Bits())
		}
	}
}

func speedOf(l *cluster.NetLink) string {
	if l.Speed == "" {
		return ""
	}
	return " (" + l.Speed + ")"
}

// hostsOf is how many cables a link entry stands for.
func hostsOf(l *cluster.NetLink) int {
	n := 1
	for _, e := range []cluster.End{l.A, l.B} {
		if e.ToHosts() {
			n = 0
			for _, s := range e.Hosts {
				n += s.N
			}
		}
	}
	return n * l.Cables()
}

// oversubscribed reports leaves whose hosts could send more than goes up,
// leaves of equal ratio together.
func (a *auditor) oversubscribed(sides []cluster.Sides) {
	net := &a.c.Network
	var leaves groups[string, int] // by their ratio
	for i, s := range net.Switches {
		ratio := sides[i].Oversubscription()
		if s.Domain || s.Tier != cluster.Leaf || ratio <= 1.05 {
			continue
		}
		leaves.add(fmt.Sprintf("%.3g", ratio), i)
	}
	fix := "keep jobs under one leaf (Slurm: --switches=1 with a topology.conf, busbar map -o slurm), or add uplinks"
	if net.Rails > 1 {
		fix = "keep jobs on nodes that share the leaves of all rails, where traffic between the same NICs stays on one " +
			"leaf, or add uplinks"
	}
	stated := net.Oversubscription
	for _, key := range leaves.order {
		c := sides[leaves.of[key][0]]
		var names []string
		for _, i := range leaves.of[key] {
			names = append(names, net.Switches[i].Name)
		}
		severity := finding.Warn
		if stated.Origin > cluster.Assumed && c.Oversubscription() <= stated.Value*1.05 {
			severity = finding.Note // it was bought so
		}
		hosts, _ := c.Hosts.Rate()
		down, _ := c.Down.Rate()
		up, _ := c.Up.Rate()
		a.addFinding("leaf-oversubscribed", severity, cluster.FormatHosts(names),
			fmt.Sprintf("%s:1 oversubscribed: %v from %d host links against %v up: traffic that leaves the leaf gets 1/%s of "+
				"its NICs when all send", key, hosts+down, c.Hosts.Faster(0)+c.Down.Faster(0), up, key),
			fix)
	}
}

// uplinks reports leaves with fewer cables up than their peers: failed or
// missing links.
func (a *auditor) uplinks(sides []cluster.Sides) {
	count := map[int]int{}
	cables := func(i int) int { return sides[i].Up.Faster(-1) + sides[i].Up.Members }
	for i, s := range a.c.Network.Switches {
		if s.Tier == cluster.Leaf && !s.Domain && cables(i) > 0 {
			count[cables(i)]++
		}
	}
	most := usual(count)
	short := map[int][]string{}
	for i, s := range a.c.Network.Switches {
		if n := cables(i); s.Tier == cluster.Leaf && !s.Domain && n > 0 && n < most {
			short[n] = append(short[n], s.Name)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(short)) {
		a.say("uplink-missing", cluster.FormatHosts(short[n]), n, most, most-n)
	}
}

// slowerThanNIC reports NICs on cables slower than the ports they are in, per node type.
func (a *auditor) slowerThanNIC() {
	type key struct {
		typ       int
		can, rate unit.Rate
	}
	var found groups[key, int]
	for i := range a.c.Network.Links {
		l := &a.c.Network.Links[i]
		if !l.B.ToHosts() || l.B.NIC < 0 || !l.Rate.Known() || l.State == cluster.Down {
			continue
		}
		for _, s := range l.B.Hosts {
			if s.First >= len(a.c.Hosts) || a.c.TypeOf(s.First) == nil {
				continue
			}
			t := a.c.TypeOf(s.First)
			nics := t.Of(cluster.NIC)
			if l.B.NIC >= len(nics) || t.Devices[nics[l.B.NIC]].NIC == nil {
				continue
			}
			info, ports := t.Devices[nics[l.B.NIC]].NIC, 0
			for _, p := range info.Ports {
				if p.State != cluster.Down && p.Rate.Known() {
					ports++
				}
			}
			// Another port's rate goes over a cable of its own.
			can := info.Rate().Value * unit.Rate(min(l.Cables(), ports)) / unit.Rate(max(ports, 1))
			if cable := l.Rate.Value * unit.Rate(l.Cables()); cable < can*0.97 {
				found.add(key{a.c.Hosts[s.First].Type, can, cable}, nics[l.B.NIC])
			}
		}
	}
	for _, k := range found.order {
		t := a.c.Types[k.typ]
		n := &node{t: t}
		ids := slices.Compact(slices.Sorted(slices.Values(found.of[k])))
		a.say("nic-cable-slow", cluster.FormatHosts(a.hosts[k.typ])+"/"+t.Devices[ids[0]].Title(), n.names(ids),
			k.can.Bits(), k.rate.Bits())
	}
}

// loose reports GPU hosts on no switch while others are.
func (a *auditor) loose() {
	on := make([]bool, len(a.c.Hosts))
	any := false
	for _, l := range a.c.Network.Links {
		for _, e := range []cluster.End{l.A, l.B} {
			for _, s := range e.Hosts {
				for h := s.First; h < s.First+s.N && h < len(on); h++ {
					on[h], any = true, true
				}
			}
		}
	}
	var names []string
	for h, ok := range on {
		if t := a.c.TypeOf(h); !ok && t != nil && t.Count(cluster.GPU) > 0 {
			names = append(names, a.c.Hosts[h].Name)
		}
	}
	if any && len(names) > 0 {
		a.say("host-unattached", cluster.FormatHosts(names))
	}
}
