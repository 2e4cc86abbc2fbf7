package engine

import "time"

// stalled is how long nothing may move before a receive no longer follows a send byte by byte.
const stalled = 100 * time.Millisecond

// ungate lets a receive go on that waits for a send of its own rank to let go of the memory.
//
// What comes over a link comes in order, and what waits to be sent does as well. Where ranks
// start several large calls in different orders, the message that has come may be gated by a
// send that stands behind another, which the peer does not read because its own message is
// gated in the same way: nobody moves. A copy of what is left of the send ends that. A send that
// is first in its queue most often only waits for a slow network, so it is given more time.
func (l *link) ungate(idle time.Duration) bool {
	if !l.gated || l.cur == nil || l.cur.gate == nil || l.cur.gate.ref {
		return false
	}
	p := l.cur.gate
	if to := p.step.link; to.head < len(to.queue) && to.queue[to.head] == p && idle < stalled {
		return false
	}
	p.spill()
	l.cur.gate = nil
	l.gated = false
	return true
}

// spill copies what is left of a send.
func (p *posted) spill() {
	p.spilled = make([]byte, 0, p.step.bytes-p.took)
	off := p.off
	for _, x := range p.step.segs[p.seg:] {
		p.spilled = append(p.spilled, p.lane.call.mem[x.mem][x.off+off:x.off+x.n]...)
		off = 0
	}
}
