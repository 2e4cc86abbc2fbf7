package result

import (
	"cmp"
	"slices"

	"busbar.dev/internal/stats"
	"busbar.dev/unit"
)

// Merge makes one sweep of rows that were measured alike, in the order of their sizes: of every
// size the median of what its rows took, and the sum of their wrong elements. What was measured
// in place only counts as measured out of place too. The rest is as the first row says.
func Merge(rows []Row) *Sweep {
	if len(rows) == 0 {
		return &Sweep{}
	}
	s := *rows[0].Sweep
	s.Points = nil
	at := map[unit.Bytes]int{}
	times := map[*Timing][]unit.Time{}
	for _, r := range rows {
		i, ok := at[r.Size]
		if !ok {
			i = len(s.Points)
			at[r.Size] = i
			s.Points = append(s.Points, Point{Size: r.Size, Algo: r.Algo, Proto: r.Proto, Channels: r.Channels})
		}
		p := &s.Points[i]
		p.Line = r.Point.Line
		to := &p.Out
		if r.InPlace {
			to = &p.In
		}
		if *to == nil {
			*to = &Timing{}
		}
		times[*to] = append(times[*to], r.Middle())
		(*to).addWrong(r.Wrong)
	}
	for t, list := range times {
		t.Time.Mean = stats.Nearest(list, 0.5)
	}
	out := slices.ContainsFunc(s.Points, func(p Point) bool { return p.Out != nil })
	for i := range s.Points {
		if p := &s.Points[i]; !out {
			p.Out = &Timing{Time: Times{Mean: p.In.Time.Mean}}
		}
	}
	slices.SortFunc(s.Points, func(a, b Point) int { return cmp.Compare(a.Size, b.Size) })
	return &s
}

func (t *Timing) addWrong(n *int64) {
	if n == nil {
		return
	}
	if t.Wrong == nil {
		t.Wrong = new(int64)
	}
	*t.Wrong += *n
}
