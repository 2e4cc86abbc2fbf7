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
	took  []unit.Span // of passes, by kind and place
	// Of the last play: when passes ended, and by rank when it is free, began and ended.
	done              []unit.Span
	free, first, last []unit.Span
}

// move is a pass with what it waits for and what waits for it.
type move struct {
	Pass
	rank   int32
	took   int32 // where its time is kept
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
		return nil, fmt.Errorf("a pipeline of %d ranks with %d chunks and %d micro-batches is %.3g passes; at most %d are "+
			"played", s.Ranks, s.Chunks, s.Micros, n, maxPasses)
	}
	places := s.Ranks * s.Chunks
	buf := make([]unit.Span, int(n)+3*s.Ranks+3*places)
	p := &Plan{Shape: s, done: buf[:int(n)]}
	buf = buf[int(n):]
	p.took, buf = buf[:3*places], buf[3*places:]
	p.free, p.first, p.last = buf[:s.Ranks], buf[s.Ranks:2*s.Ranks], buf[2*s.Ranks:]
	return p, p.sort()
}

// sort goes round the ranks, each as far as it gets, until all have done all.
func (p *Plan) sort() error {
	orders, spots := make([][]Pass, p.Ranks), make([][]spot, p.Ranks)
	all := 0
	for r := range orders {
		orders[r], spots[r] = p.Order(r), p.spots(r)
		all += len(orders[r])
	}
	p.moves = make([]move, 0, all)
	there := make([]bool, len(p.done))
	next := make([]int, p.Ranks)
	for len(p.moves) < all {
		before := len(p.moves)
		for r, order := range orders {
			for next[r] < len(order) {
				m := p.move(r, &spots[r][order[next[r]].Chunk], order[next[r]])
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
			return fmt.Errorf("the %s schedule of %d stages with %d chunks and %d micro-batches stops", p.Schedule, p.Ranks,
				p.Chunks, p.Micros)
		}
	}
	return nil
}

// spot is a place in the model as its rank sees it.
type spot struct {
	place           int32
	before, behind  bool // others lie before it and behind it
	remote, further bool // which are another rank's
}

// spots are the places of a rank, by chunk.
func (s Shape) spots(rank int) []spot {
	list := make([]spot, s.Chunks)
	for c := range list {
		k := s.Place(rank, c)
		x := spot{place: int32(k), before: k > 0, behind: k < s.Ranks*s.Chunks-1}
		if x.before {
			r, _ := s.Owner(k - 1)
			x.remote = r != rank
		}
		if x.behind {
			r, _ := s.Owner(k + 1)
			x.further = r != rank
		}
		list[c] = x
	}
	return list
}

// move finds what a pass of a rank waits for. What the rank itself did before needs no waiting.
func (s *Shape) move(rank int, x *spot, w Pass) move {
	places, micros := int32(s.Ranks*s.Chunks), int32(s.Micros)
	m := move{Pass: w, rank: int32(rank), took: int32(w.Kind)*places + x.place, out: -1, need: -1}
	switch w.Kind {
	case Forward:
		m.out = x.place*micros + w.Micro
		if x.before {
			m.need, m.remote = m.out-micros, x.remote
		}
		m.sends = x.further
	case Backward:
		m.out = (places+x.place)*micros + w.Micro
		if x.behind {
			m.need, m.remote = m.out+micros, x.further
		}
		m.sends = x.remote
	}
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
	p.times(t)
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
		end := from + p.took[w.took]
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

// times lays the times of passes by kind and place.
func (p *Plan) times(t *Times) {
	places := p.Ranks * p.Chunks
	copy(p.took, t.Forward[:places])
	copy(p.took[places:], t.Backward[:places])
	copy(p.took[2*places:], t.Weight[:places])
	if !p.Schedule.Splits() {
		for k := range places {
			p.took[places+k] += t.Weight[k]
		}
	}
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
