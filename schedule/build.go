package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/coll"
)

// Params is what a builder may be told. Only Ranks is needed; an algorithm ignores what it has
// no use for.
type Params struct {
	Ranks    int
	Root     int
	Channels int // parts of the data that go side by side; 0 is 1
	// Pieces is the number of messages that a chain or tree cuts a channel's data into, so that
	// its levels work at once; 0 is 4.
	Pieces int
	Order  []int    // the rank at each position of the algorithm; nil is 0, 1, 2, …
	Orders []*Order // ring: an order for each channel, taken in turn
	// Turn lets channel c of a ring or tree begin every group with its member c, so that channels
	// leave a group by different members, as NCCL's search makes them. It needs Groups.
	Turn  bool
	Trees *Trees // tree: one for each channel, taken in turn
	// ranks that are close to each other, for tree and the algorithms in levels; nil is every rank for itself
	Groups [][]int
	Shared *Groups // Groups that several schedules share
	Inner  string  // hierarchical, inside a group: ring, direct or nvls; "" is ring
	Outer  string  // hierarchical, across groups: ring, tree, halving_doubling, rabenseifner or collnet; "" is ring
}

// Limits of what can be built.
const (
	maxRanks    = 1 << 24
	maxChannels = 1 << 10
)

// Builder is an algorithm.
type Builder struct {
	Name  string      `json:"name"`
	Does  string      `json:"does"` // in a few words
	Kinds []coll.Kind `json:"ops"`
	Needs string      `json:"needs,omitempty"` // what else it asks for, "" for nothing
	build func(kind coll.Kind, p *Params) (*Schedule, error)
}

// Refusal is the error of a combination that makes no sense; Reason says why.
type Refusal struct {
	Kind         coll.Kind
	Name, Reason string
}

func (r *Refusal) Error() string { return fmt.Sprintf("%s by %s: %s", r.Kind, r.Name, r.Reason) }

