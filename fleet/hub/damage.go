package hub

import (
	"context"
	"fmt"
	"slices"
	"time"

	"busbar.dev/finding"
)

// storeDamaged is a finding about the store: it does not have events that it had acknowledged.
const storeDamaged finding.Kind = "store-damaged"

// damageLasts is for how long a finding tells of events that are missing, from when that was found.
const damageLasts = 7 * 24 * time.Hour

const (
	maxJump = 10_000_000 // numbers that may be passed over; more is no loss, but a lie
	maxGaps = 256        // of one row of numbers
)

// received is a row of numbers that go up by one: the stream's sequences, or a publisher's numbers.
type received struct {
	seq  uint64
	at   time.Time
	gaps []gap // the oldest first
}

// Whose numbers are missing, where it is no node.
const (
	theStream = "the stream"
	theServer = "the server"
)

// gap is numbers that the store does not have, whose, and between which times they were given.
type gap struct {
	of           string
	from, to     uint64
	since, until time.Time // since is zero where nothing is there from before
}

// follows takes a number and notes those that were passed over.
func (r *received) follows(seq uint64, at time.Time) {
	if seq > r.seq+1 && seq-r.seq <= maxJump {
		r.gaps = append(r.gaps, gap{from: r.seq + 1, to: seq - 1, since: r.at, until: at})
		if len(r.gaps) > maxGaps { // the oldest two become one
			r.gaps[1].from, r.gaps[1].since = r.gaps[0].from, r.gaps[0].since
			r.gaps = r.gaps[1:]
		}
	}
	r.seq, r.at = seq, at
}

func (g gap) String() string {
	text := fmt.Sprintf("%s: number %d", g.of, g.from)
	if g.to > g.from {
		text = fmt.Sprintf("%s: numbers %d to %d", g.of, g.from, g.to)
	}
	if !g.since.IsZero() {
		return fmt.Sprintf("%s, from between %s and %s", text, g.since.UTC().Format(time.RFC3339),
			g.until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s, from before %s", text, g.until.UTC().Format(time.RFC3339))
}

// missing is what the stream does not have. A store that is not whole drops what is oldest as it should: of one that
// is, numbers before the first count too, and the stream's own sequences.
func (v *View) missing(whole bool) (list []gap) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	add := func(of string, r *received) {
		for _, g := range r.gaps {
			if g.of = of; whole || !g.since.IsZero() {
				list = append(list, g)
			}
		}
	}
	if whole {
		add(theStream, &v.stream)
	}
	for _, n := range sortedNames(v.publishers) {
		of := "node " + string(n)
		if n == "" {
			of = theServer
		}
		if s := v.nodes[n]; s == nil || !s.forgotten {
			add(of, v.publishers[n])
		}
	}
	return list
}

// missing is what the store lost: of the stream, by its sequences, and of publishers, by their numbers.
func (h *Hub) missing(ctx context.Context) ([]gap, error) {
	trims, err := h.cfg.Bus.Trimmed(ctx)
	if err != nil {
		return nil, err
	}
	list := h.view.missing(!trims)
	for _, t := range h.cfg.Bus.Mark().Tails() {
		covers := func(g gap) bool { return g.of == theStream && g.from <= t.From && t.To <= g.to }
		if !slices.ContainsFunc(list, covers) {
			list = slices.Insert(list, 0, gap{theStream, t.From, t.To, t.Since, t.Until})
		}
	}
	return list, nil
}

// damageFindings tell what is missing. What one node's numbers alone say is its claim: it gives them itself.
func (h *Hub) damageFindings(missing []gap, now time.Time) []finding.Finding {
	f := finding.Finding{
		ID: string(storeDamaged) + ":", Kind: storeDamaged, Severity: finding.Error, Confidence: 1,
		Fix: "Check the disk of the server's --data (kernel log, smartctl). What is missing is lost; three servers keep " +
			"three copies (docs/fleet.md).",
	}
	one, alone, count := "", true, uint64(0) // counted by the stream's sequences, which come first, where some are missing
	for _, g := range missing {
		found := h.cfg.Bus.Mark().Found(g.String(), now)
		if now.Sub(found) > damageLasts {
			continue
		}
		if one == "" {
			one, f.Since = g.of, found
		}
		if found.Before(f.Since) {
			f.Since = found
		}
		if one != theStream || g.of == theStream {
			count += g.to - g.from + 1
		}
		alone = alone && g.of == one
		f.Evidence = append(f.Evidence, finding.Facts(g.String())...)
	}
	if one == "" {
		return nil
	}
	f.Text = fmt.Sprintf("The store does not have %d events that it had acknowledged.", count)
	if alone && one != theStream && one != theServer {
		f.Severity, f.Confidence = finding.Warn, 0.5
		f.Text = fmt.Sprintf("The numbers of %s leave out %d events, and nothing else is missing.", one, count)
		f.Fix = fmt.Sprintf("Check the agent of %s and who has its credentials, then the disk of the server's --data.", one)
	}
	return []finding.Finding{f}
}
