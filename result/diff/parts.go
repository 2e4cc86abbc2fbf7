package diff

import (
	"math"
	"slices"

	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

// Part is a part of a traced step. The first is the whole step.
type Part struct {
	What string    `json:"what"`
	Old  unit.Span `json:"old_s"`
	New  unit.Span `json:"new_s"`
}

// AddParts adds the step of one rank of so many to the mean of all.
func AddParts(list []Part, s trace.Summary, ranks float64) []Part {
	all := []Part{
		{What: "step", Old: s.Step},
		{What: "computing", Old: s.Compute},
		{What: "exposed communication", Old: s.Exposed},
		{What: "copies", Old: s.Copy},
		{What: "idle time", Old: s.Idle},
	}
	for i := range all {
		all[i].Old /= unit.Span(ranks)
		if len(list) > 0 {
			all[i].Old += list[i].Old
		}
	}
	return all
}

// Parts puts those of two sides beside each other; nil where one has none.
func Parts(old, now []Part) []Part {
	if len(old) == 0 || len(now) == 0 {
		return nil
	}
	list := slices.Clone(old)
	for i := range list {
		list[i].New = now[i].Old
	}
	return list
}

// Most is the part that makes most of the change of a step, and its share of it; "" where none does.
func Most(list []Part) (what string, share float64) {
	if len(list) == 0 {
		return "", 0
	}
	change := list[0].New - list[0].Old
	for _, p := range list[1:] {
		if x := float64((p.New - p.Old) / change); x > share && !math.IsInf(x, 0) {
			what, share = p.What, x
		}
	}
	return what, share
}
