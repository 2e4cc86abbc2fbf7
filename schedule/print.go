package schedule

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// String prints an op, as "send data[3:4] to 5" or "recvReduce data[0:2] from 1 after lane 0 op
// 7".
func (o Op) String() string {
	var b strings.Builder
	switch span := fmt.Sprintf("%s[%d:%d]", o.Buf, o.From, o.To); o.Verb {
	case Nop:
		b.WriteString("nop")
	case Send:
		fmt.Fprintf(&b, "send %s to %d", span, o.Peer)
	case Recv, RecvReduce:
		fmt.Fprintf(&b, "%s %s from %d", o.Verb, span, o.Peer)
	default:
		fmt.Fprintf(&b, "%s %s to %s[%d:%d]", o.Verb, span, o.Dst, o.At, o.At+o.To-o.From)
	}
	if o.Class > 0 {
		fmt.Fprintf(&b, " class %d", o.Class)
	}
	if o.After.Count > 0 {
		fmt.Fprintf(&b, " after lane %d op %d", o.After.Lane, o.After.Count-1)
	}
	return b.String()
}

// String is one line about the schedule.
func (s *Schedule) String() string {
	text := fmt.Sprintf("%s %s ranks %d lanes %d channels %d depth %d chunks %d", s.Kind, s.Name, s.Ranks, s.Lanes,
		s.Channels, s.Depth, s.Layout.Chunks)
	if s.Temp > 0 {
		text += fmt.Sprintf(" temp %d", s.Temp)
	}
	if s.Kind.Rooted() {
		text += fmt.Sprintf(" root %d", s.Root)
	}
	if len(s.Switches) > 0 {
		text += fmt.Sprintf(" switches %d", len(s.Switches))
	}
	return text
}

// Print writes every op of a schedule, a line each.
func Print(w io.Writer, s *Schedule) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, s)
	for r := range s.Nodes() {
		for l := range s.Lanes {
			n := s.Len(r, l)
			if n == 0 {
				continue
			}
			if r < s.Ranks {
				fmt.Fprintf(b, "rank %d lane %d\n", r, l)
			} else {
				fmt.Fprintf(b, "switch %d (%s) lane %d\n", r, s.Switches[r-s.Ranks].Kind, l)
			}
			for i := range n {
				fmt.Fprintf(b, "%6d  %s\n", i, s.At(r, l, i))
			}
		}
	}
	return b.Flush()
}
