package schedule

import "busbar.dev/coll"

// Pacing is how the messages of a stage follow each other.
type Pacing uint8

// How messages of a stage follow each other.
const (
	Stepped Pacing = iota // rounds of their own, each waiting for the one before
	Even                  // rounds that are all alike: a ring
	Piped                 // pieces that follow each other down a tree
	AtOnce                // messages that wait for nothing: everyone with everyone, or with a switch
)

// Stage is a part of a schedule that has one rhythm. The stages of a lane follow
// each other; all ops of a lane belong to one of them, in order.
type Stage struct {
	Pacing Pacing
	// Pieces is the number of messages that follow each other over a link of a piped
	// stage, 1 for the others.
	Pieces int
	// Rounds is the number of messages one after the other in a stage whose messages
	// otherwise wait for nothing: an all-reduce of everyone with everyone has two.
	Rounds int
	// Every lets Chain visit every so manieth edge of a ring only; 0 and 1 are all of them.
	Every int
	// Links lets Chain end the chain of a tree after so many links; 0 is all of them.
	Links int
	part  part
}

// part is what a stage is made of: one body on one seat for each participant and
// lane, or none.
type part interface {
	// each calls f for the bodies that a lane of a participant runs in this stage.
	each(rank, lane int, f func(b body, s *seat, p int))
	// copies is how many bodies run the stage side by side in a channel, on seats of
	// their own, and some is one of them and its seat.
	copies() int
	some(copy int) (body, *seat)
}

// Stages cuts a schedule into its stages, in order. A schedule that was put
// together elsewhere is one stepped stage.
func (s *Schedule) Stages() []Stage {
	switch p := s.Program.(type) {
	case *flat:
		var list []Stage
		if b, ok := p.body.(nvlsBoth); ok {
			return []Stage{
				stageOf(b.reduce, flatPart{p, oneLane{b.reduce, 0}}), stageOf(b.gather, flatPart{p, oneLane{b.gather, 1}}),
			}
		}
		for _, b := range bodies(p.body) {
			list = append(list, stageOf(b, flatPart{p, b}))
		}
		return list
	case *levels:
		var list []Stage
		reduce, gather := p.stages()
		if reduce && p.rails > 1 {
			list = append(list, stageOf(p.reduce[p.rails], levelPart{p, 0}))
		}
		if p.count > 1 {
			list = append(list, stageOf(p.cross, levelPart{p, 1}))
		}
		if gather && p.rails > 1 {
			list = append(list, stageOf(p.gather[p.rails], levelPart{p, 2}))
		}
		return list
	}
	return []Stage{{Pacing: Stepped, Pieces: 1, Rounds: 1}}
}

// bodies takes a sequence apart.
func bodies(b body) []body {
	if q, ok := b.(seq); ok {
		return append(bodies(q.a), bodies(q.b)...)
	}
	return []body{b}
}

func stageOf(b body, p part) Stage {
	st := Stage{Pieces: 1, Rounds: 1, part: p}
	switch b := b.(type) {
	case ring, *rings:
		st.Pacing = Even
	case *tree:
		// A binomial tree sends whole vectors, one round after the other.
		if _, rounds := b.shape.(binomial); b.way != upThenDown && !rounds {
			st.Pacing, st.Pieces = Piped, b.pieces
		}
	case nvls:
		st.Pacing = AtOnce
	case direct:
		if !b.paired {
			st.Pacing = AtOnce
		}
		if b.kind == coll.AllReduce && !b.whole {
			st.Rounds = 2
		}
	}
	return st
}

// AppendFlows appends what a lane of a participant sends in the stage, by peer.
// It is false for a stage that is not known apart from its schedule.
func (st *Stage) AppendFlows(dst []Flow, rank, lane int) ([]Flow, bool) {
	if st.part == nil {
		return dst, false
	}
	first := len(dst)
	if x, ok := st.part.(flatPart); ok { // without a closure, which would cost more than the sum
		return sumOf(x.b, dst, first, &x.f.seat, x.f.where(rank), lane), true
	}
	return appendEach(dst, first, st.part, rank, lane), true
}

// appendEach appends for bodies on seats of their own. Its closure would put dst on the heap for all.
func appendEach(dst []Flow, first int, x part, rank, lane int) []Flow {
	x.each(rank, lane, func(b body, s *seat, p int) { dst = sumOf(b, dst, first, s, p, lane) })
	return dst
}

