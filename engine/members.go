package engine

import "slices"

// Member is a rank as the others know it.
type Member struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
	Pid  int    `json:"pid"`
}

// Members are all ranks, in order. Ranks of one process have no names.
func (g *Group) Members() []Member {
	all := make([]Member, g.size)
	for r := range all {
		all[r] = Member{Rank: r, Host: g.cfg.Host, Pid: g.pid}
		if g.net != nil {
			m := g.net.member(r)
			all[r].Host, all[r].Pid = m.Host, m.Pid
		}
	}
	return all
}

// Hosts are the hosts of the group, each once.
func (g *Group) Hosts() []string {
	var list []string
	for _, m := range g.Members() {
		if !slices.Contains(list, m.Host) {
			list = append(list, m.Host)
		}
	}
	return list
}

// Transport is what carries the group's bytes: Auto where both ways are in use. All ranks give
// the same answer.
func (g *Group) Transport() Transport {
	switch {
	case g.locals != nil:
		return Mem
	case g.net == nil || g.cfg.Transport != Auto:
		return g.cfg.Transport
	}
	switch len(g.Together()) {
	case 1:
		return Shm
	case g.size:
		return TCP
	}
	return Auto
}

// Together is the ranks of each host, hosts in the order of their first ranks; nil for ranks of one
// process.
func (g *Group) Together() [][]int {
	if g.net == nil {
		return nil
	}
	var list [][]int
	at := map[string]int{}
	for r := range g.size {
		m := g.net.members[r]
		i, ok := at[m.Boot]
		if !ok || m.Boot == "" {
			i = len(list)
			at[m.Boot] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], r)
	}
	return list
}

// TCPCounts is what TCP counted on the connections to a peer, as the sender: it does not depend on how fast the hosts
// are.
type TCPCounts struct {
	Segments int64 // of data that were sent
	Lost     int64 // of which so many were sent again because they had not arrived
	MSS      int   // bytes a segment may carry; 0 where no connection says so
}

// TCPCounts is what TCP counted towards a peer so far, zero where there is no socket or the system does not tell.
func (g *Group) TCPCounts(peer int) (sum TCPCounts) {
	d := &g.driver
	d.mu.Lock()
	defer d.mu.Unlock()
	d.adopt()
	if peer < 0 || peer >= len(d.peers) {
		return sum
	}
	for _, l := range d.peers[peer] {
		if l == nil {
			continue
		}
		s, ok := l.s.(interface{ tcpCounts() TCPCounts })
		if !ok {
			continue
		}
		w := s.tcpCounts()
		sum.Segments, sum.Lost = sum.Segments+w.Segments, sum.Lost+w.Lost
		if sum.MSS == 0 || w.MSS > 0 && w.MSS < sum.MSS {
			sum.MSS = w.MSS
		}
	}
	return sum
}