// Find is the builder of a name.
func Find(name string) (Builder, error) {
	var names []string
	for _, b := range Builders() {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Builder{}, fmt.Errorf("algorithm %q is unknown; use one of %s", name, strings.Join(names, ", "))
}

// Build makes the schedule of a collective by an algorithm. The error is a *Refusal where the
// two do not go together.
func Build(kind coll.Kind, name string, p Params) (*Schedule, error) {
	b, err := Find(name)
	if err != nil {
		return nil, err
	}
	return b.Build(kind, p)
}

// Build makes the schedule of a collective.
func (b Builder) Build(kind coll.Kind, p Params) (*Schedule, error) {
	refuse := func(format string, args ...any) error {
		return &Refusal{kind, b.Name, fmt.Sprintf(format, args...)}
	}
	if !slices.Contains(b.Kinds, kind) {
		words := make([]string, len(b.Kinds))
		for i, k := range b.Kinds {
			words[i] = k.String()
		}
		return nil, refuse("the algorithm does %s only", strings.Join(words, ", "))
	}
	p.Channels = cmp.Or(p.Channels, 1)
	p.Pieces = cmp.Or(p.Pieces, 4)
	switch {
	case p.Ranks < 1 || p.Ranks > maxRanks:
		return nil, refuse("%d ranks; 1 to %d are possible", p.Ranks, maxRanks)
	case p.Root < 0 || p.Root >= p.Ranks:
		return nil, refuse("root %d; ranks are 0 to %d", p.Root, p.Ranks-1)
	case p.Channels < 1 || p.Channels > maxChannels:
		return nil, refuse("%d channels; 1 to %d are possible", p.Channels, maxChannels)
	case p.Pieces < 1 || p.Pieces > 1<<20:
		return nil, refuse("%d pieces; 1 to %d are possible", p.Pieces, 1<<20)
	case int64(p.Ranks)*int64(p.Channels) >= 1<<28:
		return nil, refuse("%d ranks times %d channels are more chunks than can be numbered", p.Ranks, p.Channels)
	case kind == coll.AllToAllV && p.Ranks > 46340:
		return nil, refuse("%d ranks; at most 46340, so that every pair has a number", p.Ranks)
	}
	if p.Order != nil {
		if err := permutation(p.Order, p.Ranks); err != nil {
			return nil, refuse("order: %v", err)
		}
	}
	s, err := b.build(kind, &p)
	if err != nil {
		return nil, refuse("%v", err)
	}
	s.Name, s.Kind, s.Ranks, s.Root, s.Channels = b.Name, kind, p.Ranks, p.Root, p.Channels
	if !kind.Rooted() {
		s.Root = 0
	}
	s.Depth = 1
	return s, nil
}

// permutation reports what keeps a list from being one of 0 to n-1.
func permutation(list []int, n int) error {
	if len(list) != n {
		return fmt.Errorf("%d ranks; there are %d", len(list), n)
	}
	seen := make([]bool, n)
	for _, r := range list {
		if r < 0 || r >= n || seen[r] {
			return fmt.Errorf("rank %d is out of range or there twice", r)
		}
		seen[r] = true
	}
	return nil
}

// plan is a body and the room it takes, a channel.
type plan struct {
	body   body
	blocks int // of Data
	lanes  int // 0 is 1
	temp   int // chunks of scratch
	// switches it talks to.
	switches []Switch
}

// spread lays a plan over all ranks.
func spread(kind coll.Kind, p *Params, x plan) (*Schedule, error) {
	x.lanes = max(x.lanes, 1)
	if int64(max(x.blocks, x.temp))*int64(p.Channels) >= 1<<31 {
		return nil, fmt.Errorf("%d channels of %d chunks are more than can be numbered", p.Channels, x.blocks)
	}
	f := &flat{body: x.body, per: x.lanes, temp: int32(x.temp)}
	f.seat = seat{n: int32(p.Ranks), switches: int32(p.Ranks), width: int32(x.blocks), blocks: int32(x.blocks)}
	f.seat.members, f.pos = positions(kind, p)
	if kind == coll.AllToAllV {
		f.ranks = int32(p.Ranks)
	}
	s := &Schedule{Lanes: p.Channels * x.lanes, Temp: p.Channels * x.temp, Switches: x.switches, Program: f}
	s.Layout = Layout{Chunks: p.Channels * x.blocks, Blocks: 1, Channels: p.Channels}
	if kind.Blocked() {
		s.Layout.Blocks, s.Layout.Order = p.Ranks, f.seat.members
	}
	return s, nil
}

// positions is the order in which an algorithm sees the ranks, and its inverse; the root of a
// rooted kind is at position 0.
func positions(kind coll.Kind, p *Params) (members, pos []int32) {
	turn := 0
	if kind.Rooted() {
		turn = p.Root
		if p.Order != nil {
			turn = slices.Index(p.Order, p.Root)
		}
	}
	if p.Order == nil && turn == 0 {
		return nil, nil
	}
	members, pos = make([]int32, p.Ranks), make([]int32, p.Ranks)
	for i := range members {
		r := (i + turn) % p.Ranks
		if p.Order != nil {
			r = p.Order[r]
		}
		members[i], pos[r] = int32(r), int32(i)
	}
	return members, pos
}

func everyone(n int) []int {
	all := make([]int, n)
	for r := range all {
		all[r] = r
	}
	return all
}

var (
	shared = []coll.Kind{coll.AllReduce, coll.ReduceScatter, coll.AllGather}
	exch   = []coll.Kind{coll.AllToAll, coll.AllToAllV}
	trees  = []coll.Kind{coll.AllReduce, coll.Broadcast, coll.Reduce}
)

// Builders is the table of algorithms and of the collectives that they do.
func Builders() []Builder {
	return []Builder{
		{"ring", "every block once around a ring", shared, "", ringIn(false)},
		{"bidir_ring", "a ring in both directions, every other channel the other way", shared, "", ringIn(true)},
		{"chain", "a pipeline from rank to rank", trees, "", buildChain},
		{"tree", "NCCL's double binary tree, chains inside groups", trees, "", buildTree},
		{
			"binomial", "a binomial tree", []coll.Kind{
				coll.AllReduce, coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.Barrier,
			}, "", buildBinomial,
		},
		{
			"recursive_doubling", "whole vectors with partners at distance 1, 2, 4, …",
			[]coll.Kind{coll.AllReduce, coll.AllGather},
			"a power of two for all_gather", halvingBy(true, true),
		},
		{"halving_doubling", "recursive halving, then doubling", shared, "a power of two", halvingBy(false, false)},
		{"rabenseifner", "halving and doubling, odd ranks folded", []coll.Kind{coll.AllReduce}, "", halvingBy(true, false)},
		{
			"hypercube", "nccl-tests' all-gather by pairwise exchange",
			[]coll.Kind{coll.Hypercube},
			"a power of two",
			halvingBy(false, false),
		},
		{"bruck", "the fewest rounds, with local copies", []coll.Kind{coll.AllGather, coll.AllToAll}, "", buildBruck},
		{"pat", "NCCL's parallel aggregated trees", []coll.Kind{coll.ReduceScatter, coll.AllGather}, "", buildPAT},
		{
			"direct", "everyone with everyone at once",
			append(append([]coll.Kind{coll.Gather, coll.Scatter, coll.SendRecv}, shared...), exch...), "",
			directBy(false, false),
		},
		{
			"pairwise", "one partner after the other", append(append([]coll.Kind{}, shared...), exch...), "",
			directBy(true, false),
		},
		{"one_shot", "everyone sends the whole vector to everyone", []coll.Kind{coll.AllReduce}, "", directBy(false, true)},
		{
			"scatter_allgather", "scatter along a tree and gather around a ring, or the reverse",
			[]coll.Kind{coll.Broadcast, coll.Reduce},
			"", buildTwoStep,
		},
		{"dissemination", "hear from 1, 2, 4, … places back", []coll.Kind{coll.Barrier}, "", buildBarrier},
		{"hierarchical", "inside the groups, across them rail by rail, inside again", shared, "groups", levelsOf("", "")},
		{"two_phase", "inside the group first, then across", []coll.Kind{coll.AllToAll}, "groups", buildTwoPhase},
		{"nvls", "summed and multicast in the NVLink switch", shared, "", buildNVLS},
		{
			"nvls_tree", "NVLink switch inside the groups, double binary trees across",
			[]coll.Kind{coll.AllReduce},
			"groups",
			levelsOf("nvls", "tree"),
		},
		{"collnet", "summed in the network", []coll.Kind{coll.AllReduce}, "", buildCollNet},
		{
			"collnet_chain", "chains inside the groups, summed in the network",
			[]coll.Kind{coll.AllReduce},
			"groups",
			buildCollNetChain,
		},
		{
			"collnet_direct", "everyone with everyone inside the groups, summed in the network",
			[]coll.Kind{coll.AllReduce},
			"groups", levelsOf("direct", "collnet"),
		},
	}
}

func buildRing(kind coll.Kind, p *Params, both bool) (*Schedule, error) {
	r := ring{n: p.Ranks, kind: kind, both: both}
	x := plan{body: r, blocks: p.Ranks}
	switch {
	case len(p.Orders) > 0:
		for i, order := range p.Orders {
			if n := len(order.ranks); n != p.Ranks {
				return nil, fmt.Errorf("ring %d: %d ranks; there are %d", i, n, p.Ranks)
			}
		}
		x.body, p.Order = &rings{r, kept(p.Orders), kind.Blocked()}, nil
	case p.Turn && (len(p.Groups) > 0 || p.Shared != nil):
		g, err := p.grouping()
		if err != nil {
			return nil, err
		}
		x.body, p.Order = &rings{r, newTurned(g), kind.Blocked()}, nil
	}
	return spread(kind, p, x)
}

// treePlan is a tree that serves a kind.
func treePlan(kind coll.Kind, p *Params, s shape) plan {
	t := &tree{shape: s, n: p.Ranks, pieces: p.Pieces, way: up}
	x := plan{body: t, blocks: p.Pieces}
	switch kind {
	case coll.Broadcast:
		t.way = down
	case coll.AllReduce:
		t.way = upDown
		x.lanes = 2
	}
	return x
}

func buildBinomial(kind coll.Kind, p *Params) (*Schedule, error) {
	b := binomial{p.Ranks}
	switch kind {
	case coll.Gather:
		return spread(kind, p, plan{body: collectTree{b}, blocks: p.Ranks})
	case coll.Scatter:
		return spread(kind, p, plan{body: mirror{collectTree{b}, false}, blocks: p.Ranks})
	}
	t := &tree{shape: b, n: p.Ranks, pieces: 1}
	switch kind {
	case coll.Broadcast:
		t.way = down
	case coll.AllReduce, coll.Barrier:
		t.way = upThenDown
	}
	return spread(kind, p, plan{body: t, blocks: 1})
}

func buildBruck(kind coll.Kind, p *Params) (*Schedule, error) {
	if kind == coll.AllGather {
		return spread(kind, p, plan{body: bruckGather{p.Ranks}, blocks: p.Ranks, temp: p.Ranks})
	}
	b := bruckExchange{p.Ranks}
	return spread(kind, p, plan{body: b, blocks: p.Ranks, temp: p.Ranks + 2*b.half()})
}

func buildPAT(kind coll.Kind, p *Params) (*Schedule, error) {
	t := newPAT(p.Ranks)
	x := plan{body: t, blocks: p.Ranks, temp: 2 * t.agg}
	if kind == coll.ReduceScatter {
		x.body = mirror{t, true}
	}
	return spread(kind, p, x)
}

// buildTwoStep is van de Geijn's broadcast for long vectors, and its mirror (Thakur et al.
// 2005).
func buildTwoStep(kind coll.Kind, p *Params) (*Schedule, error) {
	gather := collectTree{binomial{p.Ranks}}
	if kind == coll.Broadcast {
		return spread(kind, p, plan{
			body: seq{mirror{gather, false}, ring{n: p.Ranks, kind: coll.AllGather}}, blocks: p.Ranks,
		})
	}
	return spread(kind, p, plan{body: seq{ring{n: p.Ranks, kind: coll.ReduceScatter}, gather}, blocks: p.Ranks})
}

func buildBarrier(kind coll.Kind, p *Params) (*Schedule, error) {
	return spread(kind, p, plan{body: dissemination{p.Ranks}, blocks: 1})
}

func buildTwoPhase(_ coll.Kind, p *Params) (*Schedule, error) {
	g, err := p.grouping()
	if err != nil {
		return nil, err
	}
	g.layRails(1)
	t := newTwoPhase(g)
	s := &Schedule{Lanes: p.Channels, Temp: p.Channels * int(t.temp), Program: t}
	s.Layout = Layout{Chunks: p.Channels * p.Ranks, Blocks: p.Ranks, Channels: p.Channels, Order: g.order()}
	return s, nil
}

func buildNVLS(kind coll.Kind, p *Params) (*Schedule, error) {
	x := plan{blocks: p.Ranks, switches: []Switch{{Multimem, everyone(p.Ranks)}}}
	switch kind {
	case coll.AllReduce:
		x.body, x.lanes = nvlsBoth{nvls{p.Ranks, coll.ReduceScatter}, nvls{p.Ranks, coll.AllGather}}, 2
	default:
		x.body = nvls{p.Ranks, kind}
	}
	return spread(kind, p, x)
}

// buildLevels puts two algorithms together.
func buildLevels(kind coll.Kind, p *Params, inner, outer string) (*Schedule, error) {
	g, err := p.grouping()
	if err != nil {
		return nil, err
	}
	l := &levels{grouping: g, kind: kind}
	if err := l.setOuter(outer, p.Pieces); err != nil {
		return nil, err
	}
	slot := l.slotChunks(kind)
	if int64(p.Ranks)*int64(slot)*int64(p.Channels) >= 1<<31 {
		return nil, fmt.Errorf("%d ranks, %d channels: more chunks than can be numbered", p.Ranks, p.Channels)
	}
	g.layRails(slot)
	if err := l.setInner(inner); err != nil {
		return nil, err
	}
	s := &Schedule{Lanes: p.Channels, Program: l}
	if l.two {
		s.Lanes *= 2
	}
	s.Layout = Layout{Chunks: p.Channels * p.Ranks * slot, Blocks: 1, Channels: p.Channels}
	if kind.Blocked() {
		s.Layout.Blocks, s.Layout.Order = p.Ranks, g.order()
	}
	s.Switches = l.switches()
	return s, nil
}

// setOuter chooses what runs across the groups.
func (l *levels) setOuter(name string, pieces int) error {
	m := l.count
	whole := l.kind == coll.AllReduce
	switch name {
	case "ring":
		l.cross = ring{n: m, kind: l.kind}
		if whole {
			l.blocks = int32(m)
		}
	case "halving_doubling", "rabenseifner":
		h := halving{n: m, kind: l.kind}
		if m != pow2(m) && (name == "halving_doubling" || !whole) {
			return fmt.Errorf("%s across %d groups; the number must be a power of two", name, m)
		}
		l.cross = h
		if whole {
			l.blocks = h.all()
		}
	case "tree", "collnet":
		if !whole {
			return fmt.Errorf("%s across groups does all_reduce only; use ring", name)
		}
		l.two, l.blocks = true, int32(pieces)
		t := &tree{shape: dtree{grouping: singles(m), channels: 2}, n: m, pieces: pieces, way: upDown}
		if name == "collnet" {
			t.shape, l.beyond = star{m}, true
		}
		l.cross = t
	default:
		return fmt.Errorf("%q across groups is unknown; use ring, tree, halving_doubling, rabenseifner or collnet", name)
	}
	return nil
}

// slotChunks is the number of chunks that each rank answers for, chosen so that the blocks of
// the outer algorithm divide a rail's part, but no more than eight: beyond, blocks of somewhat
// different size do less harm than so many chunks.
func (l *levels) slotChunks(kind coll.Kind) int {
	if kind != coll.AllReduce {
		return 1
	}
	a, b := l.count, int(l.blocks)
	for b != 0 {
		a, b = b, a%b
	}
	return min(int(l.blocks)/a, 8)
}

// setInner chooses what runs inside groups of every size there is.
func (l *levels) setInner(name string) error {
	n := l.rails + 1
	l.reduce, l.gather, l.share = make([]body, n), make([]body, n), make([][]int32, n)
	for k := range l.count {
		size := l.sizeOf(k)
		if l.share[size] != nil {
			continue
		}
		l.share[size] = l.shares(size)
		switch name {
		case "ring":
			l.reduce[size], l.gather[size] = ring{n: size, kind: coll.ReduceScatter}, ring{n: size, kind: coll.AllGather}
		case "direct":
			l.reduce[size], l.gather[size] = direct{n: size, kind: coll.ReduceScatter}, direct{n: size, kind: coll.AllGather}
		case "nvls":
			l.inside = true
			l.reduce[size], l.gather[size] = nvls{size, coll.ReduceScatter}, nvls{size, coll.AllGather}
		default:
			return fmt.Errorf("%q inside groups is unknown; use ring, direct or nvls", name)
		}
	}
	return nil
}

// switches lists those of the groups, then those of the rails.
func (l *levels) switches() []Switch {
	var list []Switch
	if l.inside {
		list = make([]Switch, 0, len(l.given))
		for _, group := range l.given {
			list = append(list, Switch{Multimem, group})
		}
	}
	if l.beyond {
		for rail := range l.rails {
			all := make([]int, l.count)
			for k := range all {
				all[k] = int(l.server(rail, k))
			}
			list = append(list, Switch{InNetwork, all})
		}
	}
	return list
}
