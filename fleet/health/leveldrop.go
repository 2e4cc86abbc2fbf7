package health

import (
	"math"
	"slices"
	"time"
)

// stage is what a class showed at a time: in one sweep, or in the middle of several that came
// within a short while, which a disturbance spoils together.
type stage struct {
	at     int64
	x      float64 // a logarithm, of which more is better
	sweeps []uint32
}

// apart is how far stages are from each other at least.
const apart = 10 * time.Minute

// levelDrop is a fall of what all pairs of a class show, from which they did not recover.
type levelDrop struct {
	start int     // the stage at which it began
	base  float64 // the level before
	low   float64 // the middle since
	worst float64 // the deepest that the past was for as long, below what came before it
	past  int     // stages before that it is held against
	proof float64 // the logarithm of how rarely the past makes such a run
	need  float64 // from which on it is told
	run   int     // stages since
	good  int     // of them, up to the newest, that were well again
	since []float64
}

const (
	leastPast = 14   // stages that make a past
	mostPast  = 256  // and as far as it is looked at
	recent    = 6    // stages that tell what was just before
	mostRun   = 12   // stages within which a fall is noticed, or else it was none
	settled   = 100  // stages after which a lower level is what is usual
	leastFall = 0.08 // in the middle: 8 %
	// far is how many times its own spread the past must be left by: of its levels, and of what
	// looked like falls in it.
	far = 6
	// further is how much deeper than the past's deepest such fall it must be.
	further = 1.5
	// leastSpread is the smallest spread of levels that is believed in.
	leastSpread = 0.01
	// leastProof is e^9 to one. Shares of the past are counted with one more than there were, so
	// that a past of 20 quiet stages takes three, and only one of 90 is enough for two.
	leastProof = 9
	// wildProof is needed where the past knows such stages: nothing but this stands between a shared
	// machine and a false alarm.
	wildProof = 11.5
)

// levelTracker follows the level of a class, one stage after the other.
type levelTracker struct {
	n    int        // stages so far
	past []float64  // what was well, or what became usual
	now  *levelDrop // nil where all is well
}

// findLevelDrop goes through the stages in the order of time and tells whether they are in a slump at
// the end. Whoever asks again, or for the first time after years, gets the same answer.
func findLevelDrop(list []stage) *levelDrop {
	var t levelTracker
	for i := range list {
		t.add(list[i].x)
	}
	return t.now
}

func (t *levelTracker) add(x float64) {
	t.n++
	if t.now == nil {
		t.past = append(t.past, x)
		if t.now = begun(t.past); t.now != nil {
			t.now.start = t.n - t.now.run
			t.past = t.past[:len(t.past)-t.now.run]
		}
		return
	}
	s := t.now
	s.take(x)
	switch {
	case s.good >= enough:
		t.past = append(t.past, s.since...) // such a time belongs to what this fleet has
		t.now = nil
	case s.run >= settled:
		t.past = s.since
		t.now = nil
	}
}

// take adds a stage to a slump.
func (s *levelDrop) take(x float64) {
	s.since = append(s.since, x)
	s.run++
	s.good++
	if x < (s.base+s.low)/2 {
		s.good = 0
		s.low = halfway(s.since)
	}
}

// begun tells whether the newest of some levels are a slump, and how many of them.
func begun(v []float64) *levelDrop {
	n := len(v)
	if n < leastPast+2 || slices.Max(v[n-leastPast-2:])-max(v[n-1], v[n-2]) < leastFall/2 {
		return nil // most of the time
	}
	var found *levelDrop
	best := math.Inf(-1)
	for k := 1; k <= mostRun && n-k >= leastPast; k++ {
		end := n - k
		best = max(best, v[end])
		if k == 1 {
			continue
		}
		past := v[max(0, end-mostPast):end]
		if s := fallen(past, v[end:], best); s != nil && (found == nil || s.proof > found.proof) {
			found = s
		}
	}
	return found
}

// fallen holds a run of levels, of which best is the greatest, against their past.
func fallen(past, run []float64, best float64) *levelDrop {
	// Levels that slide are no fall: it must be one from the last few too.
	base := halfway(past[len(past)-recent:])
	if base-best < leastFall/2 {
		return nil // before the long past is sorted
	}
	base = min(base, halfway(past))
	s := &levelDrop{base: base, low: halfway(run), past: len(past), run: len(run), since: slices.Clone(run)}
	drop, spread := base-best, max(leastSpread, spreadOf(past))
	if drop < leastFall/2 || base-s.low < leastFall || drop < far*spread {
		return nil
	}
	s.need = leastProof
	if slices.Min(past) <= base-nearly*drop {
		s.need = wildProof
	}
	if s.proof = proof(past, run, base, drop, spread); s.proof < s.need {
		return nil
	}
	// What the past had of falls that last as long: noise with a memory makes them.
	var falls []float64
	for t := recent; t+len(run) <= len(past); t++ {
		falls = append(falls, halfway(past[t-recent:t])-slices.Max(past[t:t+len(run)]))
	}
	if len(falls) < recent {
		return nil
	}
	s.worst = max(0, slices.Max(falls))
	if drop < further*s.worst || drop < max(0, halfway(falls))+far*max(leastSpread, spreadOf(falls)) {
		return nil
	}
	return s
}

// nearly is the part of a fall's depth from which on a stage of the past looked alike.
const nearly = 0.6

// proof is the logarithm of how rarely such a past makes such a run. Stages that are disturbed fall to
// anywhere, those of a slump all to one level: of a run that is steady the first is as rare as
// low stages are, and the others as those that stay where the one before was.
func proof(past, run []float64, base, drop, spread float64) float64 {
	low := shareOf(past, func(i int) bool { return past[i] <= base-nearly*drop })
	next := func(within func(i int) bool) float64 {
		was, again := 0.0, 0.0
		for i := 1; i < len(past); i++ {
			if past[i-1] <= base-max(far*spread, nearly/2*drop) {
				was++
				if within(i) {
					again++
				}
			}
		}
		if was == 0 {
			return 0
		}
		return (again + 0.5) / (was + 1)
	}
	level, band := halfway(run), max(2*leastSpread, 3*spread)
	any := max(low, next(func(i int) bool { return past[i] <= base-nearly*drop }))
	steady := max(shareOf(past, func(i int) bool { return math.Abs(past[i]-level) <= band }),
		next(func(i int) bool { return math.Abs(past[i]-past[i-1]) <= band }))
	steady = min(steady, any)
	sum, first := 0.0, true
	for _, x := range run {
		switch {
		case first && math.Abs(x-level) <= band:
			sum -= math.Log(low)
			first = false
		case math.Abs(x-level) <= band:
			sum -= math.Log(steady)
		default:
			sum -= math.Log(any)
		}
	}
	return sum
}

// shareOf is the part of a past's stages that are of some sort, taken for more than it shows by as
// much as chance may hide.
func shareOf(past []float64, of func(i int) bool) float64 {
	n := 0.0
	for i := range past {
		if of(i) {
			n++
		}
	}
	return min((n+1+math.Sqrt(n))/(float64(len(past))+2), 1)
}

// spreadOf is the deviation of most values from their middle.
func spreadOf(v []float64) float64 {
	m := halfway(v)
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = math.Abs(x - m)
	}
	return 1.4826 * halfway(d)
}
