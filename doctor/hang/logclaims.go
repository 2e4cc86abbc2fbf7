package hang

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/joblog"
)

// told is an event with the rank it is about and the file it stands in.
type told struct {
	*joblog.Event

	rank int
	log  *joblog.Log
}

func (t told) quote() finding.Quote {
	return finding.Quote{File: t.log.Name, Line: t.Line, Text: t.Text}
}

// logView is what all logs say together.
type logView struct {
	j            *job
	by           map[joblog.Kind][]told
	firstTimeout int64        // when the first watchdog gave up
	noticed      map[int]told // the first that a rank noticed of a peer that is gone
	owned        map[int]bool // ranks that have a log of their own
	started      map[int]int64
}

// newLogView joins the logs.
func newLogView(c *Case, j *job) *logView {
	v := &logView{
		j: j, by: map[joblog.Kind][]told{}, firstTimeout: math.MaxInt64, noticed: map[int]told{}, owned: map[int]bool{},
		started: map[int]int64{},
	}
	for _, l := range c.logs {
		if r, ok := j.files[l.Name]; ok {
			v.owned[r] = true
			if l.First > 0 && (v.started[r] == 0 || l.First < v.started[r]) {
				v.started[r] = l.First
			}
		}
		for i := range l.Events {
			e := &l.Events[i]
			t := told{Event: e, rank: j.rankOf(l, e), log: l}
			v.by[e.Kind] = append(v.by[e.Kind], t)
			if t.rank >= 0 {
				v.owned[t.rank] = true
			}
			switch e.Kind {
			case joblog.Timeout:
				if e.Time > 0 {
					v.firstTimeout = min(v.firstTimeout, e.Time)
				}
			case joblog.RemoteError, joblog.PeerClosed:
				v.notice(t)
			case joblog.Exception, joblog.CUDAError:
				if victim(e.Text) {
					v.notice(t)
				}
			}
		}
	}
	for k := range v.by {
		slices.SortStableFunc(v.by[k], func(a, b told) int { return cmp.Compare(a.Time, b.Time) })
	}
	return v
}

// of are the events of some kinds.
func (v *logView) of(kinds ...joblog.Kind) (list []told) {
	for _, k := range kinds {
		list = append(list, v.by[k]...)
	}
	return list
}

func (v *logView) notice(t told) {
	if t.rank < 0 {
		return
	}
	if old, ok := v.noticed[t.rank]; !ok || t.Time > 0 && t.Time < old.Time {
		v.noticed[t.rank] = t
	}
}

// victim reports an error that another process caused.
func victim(text string) bool {
	return slices.ContainsFunc([]string{
		"NCCL", "ncclRemoteError", "DistBackendError", "DistNetworkError", "DistStoreError", "Watchdog", "Connection closed",
		"Connection reset", "Broken pipe",
		"TCPStore", "remote process", "KeyboardInterrupt", "SignalException", "recvValue", "clients joined",
		"Detected mismatch between collectives", "ChildFailedError",
		"Connection was likely closed", "RendezvousConnectionError", "wait timeout",
	}, func(w string) bool { return strings.Contains(text, w) })
}

