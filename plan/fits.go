package plan

import (
	"busbar.dev/step"
	"busbar.dev/workload"
)

// Fits is the setting of another space that needs least of a GPU's memory, where it fits; nil where
// none does. Nothing is priced.
func (q *Query) Fits(x *Space) *Lean {
	own := *q
	own.Spaces = []*Space{x}
	s := &search{q: &own, room: q.Room(), bounds: step.NewBounds(x.Base.Model, q.GPU)}
	var best *Lean
	for _, d := range x.splits() {
		x.families(d, func(j *workload.Job) {
			lean, ok := s.fits(&family{Family: s.bounds.Family(j)})
			if ok && (best == nil || lean.Memory.Total() < best.Memory.Total()) {
				best = lean
			}
		})
	}
	return best
}
