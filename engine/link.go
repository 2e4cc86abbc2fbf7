package engine

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"busbar.dev/internal/shm"
)

// Sizes of the engine's own memory and of turns, measured on loopback.
const (
	stage     = 256 << 10 // what a link reads at once before summing
	peek      = 16 << 10  // what a link reads when it does not know what comes
	directly  = 8 << 10   // from here on a receive reads straight to its place
	turnBytes = 1 << 20   // what a link may move before others have their turn
	maxKept   = 1 << 30   // what a link puts aside at most
)

// link is one connection to a peer, with what is under way on it.
type link struct {
	d    *driver
	peer int
	k    int // which of the connections to the peer
	s    stream
	ring *ringPair // s, where it is shared memory: agreed on when the two sides met
	fd   int       // for the poller; -1 where there is none

	buf     []byte // what was read and not yet used, [r, w)
	r, w    int
	dry     bool  // the last read got less than it could have
	gated   bool  // what is there may not be written yet
	cur     *lane // whose receive the frame feeds that is coming in
	left    int64 // of that frame
	aside   *kept // the frame is put aside
	kept    []*kept
	spare   []*kept
	held    int64 // bytes put aside, and announced to be
	waiting int   // lanes that wait for a message

	ref     []byte // the current frame is a reference to this, of which left bytes are to come
	refHead header
	maps    map[uint32]*shm.Segment // the peer's memory
	handles map[uint64]pageHandle   // pages of exchanges, by call, that nobody has asked for yet
	told    map[uint32]bool         // own memory that the peer knows
	unacked int                     // references that the peer has not taken
	acks    []*posted               // spare

	queue []*posted // sends, the oldest first from head on
	head  int
	iov   [6][]byte

	listed bool // in the group's list
	ended  error
}

// reading reports whether the link has a reason to read.
func (l *link) reading(all bool) bool {
	return l.ended == nil && !l.gated && (l.expects() || all && l.held < maxKept)
}

// expects reports whether something that was asked for is still to come.
func (l *link) expects() bool {
	return l.waiting > 0 || l.unacked > 0 || l.cur != nil || l.aside != nil
}

func (l *link) writing() bool { return l.ended == nil && l.head < len(l.queue) }

// fill reads into the link's own memory.
func (l *link) fill(most int) (int, error) {
	switch {
	case l.r == l.w:
		l.r, l.w = 0, 0
	case len(l.buf)-l.w < min(most, len(l.buf)/2):
		l.w = copy(l.buf, l.buf[l.r:l.w])
		l.r = 0
	}
	to := min(l.w+most, len(l.buf))
	n, err := l.s.read(l.buf[l.w:to])
	l.dry = n < to-l.w
	l.w += n
	return n, err
}

// rx takes what has come. It reports whether anything moved.
func (l *link) rx() (moved bool, err error) {
	l.dry, l.gated = false, false
	start := l.d.moved
	for l.d.moved-start < turnBytes {
		if l.cur == nil && l.aside == nil {
			ok, err := l.next()
			if err != nil {
				return moved, err
			}
			if !ok {
				return moved || l.d.moved != start, nil
			}
			moved = true
		}
		var n int64
		if l.aside != nil {
			n, err = l.putAside()
		} else {
			n, err = l.deliver()
		}
		l.d.moved += n
		moved = moved || n > 0
		if err != nil {
			return moved, err
		}
		if n == 0 && (l.cur != nil || l.aside != nil) {
			return moved, nil
		}
		if l.cur == nil && l.aside == nil && l.dry && l.w-l.r < headerLen {
			return moved, nil
		}
	}
	return moved, nil
}

// next begins a frame, once its header is there and somebody wants it.
func (l *link) next() (bool, error) {
	for l.w-l.r < headerLen {
		if l.dry {
			return false, nil
		}
		n, err := l.fill(peek)
		if err != nil || n == 0 {
			return false, err
		}
	}
	h, err := parseHeader(l.buf[l.r:], l.ring != nil)
	if err != nil {
		return false, &protocolError{l.peer, err.Error()}
	}
	if h.program == noProgram {
		ok, err := l.special(h)
		if !ok || err != nil {
			return false, err
		}
		l.d.moved++
		return l.next()
	}
	var ref []byte
	if h.op&byRef != 0 {
		if ref, err = l.referred(h); ref == nil {
			return false, err
		}
	}
	c := l.d.calls[h.call]
	if c != nil {
		if c.program != h.program || int(h.lane) >= len(c.lanes) {
			return false, &protocolError{l.peer, fmt.Sprintf("call %d is %s here (program %08x) and something else there "+
				"(program %08x lane %d); all ranks must prepare the same calls in the same order", h.call, c.name, c.program,
				h.program, h.lane)}
		}
		if ln := &c.lanes[h.lane]; ln.wants(l) && !l.hasKept(h.call, h.lane) {
			st := &ln.steps[ln.pc]
			if int64(h.length) != st.bytes {
				return false, &protocolError{
					l.peer,
					fmt.Sprintf("%s lane %d op %d: a message of %d bytes; expected %d", c.name, h.lane, ln.pc, h.length, st.bytes),
				}
			}
			l.r += headerLen
			if l.ref = ref; ref != nil {
				l.r += refLen
				l.refHead = h
			}
			l.cur, l.left = ln, st.bytes
			l.unwait(ln)
			return true, nil
		}
	}
	if l.waiting == 0 && l.unacked == 0 && !l.d.stuck || l.held >= maxKept {
		return false, nil
	}
	if int64(h.length) > maxKept-l.held && !c.receives(l, h) {
		if c != nil {
			return false,
				&protocolError{l.peer, fmt.Sprintf("%s: a message of %d bytes, which it does not have", c.name, h.length)}
		}
		return false, nil // room may come, or the call that it is of
	}
	l.r += headerLen
	if ref != nil {
		l.r += refLen
		k := l.newKept(h)
		k.ref = ref
		l.kept = append(l.kept, k)
		l.d.moved++
		return l.next()
	}
	l.aside = l.newKept(h)
	l.left = int64(h.length)
	return true, nil
}

