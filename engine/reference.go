package engine

import (
	"fmt"

	"busbar.dev/internal/shm"
)

// Of memory that peers cannot map, messages go through a ring instead. Reading it where it is
// with process_vm_readv was measured and left: on 16 KiB to 64 MiB it took 3 to 6 GB/s of the
// reader's processor time, where both copies of the ring together take 4 to 5, on two
// processors at once; and it needs the right to trace the peer, which few systems give.

// A message between ranks of one host may be a reference: instead of the bytes the frame says
// where in the sender's memory they lie, the receiver takes them from there and acknowledges,
// and only then the send is done. Frames of program 0 carry what this needs.
const (
	noProgram  = 0
	tellArena  = 1 // lane is the arena's number; its handle follows
	tellDone   = 2 // length is the call; lane and op are those of the send
	tellBoard  = 3 // lane is the call; the handle of the page follows, nothing where there is none
	byRef      = 1 << 31
	refLen     = 16
	refFrom    = 16 << 10  // shorter messages are copied sooner than acknowledged
	refPiece   = 256 << 10 // what is taken at once
	refHorizon = 2         // steps for which the memory must not be overwritten
)

// mark tells which sends of a lane may be references: not those whose memory the lane
// overwrites at once, as in an exchange, where each side would wait for the other.
func markReferences(steps []step) {
	for i := range steps {
		st := &steps[i]
		st.ref = st.verb == send && len(st.segs) == 1 && st.bytes >= refFrom
		for k := i + 1; st.ref && k < min(i+refHorizon, len(steps)); k++ {
			next := &steps[k]
			if next.verb.receives() && touch(st.segs, next.segs) || touch(st.segs, next.dst) {
				st.ref = false
			}
		}
	}
}

// refer makes a send a reference, where that is possible.
func (l *link) refer(p *posted, c *Call) {
	st := p.step
	if l.ring == nil || !st.ref {
		return
	}
	x := st.segs[0]
	w := c.where[x.mem]
	if w.in == nil {
		return
	}
	l.shareArena(w.in)
	p.ref = true
	le.PutUint32(p.hdr[headerOp:], uint32(p.pc)|byRef)
	le.PutUint64(p.where[:], uint64(w.in.id))
	le.PutUint64(p.where[8:], uint64(w.off+x.off))
}

// shareArena lets the peer map an arena, once.
func (l *link) shareArena(a *arena) {
	if a == nil || l.told[a.id] {
		return
	}
	l.told[a.id] = true
	l.tell(tellArena, a.id, a.seg.Handle().String())
}

// tell sends the handle of memory that the peer may map.
func (l *link) tell(what uint64, which uint32, handle string) {
	p := &posted{raw: make([]byte, headerLen)}
	header{program: noProgram, call: what, lane: which, length: uint64(len(handle))}.put((*[headerLen]byte)(p.raw))
	p.raw = append(p.raw, handle...)
	l.post(p)
	l.d.list(l)
}

// acknowledge says that a reference has been taken.
func (l *link) acknowledge(h header) {
	var a *posted
	if n := len(l.acks); n > 0 {
		a = l.acks[n-1]
		l.acks = l.acks[:n-1]
		a.sent = 0
	} else {
		a = &posted{raw: make([]byte, headerLen)}
	}
	header{
		program: noProgram, call: tellDone, lane: h.lane, op: h.op &^ byRef, length: h.call,
	}.put((*[headerLen]byte)(a.raw))
	l.post(a)
	l.d.list(l)
	l.tx() // an error will come again
}

// special takes a frame of program 0, whose header is at the front of the buffer; false when
// not all of it is there.
func (l *link) special(h header) (bool, error) {
	switch h.call {
	case tellDone:
		l.r += headerLen
		if c := l.d.calls[h.length]; c != nil && int(h.lane) < len(c.lanes) {
			return true, l.acknowledged(&c.lanes[h.lane], int(h.op))
		}
		return true, nil
	case tellArena, tellBoard:
		need := headerLen + int(h.length)
		for l.w-l.r < need {
			if n, err := l.fill(peek); n == 0 || err != nil {
				return false, err
			}
		}
		text := string(l.buf[l.r+headerLen : l.r+need])
		l.r += need
		if h.call == tellArena {
			return true, l.mapArena(h.lane, text)
		}
		return true, l.receiveHandle(uint64(h.lane), text)
	}
	return true, nil
}

// acknowledged ends the send that a peer has taken.
func (l *link) acknowledged(ln *lane, op int) error {
	for k := range ln.count {
		p := &ln.sends[(ln.first+k)%len(ln.sends)]
		if p.step != nil && p.ref && p.pc == op && p.step.link == l && p.sent == headerLen+refLen {
			l.unacked--
			ln.sent(p)
			return nil
		}
	}
	return &protocolError{l.peer, fmt.Sprintf("an acknowledgement of lane %d op %d, which is not under way", ln.id, op)}
}

// open maps memory of the peer.
func (l *link) open(text string) (*shm.Segment, error) {
	h, err := shm.ParseHandle(text)
	if err != nil {
		return nil, &protocolError{l.peer, err.Error()}
	}
	seg, err := shm.Open(h, h.Size)
	if err != nil {
		return nil, fmt.Errorf("its memory cannot be mapped: %w", err) // it may have died just now
	}
	return seg, nil
}

// mapArena maps an arena of the peer, once: what was put aside may still lie in it.
func (l *link) mapArena(id uint32, text string) error {
	if l.maps[id] != nil {
		return &protocolError{l.peer, fmt.Sprintf("memory %d a second time", id)}
	}
	seg, err := l.open(text)
	if err != nil {
		return err
	}
	l.maps[id] = seg
	return nil
}

// referred is the memory that a reference names; nil when its end is not there yet.
func (l *link) referred(h header) ([]byte, error) {
	for l.w-l.r < headerLen+refLen {
		if n, err := l.fill(peek); n == 0 || err != nil {
			return nil, err
		}
	}
	id, off := le.Uint64(l.buf[l.r+headerLen:]), le.Uint64(l.buf[l.r+headerLen+8:])
	var seg *shm.Segment
	if id < maxArenas {
		seg = l.maps[uint32(id)]
	}
	if seg == nil || off > uint64(len(seg.Bytes())) || h.length > uint64(len(seg.Bytes()))-off || h.length == 0 {
		return nil, &protocolError{
			l.peer, fmt.Sprintf("a reference to %d bytes at %d of memory %d, which is not there", h.length, off, id),
		}
	}
	return seg.Bytes()[off : off+h.length], nil
}

// copyKept takes references that were put aside out of the sender's memory, so that it can go
// on: somebody may wait for just that.
func (l *link) copyKept() (moved bool) {
	for _, k := range l.kept {
		if k.ref == nil {
			continue
		}
		k.data = append(k.data[:0], k.ref...)
		k.ref = nil
		l.acknowledge(k.h)
		moved = true
	}
	return moved
}
