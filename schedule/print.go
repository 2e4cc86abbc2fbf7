package schedule

import (
	"bufio"
	"fmt"
	"io"

	"busbar.dev/coll"
)

// Listing is a schedule as documents have it, with all its ops.
type Listing struct {
	Schedule *Head         `json:"schedule,omitempty"`
	Programs []LaneProgram `json:"programs,omitempty"`
}

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

// LaneProgram is what one lane of one rank, or of a switch, does.
type LaneProgram struct {
	Rank   int        `json:"rank"`
	Lane   int        `json:"lane"`
	Switch string     `json:"switch,omitempty"` // the kind of a switch that computes
	Ops    []ListedOp `json:"ops"`
}

// ListedOp is an op; what has no meaning for its verb is left out.
type ListedOp struct {
	Verb  string     `json:"verb"`
	Buf   string     `json:"buf,omitempty"`
	From  int32      `json:"from"`
	To    int32      `json:"to"`
	Peer  *int32     `json:"peer,omitempty"`
	Dst   string     `json:"dst,omitempty"`
	At    *int32     `json:"at,omitempty"`
	Class int32      `json:"class,omitempty"`
	After *ListedEnd `json:"after,omitempty"`
}

// ListedEnd is the op of another lane that an op waits for.
type ListedEnd struct {
	Lane int32 `json:"lane"`
	Op   int32 `json:"op"`
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

// Listing lists every op of a schedule.
func (s *Schedule) Listing() Listing {
	list := Listing{Schedule: s.Head()}
	for r := range s.Nodes() {
		for l := range s.Lanes {
			p := LaneProgram{Rank: r, Lane: l}
			if r >= s.Ranks {
				p.Switch = s.Switches[r-s.Ranks].Kind.String()
			}
			for _, o := range s.Ops(r, l) {
				p.Ops = append(p.Ops, o.listed())
			}
			if len(p.Ops) > 0 {
				list.Programs = append(list.Programs, p)
			}
		}
	}
	return list
}

func (o Op) listed() ListedOp {
	x := ListedOp{Verb: o.Verb.String(), Class: o.Class}
	if o.Verb != Nop {
		x.Buf, x.From, x.To = o.Buf.String(), o.From, o.To
	}
	switch {
	case o.Verb.Local():
		x.Dst, x.At = o.Dst.String(), &o.At
	case o.Verb != Nop:
		x.Peer = &o.Peer
	}
	if o.After.Count > 0 {
		x.After = &ListedEnd{o.After.Lane, o.After.Count - 1}
	}
	return x
}

// String prints an op, as "send data[3:4] to 5" or "recvReduce data[0:2] from 1 after lane 0 op
// 7".
func (o Op) String() string { return o.listed().String() }

func (o ListedOp) String() string {
	text := o.Verb
	if o.Buf != "" {
		text += fmt.Sprintf(" %s[%d:%d]", o.Buf, o.From, o.To)
	}
	switch {
	case o.At != nil:
		text += " to " + o.Target()
	case o.Peer != nil && o.Verb == Send.String():
		text += fmt.Sprintf(" to %d", *o.Peer)
	case o.Peer != nil:
		text += fmt.Sprintf(" from %d", *o.Peer)
	}
	if o.Class > 0 {
		text += fmt.Sprintf(" class %d", o.Class)
	}
	if o.After != nil {
		text += fmt.Sprintf(" after lane %d op %d", o.After.Lane, o.After.Op)
	}
	return text
}

// Target is the range that a local op writes; "" where it is none.
func (o ListedOp) Target() string {
	if o.At == nil {
		return ""
	}
	return fmt.Sprintf("%s[%d:%d]", o.Dst, *o.At, *o.At+o.To-o.From)
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

// Print writes every op of a schedule, a line each.
func (l *Listing) Print(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, l.Schedule)
	for _, p := range l.Programs {
		if p.Switch == "" {
			fmt.Fprintf(b, "rank %d lane %d\n", p.Rank, p.Lane)
		} else {
			fmt.Fprintf(b, "switch %d (%s) lane %d\n", p.Rank, p.Switch, p.Lane)
		}
		for i, o := range p.Ops {
			fmt.Fprintf(b, "%6d  %s\n", i, o)
		}
	}
	return b.Flush()
}
