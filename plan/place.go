package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Placement is free nodes for a job, in the order of its ranks.
type Placement struct {
	Layout nccl.Layout
	Nodes  []int // of the free ones
	Result *step.Result
	// Margin is the factor within which the exposed communication is expected: that of its collectives.
	Margin float64
	Why    string
}

// Placements are those that were priced, the shortest step first.
type Placements struct {
	List  []Placement
	Tried int // sets of nodes
}

// Bounds of the search for nodes: sets that are priced, ranks of all of them together, leaves that a set begins with,
// and orders that are tried of a set.
const (
	mostSets     = 96
	mostSetRanks = 1 << 16
	mostStarts   = 16
	setOrders    = 4
)

// Placer looks for nodes for a job among the free ones. Each of these is the ranks that a job puts there: those of a
// host, or those of one tray of a rack.
type Placer struct {
	q     *Query
	j     *workload.Job
	free  []host
	flaws []int // findings of each free node
	n     int
	at    []place
	group [][]int // free nodes that a network and a job cannot tell apart, the largest first
	seen  map[string]bool
	out   Placements
}

// NewPlacer prepares the search for n of the free nodes. Of the query it needs Cluster, Version and GPU. Flaws are how
// much is wrong with each of them, for which others are looked at first; nil is nothing.
func NewPlacer(q *Query, j *workload.Job, free []nccl.Layout, flaws []int, n int) (*Placer, error) {
	if n < 1 || n > len(free) {
		return nil, fmt.Errorf("%d nodes of %d that are free; expected 1 to %d", n, len(free), len(free))
	}
	if flaws == nil {
		flaws = make([]int, len(free))
	}
	x := &Placer{q: q, j: j, n: n, flaws: flaws, seen: map[string]bool{}}
	for _, l := range free {
		x.free = append(x.free, host(l))
	}
	x.at = places(q.Cluster, x.free)
	type kind struct {
		place
		typ, rack, flaws int
	}
	index := map[kind]int{}
	for i, h := range x.free {
		k := kind{x.at[i], q.Cluster.Hosts[h[0].Host].Type, -1, flaws[i]}
		if t := q.Cluster.TypeOf(h[0].Host); t.Trays > 1 {
			k.rack = h[0].Host
		}
		g, ok := index[k]
		if !ok {
			g = len(x.group)
			index[k] = g
			x.group = append(x.group, nil)
		}
		x.group[g] = append(x.group[g], i)
	}
	slices.SortStableFunc(x.group, func(a, b []int) int { return cmp.Or(flaws[a[0]]-flaws[b[0]], len(b)-len(a)) })
	return x, nil
}

// Flaws is how much is wrong with some of the free nodes.
func (x *Placer) Flaws(nodes []int) (n int) {
	for _, i := range nodes {
		n += x.flaws[i]
	}
	return n
}

// Search prices sets of nodes: whole leaves, few leaves from each of them on, even shares of several, one of each in
// turn; and from the best on, other nodes for some of its own as long as that helps. It is a local search.
func (x *Placer) Search(ctx context.Context) (Placements, error) {
	for _, set := range x.sets() {
		if err := x.Try(set.nodes, set.why); err != nil {
			return x.out, err
		}
		if ctx.Err() != nil || x.spent() {
			break
		}
	}
	if err := x.exchange(ctx); err != nil {
		return x.out, err
	}
	if err := x.settle(); err != nil {
		return x.out, err
	}
	return x.out, ctx.Err()
}

func (x *Placer) spent() bool {
	return x.out.Tried >= mostSets || x.out.Tried*x.n*len(x.free[0]) >= mostSetRanks
}

// Try prices a set of nodes in a good order of them. One that is known is not priced again, and keeps the first reason.
func (x *Placer) Try(nodes []int, why string) error {
	key := fmt.Sprint(slices.Sorted(slices.Values(nodes)))
	if x.seen[key] {
		return nil
	}
	x.seen[key] = true
	p, err := x.price(nodes, setOrders)
	if err != nil {
		return err
	}
	p.Why = why
	x.out.Tried++
	at, _ := slices.BinarySearchFunc(x.out.List, p.Result.Step, func(o Placement, t unit.Span) int {
		if o.Result.Step <= t {
			return -1
		}
		return 1
	})
	x.out.List = slices.Insert(x.out.List, at, p)
	return nil
}

