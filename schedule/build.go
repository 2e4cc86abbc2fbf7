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
	Order  []int   // the rank at each position of the algorithm; nil is 0, 1, 2, …
	Rings  [][]int // ring: an order for each channel, taken in turn
	// Orders is Rings that several schedules share.
	Orders []*Order
	// Turn lets channel c of a ring or tree begin every group with its member c, so that channels
	// leave a group by different members, as NCCL's search makes them. It needs Groups.
	Turn bool
	// Parents is the trees of tree: for each channel, in turn, the parent of every rank, -1 for
	// the root.
	Parents [][]int
	// Trees is Parents that several schedules share, of whatever number of channels.
	Trees   *Trees
	Groups  [][]int // ranks that are close to each other, for tree and the algorithms in levels; nil is every rank for itself
	Shared  *Groups // Groups that several schedules share
	Pattern Pattern // tree: where a group's links to other groups are
	Inner   string  // hierarchical, inside a group: ring, direct or nvls; "" is ring
	Outer   string  // hierarchical, across groups: ring, tree, halving_doubling, rabenseifner or collnet; "" is ring
	Agg     int     // pat: blocks in a message at most; 0 is no limit
}

// Limits of what can be built.
const (
	maxRanks    = 1 << 24
	maxChannels = 1 << 10
)

// Builder is an algorithm.
type Builder struct {
	Name  string
	Does  string // in a few words
	Kinds []coll.Kind
	Needs string // what else it asks for, "" for nothing
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
