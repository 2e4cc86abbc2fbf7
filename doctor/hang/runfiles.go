package hang

import (
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

// oneAnswers leaves out the RAS answers of other runs than the newest. Answers of a running job are newer than files. A
// text lists some communicators only, so it is kept with any.
func (c *Case) oneAnswers() error {
	sets := answerSets(c.ras)
	if len(sets) < 2 {
		return nil
	}
	slices.SortStableFunc(sets, func(a, b []*ras.Report) int { return c.when(b, true).compare(c.when(a, true)) })
	newest := sets[0]
	for _, s := range sets[1:] {
		if c.when(s, true).compare(c.when(newest, false)) >= 0 {
			return fmt.Errorf("the RAS answers are of several jobs at the same time: %s has other processes than %s; give the "+
				"answers of one job, or ask its hosts alone", s[0].Name, newest[0].Name)
		}
	}
	left := slices.Concat(sets[1:]...)
	var names []string
	for _, r := range left {
		names = append(names, r.Name)
	}
	c.ras = slices.DeleteFunc(slices.Clone(c.ras), func(r *ras.Report) bool { return slices.Contains(left, r) })
	c.notes = append(slices.Clone(c.notes),
		"The RAS answers are of several runs. Only the newest was judged. Left out: "+someNames(names)+".")
	return nil
}

// moment is when an answer came: a running job's after all files.
type moment struct {
	asked bool
	clock string
}

func (m moment) compare(o moment) int {
	if m.asked != o.asked {
		if m.asked {
			return 1
		}
		return -1
	}
	return strings.Compare(m.clock, o.clock)
}

// when is the time of the last or the first answer of a run.
func (c *Case) when(list []*ras.Report, last bool) moment {
	var m moment
	for i, r := range list {
		x := moment{c.asked[r], r.Time}
		if i == 0 || (x.compare(m) > 0) == last {
			m = x
		}
	}
	return m
}

// answerSets are the answers in JSON by runs: those of one have a communicator or a process in common.
func answerSets(list []*ras.Report) (sets [][]*ras.Report) {
	type process struct {
		host string
		pid  int
	}
	run := map[*ras.Report]int{}
	comms, procs := map[uint64]int{}, map[process]int{}
	into := []int{} // the run that a run was found to be
	root := func(i int) int {
		for into[i] != i {
			i = into[i]
		}
		return i
	}
	for _, r := range list {
		if !r.JSON || len(r.Comms) == 0 {
			continue
		}
		at := len(into)
		into = append(into, at)
		run[r] = at
		join := func(other int, known bool) {
			if known {
				into[root(other)] = root(at)
			}
		}
		for i := range r.Comms {
			m := &r.Comms[i]
			old, ok := comms[m.Hash]
			join(old, ok)
			comms[m.Hash] = at
			for _, ranks := range [][]ras.Rank{m.Ranks, m.Missing} {
				for k := range ranks {
					p := process{ranks[k].Host, ranks[k].PID}
					old, ok := procs[p]
					join(old, ok)
					procs[p] = at
				}
			}
		}
	}
	place := map[int]int{}
	for _, r := range list {
		at, ok := run[r]
		if !ok {
			continue
		}
		k, ok := place[root(at)]
		if !ok {
			k = len(sets)
			place[root(at)] = k
			sets = append(sets, nil)
		}
		sets[k] = append(sets[k], r)
	}
	return sets
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
		slices.SortStableFunc(list, func(a, b life) int { return cmpInt(a.log.First, b.log.First) })
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
