package diff

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Options say when a difference counts. The zero value is usual: 5% and 0.05.
type Options struct {
	Alpha     float64 // a smaller p is no accident; 0 is 0.05
	Threshold float64 // a slow-down above this share is bad; 0 is 0.05, below 0 none is too small
}

// fewest is how many observations each side needs: with three, no outcome is rare enough.
const fewest = 4

// advised is how many runs should be kept, so that the interval of a median is one.
const advised = 6

// Verdict is what became of a row.
type Verdict string

// Verdicts.
const (
	Slower  Verdict = "slower"
	Faster  Verdict = "faster"
	Same    Verdict = "same"    // nothing that could not be an accident
	Unknown Verdict = "unknown" // too few observations to tell
)

// Side is one side of a row.
type Side struct {
	Median unit.Time `json:"median_s"`
	// Low and High are where the median lies, at 95%. Fewer than six observations cannot say
	// that, and it is the least and the greatest of them.
	Low   unit.Time `json:"low_s"`
	High  unit.Time `json:"high_s"`
	N     int       `json:"n"` // observations
	Runs  int       `json:"records"`
	Algo  string    `json:"algo,omitempty"`
	Wrong int64     `json:"wrong,omitempty"`
}

// Measured is what was measured, one collective of one size.
type Measured struct {
	Op        coll.Kind  `json:"op"`
	Size      unit.Bytes `json:"size_bytes"`
	Dtype     string     `json:"dtype"`
	Ranks     int        `json:"ranks"`
	Transport string     `json:"transport"`
	InPlace   bool       `json:"in_place"`
	Setup     string     `json:"setup"` // what rows of one table have in common, in words
}

// Row is one collective of one size on both sides.
type Row struct {
	Measured
	Old      Side     `json:"old"`
	New      Side     `json:"new"`
	Change   float64  `json:"change"`       // new over old, less one: 0.1 is ten percent slower
	P        *float64 `json:"p"`            // null where nothing could be tested
	Adjusted *float64 `json:"p_adjusted"`   // P for as many rows as were tested: see adjust
	Between  bool     `json:"between_runs"` // observations are whole runs of a tool, not single calls in one
	Verdict  Verdict  `json:"verdict"`
	Bad      bool     `json:"bad"` // slower by more than the threshold, or results are wrong that were right
}

// measured says what a row is of; apart, only what both sides share.
func (b *bundle) measured(apart bool) Measured {
	r := b.list[0]
	m := Measured{r.Op, r.Size, r.Dtype, r.Ranks, r.Transport, r.InPlace, r.Op.String() + ", " + r.Dtype}
	if apart {
		return m
	}
	parts := []string{m.Setup, fmt.Sprintf("%d ranks", r.Ranks)}
	if r.Nodes > 0 {
		parts = append(parts, fmt.Sprintf("%dx%d", r.Nodes, r.PerNode))
	}
	parts = append(parts, r.Transport)
	if r.Compress != "" && r.Compress != "none" {
		parts = append(parts, r.Compress)
	}
	if r.InPlace {
		parts = append(parts, "in place")
	}
	for _, k := range slices.Sorted(maps.Keys(r.Env)) {
		parts = append(parts, k+"="+r.Env[k])
	}
	m.Setup = strings.Join(parts, ", ")
	return m
}

// Report is the comparison.
type Report struct {
	Rows             []Row
	OnlyOld, OnlyNew []Measured // rows that have no other side
	// Geomean is the mean change of all rows, as a ratio less one.
	Geomean float64
	// Apart tells that no row is of the same layout and settings on both sides: rows are of the same operation and size.
	Apart bool
	Notes []string
}

// Bad tells whether a row got worse than allowed.
func (r *Report) Bad() bool {
	return slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Bad })
}

// Largest is the row of the largest size, and how many times as long it takes on the new side, 1 where that is no more
// than chance.
func (r *Report) Largest() (size unit.Bytes, ratio float64) {
	for i := range r.Rows {
		x := &r.Rows[i]
		if x.Size < size || x.Size == size && ratio > 0 || x.Old.Median <= 0 || x.New.Median <= 0 {
			continue
		}
		if size, ratio = x.Size, 1; x.Verdict != Same {
			ratio = 1 + x.Change
		}
	}
	return size, ratio
}

