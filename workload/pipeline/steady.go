package pipeline

import "busbar.dev/unit"

// Steady is a pipeline with any number of micro-batches: filling, emptying and some in between
// are played, and what lies between repeats.
type Steady struct {
	micros      int
	whole       *Plan
	short, long *Plan // the same number of micro-batches beyond whole rounds of the ranks
}

// steady is how many rounds of as many micro-batches as ranks are played before the play is
// taken to repeat.
func (s Shape) steady() int { return max(3, (24+s.Ranks-1)/s.Ranks) }

// NewSteady is the pipeline of a shape.
func NewSteady(s Shape) (*Steady, error) {
	p := &Steady{micros: s.Micros}
	var err error
	if s.Micros <= (s.steady()+2)*s.Ranks {
		p.whole, err = NewPlan(s)
		return p, err
	}
	few := s
	few.Micros = s.steady()*s.Ranks + s.Micros%s.Ranks
	if p.short, err = NewPlan(few); err != nil {
		return nil, err
	}
	few.Micros += s.Ranks
	p.long, err = NewPlan(few)
	return p, err
}

// Time is how long the step takes.
func (p *Steady) Time(t *Times) unit.Span {
	if p.whole != nil {
		return p.whole.Simulate(t, nil)
	}
	short, long := p.short.Simulate(t, nil), p.long.Simulate(t, nil)
	// A round takes no less than the busiest rank works, however the play began.
	round := max(long-short, p.long.busiest(t)*unit.Span(p.long.Ranks))
	return long + round*unit.Span(p.micros-p.long.Micros)/unit.Span(p.long.Ranks)
}

// busiest is the work of the busiest rank on a micro-batch.
func (s Shape) busiest(t *Times) unit.Span {
	most := unit.Span(0)
	for r := range s.Ranks {
		work := unit.Span(0)
		for c := range s.Chunks {
			k := s.Place(r, c)
			work += t.Forward[k] + t.Backward[k] + t.Weight[k]
		}
		most = max(most, work)
	}
	return most
}

// Played is how many micro-batches of a shape are played; others are taken to repeat.
func (s Shape) Played() int {
	if s.Micros <= (s.steady()+2)*s.Ranks {
		return s.Micros
	}
	return (s.steady()+1)*s.Ranks + s.Micros%s.Ranks
}
