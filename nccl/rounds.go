package nccl

// hopeless ends a search that found nothing for so many hops, about a second of a
// processor. NCCL has no such bound and goes on for minutes.
const hopeless = 1 << 25

// rounds remembers rounds of a search that found nothing. A round depends on the
// types of path it admits only through the paths that there are, and most
// machines have three or four types of eleven: a round that admits no path more
// than one before goes the same way to the same end.
type rounds struct {
	intra, inter [PathDIS + 1]PathType // the greatest type there is up to each
	spent        map[round]int         // what was left of the round's steps
	found        int                   // as the searcher counts; more forgets
}

type round struct {
	intra, inter     PathType
	bwIntra, bwInter float32
	cross            int
	same             bool
	pattern          Pattern
}

func newRounds(s *system) rounds {
	r := rounds{spent: map[round]int{}}
	var intra, inter [PathDIS + 1]bool
	for _, pair := range [...][2]nodeKind{{kindGPU, kindGPU}, {kindGPU, kindNVS}, {kindNVS, kindGPU}} {
		s.present(pair, &intra)
	}
	for _, pair := range [...][2]nodeKind{{kindGPU, kindNET}, {kindNET, kindGPU}} {
		s.present(pair, &inter)
	}
	for t := PathLOC + 1; t <= PathDIS; t++ {
		r.intra[t], r.inter[t] = r.intra[t-1], r.inter[t-1]
		if intra[t] {
			r.intra[t] = t
		}
		if inter[t] {
			r.inter[t] = t
		}
	}
	return r
}

// present marks the types of the paths from one kind of node to another.
func (s *system) present(pair [2]nodeKind, have *[PathDIS + 1]bool) {
	for _, n := range s.nodes[pair[0]] {
		for i := range n.paths[pair[1]] {
			have[n.paths[pair[1]][i].kind] = true
		}
	}
}

// round searches once with what the graph under search allows.
func (c *compute) round() {
	g, r := &c.cur, &c.rounds
	if r.found != c.found {
		clear(r.spent)
		r.found = c.found
	}
	k := round{r.intra[g.TypeIntra], r.inter[g.TypeInter], g.BwIntra, g.BwInter, g.CrossNIC, g.SameChannels, g.Pattern}
	if left, ok := r.spent[k]; ok && !c.second {
		c.time = left
		return
	}
	c.channel(&c.time)
	if r.found == c.found {
		r.spent[k] = c.time
	}
}
