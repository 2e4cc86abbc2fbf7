package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Correction is the name of what adjust does, and Least the smallest change that counts.
const (
	Correction = "benjamini-hochberg"
	Least      = 0.03
)

// adjust corrects for the number of rows: of twenty that did not change, one has a p below 0.05.
// By Benjamini and Hochberg, a row's p is multiplied by the number of rows over its place among
// them; of the rows then found below alpha, a share of alpha at most is expected to be accidents,
// and where nothing has changed, a table has any with the probability alpha at most.
//
// Benjamini, Hochberg: Controlling the False Discovery Rate, J. R. Stat. Soc. B 57 (1995).
func adjust(rows []Row) {
	var tested []*Row
	for i := range rows {
		if rows[i].P != nil {
			tested = append(tested, &rows[i])
		}
	}
	slices.SortStableFunc(tested, func(a, b *Row) int { return cmp.Compare(*a.P, *b.P) })
	least := 1.0
	for i, r := range slices.Backward(tested) {
		least = min(least, *r.P*float64(len(tested))/float64(i+1))
		r.Adjusted = new(least)
	}
}

// judge is the verdict on a row: a change that chance does not explain, that is worth a word, and
// that leads out of where either side's median may lie.
func (r *Row) judge(o Options) {
	if r.Adjusted != nil && *r.Adjusted < o.Alpha && r.apart() {
		r.Verdict = Slower
		if r.Change < 0 {
			r.Verdict = Faster
		}
	}
	r.Bad = r.Verdict == Slower && r.Change > o.Threshold || r.New.Wrong > 0 && r.Old.Wrong == 0
}

// apart reports whether the medians differ by Least or more, and by more than either is known to.
func (r *Row) apart() bool {
	a, b := r.Old, r.New
	if !(a.Median > 0 && b.Median > 0) || math.Abs(math.Log(float64(b.Median)/float64(a.Median))) < math.Log1p(Least) {
		return false
	}
	return (b.Median < a.Low || b.Median > a.High) && (a.Median < b.Low || a.Median > b.High)
}

// tooFew notes where a row that changes alone could not be told from chance, whatever it does.
func (r *Report) tooFew(o Options) {
	tested, short := 0, 0
	for i := range r.Rows {
		if r.Rows[i].Verdict != Unknown {
			tested++
		}
	}
	for i := range r.Rows {
		if x := &r.Rows[i]; x.Verdict != Unknown && rarest(x.Old.N, x.New.N)*float64(tested) >= o.Alpha {
			short++
		}
	}
	if short == 0 {
		return
	}
	n := fewest
	for rarest(n, n)*float64(tested) >= o.Alpha && n < 1000 {
		n++
	}
	r.Notes = append(r.Notes, fmt.Sprintf("in a table of %d rows, %d have too few observations to show a change of "+
		"theirs alone; keep %d runs or more on each side", tested, short, n))
}

// rarest is the smallest p that so many observations can have: all of one side below all of the
// other, of all ways to deal them out.
func rarest(m, n int) float64 {
	ways := 1.0
	for i := 1; i <= min(m, n) && ways < 1e12; i++ {
		ways *= float64(max(m, n)+i) / float64(i)
	}
	return 2 / ways
}
