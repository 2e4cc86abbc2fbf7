package hang

import (
	"fmt"
	"slices"

	"busbar.dev/finding"
)

// answers reports ranks that the newest RAS answer has, or that wrote a stack.
func (x *judge) answers(ranks []int) bool {
	last := whole(x.ras)
	if last == nil || !last.JSON {
		return false
	}
	seen := map[int]bool{}
	for i := range last.Comms {
		c := &last.Comms[i]
		for k := range c.Ranks {
			seen[x.job.rank(c, &c.Ranks[k])] = true
		}
	}
	return !slices.ContainsFunc(ranks, func(r int) bool { return !seen[r] })
}

// lastWords are the last lines that the program itself wrote on the ranks of a claim, before a watchdog gave up: what
// it did other than the others often stands there. An error that is the claim itself needs none.
func (x *judge) lastWords(c claim) []finding.Quote {
	if c.kind != Late && c.kind != NoReport && c.kind != NeverJoined {
		return nil
	}
	var list []finding.Quote
	for _, r := range c.ranks[:min(len(c.ranks), 3)] {
		for _, l := range x.c.logs {
			said, ok := l.Said[r]
			if file, own := x.job.files[l.Name]; !ok && own && file == r {
				said, ok = l.Said[-1]
			}
			if ok {
				list = append(list, finding.Quote{
					File: l.Name, Line: said.Line, Text: fmt.Sprintf("the last line of rank %d: %s", r, said.Text),
				})
				break
			}
		}
	}
	return list
}
