package schedule

import (
	"fmt"
	"slices"
)

// fault is what is wrong with the op that a lane is at.
func (c *checker) fault(class FaultClass, rank, ln int, o Op, what string) error {
	pc := int(c.lanes[rank*c.s.Lanes+ln].pc)
	return &Fault{class, rank, ln, pc, fmt.Sprintf("op %d (%s) %s", pc, o, what)}
}

// sane reports an op that means nothing.
func (c *checker) sane(rank, ln int, o Op) error {
	bad := func(format string, args ...any) error {
		return c.fault(Malformed, rank, ln, o, fmt.Sprintf(format, args...))
	}
	if o.Verb >= verbs || o.Buf >= buffers || o.Dst >= buffers {
		return bad("has no such verb or buffer: %d %d %d", o.Verb, o.Buf, o.Dst)
	}
	if w := o.After; w.Count != 0 {
		switch {
		case w.Lane < 0 || int(w.Lane) >= c.s.Lanes:
			return bad("waits for lane %d; lanes are 0 to %d", w.Lane, c.s.Lanes-1)
		case int(w.Lane) == ln:
			return bad("waits for its own lane")
		case w.Count < 0 || w.Count > c.lanes[rank*c.s.Lanes+int(w.Lane)].n:
			return bad("waits for op %d of lane %d, which has %d ops", w.Count-1, w.Lane, c.lanes[rank*c.s.Lanes+int(w.Lane)].n)
		}
	}
	if o.Verb == Nop {
		return nil
	}
	if o.From < 0 || o.To < o.From || int(o.To) > c.size[o.Buf] {
		return bad("is out of range: %s has %d chunks", o.Buf, c.size[o.Buf])
	}
	if o.Verb.Local() {
		if o.At < 0 || int(o.At)+o.Len() > c.size[o.Dst] {
			return bad("is out of range: %s has %d chunks", o.Dst, c.size[o.Dst])
		}
		if o.Buf == o.Dst && o.At < o.To && o.From < o.At+o.To-o.From {
			return bad("moves a range onto itself")
		}
		return nil
	}
	if o.Peer < 0 || int(o.Peer) >= c.nodes {
		return bad("has no such peer; participants are 0 to %d", c.nodes-1)
	}
	if int(o.Peer) == rank {
		return bad("talks to itself")
	}
	return nil
}

// stuck reports lanes that wait for ever, and messages that nobody wants.
func (c *checker) stuck() error {
	var first error
	for i := range c.lanes {
		l := &c.lanes[i]
		if l.state == ended {
			continue
		}
		rank, ln := i/c.s.Lanes, i%c.s.Lanes
		o := c.s.At(rank, ln, int(l.pc))
		what := fmt.Sprintf("waits for ever at op %d (%s) with %d messages in flight", l.pc, o, c.flight)
		f := &Fault{Deadlock, rank, ln, int(l.pc), what}
		if first == nil {
			first = f
		}
		// A lane whose peer has ended is the cause; the others wait for it.
		if l.state == awaitsMessage || l.state == awaitsRoom {
			if c.lanes[int(o.Peer)*c.s.Lanes+ln].state == ended {
				f.What += fmt.Sprintf(": rank %d has ended", o.Peer)
				return f
			}
		}
	}
	if first != nil {
		return first
	}
	var left []conn
	for k := range c.queues {
		left = append(left, k)
	}
	if len(left) == 0 {
		return nil
	}
	k := slices.Min(left)
	from, to, ln := k.ends()
	m := c.queues[k].msgs[0]
	return &Fault{
		Unmatched, from, ln, int(m.op),
		fmt.Sprintf("op %d (%s): rank %d never receives it", m.op, c.s.At(from, ln, int(m.op)), to),
	}
}
