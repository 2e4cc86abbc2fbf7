package ibnet

import "cmp"

// looseEnd is a cable whose other end is to be found.
type looseEnd struct {
	end
	near int32
	line int
}

// joinLoose finds the other end of every cable that has a loose one: by port GUID (iblinkinfo -l), else by
// LID, else by a description that only one node has.
func (f *fabric) joinLoose() {
	if len(f.loose) == 0 {
		return
	}
	byLID := f.byLID()
	byDesc := make(map[string]int32)
	for n := range f.nodes {
		nd := &f.nodes[n]
		if _, taken := byDesc[nd.desc]; taken {
			byDesc[nd.desc] = -1
		} else {
			byDesc[nd.desc] = int32(n)
		}
	}
	for _, far := range f.loose {
		n := f.find(far, byLID, byDesc)
		if n < 0 {
			continue
		}
		f.nodes[n].desc = cmp.Or(f.nodes[n].desc, far.desc)
		p := f.addPort(n, far.end, far.line)
		if p < 0 {
			continue
		}
		if q := &f.ports[p]; !q.own {
			q.state = f.ports[far.near].state
		}
		f.connect(far.near, p, far.line)
	}
}

// byLID are the nodes by the LIDs of their ports.
func (f *fabric) byLID() map[int]int32 {
	nodes := map[int]int32{}
	for i := range f.ports {
		if lid := f.ports[i].lid; lid > 0 {
			nodes[int(lid)] = f.ports[i].node
		}
	}
	return nodes
}

// find returns the node that a line names as its neighbour, -1 when several may
// be meant; then the neighbour's own line has to tell. A neighbour without lines
// of its own is added.
func (f *fabric) find(far looseEnd, byLID map[int]int32, byDesc map[string]int32) int32 {
	var n int32
	ok := far.portGUID != 0
	switch {
	case ok:
		n, ok = f.byKey[guidText(far.portGUID)]
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
	n = f.addNode(far.end, far.line, false)
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
func (f *fabric) guessKinds() {
	for n := range f.nodes {
		nd := &f.nodes[n]
		if nd.kind != someNode {
			continue
		}
		nd.kind = anAdapter
		if len(nd.has) > 1 || len(nd.has) == 1 && f.ports[nd.has[0]].num > 2 {
			nd.kind, nd.guid, nd.lid = aSwitch, nd.key, f.ports[nd.has[0]].lid
		}
	}
}