func (x *Placer) price(nodes []int, orders int) (Placement, error) {
	var given nccl.Layout
	for _, i := range slices.Sorted(slices.Values(nodes)) {
		given = append(given, x.free[i]...)
	}
	o, err := arrange(x.q, given, x.j, orders)
	if err != nil {
		return Placement{}, err
	}
	f := x.q.fabricOn(x.q.Cluster, o.Layout, x.j.Split)
	r, err := step.Step(x.j, x.q.GPU, f)
	if err != nil {
		return Placement{}, err
	}
	return Placement{Layout: o.Layout, Nodes: x.numbers(o.Layout), Result: r, Margin: commMargin(f, r)}, nil
}

// numbers are the free nodes of a layout in its order.
func (x *Placer) numbers(l nccl.Layout) []int {
	of := map[nccl.Rank]int{}
	for i, h := range x.free {
		of[h[0]] = i
	}
	var list []int
	for _, r := range l {
		if i, ok := of[r]; ok {
			list = append(list, i)
		}
	}
	return list
}

// commMargin is the error bar of a step's exposed communication: those of its collectives, by what each takes of it.
func commMargin(f *step.Fabric, r *step.Result) float64 {
	sum, weight := 0.0, 0.0
	for _, t := range r.Traffic {
		if t.Exposed <= 0 {
			continue
		}
		if p, err := f.Predictor(t.Group); err == nil && p != nil {
			w := t.Exposed.Seconds()
			sum, weight = sum+w*p.Margin(coll.Op{Kind: coll.AllReduce, Type: coll.Half, Bytes: t.Bytes.Bytes()}), weight+w
		}
	}
	if weight == 0 {
		return 1
	}
	return sum / weight
}

// set is nodes and why they are looked at.
type set struct {
	nodes []int
	why   string
}

// sets are those that are always priced.
func (x *Placer) sets() []set {
	var list []set
	if nodes := x.sound(); nodes != nil {
		list = append(list, set{nodes, "nodes without findings"})
	}
	whole, rest := 0, 0
	for g := range x.group {
		if len(x.group[g]) >= x.n {
			if whole++; whole <= mostStarts {
				list = append(list, set{x.group[g][:x.n], x.spread(x.group[g][:x.n])})
			}
		} else if rest++; rest <= mostStarts {
			nodes := x.from(g)
			list = append(list, set{nodes, x.spread(nodes)})
		}
	}
	for k := 2; k <= min(len(x.group), x.n, 8); k++ {
		nodes, why := x.even(k), "kinds of nodes in turn"
		if n := len(x.Leaves(nodes)); n > 1 {
			why = fmt.Sprintf("evenly over %d leaves", n)
		}
		list = append(list, set{nodes, why})
	}
	return append(list, set{x.even(len(x.group)), "one of each leaf in turn"})
}

// spread says how many leaves nodes are on.
func (x *Placer) spread(nodes []int) string {
	switch {
	case len(x.Leaves(nodes)) > 1:
		return "few leaves"
	case x.q.Cluster.Network.Rails > 1:
		return "one leaf per rail"
	}
	return "one leaf"
}

// sound takes nodes without findings, those of the largest group and the nearest to it first; nil where there are too
// few, or where no node has any.
func (x *Placer) sound() []int {
	flawed := slices.IndexFunc(x.group, func(g []int) bool { return x.flaws[g[0]] > 0 })
	if flawed < 1 {
		return nil
	}
	y := *x
	y.group = x.group[:flawed]
	nodes := y.from(0)
	if len(nodes) < x.n {
		return nil
	}
	return nodes
}

