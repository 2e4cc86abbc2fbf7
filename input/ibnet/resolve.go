package ibnet

// resolve finds the other end of every pending cable: by port GUID (-l), else by
// LID, else by a description that only one node has.
func (l *linkInfo) resolve() {
	l.guessKinds()
	byLID := make(map[int]int32)
	byDesc := make(map[string]int32)
	for n := range l.nodes {
		nd := &l.nodes[n]
		for p := nd.first; p >= 0; p = l.ports[p].next {
			if lid := l.ports[p].lid; lid > 0 {
				byLID[int(lid)] = int32(n)
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
		p := l.addPort(n, far.end, far.line)
		if p < 0 {
			continue
		}
		if q := &l.ports[p]; !q.own {
			q.state = l.ports[far.near].state
		}
		l.connect(far.near, p, far.line)
	}
}

// find returns the node that a line names as its neighbour, -1 when several may
// be meant; then the neighbour's own line has to tell. A neighbour without lines
// of its own is added.
func (l *linkInfo) find(far farEnd, byLID map[int]int32, byDesc map[string]int32) int32 {
	var n int32
	ok := far.portGUID != 0
	switch {
	case ok:
		n, ok = l.byKey[guidText(far.portGUID)]
	case far.lid > 0:
		n, ok = byLID[far.lid]
	default:
		n, ok = byDesc[far.desc]
	}
	if ok {
		return n
	}
	if far.kind = anAdapter; looksLikeSwitch(far.desc, far.num) {
		far.kind, far.guid = aSwitch, far.portGUID
	}
	n = l.addNode(far.end, far.line)
	if n >= 0 && far.portGUID == 0 && far.lid > 0 {
		byLID[far.lid] = n
	} else if n >= 0 && far.portGUID == 0 {
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
	for n := range l.nodes {
		nd := &l.nodes[n]
		if nd.kind != someNode {
			continue
		}
		nd.kind = anAdapter
		if nd.counted > 1 || nd.counted == 1 && l.ports[nd.first].num > 2 {
			nd.kind, nd.guid, nd.lid = aSwitch, nd.key, l.ports[nd.first].lid
		}
	}
}
