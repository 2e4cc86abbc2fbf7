package pipeline

import "fmt"

// Times is how long passes take.
type Times struct {
	// Forward, Backward and Weight are by place in the model. Where the schedule does not cut
	// the backward pass, Weight is part of it.
	Forward, Backward, Weight []float64
	Message                   float64 // from one rank to the next
}

// Seen is a pass that was played.
type Seen struct {
	Rank     int
	Pass     Pass
	From, To float64
}

// Plan is a pipeline's orders, to be played many times.
type Plan struct {
	Shape
	orders [][]move
}

// move is a pass with what it waits for and what waits for it.
type move struct {
	Pass
	place   int32
	out     int32 // where its end is kept; -1 is nowhere
	need    int32 // where the end of what it waits for is kept; -1 is nothing but its own rank
	remote  bool  // that comes from another rank
	sends   bool  // its result goes to another rank
	whole   bool  // gradients of weights are computed with it
	forward bool
}

// NewPlan is the plan of a shape.
func NewPlan(s Shape) (*Plan, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if n := 2 * float64(s.Ranks) * float64(s.Chunks) * float64(s.Micros); n > maxPasses {
		return nil, fmt.Errorf("a pipeline of %d ranks with %d chunks and %d micro-batches is %.3g passes; at most %d are played", s.Ranks, s.Chunks, s.Micros, n, int(maxPasses))
	}
	p := &Plan{Shape: s, orders: make([][]move, s.Ranks)}
	for r := range s.Ranks {
		order := s.Order(r)
		p.orders[r] = make([]move, len(order))
		for i, w := range order {
			p.orders[r][i] = s.move(r, w)
		}
	}
	return p, nil
}

// maxPasses bounds what is played.
const maxPasses = 1 << 24

// move finds what a pass of a rank waits for. What the rank itself did before needs no waiting.
func (s Shape) move(rank int, w Pass) move {
	place, last := s.Place(rank, int(w.Chunk)), s.Ranks*s.Chunks-1
	m := move{Pass: w, place: int32(place), out: -1, need: -1, forward: w.Kind == Forward, whole: w.Kind == Backward && !s.Schedule.Splits()}
	at := func(kind Kind, place int) int32 { return int32((int(kind)*(last+1)+place)*s.Micros) + w.Micro }
	from, to := place, place
	switch w.Kind {
	case Forward:
		m.out = at(Forward, place)
		from, to = max(place-1, 0), min(place+1, last)
	case Backward:
		m.out = at(Backward, place)
		from, to = min(place+1, last), max(place-1, 0)
	}
	if from != place {
		m.need = at(w.Kind, from)
		r, _ := s.Owner(from)
		m.remote = r != rank
	}
	r, _ := s.Owner(to)
	m.sends = r != rank
	return m
}

// play is the state of one.
type play struct {
	*Plan
	t      *Times
	blocks float64   // for which a rank waits after it sent something
	done   []float64 // when passes ended; negative is not yet
	free   []float64 // when a rank has nothing to do, or has sent its message
	first  []float64 // when a rank began
	last   []float64 // when it ended
}

// Play lays all passes as early as their order and what they wait for allow, and gives back how
// long the step takes. Schedules that cut the backward pass let a rank begin the next
// step when it is done (their papers check the norm of gradients afterwards), so that the longest
// of a rank counts; with the others all ranks meet at the end.
func (p *Plan) Play(t *Times, see func(Seen)) (float64, error) {
	n := 2 * p.Ranks * p.Chunks * p.Micros
	buf := make([]float64, n+3*p.Ranks)
	for i := range buf[:n] {
		buf[i] = -1
	}
	x := &play{Plan: p, t: t, done: buf[:n]}
	buf = buf[n:]
	x.free, x.first, x.last = buf[:p.Ranks], buf[p.Ranks:2*p.Ranks], buf[2*p.Ranks:]
	if p.Schedule.Blocks() {
		x.blocks = t.Message
	}
	next := make([]int, p.Ranks)
	for {
		moved, waits := false, false
		for r := range p.Ranks {
			k := x.run(r, next[r], see)
			moved = moved || k > next[r]
			next[r] = k
			waits = waits || k < len(p.orders[r])
		}
		if !waits {
			return x.length(), nil
		}
		if !moved {
			return 0, fmt.Errorf("the %s schedule of %d stages with %d chunks and %d micro-batches stops", p.Schedule, p.Ranks, p.Chunks, p.Micros)
		}
	}
}

// run plays the passes of a rank from one on, up to the first whose input is not there yet.
func (x *play) run(r, k int, see func(Seen)) int {
	order := x.orders[r]
	free := x.free[r]
	for ; k < len(order); k++ {
		w := &order[k]
		from := free
		if w.need >= 0 {
			ready := x.done[w.need]
			if ready < 0 {
				break
			}
			if w.remote {
				ready += x.t.Message
			}
			from = max(from, ready)
		}
		end := from
		switch {
		case w.forward:
			end += x.t.Forward[w.place]
		case w.Kind == Backward:
			end += x.t.Backward[w.place]
			if w.whole {
				end += x.t.Weight[w.place]
			}
		default:
			end += x.t.Weight[w.place]
		}
		if k == 0 {
			x.first[r] = from
		}
		x.last[r], free = end, end
		if w.sends {
			free += x.blocks
		}
		if w.out >= 0 {
			x.done[w.out] = end
		}
		if see != nil {
			see(Seen{r, w.Pass, from, end})
		}
	}
	x.free[r] = free
	return k
}

// length is that of the step.
func (x *play) length() float64 {
	end := 0.0
	for r := range x.Ranks {
		if x.Schedule.Splits() {
			end = max(end, x.last[r]-x.first[r])
		} else {
			end = max(end, x.last[r])
		}
	}
	return end
}
