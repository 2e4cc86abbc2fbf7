package plan

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Order is hosts in the order in which ranks are put on them, and what that brings.
type Order struct {
	Layout nccl.Layout
	Step   unit.Span // in this order
	Given  unit.Span // in the order in which the hosts were given
	Tried  int       // orders that were priced
}

// NetworkOrder orders the ranks of a layout by the network: hosts of one leaf switch one after another, and
// leaves below the same switches too. Leaves come in the order in which the layout first meets
// them, so that a layout that is in order stays as it is.
func NetworkOrder(c *cluster.Cluster, l nccl.Layout) nccl.Layout {
	hosts := hostsOf(l)
	return joined(byNetwork(places(c, hosts), false), hosts)
}

// host is the ranks of a host, in their order.
type host []nccl.Rank

func hostsOf(l nccl.Layout) []host {
	var list []host
	for i, r := range l {
		if i == 0 || l[i-1].Host != r.Host {
			list = append(list, nil)
		}
		k := len(list) - 1
		list[k] = append(list[k], r)
	}
	return list
}

func joined(order []int, hosts []host) nccl.Layout {
	var l nccl.Layout
	for _, i := range order {
		l = append(l, hosts[i]...)
	}
	return l
}

// place is where a host hangs in the network: its leaf and what is above, the uppermost switch first.
// Of several switches at one height the one with the lowest number stands for all.
type place [3]int

// leaf is the switch that the host hangs on, -1 where nothing is known.
func (p place) leaf() int { return p[len(p)-1] }

// places finds where hosts hang; hosts of which nothing is known hang on switch -1.
func places(c *cluster.Cluster, hosts []host) []place {
	up := make([]int, len(c.Network.Switches))
	for i := range up {
		up[i] = -1
	}
	for i := range c.Network.Links {
		l := &c.Network.Links[i]
		if l.Loose() || l.State == cluster.Down || l.A.ToHosts() || l.B.ToHosts() {
			continue
		}
		a, b := l.A.Switch, l.B.Switch
		if c.Network.Switches[a].Tier > c.Network.Switches[b].Tier {
			a, b = b, a
		}
		if c.Network.Switches[a].Tier < c.Network.Switches[b].Tier && (up[a] < 0 || b < up[a]) {
			up[a] = b
		}
	}
	routes := cluster.NewRoutes(c)
	list := make([]place, len(hosts))
	for i, h := range hosts {
		list[i] = place{-1, -1, -1}
		for _, nic := range c.TypeOf(h[0].Host).Of(cluster.NIC) {
			sw, _ := routes.Leaf(h[0].Host, nic)
			for k := len(place{}) - 1; k >= 0 && sw >= 0; k-- {
				list[i][k] = sw
				sw = up[sw]
			}
			if list[i].leaf() >= 0 {
				break
			}
		}
	}
	return list
}

// byNetwork orders hosts by their places. Switches come in the order in which they are first met, or those
// with the most hosts first.
func byNetwork(at []place, most bool) []int {
	first, count := map[place]int{}, map[place]int{}
	prefix := func(i, k int) place {
		p := place{-2, -2, -2}
		copy(p[:k+1], at[i][:k+1])
		return p
	}
	for i := range at {
		for k := range at[i] {
			p := prefix(i, k)
			if _, ok := first[p]; !ok {
				first[p] = i
			}
			count[p]++
		}
	}
	order := identity(len(at))
	slices.SortStableFunc(order, func(a, b int) int {
		for k := range at[a] {
			p, q := prefix(a, k), prefix(b, k)
			if p == q {
				continue
			}
			if n := count[q] - count[p]; most && n != 0 {
				return n
			}
			return first[p] - first[q]
		}
		return 0
	})
	return order
}

