package pipeline

import (
	"fmt"

	"busbar.dev/unit"
)

// Times is how long passes take.
type Times struct {
	// Forward, Backward and Weight are by place in the model. Where the schedule does not cut
	// the backward pass, Weight is part of it.
	Forward, Backward, Weight []unit.Span
	Message                   unit.Span // from one rank to the next
}

// Event is a pass that was played.
type Event struct {
	Rank     int
	Pass     Pass
	From, To unit.Span
}

// Plan is a pipeline's passes in an order in which each finds what it waits for done before it,
// to be played many times; not by two at once.
type Plan struct {
	Shape
	moves []move
	// Of the last play: when passes ended, and by rank when it is free, began and ended.
	done              []unit.Span
	free, first, last []unit.Span
}

// move is a pass with what it waits for and what waits for it.
type move struct {
	Pass
	rank   int32
	place  int32
	out    int32 // where its end is kept; -1 is nowhere
	need   int32 // where the end of what it waits for is kept; -1 is nothing but its own rank
	remote bool  // that comes from another rank
	sends  bool  // its result goes to another rank
	opens  bool  // it is the first of its rank
}

// maxPasses bounds what is played.
const maxPasses = 1 << 24

// NewPlan is the plan of a shape.
func NewPlan(s Shape) (*Plan, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	n := 2 * float64(s.Ranks) * float64(s.Chunks) * float64(s.Micros)
	if n > maxPasses {
		return nil, fmt.Errorf("a pipeline of %d ranks with %d chunks and %d micro-batches is %.3g passes; at most %d are played", s.Ranks, s.Chunks, s.Micros, n, maxPasses)
	}
	buf := make([]unit.Span, int(n)+3*s.Ranks)
	p := &Plan{Shape: s, done: buf[:int(n)]}
	buf = buf[int(n):]
	p.free, p.first, p.last = buf[:s.Ranks], buf[s.Ranks:2*s.Ranks], buf[2*s.Ranks:]
	return p, p.sort()
}

// sort goes round the ranks, each as far as it gets, until all have done all.
func (p *Plan) sort() error {
	orders := make([][]Pass, p.Ranks)
	all := 0
	for r := range orders {
		orders[r] = p.Order(r)
		all += len(orders[r])
	}
	p.moves = make([]move, 0, all)
	there := make([]bool, len(p.done))
	next := make([]int, p.Ranks)
	for len(p.moves) < all {
		before := len(p.moves)
		for r, order := range orders {
			for next[r] < len(order) {
				m := p.move(r, order[next[r]])
				if m.need >= 0 && !there[m.need] {
					break
				}
				if m.out >= 0 {
					there[m.out] = true
				}
				m.opens = next[r] == 0
				p.moves = append(p.moves, m)
				next[r]++
			}
		}
		if len(p.moves) == before {
			return fmt.Errorf("the %s schedule of %d stages with %d chunks and %d micro-batches stops", p.Schedule, p.Ranks, p.Chunks, p.Micros)
		}
	}
	return nil
}

// move finds what a pass of a rank waits for. What the rank itself did before needs no waiting.
func (s Shape) move(rank int, w Pass) move {
	place, last := s.Place(rank, int(w.Chunk)), s.Ranks*s.Chunks-1
	m := move{Pass: w, rank: int32(rank), place: int32(place), out: -1, need: -1}
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

// Simulate lays all passes as early as their order and what they wait for allow, and gives back how
// long the step takes. Schedules that cut the backward pass let a rank begin the next
// step when it is done (their papers check the norm of gradients afterwards), so that the longest
// of a rank counts; with the others all ranks meet at the end.
func (p *Plan) Simulate(t *Times, see func(Event)) unit.Span {
	clear(p.free)
	blocks := unit.Span(0)
	if p.Schedule.Blocks() {
		blocks = t.Message
	}
	splits := p.Schedule.Splits()
	for i := range p.moves {
		w := &p.moves[i]
		from := p.free[w.rank]
		if w.need >= 0 {
			ready := p.done[w.need]
			if w.remote {
				ready += t.Message
			}
			from = max(from, ready)
		}
		end := from
		switch w.Kind {
		case Forward:
			end += t.Forward[w.place]
		case Backward:
			end += t.Backward[w.place]
			if !splits {
				end += t.Weight[w.place]
			}
		default:
			end += t.Weight[w.place]
		}
		if w.opens {
			p.first[w.rank] = from
		}
		p.last[w.rank], p.free[w.rank] = end, end
		if w.sends {
			p.free[w.rank] += blocks
		}
		if w.out >= 0 {
			p.done[w.out] = end
		}
		if see != nil {
			see(Event{int(w.rank), w.Pass, from, end})
		}
	}
	return p.length()
}

// length is that of the step that was played.
func (p *Plan) length() unit.Span {
	end := unit.Span(0)
	for r := range p.Ranks {
		if p.Schedule.Splits() {
			end = max(end, p.last[r]-p.first[r])
		} else {
			end = max(end, p.last[r])
		}
	}
	return end
}
