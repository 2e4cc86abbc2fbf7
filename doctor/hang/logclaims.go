package hang

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
)

// told is an event with the rank it is about and the file it stands in.
type told struct {
	*joblog.Event

	rank int
	log  *joblog.Log
}

// claim is what an event says of its rank.
func (t told) claim(kind Kind, source string) claim {
	c := newClaim(kind, source)
	if c.quotes = quotes(t); t.rank >= 0 {
		c.ranks = []int{t.rank}
	}
	return c
}

// quotes are the lines of the first few events.
func quotes(list ...told) (q []finding.Quote) {
	for _, t := range list[:min(len(list), 4)] {
		q = append(q, finding.Quote{File: t.log.Name, Line: t.Line, Text: t.Text})
	}
	return q
}

// logView is what all logs say together.
type logView struct {
	j            *job
	by           map[joblog.Kind][]told
	firstTimeout int64        // when the first watchdog gave up
	noticed      map[int]told // the first that a rank noticed of a peer that is gone
	owned        map[int]bool // ranks that have a log of their own
}

// newLogView joins the logs.
func newLogView(c *Case, j *job) *logView {
	v := &logView{
		j: j, by: map[joblog.Kind][]told{}, firstTimeout: math.MaxInt64, noticed: map[int]told{}, owned: map[int]bool{},
	}
	for _, l := range c.logs {
		if r, ok := j.files[l.Name]; ok {
			v.owned[r] = true
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
	v.nameGroups()
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

// blames are in errors that another process caused.
var blames = strings.Split("NCCL,ncclRemoteError,DistBackendError,DistNetworkError,DistStoreError,Watchdog,Connection "+
	"closed,Connection reset,Broken pipe,TCPStore,remote process,KeyboardInterrupt,SignalException,recvValue,clients "+
	"joined,Detected mismatch between collectives,ChildFailedError,Connection was likely closed,"+
	"RendezvousConnectionError,wait timeout", ",")

func victim(text string) bool {
	return slices.ContainsFunc(blames, func(w string) bool { return strings.Contains(text, w) })
}

// died finds ranks that raised an error of their own, the first in time.
func (v *logView) died() (claim, bool) {
	own := slices.DeleteFunc(slices.Clone(v.by[joblog.Exception]),
		func(t told) bool { return t.rank < 0 && t.log.GoesOn(t.Line) || victim(t.Text) })
	i := slices.IndexFunc(own, func(t told) bool {
		n, ok := v.noticed[t.rank]
		return !ok || n.Line > t.Line || n.log != t.log // not after it noticed that others are gone
	})
	if i < 0 {
		return claim{}, false
	}
	best := own[i]
	c := best.claim(Exited, fromLog)
	for _, t := range own {
		if t.Text == best.Text && t.rank >= 0 {
			c.ranks = append(c.ranks, t.rank) // the same error on several ranks
		}
	}
	c.ranks = slices.Compact(sorted(c.ranks))
	c.why = fmt.Sprintf("%s raised %s", c.who(), short(best.Text))
	if best.Desc != "" {
		c.why += " at " + strings.TrimSpace(best.Desc)
	}
	return c, true
}

// who are the ranks of a claim.
func (c *claim) who() string {
	if len(c.ranks) == 0 {
		return "a process of unknown rank"
	}
	return rankList(c.ranks)
}

// exits are what launchers and the kernel say about how ranks ended; unnamed: about processes whose ranks nothing
// tells.
func (v *logView) exits(unnamed bool) (claim, bool) {
	for _, t := range v.by[joblog.OOMKill] {
		if t.rank >= 0 {
			c := t.claim(Killed, fromKernel)
			c.why = fmt.Sprintf("the kernel killed rank %d's process for memory", t.rank)
			return c, true
		}
	}
	var first *told
	for i := range v.by[joblog.Exit] {
		t := &v.by[joblog.Exit][i]
		if t.rank < 0 != unnamed || t.Code == 0 || t.Code == -6 || t.Code == -15 {
			continue // aborted and ended by others
		}
		if first == nil || first.Code != -9 && (t.Code == -9 || t.Op > first.Op) { // torchrun tells the root cause
			first = t
		}
	}
	if first == nil || !unnamed && v.unlaunched(first) {
		return claim{}, false
	}
	c := first.claim(Exited, fromLog)
	c.why = fmt.Sprintf("%s ended with exit code %d", c.who(), first.Code)
	if first.Code == -9 {
		c.become(Killed)
		c.why = c.who() + " was killed by SIGKILL"
	}
	return c, true
}

// unlaunched reports tasks of Slurm that ended alike before any process wrote a line of PyTorch's or NCCL's: what they
// were to start, of which their numbers need not be ranks, never ran.
func (v *logView) unlaunched(first *told) bool {
	alike := 0
	for _, t := range v.by[joblog.Exit] {
		if t.PID == 0 && t.Code == first.Code && t.Code > 0 {
			alike += max(1, len(t.Ranks))
		}
	}
	for kind, list := range v.by {
		if kind != joblog.Exit && kind != joblog.StoreGone && kind != joblog.Exception && len(list) > 0 {
			return false
		}
	}
	return first.PID == 0 && alike > 1
}

// logSet is what watchdogs say in the form of the recorder's dumps: the last collective that a rank launched, and the
// one that it gave up in. PyTorch's own comparison of collectives is of that form too.
func (v *logView) logSet() *flightrec.Set {
	b := newSetBuilder()
	group := func(t told) int32 {
		g := b.group(t.Group, flightrec.Group{Name: t.Group, Desc: t.Desc})
		for r := range v.j.world {
			if t.Group != worldGroup || len(b.members[g]) >= v.j.world {
				break
			}
			b.members[g][r] = r
		}
		b.members[g][t.rank] = t.rank
		return g
	}
	for _, t := range v.of(joblog.Status, joblog.DumpSignal) {
		if t.rank >= 0 {
			d, g := b.dump(t.rank, t.log.Name), group(t)
			d.Last[g] = max(d.Last[g], int32(t.Enqueued))
		}
	}
	for _, t := range v.by[joblog.Desync] {
		for _, r := range t.Ranks {
			b.dump(r, t.log.Name) // it did not come to the collective that others wait in
		}
	}
	for _, t := range v.of(joblog.Timeout, joblog.Mismatch) {
		if t.rank < 0 || t.Op == "" {
			continue
		}
		sig := flightrec.Sig{Op: opWord(t.Op)}
		if t.Kind == joblog.Mismatch {
			sig.Dtypes = t.Desc
		}
		d, g := b.dump(t.rank, t.log.Name), group(t)
		if _, ok := d.Last[g]; !ok {
			d.Last[g] = unsaid
		}
		b.launch(d, flightrec.Entry{Group: g, Seq: int32(t.Seq), State: flightrec.Scheduled}, sig)
	}
	return b.finish()
}

// cite is the line in which a rank gave up a collective, or the last in which it tells its numbers.
func (v *logView) cite(rank int, e *flightrec.Entry) (list []finding.Quote) {
	for _, t := range v.of(joblog.Status, joblog.DumpSignal, joblog.Timeout, joblog.Mismatch) {
		if t.rank == rank && (e == nil && t.Enqueued > 0 || e != nil && t.Seq == int(e.Seq)) {
			list = quotes(t)
		}
	}
	return list
}

// worldGroup is the name of the group of all ranks.
const worldGroup = "0"

// nameGroups gives every event of a watchdog the group that it is about: that of the line behind it, and where no line
// names another, that of all ranks.
func (v *logView) nameGroups() {
	one := !slices.ContainsFunc(v.of(joblog.Status, joblog.DumpSignal),
		func(t told) bool { return t.Group != "" && t.Group != worldGroup })
	type said struct {
		rank, seq int
		log       *joblog.Log
	}
	behind := map[said][]told{}
	for _, t := range v.by[joblog.Status] {
		at := said{t.rank, t.Seq, t.log}
		behind[at] = append(behind[at], t)
	}
	for _, k := range []joblog.Kind{joblog.Timeout, joblog.Status, joblog.DumpSignal, joblog.Mismatch} {
		for i := range v.by[k] {
			t := &v.by[k][i]
			if t.Group != "" {
				continue
			}
			e := *t.Event
			list := behind[said{t.rank, t.Seq, t.log}]
			at := slices.IndexFunc(list, func(s told) bool { return s.Line > t.Line })
			if one || k == joblog.Mismatch {
				e.Group = worldGroup
			} else if at >= 0 {
				e.Group, e.Desc = list[at].Group, list[at].Desc
			}
			t.Event = &e
		}
	}
}

// gaveUp is all that is known where watchdogs gave up and nothing says for whom they waited.
func (v *logView) gaveUp() claim {
	op := v.by[joblog.Timeout][0]
	c := claim{kind: UnknownKind, source: fromLog, sure: 0.3, op: opWord(op.Op), seq: op.Seq, quotes: quotes(op)}
	for _, t := range v.by[joblog.Timeout] {
		if t.rank >= 0 && t.Seq == op.Seq && t.Op == op.Op && t.NRanks == op.NRanks {
			c.waiting = append(c.waiting, t.rank)
		}
	}
	c.waiting = slices.Compact(sorted(c.waiting))
	c.why = "the watchdogs of all ranks that have a log gave up"
	if len(c.waiting) > 0 {
		c.why = fmt.Sprintf("the watchdogs of %s gave up in %s", rankList(c.waiting), c.what())
		if op.NRanks > 0 {
			c.why += fmt.Sprintf(", of %d ranks", op.NRanks)
		}
		c.why += "; any rank of it that wrote nothing may be the one they wait for"
	}
	return c
}

// short cuts a line for a sentence.
func short(text string) string {
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return text
}
