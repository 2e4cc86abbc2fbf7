package schedule

import (
	"fmt"
	"math/bits"
	"strings"
)

// value is what a chunk holds in the checker: the sum of some ranks' contributions to chunk
// origin. The ranks are a run [lo, lo+count) that may wrap around, which is all that rings and
// trees in rank order make, or, when bits is not 0, a bit set in the arena.
type value struct {
	origin, lo, count int32
	bits              int32
	fresh             bool // nobody has read it since it was written
}

// arena holds bit sets of n bits each. Sets are never freed: they live as long as the chunks
// that hold them, mostly.
type arena struct {
	n, words int
	slabs    [][]uint64
	used     int32 // sets handed out; set 0 means none
}

const slabSets = 1024

func (a *arena) get(id int32) []uint64 {
	i := int(id) % slabSets * a.words
	return a.slabs[int(id)/slabSets][i : i+a.words]
}

func (a *arena) addValue() int32 {
	a.used++
	if int(a.used)/slabSets >= len(a.slabs) {
		a.slabs = append(a.slabs, make([]uint64, slabSets*a.words))
	}
	return a.used
}

// drop takes back the set that was handed out last.
func (a *arena) drop(id int32) {
	clear(a.get(id))
	a.used--
}

// or adds v's ranks to a set and reports whether one was there already.
func (a *arena) or(dst []uint64, v value) (overlap bool) {
	if v.bits != 0 {
		for i, w := range a.get(v.bits) {
			overlap = overlap || dst[i]&w != 0
			dst[i] |= w
		}
		return overlap
	}
	for i := range v.count {
		r := (int(v.lo) + int(i)) % a.n
		bit := uint64(1) << (r % 64)
		overlap = overlap || dst[r/64]&bit != 0
		dst[r/64] |= bit
	}
	return overlap
}

// sum adds two values of one origin. Overlap means that a contribution is in both.
func (a *arena) sum(x, y value) (z value, overlap bool) {
	n := int32(a.n)
	if x.bits == 0 && y.bits == 0 {
		gap := (y.lo - x.lo + n) % n // from the start of x to the start of y
		overlap = gap < x.count || gap+y.count > n
		switch {
		case overlap:
		case x.count+y.count == n:
			return value{origin: x.origin, count: n}, false
		case gap == x.count:
			return value{origin: x.origin, lo: x.lo, count: x.count + y.count}, false
		case gap+y.count == n:
			return value{origin: x.origin, lo: y.lo, count: x.count + y.count}, false
		}
	}
	id := a.addValue()
	set := a.get(id)
	a.or(set, x)
	overlap = a.or(set, y)
	count := 0
	for _, w := range set {
		count += bits.OnesCount64(w)
	}
	if count == a.n { // all ranks have one form only
		a.drop(id)
		return value{origin: x.origin, count: n}, overlap
	}
	return value{origin: x.origin, count: int32(count), bits: id}, overlap
}

// has reports whether a rank's contribution is in v.
func (a *arena) has(v value, rank int) bool {
	if v.bits != 0 {
		return a.get(v.bits)[rank/64]>>(rank%64)&1 != 0
	}
	n := int32(a.n)
	return (int32(rank)-v.lo+n)%n < v.count
}

func (c *checker) all(origin int32) value {
	return value{origin: origin, count: int32(c.s.Ranks)}
}

// equal compares the ranks of two values, of which w is a run.
func (c *checker) equal(v, w value) bool {
	if v.count != w.count {
		return false
	}
	if v.bits == 0 {
		return v.lo == w.lo
	}
	for i := range w.count {
		if !c.sets.has(v, (int(w.lo)+int(i))%c.s.Ranks) {
			return false
		}
	}
	return true
}

// describe names the contributions of a value, the missing ones where these are fewer.
func (c *checker) describe(v value) string {
	n := c.s.Ranks
	if int(v.count) == n && n > 1 {
		return "the contributions of all ranks"
	}
	if int(v.count) == 1 && v.bits == 0 {
		return fmt.Sprintf("the contribution of rank %d", v.lo)
	}
	missing := 2*int(v.count) > n
	var list []string
	for r := range n {
		if c.sets.has(v, r) != missing {
			list = append(list, fmt.Sprint(r))
		}
		if len(list) == 9 {
			list[8] = "…"
			break
		}
	}
	if missing {
		return "the contributions of all ranks but " + strings.Join(list, ", ")
	}
	return "the contributions of ranks " + strings.Join(list, ", ")
}
