package truth

import (
	"fmt"
	"strings"

	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// Gather prepares all sweeps that count, without some mechanisms of the model, and tells which are left, and why.
// Sweeps with the same description share a predictor.
func Gather(sweeps result.Sweeps, without sim.Mechanisms) ([]*Case, []Left) {
	var cases []*Case
	left := gather(sweeps, &shelf{without: without}, func(c *Case, _ []Row) { cases = append(cases, c) })
	return cases, left
}

// Predicted predicts all sweeps that count and tells which are left, and why. The
// cases of its rows have no predictor: one for every sweep would fill the memory.
func Predicted(sweeps result.Sweeps) ([]Row, []Left) {
	var all []Row
	left := gather(sweeps, &shelf{}, func(c *Case, rows []Row) {
		c.Predictor = nil
		all = append(all, rows...)
	})
	return all, left
}

// gather gives each every sweep that counts, prepared and predicted.
func gather(sweeps result.Sweeps, kept *shelf, each func(*Case, []Row)) []Left {
	var left []Left
	for _, s := range sweeps {
		out := Left{ID: s.ID, Points: max(1, len(s.Points)), Class: s.Class, Machine: machineOf(s)}
		said := said(s)
		switch {
		case said.Anomalous:
			out.Reason = "anomalous: slow because something was wrong; not scored"
		case strings.EqualFold(said.Grade, "C"):
			out.Reason = "grade C: partly unknown or noisy; not scored"
		default:
			c, rows, err := kept.predict(s)
			if err == nil {
				left = append(left, rest(c, said)...)
				each(c, rows)
				continue
			}
			out.Reason, out.Gradable = err.Error(), true
		}
		left = append(left, out)
	}
	return left
}

// rest is what of a sweep is no point: sizes without a time, and times without a
// size.
func rest(c *Case, said *result.Published) []Left {
	var left []Left
	add := func(n int, one, text string) {
		if n > 0 {
			left = append(left, Left{
				ID: c.Sweep.ID, Reason: words.Plural(n, one) + text, Points: n, Class: c.Sweep.Class,
				Machine: c.Machine(),
			})
		}
	}
	add(said.Rounded, "size", " whose time follows from a bandwidth with too few digits: off by more than 10%")
	add(len(c.Sweep.Points)-len(c.Ops)-said.Rounded, "size", " without a time or a bandwidth above 0")
	add(said.Surplus, "time", " or bandwidths more than sizes_bytes has sizes; nothing says of which size")
	return left
}

// Repeated names ids that several sweeps have, which are most likely one sweep
// that was added twice.
func Repeated(sweeps result.Sweeps) []string {
	first := map[string]*result.Sweep{}
	times := map[string]int{}
	var order, notes []string
	for _, s := range sweeps {
		if first[s.ID] == nil {
			first[s.ID] = s
		} else if times[s.ID] == 1 {
			order = append(order, s.ID)
		}
		times[s.ID]++
	}
	for _, id := range order {
		s := first[id]
		notes = append(notes, fmt.Sprintf("%d lines have the id %q, the first at %s:%d; each is counted", times[id], id,
			s.File, s.Line))
	}
	return notes
}