// Copies is how many chains of the same kind a channel runs side by side: one for
// every rail between groups.
func (st *Stage) Copies() int {
	if st.part == nil {
		return 1
	}
	return st.part.copies()
}

// Order is the order of the ring that a channel goes round; nil where the stage is no such ring over all ranks. All
// schedules of a kind have the same chain in channels of one order.
func (st *Stage) Order(channel int) *Order {
	if x, ok := st.part.(flatPart); ok {
		if b, ok := x.b.(*rings); ok {
			if k, ok := b.seating.(kept); ok {
				return k[channel%len(k)]
			}
		}
	}
	return nil
}

// Chain visits the messages of the longest chain of one copy in one channel, each
// sent when the one before it has arrived: from, to, how often, and behind how many
// others of the same sender it waits each time. What comes to the same receiver at
// the same time is visited as zero times, behind one. Where not
// every message of the chain can be named cheaply (a ring of a million), each edge
// is visited once with the share of its rounds. It is false where the chain is
// not known.
func (st *Stage) Chain(channel, copy int, visit func(from, to int, times, behind float64)) bool {
	if st.part == nil {
		return false
	}
	b, s := st.part.some(copy)
	if b == nil {
		return true
	}
	rank := func(p int) int { return int(s.rank(int32(p))) }
	switch b := b.(type) {
	case ring:
		ringChain(b, st.Every, func(p, q int, times float64) { visit(rank(p), rank(q), times, 0) })
	case *rings:
		ringChain(b.ring, st.Every, func(p, q int, times float64) { visit(b.at(p, channel), b.at(q, channel), times, 0) })
	case *tree:
		depth := 0
		b.chain(channel, st.Links, func(p, q int) {
			if b.way != down {
				visit(rank(p), rank(q), 1, 0)
				b.eachSibling(p, q, channel, depth, func(p int) { visit(rank(p), rank(q), 0, 1) })
			}
			depth++
			if b.way != up {
				visit(rank(q), rank(p), 1, b.before(p, q, channel))
			}
		})
	case nvls:
		b.chain(rank, visit)
	case oneLane:
		b.chain(rank, visit)
	default:
		return false
	}
	return true
}

// chain is to the switch and back.
func (s nvls) chain(rank func(int) int, visit func(from, to int, times, behind float64)) {
	if s.n > 1 {
		visit(rank(0), rank(s.n), 1, 0)
		visit(rank(s.n), rank(s.n-1), 1, 0)
	}
}

func ringChain(r ring, every int, visit func(p, q int, times float64)) {
	if r.n < 2 {
		return
	}
	times := float64(r.size(0, 0)/2) / float64(r.n)
	every = max(every, 1)
	for p := every - 1; p < r.n; p += every {
		visit(p, wrap(p+1, r.n), times*float64(every))
	}
}

// chainSample is how many leaves of a large tree are asked for their depth; NCCL's
// trees are balanced, so that any few of them tell it.
const chainSample = 256

// chain visits the links from the deepest leaf to the root, or the first most of them.
func (t *tree) chain(channel, most int, visit func(p, q int)) {
	leaves, kind := &t.leaves, t.like(channel)
	if x, ok := t.shape.(*Trees); ok {
		leaves = &x.leaves
	}
	deepest, ok := leaves.Load(kind)
	if !ok {
		deepest = t.deepest(channel)
		leaves.Store(kind, deepest)
	}
	for p, q := deepest.(int), t.shape.parent(deepest.(int), channel); q >= 0; p, q = q, t.shape.parent(q, channel) {
		visit(p, q)
		if most--; most == 0 {
			return
		}
	}
}

// mostKnown is how many depths of a tree are kept in a search.
const mostKnown = 1 << 14

