package hang

import (
	"fmt"
	"slices"
	"strings"

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

// adviseNoReport says which input would tell what became of a rank, and how to get it.
func (x *judge) adviseNoReport(v *Verdict, on, pid string) {
	rank := v.Ranks[0].Rank
	var missing []string
	host, where := v.Ranks[0].Host, ""
	if host != "" {
		host += ":"
	} else {
		where = " on the rank's node"
	}
	if x.rec.ranks[rank] == nil && len(x.rec.order) > 0 {
		missing = append(missing,
			fmt.Sprintf("its dump (%s/tmp/nccl_trace_rank_%d, or where TORCH_FR_DUMP_TEMP_FILE says)", host, rank))
	}
	if !x.log.owned[rank] {
		missing = append(missing, "its log")
	}
	if len(missing) > 0 {
		v.Next = append(v.Next, fmt.Sprintf("Give what is missing of rank %d: %s.", rank, strings.Join(missing, " and ")))
	}
	v.Next = append(v.Next,
		"See whether its process exists and runs (STAT T is stopped): "+on+"ps -o pid,stat,etime,cmd -p "+pid+where,
		"While the job hangs, ask there: "+on+"busbar hang --pid "+pid+where)
}
