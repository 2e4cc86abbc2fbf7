package engine

import (
	"fmt"
	"math"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// Bound is how far off the result of a compressed call may be from the exact one. With S the
// sum of the magnitudes of all ranks' elements (avg: their mean; min and max, and calls that
// only move data: the greatest of them), |error| ≤ Rel·S + Abs. With Int8 the magnitude of a
// rank's element is the greatest of its block of 256, or of any range that contains it.
type Bound struct {
	// Roundings is how often the contribution that travels farthest is rounded on its way to
	// a result.
	Roundings int
	Rel, Abs  float64
	// Most is what S may be, so that no sum on the way becomes infinite.
	Most float64
}

// Of is the bound for a sum of magnitudes; infinite where the format has no numbers for it.
func (b Bound) Of(s float64) float64 {
	if !(s <= b.Most) {
		return math.Inf(1)
	}
	return b.Rel*s + b.Abs
}

// Limits of what is followed, in ops and chunks: by BoundFor, and by Prepare.
const (
	boundWork   = 1 << 28
	prepareWork = 1 << 20
)

// BoundFor follows every contribution through a schedule and counts roundings. It is an error
// when the schedule would leave ranks with different bits, or is too long to follow.
func BoundFor(s *schedule.Schedule, op coll.Op, w Wire) (Bound, error) {
	if err := CanCompress(op, w); err != nil {
		return Bound{}, err
	}
	if s.Program == nil || s.Ranks < 1 || s.Lanes < 1 || s.Layout.Blocks < 1 || s.Layout.Channels < 1 || cellsOf(s) > boundWork/8 {
		return Bound{}, fmt.Errorf("%s by %s: no schedule, or one too large to follow", s.Kind, s.Name)
	}
	t := newTracer(s, w, boundWork)
	if err := t.run(); err != nil {
		return Bound{}, fmt.Errorf("%s by %s: %w", s.Kind, s.Name, err)
	}
	far, all, err := t.results()
	if err != nil {
		return Bound{}, fmt.Errorf("%s by %s: %w", s.Kind, s.Name, err)
	}
	n := s.Ranks
	u, tiny, most := w.unit()
	b := Bound{Roundings: far}
	if w != Int8 && (op.Reduce == coll.Min || op.Reduce == coll.Max) {
		far = min(far, 1) // rounding keeps the order: the first one is the last that changes anything
	}
	// Each of up to n sums of float32, and the division of avg, may be off by half a unit.
	sums := 0.0
	if op.Kind.Reduces() && op.Reduce != coll.Min && op.Reduce != coll.Max {
		sums = float64(n)
	} else {
		all = far // errors of what is not taken do not count
	}
	grow := math.Pow(1+u, float64(far)) * math.Pow(1+0x1p-24, sums)
	b.Rel, b.Abs = grow-1, float64(all)*tiny*grow
	b.Most = most / grow
	if op.Reduce == coll.Avg && op.Kind.Reduces() {
		b.Abs, b.Most = b.Abs/float64(n)+0x1p-150, b.Most/float64(n)
	}
	return b, nil
}

// unit is the relative error of one rounding, the absolute one of what is too small for that,
// and the greatest number.
func (w Wire) unit() (u, tiny, most float64) {
	switch w {
	case FP16:
		return 0x1p-11, 0x1p-25, 65504
	case BF16:
		return 0x1p-8, 0x1p-134, 0x1.fep127
	case Int8:
		return (1 + 0x1p-14) / 254, 0x1p-127, math.MaxFloat32
	}
	return 0, 0, math.MaxFloat32
}

// traced is a chunk's value: which roundings of which sums it is.
type traced struct {
	id    uint64 // equal for values that have equal bits
	far   int    // roundings of the contribution that has the most
	all   int    // roundings in it
	clean bool   // it was rounded last
}

func (v traced) rounded(w Wire) traced {
	if v.clean || w == Uncompressed {
		return v
	}
	return traced{scramble(v.id), v.far + 1, v.all + 1, true}
}

func (v traced) plus(x traced) traced {
	return traced{v.id + x.id, max(v.far, x.far), v.all + x.all, false}
}

// scramble makes another number of one (the finaliser of splitmix64), so that sums of numbers
// tell what was summed.
func scramble(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// tracer runs a schedule on traced values as the engine runs it on elements.
type tracer struct {
	s      *schedule.Schedule
	wire   Wire
	cells  [][3][]traced // by rank and buffer
	pc     [][]int       // by rank and lane
	queues map[[3]int][][]traced
	work   int // done
	most   int // that may be done
}

func newTracer(s *schedule.Schedule, w Wire, most int) *tracer {
	t := &tracer{s: s, wire: w, most: most, queues: map[[3]int][][]traced{}, cells: make([][3][]traced, s.Ranks), pc: make([][]int, s.Ranks)}
	for r := range t.cells {
		t.pc[r] = make([]int, s.Lanes)
		for b, n := range []int{schedule.Data: s.Layout.Chunks, schedule.Out: s.Layout.Chunks, schedule.Temp: s.Temp} {
			t.cells[r][b] = make([]traced, n)
		}
		for chunk := range t.cells[r][schedule.Data] {
			id := uint64(r)<<32 | uint64(chunk)
			if s.Kind.Reduces() {
				id = uint64(r) << 32 // sums of one chunk must be comparable
			}
			t.cells[r][schedule.Data][chunk].id = scramble(id)
		}
	}
	return t
}

// cellsOf is how many values there are to follow.
func cellsOf(s *schedule.Schedule) int { return s.Ranks * (2*s.Layout.Chunks + s.Temp) }

// run lets every lane go on in turn until none can.
func (t *tracer) run() error {
	if len(t.s.Switches) > 0 {
		return fmt.Errorf("it computes in switches")
	}
	for {
		moved, left := false, false
		for r := range t.pc {
			for lane := range t.pc[r] {
				for t.pc[r][lane] < t.s.Len(r, lane) {
					ok, err := t.step(r, lane, t.s.At(r, lane, t.pc[r][lane]))
					if err != nil {
						return err
					}
					if !ok {
						left = true
						break
					}
					t.pc[r][lane]++
					moved = true
				}
			}
		}
		if !left {
			return nil
		}
		if !moved {
			return fmt.Errorf("the schedule gets stuck")
		}
	}
}

// step runs one op; false when it must wait.
func (t *tracer) step(r, lane int, o schedule.Op) (bool, error) {
	if o.Verb > schedule.Fold || o.Buf > schedule.Temp || o.Dst > schedule.Temp || o.After.Lane < 0 || int(o.After.Lane) >= t.s.Lanes {
		return false, fmt.Errorf("rank %d lane %d: %s cannot be", r, lane, o)
	}
	if o.After.Count > 0 && t.pc[r][o.After.Lane] < int(o.After.Count) {
		return false, nil
	}
	if o.Verb == schedule.Nop {
		return true, nil
	}
	mem := t.cells[r][o.Buf]
	if o.From < 0 || o.To < o.From || int(o.To) > len(mem) || o.Verb.Local() && (o.At < 0 || int(o.At)+o.Len() > len(t.cells[r][o.Dst])) {
		return false, fmt.Errorf("rank %d lane %d: %s is out of bounds", r, lane, o)
	}
	if t.work += 1 + o.Len(); t.work > t.most {
		return false, fmt.Errorf("it has too many ops to follow")
	}
	vals := mem[o.From:o.To]
	switch o.Verb {
	case schedule.Send:
		sent := make([]traced, len(vals))
		for i, v := range vals {
			sent[i] = v.rounded(t.wire)
		}
		if shared(t.s.Kind) {
			copy(vals, sent)
		}
		key := [3]int{r, int(o.Peer), lane}
		t.queues[key] = append(t.queues[key], sent)
	case schedule.Recv, schedule.RecvReduce:
		key := [3]int{int(o.Peer), r, lane}
		if len(t.queues[key]) == 0 {
			return false, nil
		}
		got := t.queues[key][0]
		t.queues[key] = t.queues[key][1:]
		if len(got) != len(vals) {
			return false, fmt.Errorf("rank %d lane %d: %s gets %d chunks", r, lane, o, len(got))
		}
		for i, v := range got {
			if o.Verb == schedule.RecvReduce {
				v = vals[i].plus(v)
			}
			vals[i] = v
		}
	case schedule.Copy, schedule.Fold:
		to := t.cells[r][o.Dst][o.At:]
		for i, v := range vals {
			if o.Verb == schedule.Fold {
				v = to[i].plus(v)
			}
			to[i] = v
		}
	}
	return true, nil
}

// agreed tells which chunks of Data all ranks end with alike without rounding them at the end;
// none where the schedule is too long for Prepare to find out.
func (t *tracer) agreed() []bool {
	all := make([]bool, t.s.Layout.Chunks)
	if t.work > prepareWork || cellsOf(t.s) > prepareWork {
		return all
	}
	for chunk := range all {
		all[chunk] = true
		for r := range t.cells {
			all[chunk] = all[chunk] && t.cells[r][schedule.Data][chunk].id == t.cells[0][schedule.Data][chunk].id
		}
	}
	return all
}

// results are the most roundings of a contribution and in a result, of all results.
func (t *tracer) results() (far, all int, err error) {
	buf := schedule.Data
	if !t.s.Kind.InPlace() {
		buf = schedule.Out
	}
	agreed := t.agreed()
	for r := range t.cells {
		for chunk, v := range t.cells[r][buf] {
			block, _ := t.s.Layout.Place(chunk)
			switch {
			case t.s.Kind == coll.ReduceScatter && block != r, t.s.Kind == coll.Scatter && block != r,
				(t.s.Kind == coll.Reduce || t.s.Kind == coll.Gather) && r != t.s.Root:
				continue // scratch
			}
			if shared(t.s.Kind) && !agreed[chunk] {
				v = v.rounded(t.wire)
				if first := t.cells[0][buf][chunk].rounded(t.wire); v.id != first.id {
					return 0, 0, fmt.Errorf("chunk %d would have other bits on rank %d than on rank 0; take another algorithm", chunk, r)
				}
			}
			far, all = max(far, v.far), max(all, v.all)
		}
	}
	return far, all, nil
}
