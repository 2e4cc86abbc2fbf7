package engine

import (
	"busbar.dev/coll"
	"busbar.dev/schedule"
)

// findUntouched looks for chunks of Data that a reduction need not copy from the contribution
// first: their first write takes the contribution from where it is. That is decided before the
// program runs, so it holds only for chunks that one lane alone touches, with messages only.
func (c *compiler) findUntouched() {
	if !c.op.Kind.Reduces() || c.op.Kind == coll.Barrier || c.op.Reduce == coll.MulSum {
		return
	}
	const nobody, several = -1, -2
	lanes := make([]int32, c.s.Layout.Chunks)
	for i := range lanes {
		lanes[i] = nobody
	}
	touch := func(buf schedule.Buffer, from, to int32, lane int32) {
		if buf != schedule.Data {
			return
		}
		for chunk := max(from, 0); chunk < min(to, int32(len(lanes))); chunk++ {
			if lanes[chunk] == nobody {
				lanes[chunk] = lane
			} else if lanes[chunk] != lane {
				lanes[chunk] = several
			}
		}
	}
	written := make([]bool, len(lanes))
	for lane := range c.s.Lanes {
		for i := range c.s.Len(c.rank, lane) {
			o := c.s.At(c.rank, lane, i)
			switch {
			case o.Verb.Local():
				touch(o.Buf, o.From, o.To, several)
				touch(o.Dst, o.At, o.At+o.To-o.From, several)
			case o.Verb == schedule.Send || o.Verb.Receives():
				touch(o.Buf, o.From, o.To, int32(lane))
				for chunk := max(o.From, 0); o.Buf == schedule.Data && o.Verb.Receives() &&
					chunk < min(o.To, int32(len(lanes))); chunk++ {
					written[chunk] = true
				}
			}
		}
	}
	c.untouched = make([]bool, len(lanes))
	for chunk := range lanes {
		c.untouched[chunk] = lanes[chunk] >= 0 && written[chunk]
		if !c.untouched[chunk] {
			c.initial = join(c.initial, c.extent(schedule.Data, chunk))
		}
	}
}
