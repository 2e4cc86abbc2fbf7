package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// cable identifies a link among those of other sources: by a switch port where
// one is known, else by what it joins; of two switches port is -1 less the other.
type cable struct {
	sw, port int
	text     string
}

func (j *joiner) joinNetworks(frags []*Fragment) {
	known := boxes{map[string]int{}, map[string]int{}, map[int]int{}}
	// A cluster of a million nodes has as many links; slices and tables that grow
	// step by step would take three times what they end with.
	total, boxes := 0, 0
	for _, f := range frags {
		total += len(f.Network.Links)
		boxes += len(f.Network.Switches)
	}
	links := make(map[cable]int, total)
	source := make([]string, 0, total)
	j.out.Network.Links = slices.Grow([]NetLink(nil), total)
	j.out.Network.Switches = slices.Grow([]Switch(nil), boxes)
	sw := make([][]int, len(frags))
	views := viewsOf(frags)
	titles := make([]string, len(frags))
	for fi, f := range frags {
		titles[fi] = f.title()
		j.mergeNetHead(&f.Network, titles[fi])
		sw[fi] = slices.Repeat([]int{-1}, len(f.Network.Switches))
	}
	// What knows more comes first, whatever the order of the files: switches with more than an address, those that a tool
	// names by address only, those of a view; cables, then ports of which a source knows no other end.
	for pass := range 3 {
		for fi, f := range frags {
			for i, s := range f.Network.Switches {
				if switchPass(&s, views[fi]) == pass && (pass < 2 || s.Domain || known.named(s.Name)) {
					sw[fi][i] = known.mergeSwitch(&j.out.Network, s)
				}
			}
		}
	}
	for pass := range 2 {
		for fi, f := range frags {
			for i := range f.Network.Links {
				if f.Network.Links[i].Loose() != (pass == 1) {
					continue
				}
				if j.stopped() {
					return
				}
				if views[fi] && !f.Network.groups(&f.Network.Links[i]) {
					continue
				}
				for _, l := range j.translate(frags, fi, f.Network.Links[i], sw[fi]) {
					source = j.mergeNetLink(l, titles[fi], links, source)
				}
			}
		}
	}
	j.warnMoved(frags)
	for fi := range frags {
		if views[fi] {
			j.compareView(frags, fi)
			j.keepView(frags, fi)
		}
	}
	j.out.Network.findRails()
}

// mergeNetHead adds what a network is as a whole. How traffic is routed is of a topology.
func (j *joiner) mergeNetHead(n *Network, title string) {
	net, m := &j.out.Network, merging{src: "an earlier source", add: title}
	if net.Topology == "" {
		net.Routing = cmp.Or(net.Routing, n.Routing)
	}
	m.joinFields("", net, n)
	j.out.Warnings = append(j.out.Warnings, gathered(m.warnings)...)
}

// switchPass is when the switch of a source has its turn.
func switchPass(s *Switch, view bool) int {
	switch {
	case view:
		return 2
	case s.GUID == "" && s.LID > 0:
		return 1
	}
	return 0
}

// boxes are the switches of the joined network by what they are known by.
type boxes struct {
	byGUID, byName map[string]int
	byLID          map[int]int
}

func (b *boxes) named(name string) bool {
	_, ok := b.byName[name]
	return ok
}

// mergeSwitch finds a switch, or adds it, and adds what a source says of it.
func (b *boxes) mergeSwitch(net *Network, s Switch) int {
	at, ok := -1, false
	if s.GUID != "" {
		at, ok = b.byGUID[s.GUID]
	} else if s.LID > 0 {
		at, ok = b.byLID[s.LID]
	}
	if !ok {
		if at, ok = b.byName[s.Name]; ok && s.GUID != "" && net.Switches[at].GUID != "" {
			ok = false // two boxes of one name; the GUID tells them apart
		}
	}
	if !ok {
		at = len(net.Switches)
		net.Switches = append(net.Switches, s)
		b.byName[s.Name] = at
	}
	k := &net.Switches[at]
	if k.Tier == TierUnknown {
		k.Tier = s.Tier
	}
	if k.Rail < 0 {
		k.Rail = s.Rail
	}
	new(merging).joinFields("", k, &s)
	if k.GUID != "" {
		b.byGUID[k.GUID] = at
	}
	if k.LID > 0 {
		b.byLID[k.LID] = at
	}
	return at
}

// translate turns a fragment's link into links of the joined cluster. Hosts may
// scatter and their NICs may be numbered otherwise, so one link can become several;
// a host that an earlier source hangs elsewhere stays there.
func (j *joiner) translate(frags []*Fragment, fi int, l NetLink, sw []int) []NetLink {
	for _, e := range []*End{&l.A, &l.B} {
		if !e.ToHosts() {
			if e.Switch >= len(sw) || sw[e.Switch] < 0 {
				return nil
			}
			*e = AtSwitch(sw[e.Switch], e.Port)
		}
	}
	_, box, ok := l.HostEnd()
	return l.moved(len(frags[fi].Hosts), func(h, nic int, put func(host, nic int)) {
		for _, to := range j.hostMap[fi][h] {
			if j.stopped() || nic < 0 && ok && len(frags) > 1 && !j.place(fi, to, box.Switch) {
				continue
			}
			put(to, j.nicHere(fi, h, to, nic))
		}
	})
}

