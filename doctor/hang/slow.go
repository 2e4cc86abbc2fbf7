package hang

import (
	"fmt"
	"slices"
)

// sample is one rank's time in one collective.
type sample struct {
	comm string
	op   string // with its number
	rank int    // global
	size int    // members
	us   float64
}

// lateArrivals finds the rank that the others wait for in most collectives: who arrives last waits least. Members of a
// collective are compared only with each other, and medians over many are taken, so that one hiccup is no verdict.
func lateArrivals(samples []sample) (rank int, share, waitUs float64, ok bool) {
	byOp := map[string][]sample{}
	for _, s := range samples {
		key := s.comm + " " + s.op
		byOp[key] = append(byOp[key], s)
	}
	caused, all := map[int][]float64{}, []float64{}
	lastOf := map[int]int{}
	total := 0.0
	for _, list := range byOp {
		if len(list) < 2 || len(list) < list[0].size {
			continue
		}
		slices.SortFunc(list, func(a, b sample) int {
			switch {
			case a.us < b.us:
				return -1
			case a.us > b.us:
				return 1
			}
			return a.rank - b.rank
		})
		// what the others waited for the last, beyond the next one: that would have been had it come with the rest
		wait := list[1].us - list[0].us
		caused[list[0].rank] = append(caused[list[0].rank], wait)
		lastOf[list[0].rank]++
		all = append(all, wait)
		total += wait
	}
	if len(all) < 20 || total <= 0 {
		return 0, 0, 0, false
	}
	best := -1
	sums := map[int]float64{}
	for r, list := range caused {
		for _, w := range list {
			sums[r] += w
		}
		if best < 0 || sums[r] > sums[best] || sums[r] == sums[best] && r < best {
			best = r
		}
	}
	slices.Sort(caused[best])
	waitUs = caused[best][len(caused[best])/2]
	return best, sums[best] / total, waitUs, true
}

// slow says that a rank is late in most collectives.
func (x *recorder) slow() (claim, bool) {
	samples := x.durations()
	rank, share, wait, ok := lateArrivals(samples)
	if !ok {
		return claim{}, false
	}
	ranks := map[int]bool{}
	for _, s := range samples {
		ranks[s.rank] = true
	}
	// with n ranks that are late by chance each has 1/n of the waiting
	if n := float64(len(ranks)); share < min(0.9, 2.2/n) || wait < 1000 {
		return claim{}, false
	}
	return claim{
		kind: Late, ranks: []int{rank}, source: x.source, sure: min(0.9, 0.5+share/2),
		why: fmt.Sprintf("rank %d comes last to most collectives: %.0f%% of the waiting is for it, %.1f ms at the median",
			rank, 100*share, wait/1000),
	}, true
}

// durations are the recorder's times of completed collectives, where timing was on.
func (x *recorder) durations() []sample {
	var list []sample
	for _, h := range x.order {
		for i := range h.entries {
			e := &h.entries[i]
			if e.DurationMs <= 0 || e.P2P || len(list) > 1<<20 {
				continue
			}
			list = append(list, sample{
				comm: fmt.Sprint(e.Group), op: fmt.Sprint(e.Seq), rank: h.rank, us: float64(e.DurationMs) * 1000,
				size: len(x.set.Groups[e.Group].Ranks),
			})
		}
	}
	return list
}