// unwait notes that a lane's message has begun to arrive.
func (l *link) unwait(ln *lane) {
	if ln.state == awaitsMessage {
		ln.state = receives
		l.waiting--
	}
}

// deliver moves what there is of the current frame to its place.
func (l *link) deliver() (int64, error) {
	ln := l.cur
	st := &ln.steps[ln.pc]
	var sum int64
	for l.left > 0 {
		x := st.segs[ln.seg]
		room := min(x.n-ln.off, ln.allowed())
		if room <= 0 {
			l.gated = true
			return sum, nil
		}
		var n int64
		switch have := int64(l.w - l.r); {
		case l.ref != nil:
			n = min(room, refPiece, l.left)
			ln.call.receiveInto(st.verb, x, ln.off, l.ref[:n])
			l.ref = l.ref[n:]
		case st.verb == recv && have == 0 && room >= directly:
			if l.dry {
				return sum, nil
			}
			at := ln.call.mem[x.mem][x.off+ln.off:]
			want := min(room, turnBytes)
			k, err := l.s.read(at[:want])
			if err != nil || k == 0 {
				return sum, err
			}
			l.dry = int64(k) < want
			n = int64(k)
		default:
			n = min(have, room)
			if st.verb == recvReduce {
				n -= n % ln.call.elem
			}
			if n == 0 {
				if more, err := l.refill(); !more {
					return sum, err
				}
				continue
			}
			ln.call.receiveInto(st.verb, x, ln.off, l.buf[l.r:l.r+int(n)])
			l.r += int(n)
		}
		l.left -= n
		sum += n
		if ln.land(x.n, n); sum >= turnBytes && l.left > 0 {
			return sum, nil
		}
	}
	return l.delivered(sum), nil
}

// refill reads more of the current frame, where there may be more.
func (l *link) refill() (more bool, err error) {
	if l.dry {
		return false, nil
	}
	n, err := l.fill(int(min(max(l.left, peek), stage)))
	return n > 0 && err == nil, err
}

// delivered ends a frame whose last bytes have found their place; moved is what its turn says.
func (l *link) delivered(sum int64) (moved int64) {
	ln := l.cur
	l.cur = nil
	if l.ref != nil {
		l.ref = nil
		l.acknowledge(l.refHead)
	}
	ln.received()
	return max(sum, 1)
}

// post queues a send and begins it when nothing is before it.
func (l *link) post(p *posted) {
	if l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	l.queue = append(l.queue, p)
}

// tx sends what there is room for.
func (l *link) tx() (moved bool, err error) {
	var sum int
	for l.head < len(l.queue) && sum < turnBytes {
		p := l.queue[l.head]
		bufs := p.pieces(l.iov[:0])
		n, err := l.s.write(bufs)
		if err != nil {
			return moved, err
		}
		if n == 0 {
			return moved, nil
		}
		moved = true
		sum += n
		if !p.wrote(int64(n)) {
			continue
		}
		l.queue[l.head] = nil
		if l.head++; l.head == len(l.queue) {
			l.queue, l.head = l.queue[:0], 0
		}
		switch {
		case p.raw != nil:
			if len(p.raw) == headerLen {
				l.acks = append(l.acks, p)
			}
		case p.ref:
			l.unacked++
		default:
			p.lane.sent(p)
		}
	}
	return moved, nil
}

// end notes that nothing more will come over a link. That is an error only where somebody
// waits for it.
func (l *link) end(err error) error {
	var bad *protocolError
	if errors.As(err, &bad) {
		return err
	}
	l.ended = err
	if !l.expects() && l.head == len(l.queue) {
		return nil
	}
	return &linkError{l, err}
}

// close gives back the connection and what was mapped over it.
func (l *link) close() {
	l.s.close()
	for _, seg := range l.maps {
		seg.Close()
	}
	for _, v := range l.handles {
		if v.seg != nil {
			v.seg.Close()
		}
	}
}

// linkError is a connection that broke.
type linkError struct {
	l   *link
	err error
}

func (e *linkError) Error() string { return e.err.Error() }

// protocolError is a peer that says what it must not.
type protocolError struct {
	peer int
	text string
}

func (e *protocolError) Error() string { return e.text }

// closedError reports whether the other side closed a connection.
func closedError(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}
