package engine

import (
	"errors"
	"io"
	"sync/atomic"
	"unsafe"

	"busbar.dev/internal/shm"
)

// Layout of a ring of bytes in shared memory: positions and flags in lines of their own, then
// the bytes.
const (
	ringHead    = 0   // read so far
	ringTail    = 128 // written so far
	ringReader  = 256 // the reader sleeps
	ringWriter  = 384 // the writer sleeps
	ringData    = 512
	ringRoom    = 1 << 18 // a power of two that fits into the second-level cache
	ringBytes   = ringData + ringRoom
	segmentSize = 2 * ringBytes
)

// errRing is a peer that wrote nonsense into shared memory.
var errRing = errors.New("the shared memory holds positions that cannot be")

// shmRing is one direction.
type shmRing struct {
	head, tail     *atomic.Uint64
	reader, writer *atomic.Uint32
	data           []byte
	pos            uint64 // this side's own position, which no peer can change
}

func newShmRing(mem []byte) *shmRing {
	return &shmRing{
		head: (*atomic.Uint64)(unsafe.Pointer(&mem[ringHead])), tail: (*atomic.Uint64)(unsafe.Pointer(&mem[ringTail])),
		reader: (*atomic.Uint32)(unsafe.Pointer(&mem[ringReader])),
		writer: (*atomic.Uint32)(unsafe.Pointer(&mem[ringWriter])),
		data:   mem[ringData : ringData+ringRoom],
	}
}

// ringPair is a connection through shared memory: a ring each way. The socket over which the
// two sides met wakes a sleeper, and ends when a side dies.
type ringPair struct {
	seg     *shm.Segment
	in, out *shmRing
	sock    stream // the socket
	signals [64]byte
	ended   bool
}

// newRingPair takes the rings of a segment; the side that made it writes the first.
func newRingPair(seg *shm.Segment, made bool, sock stream) *ringPair {
	mem := seg.Bytes()
	a, b := newShmRing(mem[:ringBytes]), newShmRing(mem[ringBytes:])
	if made {
		a, b = b, a
	}
	return &ringPair{seg: seg, in: a, out: b, sock: sock}
}

func (r *ringPair) read(p []byte) (int, error) {
	x := r.in
	have := x.tail.Load() - x.pos
	if have > ringRoom {
		return 0, errRing
	}
	n := min(int(have), len(p))
	if n == 0 {
		if r.ended && len(p) > 0 {
			return 0, io.EOF
		}
		return 0, nil
	}
	k := copy(p[:n], x.data[x.pos%ringRoom:])
	copy(p[k:n], x.data)
	x.pos += uint64(n)
	x.head.Store(x.pos)
	if x.writer.Load() != 0 && x.writer.CompareAndSwap(1, 0) {
		r.ring()
	}
	return n, nil
}

func (r *ringPair) write(bufs [][]byte) (int, error) {
	x := r.out
	if r.ended {
		return 0, io.ErrClosedPipe
	}
	used := x.pos - x.head.Load()
	if used > ringRoom {
		return 0, errRing
	}
	room, sum := ringRoom-int(used), 0
	for _, b := range bufs {
		n := min(len(b), room)
		k := copy(x.data[x.pos%ringRoom:], b[:n])
		copy(x.data, b[k:n])
		x.pos += uint64(n)
		room -= n
		sum += n
	}
	if sum > 0 {
		x.tail.Store(x.pos)
		if x.reader.Load() != 0 && x.reader.CompareAndSwap(1, 0) {
			r.ring()
		}
	}
	return sum, nil
}

var signal = [][]byte{{1}}

// ring wakes the other side. A socket without room holds enough to wake it already.
func (r *ringPair) ring() {
	if _, err := r.sock.write(signal); err != nil {
		r.ended = true
	}
}

// arm says that this side is about to sleep.
func (r *ringPair) arm(in, out bool) {
	if in {
		r.in.reader.Store(1)
	}
	if out {
		r.out.writer.Store(1)
	}
}

func (r *ringPair) disarm() {
	r.in.reader.Store(0)
	r.out.writer.Store(0)
}

// answer takes what the other side rang.
func (r *ringPair) answer() {
	for {
		n, err := r.sock.read(r.signals[:])
		if err != nil {
			r.ended = true
		}
		if n < len(r.signals) {
			return
		}
	}
}

func (r *ringPair) close() {
	r.sock.close()
	r.seg.Close()
}
