package nccllog

import (
	"cmp"
	"maps"
	"slices"
)

// Log is what all sources say. The Reader is of no use after it.
func (c *Reader) Log() *Log {
	c.log.Versions = c.versions.list
	c.log.Unknown = c.unknown.list
	slices.SortStableFunc(c.log.Unknown, func(a, b Count) int { return b.N - a.N })
	c.finishHosts()
	c.finishComms()
	return &c.log
}

// phantoms are names that no host has, and the hosts that they stand for: text ran into
// the name, or its beginning stands on another line. Such a name has a process in common
// with the host's and a few records against many; and it ends the other or ends in it, or
// never begins a line although hosts do. One that ends in a host's and never begins a line
// needs no process in common: all else of it may be lost.
func (c *Reader) phantoms() map[string]string {
	alias := map[string]string{}
	owners := map[int][]*host{} // of processes
	for _, name := range slices.Sorted(maps.Keys(c.hosts)) {
		long := c.hosts[name]
		if long.atLine {
			for pid := range long.pids {
				owners[pid] = append(owners[pid], long)
			}
		}
		for i := 1; i < len(name); i++ {
			short := c.hosts[name[i:]]
			if short == nil || !long.shares(short) && (long.atLine || few*long.records > short.records) {
				continue
			}
			to, from := short, long
			if from.records > to.records || from.records == to.records && from.atLine && !to.atLine {
				to, from = from, to
			}
			if from == long && !from.atLine || few*from.records <= to.records {
				alias[from.name] = to.name
			}
		}
	}
	for name, h := range c.hosts {
		if to := h.owner(owners); alias[name] == "" && to != nil {
			alias[name] = to.name
		}
	}
	for name, to := range alias {
		// each has more records, or begins lines or is shorter, so this ends
		for next, ok := alias[to]; ok; next, ok = alias[to] {
			to = next
		}
		alias[name] = to
	}
	return alias
}

// few is how many times as many records a host has as a name that is none.
const few = 10

// owner is the host of a process that a name within lines has too: that whose name ends
// most like it, and of such the one with the most records; nil: none.
func (h *host) owner(owners map[int][]*host) (best *host) {
	if h.atLine {
		return nil
	}
	like := func(k *host) (n int) {
		for n < min(len(h.name), len(k.name)) && h.name[len(h.name)-1-n] == k.name[len(k.name)-1-n] {
			n++
		}
		return n
	}
	for pid := range h.pids {
		for _, k := range owners[pid] {
			if few*h.records <= k.records &&
				(best == nil || cmp.Or(like(k)-like(best), k.records-best.records, cmp.Compare(best.name, k.name)) > 0) {
				best = k
			}
		}
	}
	return best
}

// shares reports a process that two names have in common.
func (h *host) shares(k *host) bool {
	for pid := range h.pids {
		if k.pids[pid] {
			return true
		}
	}
	return false
}

// finishHosts lists hosts in the order they came.
func (c *Reader) finishHosts() {
	alias := c.phantoms()
	c.log.Phantoms = alias
	for name, to := range alias {
		c.hosts[to].first = min(c.hosts[to].first, c.hosts[name].first)
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
	for i := range c.log.Connections {
		fix(&c.log.Connections[i].Host)
	}
	for _, h := range slices.SortedFunc(maps.Values(c.hosts), func(a, b *host) int {
		return cmp.Or(a.first-b.first, cmp.Compare(a.name, b.name))
	}) {
		c.log.Hosts = append(c.log.Hosts, h.name)
		c.log.Processes += len(h.pids)
	}
}

// finishComms puts the set-ups of one communicator together: by its id since
// 2.16, before by size, each rank once.
func (c *Reader) finishComms() {
	var comms []*Comm
	byID, bySize := map[string]*Comm{}, map[int][]*Comm{}
	type member struct {
		of   *Comm
		rank int
	}
	taken := map[member]bool{}
	for _, k := range c.ranks {
		if k.NRanks <= 0 && !k.plans {
			continue
		}
		m := byID[k.CommID]
		if k.CommID == "" {
			list := bySize[k.NRanks]
			list = list[max(0, len(list)-8):] // only the newest few can still be incomplete; runs do not overlap
			if i := slices.IndexFunc(list, func(m *Comm) bool { return !taken[member{m, k.Rank}] }); i >= 0 {
				m = list[i]
			}
		}
		if m == nil {
			m = &Comm{ID: k.CommID}
			comms = append(comms, m)
			if k.CommID == "" {
				bySize[k.NRanks] = append(bySize[k.NRanks], m)
			} else {
				byID[k.CommID] = m
			}
		}
		taken[member{m, k.Rank}] = true
		m.Ranks = append(m.Ranks, k)
	}
	for _, m := range comms {
		for _, k := range m.Ranks {
			if ends := c.ends[m.ID]; len(ends) > 0 && k.Completed.Line == 0 && k.Started.Line > 0 {
				k.Completed, c.ends[m.ID] = ends[0], ends[1:]
			}
		}
		m.finish()
		c.log.Comms = append(c.log.Comms, *m)
	}
}

// finish gathers what the ranks say.
func (m *Comm) finish() {
	slices.SortStableFunc(m.Ranks, func(a, b *Rank) int { return a.Rank - b.Rank })
	trees := map[int]int{}
	for _, k := range m.Ranks {
		m.NRanks, m.NNodes = max(m.NRanks, k.NRanks), max(m.NNodes, k.NNodes)
		if m.Rings == nil {
			m.Rings = k.Rings
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
}
