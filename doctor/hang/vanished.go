package hang

import (
	"fmt"
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
	ranks := slices.DeleteFunc(upTo(v.j.world), func(r int) bool { _, ok := v.noticed[r]; return ok || !v.owned[r] })
	if len(ranks) == 0 || len(ranks) > max(1, v.j.world/2) {
		return claim{}, false
	}
	c := newClaim(Killed, fromLog)
	c.ranks = ranks
	c.why = fmt.Sprintf("%s ended without a message: its peers found their connections closed, and it noticed nothing",
		rankList(ranks))
	for _, k := range []joblog.Kind{joblog.PeerClosed, joblog.RemoteError} {
		c.quotes = append(c.quotes, quotes(v.by[k][:min(len(v.by[k]), 2)]...)...)
	}
	return c, true
}

// unread is a claim about who ended without a word, less sure of itself where logs are missing: whose is not here may
// be the one, and how a rank ended stands in its own.
func (v *logView) unread(c claim) claim {
	if len(v.owned) < v.j.world {
		c.doubtful(0.6)
	}
	return c
}

// orderly reports a process that took its communicators down itself.
func (v *logView) orderly(rank int) bool {
	return slices.ContainsFunc(v.of(joblog.CommAbort, joblog.Shutdown), func(t told) bool { return t.rank == rank })
}

// unnoticed are those of some ranks that are gone who did not notice before that another is.
func (v *logView) unnoticed(ranks []int) []int {
	return unless(ranks, func(r int) bool { _, ok := v.noticed[r]; return ok })
}

// unless are ranks without those of which something is so; all where it is so of all.
func unless(ranks []int, is func(int) bool) []int {
	if few := slices.DeleteFunc(slices.Clone(ranks), is); len(few) > 0 {
		return few
	}
	return ranks
}