// deepest is a leaf of a channel with most links above it.
func (t *tree) deepest(channel int) int {
	if g, ok := t.shape.(*Trees); ok && g.open != nil { // of a long chain, samples would miss it
		return g.open.leaf[g.tree(channel)]
	}
	deepest, most := 0, -1
	stride := max(1, t.n/chainSample)
	known := make([]int32, min(t.n, mostKnown)) // of the first positions: the depth and one, once it was asked for
	depth := func(p int) int {
		d, q := 0, p
		for ; q >= 0 && d <= t.n && (q >= len(known) || known[q] == 0); q = t.shape.parent(q, channel) {
			d++
		}
		if q >= 0 && q < len(known) {
			d += int(known[q])
		}
		for q, k := p, d; q >= 0 && k > 0 && (q >= len(known) || known[q] == 0); q, k = t.shape.parent(q, channel), k-1 {
			if q < len(known) {
				known[q] = int32(k)
			}
		}
		return d - 1
	}
	look := func(p int) {
		if t.shape.children(p, channel) == 0 {
			if d := depth(p); d > most {
				deepest, most = p, d
			}
		}
	}
	for p := 0; p < t.n; p += stride {
		for k := p; k < min(p+stride, p+16, t.n); k++ {
			look(k)
		}
	}
	look(t.n - 1)
	return deepest
}

// eachSibling visits the other children of q whose subtrees are as deep as p's: what they
// send up comes when p's does.
func (t *tree) eachSibling(p, q, channel, depth int, visit func(p int)) {
	if q >= t.n {
		return
	}
	for c := range t.shape.children(q, channel) {
		k := t.shape.child(q, channel, c)
		if k == p {
			continue
		}
		below := 0
		for x := k; below < depth && t.shape.children(x, channel) > 0; x = t.shape.child(x, channel, 0) {
			below++
		}
		if below == depth {
			visit(k)
		}
	}
}

// before is how many children of q get a piece before p does; a switch gives it to
// all of them at once.
func (t *tree) before(p, q, channel int) float64 {
	if q >= t.n {
		return 0
	}
	kids := t.shape.children(q, channel)
	if kids == 1 {
		return 0
	}
	for c := range kids {
		if t.shape.child(q, channel, c) == p {
			return float64(kids - 1 - c)
		}
	}
	return 0
}

// flatPart is a body over all ranks.
type flatPart struct {
	f *flat
	b body
}

func (x flatPart) each(rank, lane int, f func(b body, s *seat, p int)) {
	f(x.b, &x.f.seat, x.f.where(rank))
}

func (x flatPart) copies() int { return 1 }

func (x flatPart) some(int) (body, *seat) { return x.b, &x.f.seat }

// oneLane is a body that only the even or the odd lanes run.
type oneLane struct {
	nvls
	lane int
}

func (x oneLane) size(p, lane int) int {
	if lane%2 != x.lane {
		return 0
	}
	return x.nvls.size(p, lane)
}

func (x oneLane) sum(dst []Flow, first int, s *seat, p, lane int) []Flow {
	if lane%2 != x.lane {
		return dst
	}
	return x.nvls.sum(dst, first, s, p, lane)
}

// levelPart is one of the stages of a schedule in levels: 0 inside, 1 across, 2
// inside again.
type levelPart struct {
	l     *levels
	stage int
}

func (x levelPart) each(rank, lane int, f func(b body, s *seat, p int)) {
	l := x.l
	group, place, r0, r1 := l.who(rank)
	if x.stage == 1 {
		if group < 0 {
			group = l.count
		}
		for rail := r0; rail < r1; rail++ {
			s := l.outerSeat(rail)
			f(l.cross, &s, group)
		}
		return
	}
	reduce, gather := l.has(lane)
	if group < 0 || x.stage == 0 && !reduce || x.stage == 2 && !gather {
		return
	}
	s := l.innerSeat(group)
	size := l.sizeOf(group)
	if x.stage == 0 {
		f(l.reduce[size], &s, place)
	} else {
		f(l.gather[size], &s, place)
	}
}

func (x levelPart) copies() int {
	if x.stage == 1 {
		return x.l.rails
	}
	return 1
}

func (x levelPart) some(copy int) (body, *seat) {
	l := x.l
	if x.stage == 1 {
		s := l.outerSeat(copy)
		return l.cross, &s
	}
	for k := range l.count {
		if l.sizeOf(k) == l.rails {
			s := l.innerSeat(k)
			if x.stage == 0 {
				return l.reduce[l.rails], &s
			}
			return l.gather[l.rails], &s
		}
	}
	return nil, nil
}

// stages tells which inner stages there are, over all lanes.
func (l *levels) stages() (reduce, gather bool) {
	r0, g0 := l.has(0)
	r1, g1 := l.has(1)
	return r0 || r1, g0 || g1
}
