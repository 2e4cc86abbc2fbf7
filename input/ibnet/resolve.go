package ibnet

import "cmp"

// looseEnd is a cable whose other end is to be found.
type looseEnd struct {
	end
	near int
	line int
}

// joinLoose finds the other end of every cable that has a loose one: by port GUID (iblinkinfo -l), else by LID.
func (f *fabric) joinLoose() {
	byLID := f.byLID()
	for _, far := range f.loose {
		n := f.find(far, byLID)
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
func (f *fabric) byLID() map[int]int {
	nodes := map[int]int{}
	for i := range f.ports {
		if lid := f.ports[i].lid; lid > 0 {
			nodes[lid] = f.ports[i].node
		}
	}
	return nodes
}

// find returns the node that a line names as its neighbour, -1 where the line does not tell. A neighbour without lines
// of its own is added.
func (f *fabric) find(far looseEnd, byLID map[int]int) int {
	n, ok := byLID[far.lid]
	if far.portGUID != 0 {
		n, ok = f.byKey[guidText(far.portGUID)]
	} else if far.lid == 0 {
		return -1
	}
	if ok {
		return n
	}
	far.kind = anAdapter // as its description says, for it has no lines of its own
	_, label := hostOf(far.desc)
	if name, _ := switchOf(far.desc); label == "" && (far.num > 2 || name != "") {
		far.kind, far.guid = aSwitch, far.portGUID
	}
	n = f.addNode(far.end, far.line, false)
	if n >= 0 && far.portGUID == 0 {
		byLID[far.lid] = n
	}
	return n
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
			nd.kind, nd.guid, nd.lid = aSwitch, f.ports[nd.has[0]].guid, f.ports[nd.has[0]].lid
		}
	}
}
