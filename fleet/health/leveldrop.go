package health

import (
	"math"
	"slices"
	"time"
)

// stage is what a class showed at a time: in one sweep, or in the middle of several that came
// within a short while, which a disturbance spoils together.
type stage struct {
	at int64
	x  float64 // a logarithm, of which more is better
}

// levelDrop is a fall of what all pairs of a class show, from which they did not recover.
type levelDrop struct {
	start int       // the stage at which it began
	began int64     // and when
	base  float64   // the level before
	low   float64   // the middle since
	worst float64   // the deepest that the past was for as long, below what came before it
	past  int       // stages before that it is held against
	proof float64   // the logarithm of how rarely the past makes such a run
	need  float64   // from which on it is told
	good  int       // stages, up to the newest, that were well again
	since []float64 // what the stages since show
}

const (
	apart     = 10 * time.Minute // stages are from each other at least
	leastPast = 14               // stages that make a past
	mostPast  = 256              // and as far as it is looked at
	recent    = 6                // stages that tell what was just before
	mostRun   = 12               // stages within which a fall is noticed, or else it was none
	settled   = 100              // stages after which a lower level is what is usual
	leastFall = 0.08             // in the middle: 8 %
	far       = 6                // times its own spread the past must be left by
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
	// nearly is the part of a fall's depth from which on a stage of the past looked alike.
	nearly = 0.6
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
	s := t.now
	if s == nil {
		t.past = append(t.past, x)
		if t.now = begun(t.past); t.now != nil {
			t.now.start = t.n - len(t.now.since)
			t.past = t.past[:len(t.past)-len(t.now.since)]
		}
		return
	}
	s.since = append(s.since, x)
	s.good++
	if x < (s.base+s.low)/2 {
		s.good, s.low = 0, medianOf(s.since)
	}
	switch {
	case s.good >= enough: // such a time belongs to what this fleet has
		t.past, t.now = append(t.past, s.since...), nil
	case len(s.since) >= settled:
		t.past, t.now = s.since, nil
	}
}

// begun tells whether the newest of some levels are a slump, and how many of them.
func begun(v []float64) (found *levelDrop) {
	n := len(v)
	if n < leastPast+2 || slices.Max(v[n-leastPast-2:])-max(v[n-1], v[n-2]) < leastFall/2 {
		return nil // most of the time
	}
	for k := 2; k <= mostRun && n-k >= leastPast; k++ {
		s := fallen(v[max(0, n-k-mostPast):n-k], v[n-k:])
		if s != nil && (found == nil || s.proof > found.proof) {
			found = s
		}
	}
	return found
}

// fallen holds a run of levels against their past.
func fallen(past, run []float64) *levelDrop {
	// Levels that slide are no fall: it must be one from the last few too.
	base, best := medianOf(past[len(past)-recent:]), slices.Max(run)
	if base-best < leastFall/2 {
		return nil // before the long past is sorted
	}
	base = min(base, medianOf(past))
	s := &levelDrop{base: base, low: medianOf(run), past: len(past), since: slices.Clone(run), need: leastProof}
	drop, spread := base-best, spreadOf(past)
	if drop < leastFall/2 || base-s.low < leastFall || drop < far*spread {
		return nil
	}
	if slices.Min(past) <= base-nearly*drop {
		s.need = wildProof
	}
	if s.proof = proof(past, run, base, drop, spread); s.proof < s.need {
		return nil
	}
	// What the past had of falls that last as long: noise with a memory makes them.
	var falls []float64
	for t := recent; t+len(run) <= len(past); t++ {
		falls = append(falls, medianOf(past[t-recent:t])-slices.Max(past[t:t+len(run)]))
	}
	if len(falls) < recent {
		return nil
	}
	s.worst = max(0, slices.Max(falls))
	if drop < further*s.worst {
		return nil
	}
	return s
}

// proof is the logarithm of how rarely such a past makes such a run. Stages that are disturbed fall to
// anywhere, those of a slump all to one level: of a run that is steady the first is as rare as
// low stages are, and the others as those that stay where the one before was.
func proof(past, run []float64, base, drop, spread float64) float64 {
	level, band := medianOf(run), max(2*leastSpread, 3*spread)
	isLow := func(i int) bool { return past[i] <= base-nearly*drop }
	// next is how often a stage of some sort follows one that was left by far.
	next := func(of func(i int) bool) float64 {
		was, again := 0.0, 0.0
		for i := 1; i < len(past); i++ {
			if past[i-1] <= base-max(far*spread, nearly/2*drop) {
				was++
				if of(i) {
					again++
				}
			}
		}
		if was == 0 {
			return 0
		}
		return (again + 0.5) / (was + 1)
	}
	first := shareOf(past, isLow)
	anywhere := max(first, next(isLow))
	steady := max(shareOf(past, func(i int) bool { return math.Abs(past[i]-level) <= band }),
		next(func(i int) bool { return math.Abs(past[i]-past[i-1]) <= band }))
	steady = min(steady, anywhere)
	sum, rare := 0.0, first
	for _, x := range run {
		if math.Abs(x-level) > band {
			sum -= math.Log(anywhere)
			continue
		}
		sum -= math.Log(rare)
		rare = steady
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

// spreadOf is the deviation of most values from their middle, as far as it is believed in.
func spreadOf(v []float64) float64 {
	m := medianOf(v)
	d := make([]float64, len(v))
	for i, x := range v {
		d[i] = math.Abs(x - m)
	}
	return max(leastSpread, normalMedian*medianOf(d))
}
