package nccllog

import (
	"cmp"
	"slices"
)

// finish turns what was collected into the result.
func (c *collector) finish() *Log {
	l := c.log
	l.Versions, l.Networks, l.Notes, l.Returns = c.versions.list, c.networks.list, c.notes.list, c.returns.list
	l.Via = byCount(c.via.list)
	l.WarnShapes, l.Unknown = byCount(c.shapes.list), byCount(c.unknown.list)
	c.finishHosts()
	c.finishComms()
	return l
}

// byCount puts the most frequent first.
func byCount(list []Count) []Count {
	slices.SortStableFunc(list, func(a, b Count) int { return b.N - a.N })
	for len(list) > 0 && list[len(list)-1].N == 0 { // taken back
		list = list[:len(list)-1]
	}
	return list
}

// finishHosts lists hosts in the order they came. A name that only ever stood in
// the middle of a line, and whose end is a host with a process of the same
// number, is that host with text run into its name.
func (c *collector) finishHosts() {
	alias := map[string]string{}
	for name, h := range c.hosts {
		if h.atLine {
			continue
		}
		for pid := range h.pids {
			if k := c.suffix(name, pid); k != nil {
				alias[name] = k.Name
				break
			}
		}
	}
	for name := range alias {
		to := alias[name]
		for next, ok := alias[to]; ok; next, ok = alias[to] { // names grow shorter, so this ends
			to = next
		}
		alias[name] = to
	}
	for name, to := range alias {
		k := c.hosts[to]
		k.Records += c.hosts[name].Records
		if first := c.hosts[name].First; first.Source == k.First.Source && first.Line < k.First.Line {
			k.First = first
		}
		delete(c.hosts, name)
	}
	fix := func(s *string) {
		if to, ok := alias[*s]; ok {
			*s = to
		}
	}
	for _, k := range c.ranks {
		fix(&k.Host)
	}
	for i := range c.log.NICs {
		fix(&c.log.NICs[i].Host)
	}
	for i := range c.log.Env {
		fix(&c.log.Env[i].Host)
	}
	for i := range c.log.Connections {
		fix(&c.log.Connections[i].Host)
	}
	for i := range c.log.Warns {
		fix(&c.log.Warns[i].Host)
	}
	for i := range c.log.Fabric {
		fix(&c.log.Fabric[i].Host)
	}
	order := map[string]int{}
	for i, s := range c.log.Sources {
		if _, ok := order[s]; !ok {
			order[s] = i
		}
	}
	for _, h := range c.hosts {
		c.log.Hosts = append(c.log.Hosts, h.Host)
	}
	slices.SortFunc(c.log.Hosts, func(a, b Host) int {
		return cmp.Or(order[a.First.Source]-order[b.First.Source], a.First.Line-b.First.Line, cmp.Compare(a.Name, b.Name))
	})
}

// finishComms puts the set-ups of one communicator together: by its id since
// 2.16, before by size, each rank once.
func (c *collector) finishComms() {
	var comms []*Comm
	byID := map[string]*Comm{}
	type open struct {
		comm  *Comm
		taken map[int]bool
	}
	bySize := map[int][]*open{}
	for _, k := range c.ranks {
		if !k.tells() {
			continue
		}
		if k.CommID != "" {
			m := byID[k.CommID]
			if m == nil {
				m = &Comm{ID: k.CommID}
				byID[k.CommID] = m
				comms = append(comms, m)
			}
			m.Ranks = append(m.Ranks, k)
			continue
		}
		list := bySize[k.NRanks]
		var at *open
		// Only the newest few can still be incomplete; runs do not overlap.
		for i := max(0, len(list)-8); i < len(list); i++ {
			if !list[i].taken[k.Rank] {
				at = list[i]
				break
			}
		}
		if at == nil {
			at = &open{&Comm{}, map[int]bool{}}
			bySize[k.NRanks] = append(list, at)
			comms = append(comms, at.comm)
		}
		at.taken[k.Rank] = true
		at.comm.Ranks = append(at.comm.Ranks, k)
	}
	for _, m := range comms {
		m.finish()
		c.log.Comms = append(c.log.Comms, *m)
	}
}

// tells reports whether a set-up says anything about a communicator.
func (k *Rank) tells() bool {
	return k.NRanks > 0 || len(k.Rings) > 0 || len(k.Trees) > 0 || k.Coll >= 0 || k.Tuning != nil || len(k.Graphs) > 0
}

// finish gathers what the ranks say.
func (m *Comm) finish() {
	slices.SortStableFunc(m.Ranks, func(a, b *Rank) int { return a.Rank - b.Rank })
	m.Channels = Channels{-1, -1, -1, -1, -1, Pos{}}
	trees := map[int]int{}
	for _, k := range m.Ranks {
		m.NRanks, m.NNodes = max(m.NRanks, k.NRanks), max(m.NNodes, k.NNodes)
		if m.Coll < 0 && k.Coll >= 0 {
			m.Channels = k.Channels
		}
		if m.Rings == nil {
			m.Rings = k.Rings
		}
		if m.Tuning == nil {
			m.Tuning = k.Tuning
		}
		if m.Enabled == nil {
			m.Enabled = k.Enabled
		}
		if m.Graphs == nil {
			m.Graphs = k.Graphs
		}
		if m.System == nil {
			m.System = k.System
		}
		for _, n := range k.Trees {
			i, ok := trees[n.Channel]
			if !ok {
				i = len(m.Trees)
				trees[n.Channel] = i
				m.Trees = append(m.Trees, Tree{Channel: n.Channel})
			}
			m.Trees[i].Nodes = append(m.Trees[i].Nodes, n)
		}
	}
	slices.SortFunc(m.Trees, func(a, b Tree) int { return a.Channel - b.Channel })
	for i := range m.Rings {
		m.Rings[i].Cut = m.Rings[i].Cut || len(m.Rings[i].Ranks) < m.NRanks
	}
	m.completeRings()
}

// completeRings completes rings that NCCL cut, from the links of every rank where the
// GRAPH subsystem printed them.
func (m *Comm) completeRings() {
	next := map[[2]int]int{}
	for i := range m.Rings {
		if r := &m.Rings[i]; r.Cut && len(next) == 0 {
			for _, k := range m.Ranks {
				for _, l := range k.Links {
					next[[2]int{l.Channel, l.Rank}] = l.Next
				}
			}
		}
		r := &m.Rings[i]
		if !r.Cut || len(next) == 0 || len(r.Ranks) == 0 {
			continue
		}
		ring := []int{r.Ranks[0]}
		for len(ring) <= m.NRanks && len(ring) <= len(next) {
			n, ok := next[[2]int{r.Channel, ring[len(ring)-1]}]
			if !ok || n == r.Ranks[0] {
				break
			}
			ring = append(ring, n)
		}
		if len(ring) == m.NRanks {
			r.Ranks, r.Cut = ring, false
		}
	}
}
