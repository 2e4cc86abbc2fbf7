package hang

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
	"busbar.dev/internal/words"
)

// RAS answers and logs of the run before lie in the same folder as often as dumps do. Processes tell runs apart: a
// communicator's hash and a process are of one run, and a rank has one process in it.

// oneAnswers leaves out the RAS answers of other runs than the newest: those that have no communicator and no process
// in common with its last one. Answers of a running job are newer than files. A text lists some communicators only, so
// it is kept with any.
func (c *Case) oneAnswers() error {
	whole := func(r *ras.Report) bool { return r.JSON && len(r.Comms) > 0 }
	later := func(a, b *ras.Report) bool {
		return c.asked[a] && !c.asked[b] || c.asked[a] == c.asked[b] && a.Time > b.Time
	}
	var newest *ras.Report
	for _, r := range c.ras {
		if whole(r) && (newest == nil || later(r, newest)) {
			newest = r
		}
	}
	if newest == nil {
		return nil
	}
	ids := map[any]bool{}
	for _, id := range runIDs(newest) {
		ids[id] = true
	}
	first := newest
	var kept, left []*ras.Report
	for _, r := range c.ras {
		switch ours := slices.ContainsFunc(runIDs(r), func(id any) bool { return ids[id] }); {
		case whole(r) && !ours:
			left = append(left, r)
			continue
		case whole(r) && later(first, r):
			first = r
		}
		kept = append(kept, r)
	}
	var names []string
	for _, r := range left {
		if names = append(names, r.Name); !later(first, r) {
			return fmt.Errorf("the RAS answers are of several jobs at the same time: %s has other processes than %s; give the "+
				"answers of one job, or ask its hosts alone", r.Name, newest.Name)
		}
	}
	if len(left) > 0 {
		c.ras = kept
		c.notes = append(slices.Clone(c.notes),
			"The RAS answers are of several runs. Only the newest was judged. Left out: "+someNames(names)+".")
	}
	return nil
}

// runIDs are the communicators and processes of an answer: those of a run.
func runIDs(r *ras.Report) (list []any) {
	for i := range r.Comms {
		m := &r.Comms[i]
		list = append(list, m.Hash)
		for _, x := range slices.Concat(m.Ranks, m.Missing) {
			list = append(list, x.Process)
		}
	}
	return list
}

// leaves is how long a process may still write into another file after PyTorch said that it takes it down.
const leaves = int64(2 * time.Minute)

// life is a process of a rank, as a log has it.
type life struct {
	log  *joblog.Log
	who  string // host and process, where the log says so
	down bool   // PyTorch took it down
}

// oneLogs leaves out the logs of earlier runs: those that end before a log begins in which one of their ranks is
// another process, or is one again after PyTorch took it down.
func (c *Case) oneLogs() {
	if len(c.logs) < 2 {
		return
	}
	var cut int64
	for _, list := range lives(c) {
		slices.SortStableFunc(list, func(a, b life) int { return cmp.Compare(a.log.First, b.log.First) })
		for i := 1; i < len(list); i++ {
			for _, a := range list[max(0, i-4):i] {
				if b := list[i]; a.log.Last < b.log.First &&
					(a.down && b.log.First-a.log.Last > leaves || a.who != "" && b.who != "" && a.who != b.who) {
					cut = max(cut, a.log.Last)
				}
			}
		}
	}
	if cut == 0 {
		return
	}
	earlier := func(l *joblog.Log) bool { return l.First > 0 && l.Last <= cut }
	kept := map[string]bool{} // folders with logs of the newest run
	for _, l := range c.logs {
		if l.First > 0 && !earlier(l) {
			kept[path.Dir(l.Name)] = true
		}
	}
	var names []string
	c.logs = slices.DeleteFunc(slices.Clone(c.logs), func(l *joblog.Log) bool {
		leave := earlier(l) || l.First == 0 && !kept[path.Dir(l.Name)] // a log without times goes with its folder
		if leave {
			names = append(names, l.Name)
		}
		return leave
	})
	c.notes = append(slices.Clone(c.notes),
		"The logs are of several runs. Only the newest was judged. Left out: "+someNames(names)+".")
}

// lives are the processes of every rank, in logs that say when.
func lives(c *Case) map[int][]life {
	j := newJob(c)
	by := map[int][]life{}
	for _, l := range c.logs {
		if l.First == 0 {
			continue
		}
		of := map[int]*life{}
		get := func(rank int) *life {
			if of[rank] == nil {
				of[rank] = &life{log: l}
			}
			return of[rank]
		}
		own, ok := j.files[l.Name]
		for i := range l.Events {
			switch e := &l.Events[i]; {
			case e.Kind == joblog.InitStart && e.NRanks == j.world:
				get(e.CommRank).who = fmt.Sprintf("%s/%d", e.Host, e.PID)
			case e.Kind == joblog.Process && ok:
				get(own).who = fmt.Sprintf("%s/%d", e.Host, e.PID)
			case e.Rank >= 0 && e.Kind != joblog.Exit:
				x := get(e.Rank)
				x.down = x.down || e.Kind == joblog.Down
			}
		}
		for rank, x := range of {
			by[rank] = append(by[rank], *x)
		}
	}
	return by
}

// someNames are the first names of a long list.
func someNames(names []string) string {
	const most = 16
	names = slices.Clone(names)
	slices.Sort(names)
	if n := len(names) - most; n > 0 {
		return strings.Join(names[:most], ", ") + " and " + words.Plural(n, "more file")
	}
	return strings.Join(names, ", ")
}
