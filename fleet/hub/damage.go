package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// StoreDamaged is a finding about the store: it does not have events that it had acknowledged.
const StoreDamaged finding.Kind = "store-damaged"

// damageLasts is for how long a finding tells of events that are missing, from when that was found.
const damageLasts = 7 * 24 * time.Hour

// Missing lists what the store lost: of the stream, by its sequences, and of publishers, by their numbers.
func (h *Hub) Missing() []Missing {
	list := h.view.missing(h.whole.Load())
	for _, t := range h.cfg.Bus.Mark().Tails() {
		covers := func(m Missing) bool { return m.Of == theStream && m.from <= t.From && t.To <= m.to }
		if !slices.ContainsFunc(list, covers) {
			list = append(list, Missing{theStream, gap{t.From, t.To, t.Since, t.Until}})
		}
	}
	return list
}

// countMissing counts events: by the stream's sequences where these are missing, else by publishers' numbers.
func countMissing(list []Missing) (n uint64) {
	stream := slices.ContainsFunc(list, func(m Missing) bool { return m.Of == theStream })
	for _, m := range list {
		if !stream || m.Of == theStream {
			n += m.to - m.from + 1
		}
	}
	return n
}

// watchStore holds again and again what nodes say was stored against the stream, all of which must be in the view: what
// was said before the stream's end was asked for is in front of that end.
func (h *Hub) watchStore(ctx context.Context) {
	for {
		if trims, err := h.cfg.Bus.Trimmed(ctx); err == nil {
			h.whole.Store(!trims)
		}
		said := h.live.claims()
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		if h.readAll(within) == nil {
			maps.DeleteFunc(said, func(n fleet.Name, last uint64) bool { return last <= h.view.lastOf(n) })
			h.claims.Store(&said)
		}
		cancel()
		if !h.sleep(ctx, h.cfg.Look) {
			return
		}
	}
}

// claims are the last numbers that nodes say were stored.
func (l *live) claims() map[fleet.Name]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[fleet.Name]uint64{}
	for n, b := range l.beats {
		out[n] = b.Last
	}
	return out
}

// damageFindings tell what is missing. What one node's numbers alone say is its claim: it gives them itself.
func (h *Hub) damageFindings(now time.Time) (list []finding.Finding) {
	f := finding.Finding{
		ID: string(StoreDamaged) + ":", Kind: StoreDamaged, Severity: finding.Error, Confidence: 1,
		Fix: "Check the disk of the server's --data (kernel log, smartctl). What is missing is lost; three servers keep " +
			"three copies (docs/fleet.md).",
	}
	missing := slices.DeleteFunc(h.Missing(), func(m Missing) bool {
		found := h.cfg.Bus.Mark().Found(m.String(), now)
		if now.Sub(found) > damageLasts {
			return true
		}
		if f.Since.IsZero() || found.Before(f.Since) {
			f.Since = found
		}
		f.Evidence = append(f.Evidence, finding.Facts(m.String())...)
		return false
	})
	if len(missing) == 0 {
		return h.claimFindings(now)
	}
	f.Text = fmt.Sprintf("The store does not have %d events that it had acknowledged.", countMissing(missing))
	one := missing[0].Of
	if one != theStream && one != theServer &&
		!slices.ContainsFunc(missing, func(m Missing) bool { return m.Of != one }) {
		f.Severity, f.Confidence = finding.Warn, 0.5
		f.Text = fmt.Sprintf("The numbers of %s leave out %d events, and nothing else is missing.", one,
			countMissing(missing))
		f.Fix = fmt.Sprintf("Check the agent of %s and who has its credentials, then the disk of the server's --data.", one)
	}
	return append(h.claimFindings(now), f)
}

// claimFindings are warnings about nodes that say that more was stored than there is.
func (h *Hub) claimFindings(now time.Time) (list []finding.Finding) {
	said := h.claims.Load()
	if said == nil {
		return nil
	}
	for _, n := range slices.SortedFunc(maps.Keys(*said), byNumber) {
		list = append(list, finding.Finding{
			ID: fmt.Sprintf("%s:%s", StoreDamaged, n), Kind: StoreDamaged, Severity: finding.Warn, Nodes: []string{string(n)},
			Since: now.UTC().Truncate(time.Second), Confidence: 0.5,
			Text: fmt.Sprintf("Events of %s up to number %d were stored, says %s; the store has them up to %d.", n, (*said)[n],
				n,
				h.view.lastOf(n)),
			Fix: fmt.Sprintf("Check the disk of the server's --data, and the agent of %s.", n),
		})
	}
	return list
}