func identity(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// interleaved takes a host of each leaf in turn: groups of ranks that are far apart then share a leaf.
func interleaved(at []place) []int {
	turn, seen := make([]int, len(at)), map[place]int{}
	for i := range at {
		turn[i] = seen[at[i]]
		seen[at[i]]++
	}
	order := byNetwork(at, false)
	slices.SortStableFunc(order, func(a, b int) int { return turn[a] - turn[b] })
	return order
}

// Bounds of the search for an order: how much pricing it may cost, in orders and in ranks of all of them.
const (
	mostOrders     = 256
	mostOrderRanks = 1 << 15
	worthAnOrder   = 0.001 // the share of a step that another order must gain
)

// Arrange finds the order of hosts in which a job's step is predicted to be the shortest: by the network, leaves
// with the most hosts first, a host of each leaf in turn, as given, and from the best of them by exchanging
// hosts of different leaves as long as that helps. It is a local search: another order may be better still.
// A difference below a thousandth counts for nothing, and the earlier of these is taken.
func Arrange(q *Query, given nccl.Layout, j *workload.Job) (Order, error) {
	return arrange(q, given, j, min(mostOrders, mostOrderRanks/max(len(given), 1)))
}

// arrange is Arrange with so many orders at most beyond the first four.
func arrange(q *Query, given nccl.Layout, j *workload.Job, budget int) (Order, error) {
	hosts := hostsOf(given)
	x := &arranger{q: q, j: j, hosts: hosts, at: places(q.Cluster, hosts)}
	asGiven := identity(len(hosts))
	was, err := x.price(asGiven)
	o := Order{Layout: given, Step: was, Given: was, Tried: x.tried}
	if err != nil || len(hosts) < 2 || len(given) > mostOrderRanks {
		return o, err
	}
	// By the network where that is as good: what a model does not see, such as other jobs, is less in the way there.
	x.least = unit.Span(math.Inf(1))
	for _, order := range [][]int{byNetwork(x.at, false), byNetwork(x.at, true), interleaved(x.at), asGiven} {
		t := was
		if !slices.IsSorted(order) {
			if t, err = x.price(order); err != nil {
				return o, err
			}
		}
		if t < x.least*(1-worthAnOrder) {
			x.best, x.least = order, t
		}
	}
	err = x.exchange(budget)
	o.Layout, o.Step, o.Tried = joined(x.best, hosts), x.least, x.tried
	return o, err
}

// arranger looks for an order of hosts.
type arranger struct {
	q     *Query
	j     *workload.Job
	hosts []host
	at    []place

	best  []int
	least unit.Span
	tried int
}

func (x *arranger) price(order []int) (unit.Span, error) {
	x.tried++
	f := x.q.fabricOn(x.q.Cluster, joined(order, x.hosts), x.j.Split)
	r, err := step.Step(x.j, x.q.GPU, f)
	if err != nil {
		return 0, fmt.Errorf("hosts in another order: %w", err)
	}
	return r.Step, nil
}

// exchange takes two hosts for each other as long as that helps and the budget lasts.
func (x *arranger) exchange(budget int) error {
	for again := true; again; {
		again = false
		for a := range x.best {
			for b := a + 1; b < len(x.best); b++ {
				i, k := x.best[a], x.best[b]
				if x.at[i] == x.at[k] && len(x.hosts[i]) == len(x.hosts[k]) {
					continue
				}
				if x.tried >= budget {
					return nil
				}
				other := slices.Clone(x.best)
				other[a], other[b] = k, i
				t, err := x.price(other)
				if err != nil {
					return err
				}
				if t < x.least*(1-worthAnOrder) {
					x.best, x.least, again = other, t, true
				}
			}
		}
	}
	return nil
}

// RankOrder is the order in which ranks are put on hosts that were given.
type RankOrder struct {
	Given string    `json:"given"` // as a hostlist
	Order string    `json:"order"`
	Step  unit.Span `json:"step_s"`
	Was   unit.Span `json:"given_step_s"`   // the plan's step in the given order
	Tried int       `json:"tried"`          // orders that were priced
	Kept  bool      `json:"kept,omitempty"` // ranks are in the given order because that was asked for
}
