package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
)

// StoreDamaged is a finding about the store: it does not have events that it had acknowledged.
const StoreDamaged finding.Kind = "store-damaged"

const (
	// askMost is how often a node is asked for the same before that becomes seldom, and askSeldom how often then.
	askMost   = 12
	askSeldom = 10 * time.Minute
	// damageLasts is for how long a finding tells of events that nobody has any more.
	damageLasts = 7 * 24 * time.Hour
)

// tail is the last number that a node says was stored, and since when it says so.
type tail struct {
	last  uint64
	since time.Time
}

// damage is what nodes say about what is stored, and what they were asked for. Times of asked are by the process's own
// clock.
type damage struct {
	mu    sync.Mutex // guards following
	tails map[fleet.Name]tail
	// lost are those of tails that the store does not have, as of the last look.
	lost  map[fleet.Name]tail
	asked map[fleet.Name]*asked
	first time.Time // when something was found missing
	most  uint64    // and how much that was
	told  bool
}

// asked is what a node was asked for last.
type asked struct {
	times int
	at    time.Time
	count uint64
}

// beat takes note of what a node says was stored.
func (d *damage) beat(b *fleet.Beat, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tails[b.Node]; b.Last == t.last {
		return
	}
	if d.tails == nil || len(d.tails) > fleet.MaxNodes {
		d.tails = map[fleet.Name]tail{}
	}
	d.tails[b.Node] = tail{b.Last, now}
}

// move follows a clock that was set.
func (d *damage) move(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range []map[fleet.Name]tail{d.tails, d.lost} {
		for n, t := range m {
			m[n] = tail{t.last, t.since.Add(by)}
		}
	}
}

// Missing is a span of a publisher's numbers that the store had acknowledged and does not have; an empty name is the
// server's. They were given between two times; Since is zero where nothing is there from before.
type Missing struct {
	Node fleet.Name
	fleet.Span
	Since, Until time.Time
}

// Missing lists what the store lost.
func (h *Hub) Missing() (list []Missing) {
	for _, l := range h.missing() {
		for _, g := range l.gaps {
			list = append(list, Missing{l.node, g.Span, g.since, g.until})
		}
	}
	return list
}

func (h *Hub) missing() []lacks {
	h.damage.mu.Lock()
	lost := maps.Clone(h.damage.lost)
	h.damage.mu.Unlock()
	return h.view.missing(lost, !h.trimmed.Load())
}

// compare holds what nodes and the server's journal say was stored against the stream, all of which must be in the
// view: what was known to be stored before the stream's end was asked for is in front of that end. What becomes known
// after that may only not be in the view yet, and would be stored twice if it were sent again.
func (h *Hub) compare(ctx context.Context) {
	d := &h.damage
	d.mu.Lock()
	said := maps.Clone(d.tails)
	d.mu.Unlock()
	if said == nil {
		said = map[fleet.Name]tail{}
	}
	said[""] = tail{h.cfg.Bus.Published(), h.now()}
	if h.readAll(ctx) != nil {
		return
	}
	maps.DeleteFunc(said, func(n fleet.Name, t tail) bool { return t.last <= h.view.lastOf(n) })
	d.mu.Lock()
	d.lost = said
	d.mu.Unlock()
}

// repair looks again and again what the store lost, and asks for it: nodes for theirs, and the server's own journal.
func (h *Hub) repair(ctx context.Context) {
	for {
		if full, err := h.cfg.Bus.Trimmed(ctx); err == nil {
			h.trimmed.Store(full)
		}
		within, cancel := context.WithTimeout(ctx, h.cfg.Mend+10*time.Second)
		h.compare(within)
		cancel()
		list := h.missing()
		for _, l := range list {
			h.repairOne(ctx, l)
		}
		h.damage.mu.Lock()
		fresh := len(list) > 0 && !h.damage.told
		h.damage.told = len(list) > 0
		h.damage.mu.Unlock()
		if fresh {
			h.cfg.Warn(errors.New(damageText(list)))
			h.lookNow()
		}
		if !h.sleep(ctx, h.cfg.Mend) {
			return
		}
	}
}

