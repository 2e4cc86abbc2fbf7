package hang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
	"busbar.dev/input/procs"
)

// AddProcesses takes the ranks that run on this machine.
func (c *Case) AddProcesses(list []procs.Process) { c.procs = append(c.procs, list...) }

// stateWords are the states of processes that tell something about a rank that others wait for.
var stateWords = map[byte]string{
	'R': "computes on the CPU", 'S': "waits on the CPU", 'D': "waits for a device or a file system",
	'T': "is stopped by a signal", 't': "is stopped by a debugger", 'Z': "has ended",
}

func processQuote(p *procs.Process) finding.Quote {
	return finding.Quote{
		File: fmt.Sprintf("/proc/%d/stat", p.PID),
		Text: fmt.Sprintf("rank %d, process %d: state %c, it %s", p.Rank, p.PID, p.State, stateWords[p.State]),
	}
}

// stoppedHere finds ranks of this machine whose processes do not run.
func (x *judge) stoppedHere() (claim, bool) {
	c := newClaim(Stopped, fromProcess)
	for i := range x.c.procs {
		if p := &x.c.procs[i]; p.State == 'T' || p.State == 't' {
			c.ranks = append(c.ranks, p.Rank)
			c.quotes = append(c.quotes, processQuote(p))
		}
	}
	if len(c.ranks) == 0 {
		return c, false
	}
	c.why = rankList(c.ranks) + " is stopped: its process gets no time"
	return x.agree(c, x.unanswered()), true
}

// goneHere finds ranks whose process was on this machine, as RAS and logs say, and has ended.
func (x *judge) goneHere() (claim, bool) {
	c := newClaim(Killed, fromProcess)
	runs := map[int]int{} // processes by rank
	for i := range x.c.procs {
		p := &x.c.procs[i]
		if runs[p.Rank] = p.PID; p.State == 'Z' {
			c.ranks, c.quotes = append(c.ranks, p.Rank), append(c.quotes, processQuote(p))
			if p.Code >= 0 {
				c.kind = Exited
			}
		}
	}
	for _, rank := range slices.Sorted(maps.Keys(runs)) {
		at := x.job.procs[rank]
		if at.pid != runs[rank] {
			continue
		}
		for _, r := range x.job.onHost(cmp.Or(at.addr, at.host)) {
			if p := x.job.procs[r]; runs[r] == 0 && p.pid > 0 && !slices.Contains(c.ranks, r) {
				c.ranks = append(c.ranks, r)
				c.quotes = append(c.quotes, finding.Quote{
					File: "/proc", Text: fmt.Sprintf("rank %d: process %d is no more, and that of rank %d is", r, p.pid, rank),
				})
			}
		}
	}
	if c.ranks = x.log.unnoticed(c.ranks); len(c.ranks) == 0 {
		return c, false
	}
	slices.Sort(c.ranks)
	if slices.ContainsFunc(c.ranks, x.log.orderly) {
		c.kind = Exited
	}
	c.why = rankList(c.ranks) + " has ended; the others wait for it"
	return c, true
}

// notCome finds who is not at the making of the first communicator: the others wait for an answer of the store where
// ranks meet, it does something else. NCCL writes nothing before that, no watchdog covers it, and the rank may still
// come.
func (x *judge) notCome() (claim, bool) {
	if len(x.c.procs) < 2 || len(x.c.procs) != x.c.procs[0].World || x.communicated() {
		return claim{}, false
	}
	var waiting, missing []int
	var quotes []finding.Quote
	for i := range x.c.procs {
		switch p := &x.c.procs[i]; p.Waits {
		case procs.WaitUnknown:
			return claim{}, false
		case procs.WaitSocket:
			waiting = append(waiting, p.Rank)
		default:
			missing, quotes = append(missing, p.Rank), append(quotes, processQuote(p))
		}
	}
	if n := len(missing); n == 0 || n > len(waiting) || n == len(waiting) && len(x.c.procs) > 2 {
		return claim{}, false
	}
	c := x.job.notJoined(fromProcess, "comm init", waiting, missing)
	c.quotes = quotes
	return c, true
}

// communicated reports that a communicator existed.
func (x *judge) communicated() bool {
	return slices.ContainsFunc(x.tables, func(t *table) bool { return len(t.order) > 0 && t.source != fromLog }) ||
		len(x.ras) > 0
}

// notBegun finds who has not called NCCL, by the logs that all ranks have: the others' NCCL has begun and waits for the
// rank whose part of the communicator's identity is missing, before it writes that it makes one.
func (x *judge) notBegun() (claim, bool) {
	if x.communicated() || len(x.log.of(joblog.InitStart, joblog.InitComplete)) > 0 {
		return claim{}, false
	}
	begun := map[int]bool{}
	for _, t := range x.log.by[joblog.Process] {
		begun[t.rank] = true
	}
	var waiting, missing []int
	for r := range x.job.world {
		switch {
		case begun[r]:
			waiting = append(waiting, r)
		case x.log.owned[r]:
			missing = append(missing, r)
		default:
			return claim{}, false
		}
	}
	if len(missing) == 0 || len(missing) >= len(waiting) {
		return claim{}, false
	}
	c := x.job.notJoined(fromLog, "comm init", waiting, missing)
	c.doubtful(0.6)
	return c, true
}

// processOf is the process of a rank of this machine; nil where it is not here.
func (x *judge) processOf(rank int) *procs.Process {
	for i := range x.c.procs {
		if x.c.procs[i].Rank == rank {
			return &x.c.procs[i]
		}
	}
	return nil
}
