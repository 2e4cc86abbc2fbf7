package nccl

import "cmp"

// Budgets of the search, in steps.
const (
	freeSteps    = 1 << 14
	replaySteps  = 1 << 8
	fallbackGBps = 0.1
)

// compute is one search for a pattern (NCCL 2.28 src/graph/search.cc, ncclTopoCompute).
type compute struct {
	*searcher
	cc                   int
	minIntra, minInter   PathType
	maxIntra, maxInter   PathType
	cross                int // what NCCL_CROSS_NIC allows here
	same                 bool
	list                 []float32
	at                   int // in list
	left                 int // steps of the whole search
	time                 int // of the last round: 0 spent, -1 perfect
	second, amdAcrossCPU bool
	rounds               rounds

	exact       bool // no round is left out for its speed
	spare, owed int  // steps that the last round, and all rounds, may have left that were left out
	doubt       bool // the search went on, and might not have, had they not
	doubted     int  // found by then
	unsure      bool // more was found after that
}

// findGraph searches a pattern with a number of channels from least to most.
func (s *system) findGraph(id int, pattern Pattern, least, most int, collNet bool) Graph {
	g, sure := s.find(id, pattern, least, most, collNet, false)
	if !sure {
		g, _ = s.find(id, pattern, least, most, collNet, true)
	}
	return g
}

// find is a search that leaves rounds out unless it is to be exact; it reports whether all its
// decisions would have been the same with them.
func (s *system) find(id int, pattern Pattern, least, most int, collNet, exact bool) (Graph, bool) {
	c := &compute{searcher: newSearcher(s), cc: s.minCC(), left: s.Steps, exact: exact}
	g := trial{Graph: Graph{ID: id, Pattern: pattern}, least: least, most: most, collNet: collNet}
	if pattern == NVLSPattern && (len(s.nodes[kindNVS]) == 0 || c.cc < 90) {
		return g.Graph, true
	}
	c.prepare(&g)
	g.intra, g.inter = make([]int, g.most*c.ngpus), make([]int, 2*g.most)
	c.best = g
	c.cur = g.copyTrial()
	c.pickStart()
	c.rounds = newRounds(s)
	c.run()
	s.work += c.work
	return c.result(), !c.unsure
}

func (s *system) minCC() int {
	cc := 1 << 30
	for _, g := range s.nodes[kindGPU] {
		cc = min(cc, g.gpu.cc)
	}
	return cc
}

// prepare sets bounds and the types of path to begin and end with.
func (c *compute) prepare(g *trial) {
	s := c.s
	if len(s.nodes[kindNET]) > 1 && (g.Pattern == RingPattern || g.Pattern == BalancedTree || g.Pattern == SplitTree) {
		c.cross = 2
		if n, ok := envInt(s.env, "NCCL_CROSS_NIC"); ok {
			c.cross = n
		}
	}
	g.CrossNIC = bit(c.cross == 1)
	c.minIntra, c.minInter, c.maxIntra, c.maxInter = PathLOC, PathPIX, PathSYS, PathSYS
	if s.PathRange {
		if c.ngpus > 1 {
			c.minIntra, c.maxIntra = s.pathRange(kindGPU)
		}
		if s.inter {
			c.minInter, c.maxInter = s.pathRange(kindNET)
			c.maxIntra = c.maxInter
		}
	} else if c.ngpus > 1 {
		c.minIntra = PathNVL
	}
	if s.FarNets && c.cc < 90 {
		c.maxInter = PathSYS
	}
	g.TypeIntra, g.TypeInter = c.minIntra, c.minInter
	c.same = g.Pattern != NVLSPattern
	g.SameChannels = c.same
	cpu := s.nodes[kindCPU][0].cpu
	c.amdAcrossCPU = s.AMDOneOrder && cpu.arch == ArchX86 && cpu.vendor == AMD
	switch g.Pattern {
	case NVLSPattern:
		if s.NVLSHeads > 0 || !s.inter {
			g.most = min(cmp.Or(s.NVLSHeads, c.ngpus), c.ngpus)
		}
		if !s.inter {
			g.least = g.most
		}
	case DirectPattern:
		if s.DirectHeads > 0 {
			g.most = min(s.DirectHeads, c.ngpus)
		}
	case RingPattern:
		if s.SplitRings && s.splitNVLink() && g.most >= 2 && g.least == 1 {
			g.least = 2
		}
	}
	if c.ngpus == 1 && g.Pattern != RingPattern {
		g.Pattern = TreePattern
	}
}