// Compare lays sweeps side by side. Rows come in the order of the old ones. Where no row has another side, rows of the
// same operation and size stand beside each other, if each side has one layout of it.
func Compare(before, after result.Sweeps, o Options) *Report {
	o.Alpha = cmp.Or(o.Alpha, 0.05)
	o.Threshold = cmp.Or(o.Threshold, 0.05)
	rep := &Report{}
	was, is := gather(before, keyOf), gather(after, keyOf)
	settle(was, is)
	if !common(was, is) && len(setups(was)) == 1 && len(setups(is)) == 1 {
		was, is, rep.Apart = gather(before, callOf), gather(after, callOf), true
	}
	newer := map[key]*bundle{}
	for _, b := range is {
		newer[b.key] = b
	}
	var logs float64
	single := false
	for _, b := range was {
		n, ok := newer[b.key]
		if !ok {
			rep.OnlyOld = append(rep.OnlyOld, b.measured(rep.Apart))
			continue
		}
		delete(newer, b.key)
		row := compare(b, n, rep.Apart)
		if row.Old.Median > 0 && row.New.Median > 0 {
			logs += math.Log1p(row.Change)
		}
		single = single || !row.Between && row.Verdict != Unknown
		rep.Rows = append(rep.Rows, row)
	}
	for _, b := range is {
		if newer[b.key] != nil {
			rep.OnlyNew = append(rep.OnlyNew, b.measured(rep.Apart))
		}
	}
	adjust(rep.Rows)
	for i := range rep.Rows {
		rep.Rows[i].judge(o)
	}
	if len(rep.Rows) > 0 {
		rep.Geomean = math.Exp(logs/float64(len(rep.Rows))) - 1
	}
	rep.notes(single)
	rep.tooFew(o)
	return rep
}

// notes say what limits the comparison.
func (r *Report) notes(single bool) {
	if single {
		r.Notes = append(r.Notes, fmt.Sprintf("p is of calls within single runs, which are more alike than runs are; keep "+
			"%d runs or more on each side to see the noise between them", advised))
	}
	unknown := 0
	for i := range r.Rows {
		if r.Rows[i].Verdict == Unknown {
			unknown++
		}
	}
	if unknown > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("fewer than %d observations on a side of %d of %d rows: nothing can be told "+
			"from noise there", fewest, unknown, len(r.Rows)))
	}
}

// compare tests one row.
func compare(was, is *bundle, apart bool) Row {
	row := Row{Measured: was.measured(apart), Verdict: Unknown}
	old, now := was.runs(), is.runs()
	row.Between = min(len(old), len(now)) >= fewest
	if !row.Between {
		if a, b := was.calls(), is.calls(); min(len(a), len(b)) >= fewest {
			old, now = a, b
		}
	}
	th := &benchmath.Thresholds{CompareAlpha: 0.05} // of which only P is taken
	x, y := benchmath.NewSample(old, th), benchmath.NewSample(now, th)
	row.Old, row.New = side(x, was), side(y, is)
	if row.Old.Median > 0 {
		row.Change = float64(row.New.Median)/float64(row.Old.Median) - 1
	}
	if min(len(old), len(now)) >= fewest {
		p := min(1, benchmath.AssumeNothing.Compare(x, y).P) // rounding may leave a little more
		row.P = &p
		row.Verdict = Same
	}
	return row
}

func side(s *benchmath.Sample, b *bundle) Side {
	x := Side{N: len(s.Values), Runs: len(b.list), Algo: b.algo}
	for _, r := range b.list {
		if r.Wrong != nil {
			x.Wrong += *r.Wrong
		}
	}
	sum := benchmath.AssumeNothing.Summary(s, 0.95)
	low, high := sum.Lo, sum.Hi
	if (math.IsInf(low, 0) || math.IsInf(high, 0)) && len(s.Values) > 0 {
		low, high = slices.Min(s.Values), slices.Max(s.Values)
	}
	x.Median, x.Low, x.High = unit.Micros(sum.Center), unit.Micros(low), unit.Micros(high)
	return x
}

// order puts rows by collective, form, setting and size, as tables do.
func order(a, b *bundle) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.list[0].Size, b.list[0].Size))
}
