package hang

import (
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
)

// tableLines is how far apart the ends of two ranks stand in one table of torchrun.
const tableLines = 40

// lastRun leaves of a log of several runs, one after another, what is of the last; how each ended is kept. A rank
// ends once in a run, and a job of Slurm is cancelled once.
func (c *Case) lastRun(l *joblog.Log) {
	ended := map[int]int{} // one more than the index of the event, by rank; -1: of a job
	from := 0
	var ends []finding.Quote
	for i := range l.Events {
		e := &l.Events[i]
		if e.Kind != joblog.Exit || e.Seq == 0 && (e.PID == 0 || e.Rank < 0) {
			continue
		}
		if was := ended[e.Rank]; was > 0 && (l.Events[was-1].PID != e.PID || l.Events[was-1].Seq != e.Seq) {
			cut := was
			for cut < i && l.Events[cut].Kind == joblog.Exit && l.Events[cut].Line-l.Events[cut-1].Line < tableLines {
				cut++
			}
			ends = append(ends, endOf(l, l.Events[from:cut]))
			from = cut
			clear(ended)
		}
		ended[e.Rank] = i + 1
	}
	if l.Events = l.Events[from:]; from > 0 {
		ends = append(ends, endOf(l, l.Events))
		slices.Reverse(ends)
		c.Runs = append(c.Runs, ends...)
	}
}

// endOf is the line that says most of how a run ended.
func endOf(l *joblog.Log, run []joblog.Event) finding.Quote {
	own := func(e joblog.Event) bool { return e.Kind == joblog.Exception && !victim(e.Text) }
	at := slices.IndexFunc(run, own)
	if at < 0 {
		at = len(run) - 1
	}
	e := run[at]
	return finding.Quote{File: l.Name, Line: e.Line, Text: e.Text}
}