// pathRange is the best and worst type of path from GPUs to a kind.
func (s *system) pathRange(kind nodeKind) (best, worst PathType) {
	best, worst = PathSYS, PathLOC
	for _, g := range s.nodes[kindGPU] {
		for i := range g.paths[kind] {
			if kind == kindGPU && i == g.index {
				continue
			}
			best, worst = min(best, g.paths[kind][i].kind), max(worst, g.paths[kind][i].kind)
		}
	}
	return best, worst
}

// splitNVLink reports two islands of NVLink, each of several GPUs.
func (s *system) splitNVLink() bool {
	gpus := s.nodes[kindGPU]
	domain := make([]int, len(gpus))
	for i := range domain {
		domain[i] = i
	}
	for i, g := range gpus {
		for p := i + 1; p < len(gpus); p++ {
			if g.paths[kindGPU][p].kind == PathNVL {
				domain[p] = domain[i]
			}
		}
	}
	count := map[int]int{}
	for _, d := range domain {
		count[d]++
	}
	islands := 0
	for _, n := range count {
		if n > 1 {
			islands++
		}
	}
	return islands == 2
}

// pickStart begins at the first speed the system could carry.
func (c *compute) pickStart() {
	c.list = c.s.Speeds[bit(c.s.inter)][max(archOf(c.cc), ampere)]
	total := c.s.totalBw
	if c.ngpus > 1 && c.best.Pattern != RingPattern {
		total *= float32(float64(c.ngpus) / float64(c.ngpus-1))
	}
	for c.at < len(c.list)-1 && (c.list[c.at] > c.s.maxBw || c.list[c.at]*float32(c.best.least) > total) {
		c.at++
	}
	c.setSpeed()
}

func (c *compute) setSpeed() { c.cur.BwIntra, c.cur.BwInter = c.list[c.at], c.list[c.at] }

// run is the loop of both passes.
func (c *compute) run() {
	for {
		c.time = freeSteps
		if c.cur.SameChannels {
			c.time = replaySteps
		}
		c.cur.NChannels, c.cur.hops = 0, 0
		c.left -= c.time
		c.round()
		perfect := c.time == -1 || float32(c.best.NChannels)*c.best.BwInter >= c.s.totalBw
		if !perfect && !c.second && c.relax() {
			continue
		}
		if !c.second {
			c.beginSecond()
		}
		if !c.raise() {
			return
		}
	}
}

// next is the type after one that the release knows.
func (r *rules) next(p PathType) PathType {
	for p++; p == PathC2C && !r.C2CPath || p == PathP2C && !r.P2C; p++ {
	}
	return p
}

// relax makes the first pass easier, in NCCL's order, and reports whether there is
// something left to try.
func (c *compute) relax() bool {
	g, best := &c.cur, &c.best
	if g.SameChannels && !(c.amdAcrossCPU && g.TypeIntra == PathSYS) {
		g.SameChannels = false
		return true
	}
	g.SameChannels = c.same
	if c.giveBack() || c.work > hopeless {
		return false
	}
	if c.cc >= 90 && g.Pattern == BalancedTree {
		g.Pattern = TreePattern
		return true
	}
	g.Pattern = best.Pattern
	most := c.maxIntra
	if c.s.inter {
		most = g.TypeInter
	}
	if g.TypeIntra < most && (best.NChannels == 0 || g.TypeIntra < best.TypeIntra) {
		if g.TypeIntra = c.s.next(g.TypeIntra); g.TypeIntra < PathDIS {
			return true
		}
	}
	g.TypeIntra = c.minIntra
	if c.s.inter && g.TypeInter < c.maxInter &&
		(best.NChannels == 0 || g.TypeInter < best.TypeInter || g.TypeInter < PathPXN) {
		if g.TypeInter = c.s.next(g.TypeInter); g.TypeInter < PathDIS {
			return true
		}
	}
	g.TypeInter = c.minInter
	if c.crossNIC() {
		return true
	}
	g.CrossNIC = bit(c.cross == 1)
	if c.at < len(c.list)-1 && (best.NChannels == 0 || c.list[c.at+1]/best.BwInter > .49) {
		c.at++
		c.setSpeed()
		return true
	}
	return false
}

