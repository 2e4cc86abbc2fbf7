package bench

import (
	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// newSweep is a sweep of one point, without its times. Who measured it, where and when is the
// caller's to say: see result.Sweep.Describe.
func newSweep(op coll.Op, ranks int, algo string, sent unit.Bytes) *result.Sweep {
	s := &result.Sweep{
		Source: result.Measured, Op: op.Kind, Dtype: op.Type.String(), Ranks: ranks,
		Points: []result.Point{{Size: op.Size(ranks), Algo: algo, WireBytes: sent}},
	}
	if op.Kind.Reduces() {
		s.Redop = op.Reduce.String()
	}
	if op.Kind.Rooted() {
		s.Root = op.Root
	}
	return s
}

// summary is the timing of the runs of n ranks in seconds, which lie k elements from each other:
// that of the rank whose runs took longest in all.
func summary(all []float64, k, n, iters int) *result.Timing {
	var most, least float64
	slowest := 0
	for r := range n {
		var sum float64
		for _, t := range all[r*k : r*k+iters] {
			sum += t
		}
		if r == 0 || sum > most {
			most, slowest = sum, r
		}
		if r == 0 || sum < least {
			least = sum
		}
	}
	took := make([]unit.Time, iters)
	for i, t := range all[slowest*k : slowest*k+iters] {
		took[i] = wholeNanos(t)
	}
	t := &result.Timing{Slowest: &slowest, Spread: wholeNanos((most - least) / float64(iters))}
	t.Sample(took)
	return t
}

// wholeNanos is a time without what is below a nanosecond.
func wholeNanos(seconds float64) unit.Time { return unit.Time(seconds*1e9) * unit.Nanosecond }
