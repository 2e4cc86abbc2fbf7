package health

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

const (
	leastPast  = 6      // sweeps that make a past of the fleet
	leastRow   = 3      // slow sweeps in a row that are more than an accident, at least
	settled    = 100    // sweeps after which a lower level is the normal one
	mostLevels = 256    // sweeps that are looked at
	mostAsked  = 10_000 // pairs that are, of a large fleet
	leastPairs = 6      // that a sweep must have: those of three nodes
	// rareRow is how rare a row of slow sweeps must be in such a past: a shared machine is slow now and then.
	rareRow = 1e-5
)

// slower is the finding that most pairs became slower together; nil where they did not. Ways of measuring that nobody
// uses any more are not asked.
func (t *table) slower() *finding.Finding {
	setups := map[string]bool{}
	for _, w := range t.sweeps.last(window) {
		setups[w.setup] = true
	}
	for _, setup := range slices.Sorted(maps.Keys(setups)) {
		if f := t.slowerBy(setup); f != nil {
			return f
		}
	}
	return nil
}

// slowerBy looks at sweeps that were measured alike.
func (t *table) slowerBy(setup string) *finding.Finding {
	sweeps, levels := t.fleetLevels(setup)
	start, before, good, fell := slump(levels)
	if !fell {
		return nil
	}
	since := levels[start:]
	factor := round(math.Exp(medianOf(since) - before))
	f := found(SlowFleet, "The fleet", "", sweeps[start].at, []string{
		fmt.Sprintf("%d of %d sweeps since are slow (%s); normal is the median of the %d before", len(since)-good, len(since),
			setup, start),
	}, 100*factor, clock(sweeps[start].at))
	f.ID, f.Nodes = "slow-fleet:", t.members(func(*node) bool { return true })
	f.Figure, f.Severity, f.Factor, f.Clearing = bandwidth, severity(factor), factor, good > 0
	return &f
}

// fleetLevels are the sweeps of a setup with about as many pairs as the last ones, oldest first, and of each the
// logarithm of the most that seven of ten pairs have of their own median. Pairs that are measured at once share the
// network, hence as many; a sweep that is under way has fewer.
func (t *table) fleetLevels(setup string) (sweeps []*sweep, levels []float64) {
	shown := map[*sweep][]float32{}
	for i := 0; i < len(t.series); i += 1 + len(t.series)/mostAsked {
		r := &t.series[i]
		var of []*sweep
		var rates []float32
		for _, p := range r.samples {
			w := t.sweeps.at(p.sweep)
			if v, ok := p.log(); ok && w.setup == setup && r.class != unjudged {
				of, rates = append(of, w), append(rates, float32(v))
			}
		}
		usual := float32(middle(slices.Clone(rates)))
		for k, w := range of {
			shown[w] = append(shown[w], rates[k]-usual)
		}
	}
	most := leastPairs
	for _, w := range t.sweeps.last(window) {
		most = max(most, len(shown[w]))
	}
	for _, w := range t.sweeps.last(mostLevels) {
		if n := len(shown[w]); 3*n >= 2*most && 2*n <= 3*most {
			sweeps, levels = append(sweeps, w), append(levels, float64(stats.Nearest(shown[w], 0.7)))
		}
	}
	return sweeps, levels
}

// slump finds out whether levels, oldest first, are at their end below 85 % of what they were before start, and how
// many of the last are good again. Whoever asks for the first time after years gets the same answer as who always asks.
func slump(levels []float64) (start int, before float64, good int, found bool) {
	first, low, row := 0, 0, 0 // of the past: its first sweep, how many were slow; and how many are now, in a row
	for i, x := range levels {
		if i-first < leastPast {
			continue
		}
		if !found {
			before = medianOf(levels[first:i])
		}
		if x < before+math.Log(0.85) {
			row, good = row+1, 0
		} else if good++; !found || good >= enough { // such a time belongs to what this fleet has
			found, low, row = false, low+row, 0
		}
		// The share of slow sweeps is taken for more than it shows by as much as chance may hide.
		share := (float64(low) + 1 + math.Sqrt(float64(low))) / float64(i+3-first-row)
		switch {
		case found && i-start >= settled:
			found, first, low, row = false, start, 0, 0
		case !found && row >= leastRow && float64(row) >= math.Log(rareRow)/math.Log(share):
			found, start = true, i+1-row
		}
	}
	return start, before, good, found
}

// medianOf is the median of a list, which it leaves as it is.
func medianOf(v []float64) float64 { return stats.Nearest(slices.Clone(v), 0.5) }