// crossNIC lets channels leave by another NIC than they came, where allowed.
func (c *compute) crossNIC() bool {
	g := &c.cur
	allowed := c.cross == 2 || c.cross == 1 && c.s.CrossAsked
	if !allowed || g.CrossNIC != 0 {
		return false
	}
	if c.s.CrossPairs && c.best.Pattern != RingPattern && c.best.Pattern != BalancedTree {
		return false
	}
	g.CrossNIC = 1 + bit(c.s.CrossPairs)
	return true
}

// beginSecond starts the second pass from what the first found.
func (c *compute) beginSecond() {
	c.second, c.unsure = true, !c.sure()
	c.time = -1
	if c.s.RaisedRings {
		c.duplicate()
	}
	c.cur = c.best.copyTrial()
	c.at = 0
	for c.at < len(c.list)-1 && c.list[c.at] > c.best.BwInter {
		c.at++
	}
	c.setSpeed()
	c.cur.least = c.best.NChannels
}

// raise tries more bandwidth with the channels found, and reports whether there is
// something to try.
func (c *compute) raise() bool {
	g, best := &c.cur, &c.best
	if c.time == 0 || c.at == 0 {
		return false
	}
	switch {
	case best.Pattern == RingPattern:
		if !c.s.RaisedRings {
			return false
		}
		c.at--
		c.setSpeed()
	case best.Pattern == NVLSPattern && c.s.NVLSInter && g.BwInter == best.BwInter && g.BwInter < g.BwIntra*2:
		g.least, g.most = best.NChannels, best.NChannels
		c.at--
		g.BwInter = c.list[c.at]
	case g.BwIntra == best.BwIntra && g.BwIntra < g.BwInter*2:
		c.at--
		g.BwIntra = c.list[c.at]
	default:
		return false
	}
	return true
}

// duplicate doubles few fast channels to twice as many slower ones.
func (c *compute) duplicate() {
	g := &c.best
	if g.NChannels == 0 || g.Pattern == NVLSPattern || g.BwIntra < 25 || c.cc > 80 && g.BwIntra < 50 && g.NChannels > 4 {
		return
	}
	n := min(2*g.NChannels, g.most)
	copy(g.intra[g.NChannels*c.ngpus:n*c.ngpus], g.intra)
	copy(g.inter[g.NChannels*2:n*2], g.inter)
	by := float32(divUp(n, g.NChannels))
	g.BwIntra, g.BwInter = g.BwIntra/by, g.BwInter/by
	g.NChannels = n
}

// result is the graph found, or the fallback: one slow channel in order.
func (c *compute) result() Graph {
	g := &c.best
	if !c.s.RaisedRings {
		c.duplicate()
	}
	if g.NChannels == 0 && !g.collNet && g.Pattern != NVLSPattern {
		for i, x := range c.gpus() {
			g.intra[i] = x.gpu.rank
		}
		g.BwIntra, g.BwInter, g.TypeIntra, g.TypeInter, g.NChannels = fallbackGBps, fallbackGBps, PathSYS, PathSYS, 1
	}
	out := g.Graph
	// no room to append to: plans share them
	out.Intra, out.Inter = make([][]int, 0, g.NChannels), make([][2]int, 0, g.NChannels)
	for ch := range g.NChannels {
		out.Intra = append(out.Intra, g.intra[ch*c.ngpus:(ch+1)*c.ngpus])
		ends := [2]int{-1, -1}
		if c.s.inter {
			for i := range ends {
				ends[i] = g.inter[2*ch+i]
			}
		}
		out.Inter = append(out.Inter, ends)
	}
	return out
}
