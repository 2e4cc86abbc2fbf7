package engine

import (
	"fmt"
	"slices"
)

// kept is a message that came before anybody waited for it.
type kept struct {
	h    header
	data []byte
	ref  []byte // where the bytes still are, of a reference
}

// keptCost is what a message that is put aside takes beside its bytes.
const keptCost = 128

// receives reports whether a lane is to receive a message of such a length from a link.
func (c *Call) receives(l *link, h header) bool {
	return c != nil && slices.ContainsFunc(c.lanes[h.lane].steps, func(st step) bool {
		return st.link == l && st.verb.receives() && st.bytes == int64(h.length)
	})
}

func (l *link) newKept(h header) *kept {
	l.held += keptCost + int64(h.length)
	if n := len(l.spare); n > 0 {
		k := l.spare[n-1]
		l.spare = l.spare[:n-1]
		k.h, k.data = h, k.data[:0]
		return k
	}
	return &kept{h: h}
}

// putAside reads on of a frame that nobody waits for. Memory grows with what has come, not
// with what the header claims.
func (l *link) putAside() (int64, error) {
	if l.left > 0 {
		if l.r == l.w {
			if l.dry {
				return 0, nil
			}
			if n, err := l.fill(stage); n == 0 || err != nil {
				return 0, err
			}
		}
		n := min(int64(l.w-l.r), l.left)
		l.aside.data = append(l.aside.data, l.buf[l.r:l.r+int(n)]...)
		l.r += int(n)
		l.left -= n
		if l.left > 0 {
			return n, nil
		}
	}
	k := l.aside
	l.aside = nil
	l.kept = append(l.kept, k)
	if c := l.d.calls[k.h.call]; c != nil && int(k.h.lane) < len(c.lanes) {
		if ln := &c.lanes[k.h.lane]; ln.wants(l) {
			return 1, l.takeKept(ln)
		}
	}
	return 1, nil
}

func (l *link) hasKept(call uint64, lane uint32) bool {
	for _, k := range l.kept {
		if k.h.call == call && k.h.lane == lane {
			return true
		}
	}
	return false
}

// takeKept gives a lane the oldest message that was put aside for it, if there is one.
func (l *link) takeKept(ln *lane) error {
	for i, k := range l.kept {
		if k.h.call != ln.call.id || k.h.lane != uint32(ln.id) {
			continue
		}
		st := &ln.steps[ln.pc]
		if ln.gate != nil {
			return nil // the send that reads this memory is under way; asked again when it is done
		}
		if int64(k.h.length) != st.bytes || k.h.program != ln.call.program {
			return &protocolError{
				l.peer, fmt.Sprintf("%s lane %d op %d: a message of %d bytes; expected %d", ln.call.name, ln.id, ln.pc, k.h.length,
					st.bytes),
			}
		}
		l.kept = append(l.kept[:i], l.kept[i+1:]...)
		l.unwait(ln)
		if k.ref != nil {
			ln.call.receiveWhole(st, k.ref)
			k.ref = nil
			l.acknowledge(k.h) // not before: the sender may then overwrite it
		} else {
			ln.call.receiveWhole(st, k.data)
		}
		l.held -= keptCost + int64(k.h.length)
		l.spare = append(l.spare, k)
		ln.received()
		return nil
	}
	return nil
}
