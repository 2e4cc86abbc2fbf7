package schedule

import (
	"fmt"

	"busbar.dev/coll"
)

// Head is a schedule without its ops.
type Head struct {
	Name     string    `json:"name"`
	Op       coll.Kind `json:"op"`
	Ranks    int       `json:"ranks"`
	Root     int       `json:"root"`
	Lanes    int       `json:"lanes"`
	Channels int       `json:"channels"`
	Depth    int       `json:"depth"` // messages that a lane may hold unread
	Chunks   int       `json:"chunks"`
	Scratch  int       `json:"scratch_chunks"`
	Switches int       `json:"switches"` // that compute
	Rounds   int       `json:"rounds"`   // messages one after the other on the longest chain
}

// Head is the schedule without its ops.
func (s *Schedule) Head() *Head {
	h := s.head()
	h.Rounds = s.Rounds()
	return h
}

// head is Head without Rounds, which takes a visit to every op.
func (s *Schedule) head() *Head {
	return &Head{
		s.Name, s.Kind, s.Ranks, s.Root, s.Lanes, s.Channels, s.Depth, s.Layout.Chunks, s.Temp, len(s.Switches), 0,
	}
}

// String is one line about the schedule.
func (s *Schedule) String() string { return s.head().String() }

// String prints an op, as "send data[3:4] to 5" or "recvReduce data[0:2] from 1 after lane 0 op 7".
func (o Op) String() string {
	text := o.Verb.String()
	if o.Verb != Nop {
		text += fmt.Sprintf(" %s[%d:%d]", o.Buf, o.From, o.To)
	}
	switch {
	case o.Verb.Local():
		text += fmt.Sprintf(" to %s[%d:%d]", o.Dst, o.At, o.At+o.To-o.From)
	case o.Verb == Send:
		text += fmt.Sprintf(" to %d", o.Peer)
	case o.Verb != Nop:
		text += fmt.Sprintf(" from %d", o.Peer)
	}
	if o.Class > 0 {
		text += fmt.Sprintf(" class %d", o.Class)
	}
	if o.After.Count > 0 {
		text += fmt.Sprintf(" after lane %d op %d", o.After.Lane, o.After.Count-1)
	}
	return text
}

// String is one line about the schedule.
func (h *Head) String() string {
	text := fmt.Sprintf("%s %s ranks %d lanes %d channels %d depth %d chunks %d", h.Op, h.Name, h.Ranks, h.Lanes,
		h.Channels, h.Depth, h.Chunks)
	if h.Scratch > 0 {
		text += fmt.Sprintf(" temp %d", h.Scratch)
	}
	if h.Op.Rooted() {
		text += fmt.Sprintf(" root %d", h.Root)
	}
	if h.Switches > 0 {
		text += fmt.Sprintf(" switches %d", h.Switches)
	}
	return text
}
