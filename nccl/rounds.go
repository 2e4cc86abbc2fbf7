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
	slower       map[round]slower      // by rounds without a speed
}

// slower is a round that rounds at lower speeds repeat.
type slower struct {
	speed, least float32 // GB/s: from the round's own down to where something more would fit
	left         int
}

// limit is how far a round's speed can fall before it goes another way. A channel takes so many
// times the speed from a link, so that what lacked bandwidth at one speed still lacks it at any
// above the link's share for one channel more.
type limit struct {
	speed   float32 // of the round
	least   float32 // the greatest of such shares
	ordered bool    // by what links have left: another speed may go another way at once
}

// short notes that a link of so much bandwidth had too little left.
func (l *limit) short(full, left, want float32) {
	l.least = max(l.least, full*l.speed/(full-left+want))
}

type round struct {
	intra, inter     PathType
	bwIntra, bwInter float32
	cross            int
	same             bool
	pattern          Pattern
}

func newRounds(s *system) rounds {
	r := rounds{spent: map[round]int{}, slower: map[round]slower{}}
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
	if c.spare = 0; c.cannotImprove() {
		c.leaveOut()
		return
	}
	if r.found != c.found {
		clear(r.spent)
		r.found = c.found
	}
	k := round{r.intra[g.TypeIntra], r.inter[g.TypeInter], g.BwIntra, g.BwInter, g.CrossNIC, g.SameChannels, g.Pattern}
	if left, ok := c.repeats(k); ok {
		c.time = left
		return
	}
	c.limit = limit{speed: g.BwInter}
	c.forget()
	c.channel(&c.time)
	if r.found == c.found {
		r.spent[k] = c.time
	}
	if c.time >= 0 && c.limit.speed == g.BwIntra && !c.limit.ordered && c.s.PairedRings && g.Pattern != NVLSPattern {
		r.slower[k.unpaced()] = slower{c.limit.speed, c.limit.least, c.time}
	}
}

// unpaced is a round at any speed.
func (k round) unpaced() round {
	k.bwIntra, k.bwInter = 0, 0
	return k
}

// repeats reports that a round would go as one before, and what that left of its steps. One
// that is only slower finds the same channels with less bandwidth, which are no better.
func (c *compute) repeats(k round) (int, bool) {
	if c.second {
		return 0, false
	}
	if left, ok := c.rounds.spent[k]; ok {
		return left, true
	}
	const slack = 0.01 // GB/s: links are counted in MB/s, and some hundred roundings add up
	s, ok := c.rounds.slower[k.unpaced()]
	whole := float32(int(k.bwInter)) // what ports are counted in
	return s.left, ok && !c.s.everySpeed && k.bwIntra == k.bwInter && k.bwInter <= s.speed && whole > s.least+slack
}
