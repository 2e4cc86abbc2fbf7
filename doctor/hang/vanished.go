package hang

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"busbar.dev/input/joblog"
)

// peersGone reports that connections were closed before any watchdog gave up: a process ended, it did not only stop.
func (v *logView) peersGone() bool {
	return slices.ContainsFunc(v.of(joblog.PeerClosed, joblog.RemoteError),
		func(t told) bool { return t.Time < v.firstTimeout })
}

// vanished finds ranks that ended without a word: others noticed that a peer is gone, these noticed nothing.
func (v *logView) vanished() (claim, bool) {
	if !v.peersGone() || len(v.noticed) == 0 || v.j.world == 0 || len(v.noticed) < v.j.world/2 {
		return claim{}, false
	}
	var ranks []int
	for r := range v.j.world {
		if _, ok := v.noticed[r]; !ok && v.owned[r] {
			ranks = append(ranks, r)
		}
	}
	c := claim{kind: Killed, source: fromLog, sure: 0.85}
	if named := v.namedPeers(); len(named) > 0 {
		both := slices.DeleteFunc(slices.Clone(ranks), func(r int) bool { return !slices.Contains(named, r) })
		switch {
		case len(both) > 0:
			ranks, c.sure = both, 0.92
		case len(ranks) == 0:
			ranks = named
		}
	}
	if len(ranks) == 0 || len(ranks) > max(1, v.j.world/2) {
		return claim{}, false
	}
	c.ranks = ranks
	for _, r := range ranks {
		if v.orderly(r) {
			c.kind = Exited
		}
	}
	c.why = fmt.Sprintf("%s ended without a message: its peers found their connections closed, and it noticed nothing",
		rankList(ranks))
	for _, k := range []joblog.Kind{joblog.PeerClosed, joblog.RemoteError} {
		for _, t := range v.by[k][:min(len(v.by[k]), 2)] {
			c.quotes = append(c.quotes, t.quote())
		}
	}
	return c, true
}

// unread is a claim about who ended without a word, less sure of itself where logs are missing: whose is not here may
// be the one, and how a rank ended stands in its own.
func (v *logView) unread(c claim) claim {
	for r := range v.j.world {
		if !v.owned[r] {
			c.sure, c.most = min(c.sure, 0.6), 0.7
		}
	}
	return c
}

// goesOn reports a rank that writes on after the first of the others noticed that somebody is gone.
func (v *logView) goesOn(rank int) bool {
	var first int64 = math.MaxInt64
	for _, t := range v.noticed {
		if t.Time > 0 {
			first = min(first, t.Time)
		}
	}
	for _, list := range v.by {
		for _, t := range list {
			if t.rank == rank && t.Time > first {
				return true
			}
		}
	}
	return false
}

// orderly reports a process that took its communicators down itself.
func (v *logView) orderly(rank int) bool {
	return slices.ContainsFunc(v.of(joblog.CommAbort, joblog.Shutdown), func(t told) bool { return t.rank == rank })
}

// namedPeers are the ranks whose hosts the first warnings name. A name is worth nothing where a host's only process
// names its own host, as with addresses that resolve to the loopback.
func (v *logView) namedPeers() []int {
	closed := v.by[joblog.PeerClosed]
	var first int64
	for _, t := range closed {
		if v.j.named(t.Peer) == t.Host && v.j.single[t.Host] {
			return nil
		}
		first = cmp.Or(first, t.Time)
	}
	var ranks []int
	for _, t := range closed {
		if t.Time > first+2e9 || t.Peer == "" {
			continue
		}
		if r := v.j.ofHost(t.Peer); r >= 0 && !slices.Contains(ranks, r) {
			ranks = append(ranks, r)
		}
	}
	slices.Sort(ranks)
	return ranks
}