// moved are the links that a link becomes where hosts, and their NICs, are others: to puts the hosts and NICs that a
// host and its NIC became. Of a cluster with n hosts before.
func (l NetLink) moved(n int, to func(host, nic int, put func(host, nic int))) []NetLink {
	old := *l.hosts()
	if !old.ToHosts() || l.Loose() {
		return []NetLink{l}
	}
	var out []NetLink
	at := map[int]int{} // by NIC
	put := func(host, nic int) {
		k, ok := at[nic]
		if !ok {
			k = len(out)
			at[nic], out = k, append(out, l)
			*out[k].hosts() = End{Switch: -1, NIC: nic, Port: old.Port}
		}
		end := out[k].hosts()
		if last := len(end.Hosts) - 1; last < 0 || end.Hosts[last].First+end.Hosts[last].N != host+1 {
			end.Hosts = AppendSpan(end.Hosts, Span{host, 1})
		}
	}
	for h := range old.EachHost(n) {
		to(h, old.NIC, put)
	}
	return out
}

// hosts is the end of a link that is at hosts.
func (l *NetLink) hosts() *End {
	if l.A.ToHosts() {
		return &l.A
	}
	return &l.B
}

// nicHere is the position, in the joined host, of the NIC that the fragment
// calls number nic of its host.
func (j *joiner) nicHere(fi, from, to, nic int) int {
	m := j.mergedOf[to]
	if nic < 0 || m == nil {
		return nic
	}
	for k, p := range j.from[to] {
		if p == (part{fi, from}) && nic < len(m.nics[k]) {
			return m.nics[k][nic]
		}
	}
	return nic
}

// mergeNetLink adds a link, or what it says to one that is there; source has the
// title of each link's source.
func (j *joiner) mergeNetLink(l NetLink, title string, links map[cable]int, source []string) []string {
	net := &j.out.Network
	keys := cableKeys(&l)
	at := -1
	for _, k := range keys {
		if i, ok := links[k]; ok {
			at = i
			break
		}
	}
	if at < 0 {
		at = len(net.Links)
		net.Links = append(net.Links, l)
		for _, k := range keys {
			links[k] = at
		}
		return append(source, title)
	}
	k := &net.Links[at]
	swap := !k.A.ToHosts() && !l.A.ToHosts() && k.A.Switch != l.A.Switch
	m := merging{src: source[at], add: title}
	l.Counters = swapEnds(l.Counters, swap)
	m.joinFields(j.out.EndName(k.A)+"–"+j.out.EndName(k.B), k, &l)
	j.out.Warnings = append(j.out.Warnings, gathered(m.warnings)...)
	return source
}

// cableKeys lists the ways to recognise a link again.
func cableKeys(l *NetLink) []cable {
	var keys []cable
	for _, e := range []End{l.A, l.B} {
		if !e.ToHosts() && e.Port > 0 {
			keys = append(keys, cable{sw: e.Switch, port: e.Port})
		}
	}
	if len(keys) > 0 {
		return keys
	}
	if !l.A.ToHosts() && !l.B.ToHosts() {
		return []cable{{sw: l.A.Switch, port: -1 - l.B.Switch}}
	}
	text := fmt.Sprint(l.A.Switch, l.A.Hosts, l.A.NIC, l.B.Switch, l.B.Hosts, l.B.NIC)
	return []cable{{text: text}}
}

// swapEnds renames counters when two sources give a cable's ends in other order.
func swapEnds(c map[string]uint64, swap bool) map[string]uint64 {
	if !swap {
		return c
	}
	m := make(map[string]uint64, len(c))
	for k, v := range c {
		switch {
		case strings.HasPrefix(k, "A."):
			k = "B." + k[2:]
		case strings.HasPrefix(k, "B."):
			k = "A." + k[2:]
		}
		m[k] = v
	}
	return m
}

// EndName names one side of a network link for people: "leaf2[33]", "node7/mlx5_0",
// or "node0 and 31 more".
func (c *Cluster) EndName(e End) string {
	if !e.ToHosts() {
		if e.Switch >= len(c.Network.Switches) {
			return "?"
		}
		s := c.Network.Switches[e.Switch].Name
		if e.Port > 0 {
			s = fmt.Sprintf("%s[%d]", s, e.Port)
		}
		return s
	}
	total := 0
	for _, s := range e.Hosts {
		total += s.N
	}
	if total == 0 || e.Hosts[0].First >= len(c.Hosts) {
		return "?"
	}
	first := e.Hosts[0].First
	s := c.Hosts[first].Name
	if t := c.TypeOf(first); t != nil {
		if nics := t.Of(NIC); e.NIC >= 0 && e.NIC < len(nics) {
			s += "/" + t.Devices[nics[e.NIC]].Title()
		}
	}
	if total > 1 {
		s = fmt.Sprintf("%s and %d more", s, total-1)
	}
	return s
}
