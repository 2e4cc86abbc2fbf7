package health

import (
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// seeds is where the seeds of the tests of whole fleets begin: thresholds were chosen with 0, the
// figures of the documentation are of others too.
var seeds = flag.Uint64("seeds", 0, "first seed of the tests of fleets that became slower")

// noise is how the level of a healthy fleet moves from sweep to sweep, as a logarithm.
type noise struct {
	name string
	make func(r *rand.Rand) func() float64
}

// white is noise without a memory, of which a share of sweeps is slow.
func white(spread, busy float64) func(r *rand.Rand) func() float64 {
	return func(r *rand.Rand) func() float64 {
		return func() float64 {
			x := spread * r.NormFloat64()
			if r.Float64() < busy {
				x += math.Log(0.4 + 0.5*r.Float64())
			}
			return x
		}
	}
}

// drift wanders and comes back: memory is the part that is left of where it was.
func drift(spread, memory float64) func(r *rand.Rand) func() float64 {
	return func(r *rand.Rand) func() float64 {
		x := spread * r.NormFloat64()
		return func() float64 {
			x = memory*x + spread*math.Sqrt(1-memory*memory)*r.NormFloat64()
			return x + 0.01*r.NormFloat64()
		}
	}
}

// spells are times of some sweeps during which everything is slow.
func spells(begin, end float64) func(r *rand.Rand) func() float64 {
	return func(r *rand.Rand) func() float64 {
		in, depth := false, 0.0
		return func() float64 {
			switch {
			case in && r.Float64() < end:
				in = false
			case !in && r.Float64() < begin:
				in, depth = true, math.Log(0.5+0.4*r.Float64())
			}
			x := 0.01 * r.NormFloat64()
			if in {
				x += depth
			}
			return x
		}
	}
}

// days are slower by day than by night.
func days(r *rand.Rand) func() float64 {
	k := r.IntN(24)
	return func() float64 {
		k++
		x := 0.015 * r.NormFloat64()
		if k%24 >= 8 && k%24 < 18 {
			x -= 0.15 + 0.05*r.NormFloat64()
		}
		return x
	}
}

var noises = []noise{
	{"1%", white(0.01, 0)},
	{"3%", white(0.03, 0)},
	{"1%, 15% of sweeps slow", white(0.01, 0.15)},
	{"1%, 40% of sweeps slow", white(0.01, 0.4)},
	{"10%", white(0.1, 0)},
	{"drift of 5%, over 5 sweeps", drift(0.05, 0.8)},
	{"drift of 5%, over 20 sweeps", drift(0.05, 0.95)},
	{"drift of 10%, over 100 sweeps", drift(0.1, 0.99)},
	{"spells of 4 sweeps, every 20", spells(0.05, 0.25)},
	{"spells of 10 sweeps, every 50", spells(0.02, 0.1)},
	{"slower by day", days},
}

// TestSlumpNoise counts slumps of levels that only make noise. Hours that are slow are told of when
// they are the first of their kind.
func TestSlumpNoise(t *testing.T) {
	const runs, length = 30, 200
	for _, c := range noises {
		wrong := 0
		for seed := range uint64(runs) {
			next := c.make(rand.New(rand.NewPCG(*seeds+seed, 11)))
			var levels []float64
			was := false
			for range length / enough { // it lasts as many at least
				levels = append(levels, next(), next(), next())
				_, _, _, found := slump(levels)
				if found && !was {
					wrong++
				}
				was = found
			}
		}
		t.Logf("%s: %d slumps in %d sweeps", c.name, wrong, runs*length)
		most := 1
		switch {
		case strings.HasPrefix(c.name, "spells"):
			most = 2 * runs
		case c.name == "slower by day", strings.HasPrefix(c.name, "drift of 10%"):
			most = runs / 5 // it is slower, for a while
		}
		if wrong > most {
			t.Errorf("%s: %d slumps", c.name, wrong)
		}
	}
}

// TestSlumpPower counts falls that are noticed, by depth and past.
func TestSlumpPower(t *testing.T) {
	const runs = 200
	for _, c := range []struct {
		noise
		past               int
		three, four, eight int // least, from a drop to 70 % on
	}{
		{noises[0], 6, 0, 0, 200},
		{noises[0], 20, 0, 200, 200},
		{noises[0], 100, 200, 200, 200},
		{noises[1], 100, 195, 195, 200},
		{noises[2], 100, 0, 0, 190},
		{noises[6], 20, 0, 150, 180},
	} {
		for _, left := range []float64{0.9, 0.8, 0.7, 0.5} {
			within := map[int]int{}
			for seed := range uint64(runs) {
				next := c.make(rand.New(rand.NewPCG(*seeds+seed, 12)))
				var levels []float64
				for range c.past {
					levels = append(levels, next())
				}
				for n := 1; n <= 8; n++ {
					levels = append(levels, next()+math.Log(left))
					if _, _, _, found := slump(levels); !found {
						continue
					}
					for _, most := range []int{3, 4, 8} {
						if n <= most {
							within[most]++
						}
					}
					break
				}
			}
			t.Logf("%s, past of %d, to %.0f%%: within three sweeps %d, four %d, eight %d of %d", c.name, c.past, 100*left,
				within[3], within[4], within[8], runs)
			if left < 0.8 && (within[3] < c.three || within[4] < c.four || within[8] < c.eight) {
				t.Errorf("%s, past of %d, to %.0f%%: %v", c.name, c.past, 100*left, within)
			}
		}
	}
}
