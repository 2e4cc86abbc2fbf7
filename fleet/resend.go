package fleet

import "fmt"

// Span is a range of a publisher's numbers, both ends included.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Len counts its numbers.
func (s Span) Len() uint64 { return s.To - s.From + 1 }

// MaxSpans bounds the spans of a Resend; the rest is asked for later.
const MaxSpans = 64

// Resend asks a node for events that the store does not have, though it had acknowledged them. A node sends again what
// its journal still holds.
type Resend struct {
	Missing []Span `json:"missing"`
}

// Check refuses spans that are none.
func (r *Resend) Check() error {
	if len(r.Missing) > MaxSpans {
		return fmt.Errorf("%d spans of numbers; at most %d are allowed", len(r.Missing), MaxSpans)
	}
	for _, s := range r.Missing {
		if s.From == 0 || s.To < s.From {
			return fmt.Errorf("numbers %d to %d are no span", s.From, s.To)
		}
	}
	return nil
}
