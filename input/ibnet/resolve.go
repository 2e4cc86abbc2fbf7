package ibnet

import "cmp"

// resolve finds the other end of every pending cable: by port GUID (-l), else by
// LID, else by a description that only one node has.
func (l *linkInfo) resolve() {
	l.guessKinds()
	byLID := make(map[int32]int32)
	byDesc := make(map[string]int32)
	for n := range l.nodes {
		nd := &l.nodes[n]
		for p := nd.first; p >= 0; p = l.ports[p].next {
			if lid := l.ports[p].lid; lid > 0 {
				byLID[lid] = int32(n)
			}
		}
		if _, taken := byDesc[nd.desc]; taken {
			byDesc[nd.desc] = -1
		} else {
			byDesc[nd.desc] = int32(n)
		}
	}
	for _, far := range l.pending {
		n := l.find(far, byLID, byDesc)
		if n < 0 {
			continue
		}
		p := l.port(n, far.num, int(far.line))
		if p < 0 {
			continue
		}
		q := &l.ports[p]
		q.lid = cmp.Or(q.lid, int32(far.lid))
		if q.guid == 0 && l.nodes[n].kind != aSwitch {
			q.guid = far.guid
		}
		if !q.own {
			q.state = l.ports[far.near].state
		}
		l.connect(far.near, p, int(far.line))
	}
}

// find returns the node that a line names as its neighbour, -1 when several may
// be meant; then the neighbour's own line has to tell. A neighbour without lines
// of its own is added.
func (l *linkInfo) find(far farEnd, byLID map[int32]int32, byDesc map[string]int32) int32 {
	if far.guid != 0 {
		if n, ok := l.byGUID[far.guid]; ok {
			return n
		}
	}
	if far.lid > 0 {
		if n, ok := byLID[int32(far.lid)]; ok && far.guid == 0 {
			return n
		}
	} else if n, ok := byDesc[far.desc]; ok && far.guid == 0 {
		return n
	}
	var n int32
	if far.guid != 0 {
		n = l.withGUID(far.guid, someNode, int(far.line))
	} else {
		n = l.addNode(someNode, int(far.line))
	}
	if n < 0 {
		return -1
	}
	nd := &l.nodes[n]
	nd.desc = far.desc
	if nd.kind = anAdapter; looksLikeSwitch(far.desc, far.num) {
		nd.kind, nd.guid = aSwitch, far.guid
	}
	if far.guid == 0 && far.lid > 0 {
		byLID[int32(far.lid)] = n
	} else if far.guid == 0 {
		byDesc[far.desc] = n
	}
	return n
}

// looksLikeSwitch guesses the kind of a node that has no lines of its own.
func looksLikeSwitch(desc string, port int) bool {
	if _, label := hostOf(desc); label != "" {
		return false
	}
	name, _ := switchOf(desc)
	return port > 2 || name != ""
}

// guessKinds settles what -l does not say. An adapter has a GUID for each port
// and therefore one line a GUID; a switch has one GUID for all its lines.
func (l *linkInfo) guessKinds() {
	guids := make([]uint64, len(l.nodes))
	for g, n := range l.byGUID {
		guids[n] = g
	}
	for n := range l.nodes {
		nd := &l.nodes[n]
		if nd.kind != someNode {
			continue
		}
		nd.kind = anAdapter
		if nd.counted > 1 || l.ports[nd.first].num > 2 {
			nd.kind, nd.guid, nd.lid = aSwitch, guids[n], l.ports[nd.first].lid
		}
	}
}
