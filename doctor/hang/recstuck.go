package hang

import (
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
)

// stuck finds a collective that all members launched, that is the first thing all of them wait for, and that does not end: a
// GPU is busy with something else before it, or the data does not move.
func (x *recorder) stuck(j *job) (claim, bool) {
	if x.running > 0 {
		return claim{}, false
	}
	w := x.waitGraph()
	if len(w.roots) > 0 || len(w.absent) > 0 || len(w.waiting) == 0 {
		return claim{}, false
	}
	op, ok := x.commonHead()
	if !ok {
		return claim{}, false
	}
	c := claim{source: fromRecorder, waiting: w.waiting}
	x.describe(&c, op, j)
	var scheduled, started []int
	for _, r := range x.set.Groups[op.group].Ranks {
		h := x.ranks[r]
		e := h.find(op.group, op.seq)
		switch e.State {
		case flightrec.Started:
			started = append(started, r)
		default:
			scheduled = append(scheduled, r)
		}
	}
	switch {
	case len(started) > 0 && len(scheduled) > 0:
		c.kind, c.ranks, c.sure = Kernel, scheduled, 0.9
		c.why = fmt.Sprintf("%s runs on the GPUs of %s; on %s it is queued behind something that does not end", c.what(), rankList(started), rankList(scheduled))
	case len(started) > 0:
		c.kind, c.ranks, c.sure = Network, nil, 0.5
		c.why = fmt.Sprintf("all members of %s have started it and none ends: the data does not move", c.what())
	default:
		c.kind, c.sure = Kernel, 0.4
		c.why = fmt.Sprintf("all members have launched %s in the same order and none ends: a GPU is busy with a kernel that was queued before it", c.what())
		if r, gap, ok := x.oddGap(op, scheduled); ok {
			c.ranks, c.sure = []int{r}, 0.65
			c.why += fmt.Sprintf("; rank %d spent %v before launching it, which no other member did", r, gap.Round(time.Millisecond))
			c.quotes = append(c.quotes, finding.Quote{File: x.ranks[r].file, Text: fmt.Sprintf("rank %d: %v between this launch and the one before it", r, gap.Round(time.Millisecond))})
		} else if len(scheduled) <= 8 {
			c.ranks = scheduled
		}
	}
	return c, true
}

// commonHead is a collective that every member has a dump of and waits for before anything else; of several the smallest.
func (x *recorder) commonHead() (opRef, bool) {
	var best opRef
	found := false
	count := map[opRef]int{}
	for _, h := range x.order {
		if e := h.pending(); e != nil && !e.P2P {
			count[opRef{e.Group, e.Seq}]++
		}
	}
	for op, n := range count {
		size := len(x.set.Groups[op.group].Ranks)
		if n != size || size < 2 {
			continue
		}
		old := len(x.set.Groups[best.group].Ranks)
		if !found || size < old || size == old && op.group < best.group {
			best, found = op, true
		}
	}
	return best, found
}

// oddGap finds the member that spent much longer than the others, and than it does itself, between the launch before a
// collective and that launch: who ran something else there is likely who put it on the GPU.
func (x *recorder) oddGap(op opRef, members []int) (int, time.Duration, bool) {
	var gaps []time.Duration
	best, at := time.Duration(0), -1
	for _, r := range members {
		h := x.ranks[r]
		gap := time.Duration(-1)
		for i := 1; i < len(h.entries); i++ {
			if e := &h.entries[i]; e.Group == op.group && e.Seq == op.seq && !e.P2P {
				gap = time.Duration(e.Created - h.entries[i-1].Created)
			}
		}
		if gap < 0 {
			return 0, 0, false
		}
		gaps = append(gaps, gap)
		if gap > best {
			best, at = gap, r
		}
	}
	slices.Sort(gaps)
	if len(gaps) < 2 || best < 5*time.Millisecond || best < 5*gaps[len(gaps)-2] {
		return 0, 0, false
	}
	return at, best, true
}

// stall finds a wait of seconds that is over: a rank that launched a collective long after the others.
func (x *recorder) stall(j *job) (claim, time.Duration, bool) {
	var best claim
	most := time.Duration(0)
	for g, list := range x.slots {
		members := x.set.Groups[g].Ranks
		for i := range list {
			s := &list[i]
			wait := time.Duration(s.latest - s.earliest)
			if int(s.have) < len(members) || len(members) < 2 || s.earliest == 0 || wait < 5*time.Second || i == 0 && x.base[g] <= 1 {
				continue
			}
			if op := (opRef{g, x.base[g] + int32(i)}); wait > most {
				most = wait
				best = claim{kind: Late, ranks: []int{int(s.last)}, source: fromRecorder, sure: 0.8, comm: x.communicator(g, j), seq: int(op.seq)}
				if sig := x.sigOf(op); sig != nil {
					best.op = opWord(sig.Op)
				}
				h := x.ranks[int(s.last)]
				if e := h.find(op.group, op.seq); e != nil {
					best.quotes = []finding.Quote{x.quote(h, e)}
				}
			}
		}
	}
	if most > 0 {
		best.why = fmt.Sprintf("%s launched %s %v after the first member; the job went on then", rankList(best.ranks), best.what(), most.Round(time.Second/10))
	}
	return best, most, most > 0
}

// idle reports dumps in which every entry is completed, and that have some.
func (x *recorder) idle() bool {
	entries := 0
	for _, h := range x.order {
		if h.head >= 0 {
			return false
		}
		entries += len(h.entries)
	}
	return entries > 0
}
