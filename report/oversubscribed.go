package report

import (
	"fmt"
	"strconv"

	"busbar.dev/cluster"
)

// even is how far a ratio may be from another and still be called the same: as
// far as three digits do not show it.
const even = 0.005

// oversubscription is the ratio of a switch's capacity towards the hosts to that
// away from them, 0 when either is missing or not fully known.
func (v *netView) oversubscription(s int) float64 {
	h, ok1 := v.toHosts[s].rate()
	d, ok2 := v.down[s].rate()
	u, ok3 := v.up[s].rate()
	if !ok1 || !ok2 || !ok3 || h+d == 0 || u == 0 {
		return 0
	}
	return float64((h + d) / u)
}

// ratio prints 2 as 2:1.
func ratio(r float64) string { return strconv.FormatFloat(r, 'g', 3, 64) + ":1" }

// overWords is the cell below "oversubscribed": the ratio, or "no" for a switch
// with more capacity up than down, of which a ratio below one would only puzzle.
func overWords(r float64) string {
	switch {
	case r == 0:
		return ""
	case r < 1-even:
		return "no"
	}
	return ratio(max(r, 1))
}

// statedWords says what somebody stated about the leaves, and how that goes with
// what their cables say.
func (v *netView) statedWords(o cluster.Fact[float64]) string {
	words := fmt.Sprintf("oversubscription %s [%s]", ratio(o.Value), o.Origin)
	if o.Value < 1-even {
		words = fmt.Sprintf("not oversubscribed [%s]", o.Origin)
	}
	low, high := 0.0, 0.0
	for s, t := range v.tier {
		r := v.oversubscription(s)
		if t != int(cluster.Leaf) || r == 0 {
			continue
		}
		if low == 0 || r < low {
			low = r
		}
		high = max(high, r)
	}
	switch {
	case high == 0:
		return words
	case high > o.Value*(1+even):
		return fmt.Sprintf("oversubscription up to %s (%s was stated [%s])", ratio(high), ratio(o.Value), o.Origin)
	case o.Value < 1-even: // no leaf has more than that either
		return words
	case high < o.Value*(1-even) && high > 1+even:
		return words + fmt.Sprintf(" if the leaves were full, now %s", ratio(high))
	case high < o.Value*(1-even):
		return words + " if the leaves were full, now none"
	case low < o.Value*(1-even):
		return words + ", less where a leaf is not full"
	}
	return words
}
