package audit

import "cmp"

// groups are lists by what their elements have in common, in the order in which that was first met.
type groups[K comparable, V any] struct {
	order []K
	of    map[K][]V
}

func (g *groups[K, V]) add(key K, v V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[key] == nil {
		g.order = append(g.order, key)
	}
	g.of[key] = append(g.of[key], v)
}

// usual is what most are, of equally many the greatest.
func usual[K cmp.Ordered](count map[K]int) (most K) {
	for k, n := range count {
		if n > count[most] || n == count[most] && k > most {
			most = k
		}
	}
	return most
}
