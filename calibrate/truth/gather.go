package truth

import (
	"fmt"
	"strings"

	"busbar.dev/sim"
)

// Gather prepares all groups that count and tells which are left, and why. Groups
// with the same description share a predictor.
func Gather(groups []Group, figures *sim.Figures) ([]*Case, []Left) {
	var cases []*Case
	left := gather(groups, figures, false, func(c *Case, _ []Row) { cases = append(cases, c) })
	return cases, left
}

// Predicted predicts all groups that count and tells which are left, and why. The
// cases of its rows have no predictor: one for every group would fill the memory.
func Predicted(groups []Group, figures *sim.Figures) ([]Row, []Left) {
	var all []Row
	left := gather(groups, figures, true, func(c *Case, rows []Row) {
		c.Predictor = nil
		all = append(all, rows...)
	})
	return all, left
}

// gather gives each every group that counts, prepared and predicted; those that carry
// their predictions where they are wanted.
func gather(groups []Group, figures *sim.Figures, withOwn bool, each func(*Case, []Row)) []Left {
	var left []Left
	var kept shelf
	for i := range groups {
		g := &groups[i]
		out := Left{ID: g.ID, Points: max(1, len(g.Sizes)), Fair: true, Class: g.Class, Machine: g.Machine()}
		switch {
		case g.Anomalous:
			out.Reason = "anomalous: slow because something was wrong; not scored"
		case strings.EqualFold(g.Grade, "C"):
			out.Reason = "grade C: partly unknown or noisy; not scored"
		case g.Own() && !withOwn:
			out.Reason = "predicted where it was measured; nothing of it can be fitted"
		default:
			c, rows, err := kept.predict(g, figures)
			if err == nil {
				left = append(left, g.rest(c)...)
				each(c, rows)
				continue
			}
			out.Reason, out.Fair = err.Error(), false
		}
		left = append(left, out)
	}
	return left
}

// rest is what of a group is no point: sizes without a time, and times without a
// size.
func (g *Group) rest(c *Case) []Left {
	var left []Left
	add := func(n int, text string) {
		if n > 0 {
			left = append(left, Left{ID: g.ID, Reason: fmt.Sprintf(text, n), Points: n, Fair: true, Class: g.Class, Machine: c.Machine()})
		}
	}
	add(len(g.Sizes)-len(c.Points), "%d sizes without a time or a bandwidth")
	add(max(len(g.Time), len(g.AlgBW), len(g.BusBW))-len(g.Sizes), "%d more times or bandwidths than sizes_bytes has sizes; nothing says of which size they are")
	return left
}

// Repeated names ids that several groups have, which are most likely one sweep
// that was added twice.
func Repeated(groups []Group) []string {
	first := map[string]*Group{}
	times := map[string]int{}
	var order, notes []string
	for i := range groups {
		g := &groups[i]
		if first[g.ID] == nil {
			first[g.ID] = g
		} else if times[g.ID] == 1 {
			order = append(order, g.ID)
		}
		times[g.ID]++
	}
	for _, id := range order {
		g := first[id]
		notes = append(notes, fmt.Sprintf("%d lines have the id %q, the first at %s:%d; each is counted", times[id], id, g.File, g.Line))
	}
	return notes
}
