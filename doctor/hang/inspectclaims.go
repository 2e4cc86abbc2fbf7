package hang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/inspector"
)

// inspectView is what Inspector's files say about all ranks.
type inspectView struct {
	byOp  map[string][]inspected
	last  int64 // µs, the newest line
	total int
}

type inspected struct {
	*inspector.Record

	rank int
	file string
}

// newInspectView joins the files.
func newInspectView(c *Case, j *job) *inspectView {
	v := &inspectView{byOp: map[string][]inspected{}}
	for _, in := range c.inspect {
		for i := range in.records {
			r := &in.records[i]
			rank := j.ofPID(int(r.PID))
			if rank < 0 && int(r.Ranks) == j.world {
				rank = int(r.Rank)
			}
			v.last = max(v.last, r.Time)
			v.total++
			if rank < 0 || r.P2P {
				continue
			}
			key := fmt.Sprintf("%s %s %d", r.Comm, r.Op, r.Seq)
			if slices.ContainsFunc(v.byOp[key], func(x inspected) bool { return x.rank == rank }) {
				continue // the same file, cut and whole
			}
			v.byOp[key] = append(v.byOp[key], inspected{r, rank, in.name})
		}
	}
	return v
}

// members are the global ranks of a communicator.
func (v *inspectView) members(comm string) []int {
	var ranks []int
	for _, list := range v.byOp {
		if list[0].Comm != comm {
			continue
		}
		for _, x := range list {
			if !slices.Contains(ranks, x.rank) && len(ranks) < 1<<12 {
				ranks = append(ranks, x.rank)
			}
		}
	}
	slices.Sort(ranks)
	return ranks
}

// differing finds a collective that ranks ran with different sizes: it ended, and its result is wrong.
func (v *inspectView) differing(j *job) (claim, bool) {
	var best []inspected
	for _, key := range slices.Sorted(maps.Keys(v.byOp)) {
		list := v.byOp[key]
		sizes := map[int64]bool{}
		for _, x := range list {
			sizes[x.Bytes] = true
		}
		if len(sizes) > 1 && (best == nil || list[0].Seq < best[0].Seq) {
			best = list
		}
	}
	if best == nil {
		return claim{}, false
	}
	by := map[int64][]int{}
	for _, x := range best {
		if !slices.Contains(by[x.Bytes], x.rank) {
			by[x.Bytes] = append(by[x.Bytes], x.rank)
		}
	}
	few, clear := minority(by)
	x := best[0]
	c := claim{kind: SizeMismatch, ranks: few, source: fromInspector, sure: 0.9, op: opWord(x.Op), seq: int(x.Seq) + 1}
	if !clear {
		c.sure = 0.55
	}
	ranks := v.members(x.Comm)
	c.comm = &Communicator{Name: x.Comm, Hash: x.Comm, Ranks: ranks, Group: parallelGroup("", ranks, j.world)}
	if c.comm.Group != "" {
		c.comm.Name = c.comm.Group
	}
	c.why = fmt.Sprintf("%s ran %s with another size than the rest; it ended, and its result is wrong", rankList(few),
		c.what())
	for _, x := range best[:min(len(best), 4)] {
		c.quotes = append(c.quotes, finding.Quote{
			File: x.file, Line: int(x.Line), Text: fmt.Sprintf("rank %d: %s #%d of %d bytes", x.rank, x.Op, x.Seq, x.Bytes),
		})
	}
	return c, true
}

// samples are the times of all collectives.
func (v *inspectView) samples() []sample {
	var list []sample
	for _, key := range slices.Sorted(maps.Keys(v.byOp)) {
		for _, x := range v.byOp[key] {
			if len(list) < 1<<20 && x.ExecUs > 0 {
				list = append(list, sample{comm: x.Comm, op: key, rank: x.rank, size: int(x.Ranks), us: float64(x.ExecUs)})
			}
		}
	}
	return list
}

// stall finds a collective that took seconds on all members but one: that one came last.
func (v *inspectView) stall(j *job) (claim, time.Duration, bool) {
	var best claim
	most := 0.0
	for _, key := range slices.Sorted(maps.Keys(v.byOp)) {
		list := v.byOp[key]
		if len(list) < 2 || len(list) < int(list[0].Ranks) || list[0].Seq == 0 {
			continue
		}
		low, high := list[0], list[0]
		for _, x := range list {
			if x.ExecUs < low.ExecUs {
				low = x
			}
			if x.ExecUs > high.ExecUs {
				high = x
			}
		}
		if wait := float64(high.ExecUs - low.ExecUs); wait > 5e6 && wait > most {
			most = wait
			ranks := v.members(low.Comm)
			best = claim{
				kind: Late, ranks: []int{low.rank}, source: fromInspector, sure: 0.8, op: opWord(low.Op), seq: int(low.Seq) + 1,
			}
			best.comm = &Communicator{Name: low.Comm, Hash: low.Comm, Ranks: ranks, Group: parallelGroup("", ranks, j.world)}
			best.quotes = []finding.Quote{{
				File: high.file, Line: int(high.Line), Text: fmt.Sprintf("rank %d spent %.1f s in %s, rank %d %.1f s", high.rank,
					high.ExecUs/1e6, high.Op, low.rank, low.ExecUs/1e6),
			}}
		}
	}
	wait := time.Duration(most) * time.Microsecond
	if most > 0 {
		best.why = fmt.Sprintf("%s came %v late to %s; the job went on then", rankList(best.ranks),
			wait.Round(time.Second/10), best.what())
	}
	return best, wait, most > 0
}
