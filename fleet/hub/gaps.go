package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"busbar.dev/fleet"
)

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

// gap is numbers that the store does not have, and between which times they were given.
type gap struct {
	from, to     uint64
	since, until time.Time // since is zero where nothing is there from before
}

// follows takes a number and notes those that were passed over.
func (r *received) follows(seq uint64, at time.Time) {
	if seq > r.seq+1 && seq-r.seq <= maxJump {
		r.gaps = append(r.gaps, gap{r.seq + 1, seq - 1, r.at, at})
		if len(r.gaps) > maxGaps { // the oldest two become one
			r.gaps[1].from, r.gaps[1].since = r.gaps[0].from, r.gaps[0].since
			r.gaps = r.gaps[1:]
		}
	}
	r.seq, r.at = seq, at
}

// Whose numbers are missing, where it is no node.
const (
	theStream = "the stream"
	theServer = "the server"
)

// Missing is a span of numbers of the stream, of the server or of a node, that the store does not have.
type Missing struct {
	Of string
	gap
}

// Span is the first and the last of the numbers.
func (m Missing) Span() (from, to uint64) { return m.from, m.to }

func (m Missing) String() string {
	text := fmt.Sprintf("%s: number %d", m.Of, m.from)
	if m.to > m.from {
		text = fmt.Sprintf("%s: numbers %d to %d", m.Of, m.from, m.to)
	}
	if !m.since.IsZero() {
		return fmt.Sprintf("%s, from between %s and %s", text, m.since.UTC().Format(time.RFC3339),
			m.until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s, from before %s", text, m.until.UTC().Format(time.RFC3339))
}

// missing is what the stream does not have. A store that is not whole drops what is oldest as it should: of one that
// is, numbers before the first count too, and the stream's own sequences.
func (v *View) missing(whole bool) (list []Missing) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	add := func(of string, r *received) {
		for _, g := range r.gaps {
			if whole || !g.since.IsZero() {
				list = append(list, Missing{of, g})
			}
		}
	}
	if whole {
		add(theStream, &v.stream)
	}
	for _, n := range slices.SortedFunc(maps.Keys(v.publishers), byNumber) {
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

// lastOf is the last number of a publisher.
func (v *View) lastOf(n fleet.Name) uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if r := v.publishers[n]; r != nil {
		return r.seq
	}
	return 0
}