func (h *Hub) repairOne(ctx context.Context, l lacks) {
	if l.node == "" {
		h.repairOwn(ctx, l.spans())
		return
	}
	// Who beats is there, also where the store has lost that it ever joined.
	b, _, beats := h.live.of(l.node)
	if beats && h.live.quiet(b.came, h.now()) <= h.cfg.Unreachable && h.damage.due(l, time.Now()) {
		_ = h.cfg.Bus.AskResend(l.node, &fleet.Resend{Missing: l.spans()}) // it is asked again
	}
}

// repairOwn stores again what this server said and the store lost.
func (h *Hub) repairOwn(ctx context.Context, spans []fleet.Span) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := h.cfg.Bus.Resend(ctx, spans); err != nil && ctx.Err() == nil {
		h.cfg.Warn(fmt.Errorf("what the store lost of the server's own events: %w", err))
	}
}

// due tells whether a node is asked now.
func (d *damage) due(l lacks, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.asked[l.node]
	if a == nil {
		if d.asked == nil || len(d.asked) > fleet.MaxNodes {
			d.asked = map[fleet.Name]*asked{}
		}
		a = &asked{}
		d.asked[l.node] = a
	}
	if n := l.count(); n != a.count { // some of it came
		a.count, a.times = n, 0
	}
	if a.times >= askMost && now.Sub(a.at) < askSeldom {
		return false
	}
	a.times++
	a.at = now
	return true
}

// damageFindings tells what is missing.
func (h *Hub) damageFindings(now time.Time) []finding.Finding {
	list := h.missing()
	var newest time.Time
	count := uint64(0)
	for _, l := range list {
		count += l.count()
		for _, g := range l.gaps {
			if g.until.After(newest) {
				newest = g.until
			}
		}
	}
	d := &h.damage
	d.mu.Lock()
	defer d.mu.Unlock()
	if count == 0 || now.Sub(newest) > damageLasts {
		d.first, d.most = time.Time{}, 0
		return nil
	}
	if d.first.IsZero() {
		d.first = now
	}
	d.most = max(d.most, count)
	f := finding.Finding{
		ID: string(StoreDamaged) + ":", Kind: StoreDamaged, Severity: finding.Error,
		Since: d.first.UTC().Truncate(time.Second), Confidence: 1,
		Text: damageText(list),
		Fix: "Check the disk of the server's --data (kernel log, smartctl). Agents are asked to resend what their " +
			"journals hold; the rest is lost.",
	}
	if node := onlyNode(list); node != "" {
		f.Severity, f.Confidence = finding.Warn, 0.5
		f.Fix = fmt.Sprintf("No events of other nodes or of the server are missing: either the store lost events of one "+
			"node only, or %s reports wrong numbers. Check its agent and who has its credentials, then the disk of the "+
			"server's --data.", node)
	}
	if d.most > count {
		f.Evidence = append(f.Evidence, finding.Facts(fmt.Sprintf("%d of %d were sent again", d.most-count, d.most))...)
	}
	for _, l := range list {
		for _, g := range l.gaps {
			f.Evidence = append(f.Evidence, finding.Facts(fmt.Sprintf("%s: %s", publisherName(l.node), g))...)
		}
	}
	return []finding.Finding{f}
}

func publisherName(n fleet.Name) string {
	if n == "" {
		return "the server"
	}
	return "node " + string(n)
}

// onlyNode is the one node that lacks something, where nobody else does: a node's word about its own events is all
// there is then, and it may have been given to mislead.
func onlyNode(list []lacks) fleet.Name {
	if len(list) == 1 {
		return list[0].node
	}
	return ""
}

func damageText(list []lacks) string {
	count := uint64(0)
	for _, l := range list {
		count += l.count()
	}
	if node := onlyNode(list); node != "" {
		return fmt.Sprintf("Node %s counts %d events as stored that the store does not have.", node, count)
	}
	who := fmt.Sprintf("%d publishers", len(list))
	if len(list) == 1 {
		who = publisherName("")
	}
	return fmt.Sprintf("The store does not have %d events of %s that it had acknowledged.", count, who)
}

// repairBefore stores again what the store lost of this server's events, before the server acts on what is left of
// them. What the journal does not hold is lost.
func (h *Hub) repairBefore(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	h.compare(ctx)
	for _, l := range h.missing() {
		if l.node == "" {
			h.repairOwn(ctx, l.spans())
			_ = h.readAll(ctx) // what comes later is folded later
		}
	}
}
