package lab

import (
	"cmp"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// Inside is how ranks of a node reach each other.
type Inside string

// The ways inside a node.
const (
	Auto   Inside = "auto"   // Links where this machine can push them, else Memory
	Links  Inside = "links"  // over sockets, shaped as the links between the node's GPUs
	Memory Inside = "memory" // through this machine's shared memory, at its speed
)

// Inner is the inside of a kind of node: the links between its GPUs, each in one
// direction, and which of them data crosses.
type Inner struct {
	GPUs  int         `json:"gpus"`
	Links []InnerLink `json:"links"`
	// Routes are the links from one GPU to another, by their numbers.
	Routes [][][]int `json:"ways"`
	// Left are links that limit something and have no place in the lab.
	Left []string `json:"left_out,omitempty"`
}

// InnerLink is one direction of a link.
type InnerLink struct {
	Name string    `json:"name"`
	Rate unit.Rate `json:"rate_GBps"`
	// Stage is the shaper that has it: a packet inside a node passes a few of them one
	// after the other, and two links of one way cannot be in the same.
	Stage int `json:"stage"`
}

// The shapers that a packet inside a node passes: before the loopback, in it, and
// behind it.
const (
	stageBefore = iota
	stageLoop
	stageBehind
	stages
)

// inner reads the inside of a type from the cluster's model; nil where it has no two
// GPUs, or where nobody knows how two of them are joined.
func (b *planner) inner(typ int) *Inner {
	t := b.c.Types[typ]
	gpus := t.Of(cluster.GPU)
	if len(gpus) < 2 || len(gpus) > maxInner {
		return nil
	}
	x := &Inner{GPUs: len(gpus), Routes: make([][][]int, len(gpus))}
	at := map[cluster.Leg]int{}
	for i, from := range gpus {
		x.Routes[i] = make([][]int, len(gpus))
		for j, to := range gpus {
			if i == j {
				continue
			}
			legs, class := b.routes.Inside(typ, from, to)
			if class.Type == cluster.Apart {
				return nil
			}
			for _, leg := range legs {
				if leg.Link < 0 || t.Links[leg.Link].Rate.Value <= 0 {
					continue
				}
				k, ok := at[leg]
				if !ok {
					k = len(x.Links)
					at[leg] = k
					l := &t.Links[leg.Link]
					a, z := t.Devices[l.A].Title(), t.Devices[l.B].Title()
					if !leg.Forward {
						a, z = z, a
					}
					x.Links = append(x.Links, InnerLink{Name: a + "→" + z, Rate: l.Rate.Value})
				}
				x.Routes[i][j] = append(x.Routes[i][j], k)
			}
		}
	}
	x.narrow()
	x.stage()
	if x.fastest() == 0 {
		return nil
	}
	return x
}

// maxInner is how many GPUs of a node have addresses of their own.
const maxInner = 254

// fastest is what a GPU sends to one other at most.
func (x *Inner) fastest() (most unit.Rate) {
	for i := range x.Routes {
		for _, way := range x.Routes[i] {
			least := unit.Rate(0)
			for _, k := range way {
				if r := x.Links[k].Rate; least == 0 || r < least {
					least = r
				}
			}
			most = max(most, least)
		}
	}
	return most
}

// narrow leaves out links that never limit anything: those that are fed, or emptied, by
// others with no more than their rate together.
func (x *Inner) narrow() {
	for k := 0; k < len(x.Links); k++ {
		if x.wide(k, -1) || x.wide(k, 1) {
			x.remove(k)
			k = -1 // what is before others has changed
		}
	}
}

// wide reports whether the links beside one on all ways, before it (-1) or behind it (1),
// carry no more than it does.
func (x *Inner) wide(k, side int) bool {
	beside := map[int]bool{}
	for i := range x.Routes {
		for _, way := range x.Routes[i] {
			at := slices.Index(way, k)
			if at < 0 {
				continue
			}
			if at+side < 0 || at+side >= len(way) {
				return false
			}
			beside[way[at+side]] = true
		}
	}
	sum := unit.Rate(0)
	for other := range beside {
		sum += x.Links[other].Rate
	}
	return sum <= x.Links[k].Rate
}

// remove takes a link out of all ways.
func (x *Inner) remove(k int) {
	x.Links = slices.Delete(x.Links, k, k+1)
	for i := range x.Routes {
		for j, way := range x.Routes[i] {
			way = slices.DeleteFunc(way, func(l int) bool { return l == k })
			for n := range way {
				if way[n] > k {
					way[n]--
				}
			}
			x.Routes[i][j] = way
		}
	}
}

// stage gives every link its shaper. Links where ways begin and end come first, the
// narrowest of the others next; one for which no shaper is left is left out. The shaper
// behind the loopback is the last choice: the kernel does not count what waits there as
// the sender's any more, so that queues are longer than a network's with credits.
func (x *Inner) stage() {
	want := make([][]int, len(x.Links)) // stages in the order of preference
	for k := range x.Links {
		begins, ends := x.place(k)
		switch {
		case ends:
			want[k] = []int{stageLoop, stageBefore, stageBehind}
		case begins:
			want[k] = []int{stageBefore, stageLoop, stageBehind}
		default:
			want[k] = []int{stageBehind, stageBefore, stageLoop}
		}
		x.Links[k].Stage = -1
	}
	order := make([]int, len(x.Links))
	for k := range order {
		order[k] = k
	}
	after := func(k int) unit.Rate { // 0 where ways begin or end
		if want[k][0] == stageBehind {
			return x.Links[k].Rate
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(after(a), after(b)) })
	for _, k := range order {
		for _, s := range want[k] {
			if x.free(k, s) {
				x.Links[k].Stage = s
				break
			}
		}
	}
	for k := len(x.Links) - 1; k >= 0; k-- {
		if x.Links[k].Stage < 0 {
			x.Left = append(x.Left, x.Links[k].Name)
			x.remove(k)
		}
	}
	slices.Reverse(x.Left)
}

// place reports whether ways begin or end with a link.
func (x *Inner) place(k int) (begins, ends bool) {
	for i := range x.Routes {
		for _, way := range x.Routes[i] {
			if len(way) > 0 {
				begins, ends = begins || way[0] == k, ends || way[len(way)-1] == k
			}
		}
	}
	return begins, ends
}

// free reports whether no way that crosses a link has another one in the stage.
func (x *Inner) free(k, stage int) bool {
	for i := range x.Routes {
		for _, way := range x.Routes[i] {
			if !slices.Contains(way, k) {
				continue
			}
			for _, l := range way {
				if l != k && x.Links[l].Stage == stage {
					return false
				}
			}
		}
	}
	return true
}

// has reports whether a stage has links.
func (x *Inner) has(stage int) bool {
	return slices.ContainsFunc(x.Links, func(l InnerLink) bool { return l.Stage == stage })
}
