package health

import (
	"cmp"
	"slices"
	"time"
)

// sweep is one round of measuring pairs.
type sweep struct {
	id    string
	at    int64  // the earliest time of its samples, in ns
	order int32  // its place in time among those kept
	dirty bool   // samples came since the levels were computed
	setup string // how it was measured, of its first sample
	// level is the logarithm that a class shows in this sweep, by figure and class; NaN
	// where it was not measured. See levels.
	level [figures][]float32
	// pairs is how many have a rate, by class.
	pairs []int32
}

// sweeps are numbered as they come; those before base are forgotten.
type sweeps struct {
	list   []sweep
	base   uint32
	byID   map[string]uint32
	oldest int64 // nothing older is taken back
	moved  bool  // two sweeps changed places: samples are to be sorted again
}

func (w *sweeps) at(i uint32) *sweep  { return &w.list[i-w.base] }
func (w *sweeps) holds(i uint32) bool { return i >= w.base }
func (w *sweeps) before(a, b uint32) bool {
	if !w.holds(b) {
		return false
	}
	x, y := w.at(a), w.at(b)
	return x.at < y.at || x.at == y.at && x.id < y.id
}

// touch makes all levels be computed again.
func (w *sweeps) touch() {
	for i := range w.list {
		w.list[i].dirty = true
	}
}

// of is the number of a sweep, which is made where it is new.
func (w *sweeps) of(id, setup string, t time.Time, most int) (uint32, bool) {
	at := t.UnixNano()
	if i, ok := w.byID[id]; ok {
		if s := w.at(i); at < s.at {
			s.at, w.moved = at, true
		}
		return i, true
	}
	if at <= w.oldest && w.base > 0 {
		return 0, false
	}
	if len(w.list) >= most {
		w.drop(max(most/4, 1))
	}
	i := w.base + uint32(len(w.list))
	w.list = append(w.list, sweep{id: id, at: at, setup: setup})
	w.byID[id] = i
	return i, true
}

// drop forgets the n sweeps that came first.
func (w *sweeps) drop(n int) {
	for _, s := range w.list[:n] {
		delete(w.byID, s.id)
		w.oldest = max(w.oldest, s.at)
	}
	w.list = slices.Delete(w.list, 0, n)
	w.base += uint32(n)
}

// sort gives every sweep its place in time and returns them in that order.
func (w *sweeps) sort() []uint32 {
	order := make([]uint32, len(w.list))
	for i := range order {
		order[i] = w.base + uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if w.before(a, b) {
			return -1
		}
		return 1
	})
	for k, i := range order {
		w.at(i).order = int32(k)
	}
	return order
}

// settle brings samples in the order of their sweeps, where sweeps changed places, and
// drops those of sweeps that are forgotten.
func (h *History) settle() []uint32 {
	w := &h.sweeps
	order := w.sort()
	if w.moved {
		for i := range h.series {
			s := &h.series[i]
			slices.SortStableFunc(s.samples, func(a, b point) int {
				if !w.holds(a.sweep) || !w.holds(b.sweep) {
					return cmp.Compare(a.sweep, b.sweep) // what is forgotten came first
				}
				if w.before(a.sweep, b.sweep) {
					return -1
				}
				return 1
			})
		}
		w.moved = false
	}
	return order
}