// from takes a group and then the nearest of the others, the largest first.
func (x *Placer) from(g int) []int {
	order := identity(len(x.group))
	slices.SortStableFunc(order, func(a, b int) int {
		return distance(x.at[x.group[a][0]], x.at[x.group[g][0]]) - distance(x.at[x.group[b][0]], x.at[x.group[g][0]])
	})
	order = append([]int{g}, slices.DeleteFunc(order, func(k int) bool { return k == g })...)
	var nodes []int
	for _, k := range order {
		nodes = append(nodes, x.group[k][:min(len(x.group[k]), x.n-len(nodes))]...)
	}
	return nodes
}

// even takes a node of each of the k largest groups in turn, and of the others when those are empty.
func (x *Placer) even(k int) []int {
	var nodes []int
	for _, list := range [][][]int{x.group[:k], x.group[k:]} {
		for turn, more := 0, true; more && len(nodes) < x.n; turn++ {
			more = false
			for _, g := range list {
				if turn < len(g) && len(nodes) < x.n {
					nodes, more = append(nodes, g[turn]), true
				}
			}
		}
	}
	return nodes
}

// distance is how many tiers two places have to go up to meet.
func distance(a, b place) int {
	for k := range a {
		if a[k] != b[k] {
			return len(a) - k
		}
	}
	return 0
}

// exchange takes nodes of other groups for some of the best set, as long as that helps.
func (x *Placer) exchange(ctx context.Context) error {
	for again := true; again; {
		again = false
		best := x.out.List[0]
		for g := range x.group {
			for k := range x.group {
				if g == k || x.spent() || ctx.Err() != nil {
					continue
				}
				nodes, ok := x.moved(best.Nodes, g, k)
				if !ok {
					continue
				}
				if err := x.Try(nodes, "exchanged"); err != nil {
					return err
				}
				again = again || x.out.List[0].Result.Step < best.Result.Step*(1-worthAnOrder)
			}
		}
	}
	return nil
}

// moved is a set with one node of group k in the place of one of group g.
func (x *Placer) moved(nodes []int, g, k int) ([]int, bool) {
	out := slices.IndexFunc(nodes, func(i int) bool { return slices.Contains(x.group[g], i) })
	in := slices.IndexFunc(x.group[k], func(i int) bool { return !slices.Contains(nodes, i) })
	if out < 0 || in < 0 {
		return nil, false
	}
	set := slices.Clone(nodes)
	set[out] = x.group[k][in]
	return set, true
}

// settle looks for a better order of the best set.
func (x *Placer) settle() error {
	best := &x.out.List[0]
	p, err := x.price(best.Nodes, min(mostOrders, mostOrderRanks/max(len(best.Layout), 1)))
	if err == nil && p.Result.Step < best.Result.Step {
		p.Why = best.Why
		*best = p
	}
	return err
}

// Leaf is a leaf switch and how many of the nodes it has; "" where no source says.
type Leaf struct {
	Leaf  string `json:"leaf"`
	Nodes int    `json:"nodes"`
	Rails int    `json:"rails,omitempty"` // leaves that each node is on, of which Leaf is the first

	at int // its index among the switches; -1 where no source says
}

// Leaves is how many of the nodes hang on each leaf, in the nodes' order.
func (x *Placer) Leaves(nodes []int) []Leaf {
	leaves := []Leaf{}
	for _, i := range nodes {
		at := x.at[i].leaf()
		k := slices.IndexFunc(leaves, func(l Leaf) bool { return l.at == at })
		if k < 0 {
			k = len(leaves)
			leaves = append(leaves, Leaf{at: at})
			if net := &x.q.Cluster.Network; at >= 0 {
				leaves[k].Leaf = net.Switches[at].Name
				if net.Rails > 1 {
					leaves[k].Rails = net.Rails
				}
			}
		}
		leaves[k].Nodes++
	}
	return leaves
}

// Level is the lowest tier below which nodes have one switch: leaf, spine or core; TierUnknown where no source says.
func (x *Placer) Level(nodes []int) cluster.Tier {
	most := 0
	for _, i := range nodes {
		if x.at[i].leaf() < 0 {
			return cluster.TierUnknown
		}
		most = max(most, distance(x.at[i], x.at[nodes[0]]))
	}
	return cluster.Tier(most)
}