// died finds ranks that raised an error of their own, the first in time.
func (v *logView) died() (claim, bool) {
	var own []told
	for _, t := range v.by[joblog.Exception] {
		if t.rank >= 0 && !victim(t.Text) {
			own = append(own, t)
		}
	}
	var best *told
	for i := range own {
		t := &own[i]
		if n, ok := v.noticed[t.rank]; ok && n.Line < t.Line && n.log == t.log {
			continue // after it noticed that others are gone
		}
		if best == nil || t.Time > 0 && t.Time < best.Time {
			best = t
		}
	}
	if best == nil {
		return claim{}, false
	}
	var ranks []int
	for _, t := range own {
		if t.Text == best.Text {
			ranks = append(ranks, t.rank) // the same error on several ranks
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	c := claim{kind: Exited, ranks: ranks, source: fromLog, sure: 0.92, quotes: []finding.Quote{best.quote()}}
	c.why = fmt.Sprintf("%s raised %s", rankList(ranks), short(best.Text))
	if best.Desc != "" {
		c.why += " at " + strings.TrimSpace(best.Desc)
	}
	return c, true
}

// exits are what launchers and the kernel say about how ranks ended.
func (v *logView) exits() (claim, bool) {
	for _, t := range v.by[joblog.OOMKill] {
		if t.rank >= 0 {
			return claim{
				kind: Killed, ranks: []int{t.rank}, source: fromKernel, sure: 0.95, quotes: []finding.Quote{t.quote()},
				why: fmt.Sprintf("the kernel killed rank %d's process for memory", t.rank),
			}, true
		}
	}
	var first *told
	for i := range v.by[joblog.Exit] {
		t := &v.by[joblog.Exit][i]
		rank := t.rank
		if rank < 0 {
			rank = v.j.ofPID(t.PID)
		}
		if rank < 0 || t.Code == 0 || t.Code == -6 || t.Code == -15 {
			continue // aborted and ended by others
		}
		t.rank = rank
		if first == nil || t.Code == -9 && first.Code != -9 {
			first = t
		}
	}
	if first == nil {
		return claim{}, false
	}
	c := claim{
		kind: Exited, ranks: []int{first.rank}, source: fromLog, sure: 0.85, quotes: []finding.Quote{first.quote()},
		why: fmt.Sprintf("rank %d ended with exit code %d", first.rank, first.Code),
	}
	if first.Code == -9 {
		c.kind, c.why = Killed, fmt.Sprintf("rank %d was killed by SIGKILL", first.rank)
	}
	return c, true
}

// differing finds ranks that PyTorch itself saw calling other collectives.
func (v *logView) differing() (claim, bool) {
	return callsOthers(v.by[joblog.Mismatch], "PyTorch compared the collectives of all ranks", 0.93)
}

// gaveUpDiffering finds ranks whose watchdogs gave up in another collective than the rest, at the same number of a
// group.
func (v *logView) gaveUpDiffering() (claim, bool) {
	by := map[string][]told{}
	for _, t := range v.by[joblog.Timeout] {
		for _, s := range v.by[joblog.Status] { // the line behind it has the group
			if t.Group == "" && s.rank == t.rank && s.Seq == t.Seq && s.log == t.log && s.Line > t.Line {
				e := *t.Event
				e.Group = s.Group
				t.Event = &e
			}
		}
		if t.rank >= 0 && (t.Group != "" || v.oneGroup()) {
			key := fmt.Sprint(t.Group, " ", t.Seq)
			by[key] = append(by[key], t)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(by)) {
		if c, ok := callsOthers(by[key], "the watchdogs of a group's ranks gave up at the same number", 0.8); ok {
			return c, true
		}
	}
	return claim{}, false
}

// callsOthers finds who calls another collective than the rest, or with another size, at the first number of a list.
func callsOthers(list []told, said string, sure float64) (claim, bool) {
	if len(list) == 0 {
		return claim{}, false
	}
	ops, shapes := map[string][]int{}, map[string][]int{}
	c := claim{source: fromLog, sure: sure, seq: list[0].Seq}
	seen := map[int]bool{}
	for _, t := range list {
		if t.Seq != c.seq || seen[t.rank] || t.Op == "" {
			continue
		}
		seen[t.rank] = true
		if ops[t.Op] == nil {
			c.quotes = append(c.quotes, t.quote())
		}
		ops[t.Op] = append(ops[t.Op], t.rank)
		shapes[t.Op+t.Desc] = append(shapes[t.Op+t.Desc], t.rank)
	}
	clear, how := true, "calls another than the rest"
	switch {
	case len(ops) > 1:
		c.kind = OpMismatch
		c.ranks, clear = minority(ops)
	case len(shapes) > 1:
		c.kind, how = SizeMismatch, "calls it with another size or type"
		c.ranks, clear = minority(shapes)
	default:
		return claim{}, false
	}
	for _, op := range slices.Sorted(maps.Keys(ops)) {
		if !slices.Contains(c.ranks, ops[op][0]) {
			c.op = opWord(op)
		}
	}
	if !clear {
		c.sure = 0.6
	}
	c.why = fmt.Sprintf("%s: %s %s", said, rankList(c.ranks), how)
	return c, true
}

// behind finds the rank that has nothing pending, or is behind by its own numbers, while the watchdogs of the others
// time out.
func (v *logView) behind() (claim, bool) {
	for _, t := range v.by[joblog.Desync] {
		if len(t.Ranks) > 0 && len(t.Ranks) <= max(1, v.j.world/2) {
			return claim{
				kind: Late, ranks: t.Ranks, source: fromLog, sure: 0.85, seq: t.Seq, quotes: []finding.Quote{t.quote()},
				why: fmt.Sprintf("PyTorch's desync report: %s did not join the collective", rankList(t.Ranks)),
			}, true
		}
	}
	if len(v.by[joblog.Timeout]) == 0 {
		return claim{}, false
	}
	gaveUp := map[int]bool{}
	var op told
	for _, t := range v.by[joblog.Timeout] {
		gaveUp[t.rank] = true
		if op.Event == nil {
			op = t
		}
	}
	numbers, most := v.numbers()
	var late, silent, unread []int // silent have a log that ends before, unread have none
	var quotes []finding.Quote
	for _, t := range numbers {
		if t.rank >= 0 && !gaveUp[t.rank] && t.Enqueued == t.Done && t.Enqueued < most && !slices.Contains(late, t.rank) {
			late = append(late, t.rank)
			quotes = append(quotes, t.quote())
		}
	}
	if len(late) == 0 {
		late, quotes = lagging(numbers, op.Event)
	}
	heard := map[int]bool{}
	for _, t := range v.of(joblog.Timeout, joblog.DumpSignal, joblog.Status) {
		heard[t.rank] = true
	}
	for r := range v.j.world {
		switch {
		case heard[r]:
		case v.owned[r]:
			silent = append(silent, r)
		default:
			unread = append(unread, r)
		}
	}
	c := claim{source: fromLog, sure: 0.75, op: opWord(op.Op), seq: op.Seq, quotes: append(quotes, op.quote())}
	switch {
	case len(late) > 0 && len(late) <= max(1, v.j.world/2):
		slices.Sort(late)
		c.kind, c.ranks = Late, late
		c.why = fmt.Sprintf("%s is behind by its own numbers while the watchdogs of the others time out", rankList(late))
	case len(silent) > 0 && len(silent) <= max(1, v.j.world/2):
		c.kind, c.ranks, c.sure = NoReport, silent, 0.7
		c.why = fmt.Sprintf("the watchdogs of the other ranks time out, and %s writes nothing: it may be stopped, gone, or "+
			"blocked before its own watchdog runs", rankList(silent))
	case len(unread) > 0 && len(unread) <= v.j.world/2 && v.oneGroup():
		c.kind, c.ranks, c.sure = NoReport, unread, 0.5
		c.why = fmt.Sprintf("the watchdogs of the other ranks time out, and there is no line of %s: it may be late, "+
			"stopped or gone, or its log was not given", rankList(unread))
	default:
		c.kind, c.sure = UnknownKind, 0.3
		c.why = "the watchdogs of all ranks that have a log gave up"
	}
	return c, true
}

// oneGroup reports that all watchdogs gave up on collectives of the group of all ranks, as far as their lines say: only
// then all ranks have to be heard of.
func (v *logView) oneGroup() bool {
	return !slices.ContainsFunc(v.of(joblog.Status, joblog.DumpSignal),
		func(t told) bool { return t.Group != "" && t.Group != "0" && t.Desc != "default_pg" })
}

// numbers are what ranks say of the last collective that they started and completed, and the last that anybody started.
// A dump signal is about the group of all ranks, and a rank whose watchdog gave up may say its numbers only there: both
// count where they are of one group.
func (v *logView) numbers() (list []told, most int) {
	list = slices.Clone(v.by[joblog.DumpSignal])
	// without a dump signal (older releases, or none was asked for), any group
	said, groups := map[int]bool{}, len(list) == 0
	for _, t := range list {
		said[t.rank] = true
	}
	one := true
	for _, t := range v.by[joblog.Status] {
		one = one && (t.Group == "" || t.Group == "0")
		if groups || !said[t.rank] && t.Group == list[0].Group {
			list = append(list, t)
		}
	}
	for _, t := range list {
		most = max(most, t.Enqueued)
	}
	if one && !groups {
		for _, t := range v.by[joblog.Timeout] {
			most = max(most, t.Seq)
		}
	}
	return list, most
}

// lagging are the ranks whose own numbers are behind, whoever noticed first: the last collective that they started is
// before the one at which a watchdog timed out and others started it; where all started the same, the last one that
// they completed is less than that of the others.
func lagging(numbers []told, op *joblog.Event) (ranks []int, quotes []finding.Quote) {
	group := slices.DeleteFunc(slices.Clone(numbers),
		func(t told) bool { return t.rank < 0 || t.Group != op.Group && t.Group != "" && op.Group != "" })
	behind := func(number func(told) int, below int) {
		for _, t := range group {
			if number(t) < below && !slices.Contains(ranks, t.rank) {
				ranks, quotes = append(ranks, t.rank), append(quotes, t.quote())
			}
		}
	}
	var started, completed int
	for _, t := range group {
		started, completed = max(started, t.Enqueued), max(completed, t.Done)
	}
	behind(func(t told) int { return t.Enqueued }, min(op.Seq, started))
	if len(ranks) == 0 {
		behind(func(t told) int { return t.Done }, completed)
	}
	return ranks, quotes
}

// short cuts a line for a sentence.
func short(text string) string {
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return text
}
