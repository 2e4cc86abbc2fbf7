package shm

import (
	"fmt"
	"io"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A ring carries messages from one producer to one consumer. Its memory is the
// flag of the producer's position, the flag of the consumer's, and the data, a
// power of two. Positions count bytes and wrap around at 2^32. A message is its
// length (8 bytes, of which 4 are used), the payload, and filling up to
// a multiple of 8; it never wraps around the end, where a mark says to skip.
const (
	ringHead   = 2 * FlagSize
	recordHead = 8
	minRing    = 64
	maxRing    = 1 << 30
	markSkip   = 1<<32 - 1
	markClose  = 1<<32 - 2
)

// RingSize is the memory of a ring whose messages have at most so many bytes, with
// room for at least the given number of them.
func RingSize(message, number int) (int, error) {
	each := record(message)
	if message < 0 || number < 1 || message > maxRing/2-recordHead || number > maxRing/each {
		return 0, fmt.Errorf("a ring of %d messages of %d bytes: more than %d bytes", number, message, maxRing)
	}
	need := max(each*max(number, 2), minRing)
	return ringHead + 1<<bits.Len(uint(need-1)), nil
}

// record is the bytes of a message in the ring.
func record(n int) int { return (recordHead + n + 7) &^ 7 }

// ring is what both sides have. Only the flags are shared knowledge; position is
// this side's own, which the other side cannot spoil.
type ring struct {
	head, tail *Flag
	data       []byte
	position   uint32
	seen       uint32 // the other side's position when last looked at
}

func newRing(mem []byte) (ring, error) {
	n := len(mem) - ringHead
	if n < minRing || n > maxRing || n&(n-1) != 0 {
		return ring{}, fmt.Errorf("a ring in %d bytes: want %d and a power of two from %d to 2^30; see RingSize", len(mem), ringHead, minRing)
	}
	head, err := FlagAt(mem)
	if err != nil {
		return ring{}, err
	}
	tail, err := FlagAt(mem[FlagSize:])
	if err != nil {
		return ring{}, err
	}
	return ring{head: head, tail: tail, data: mem[ringHead:]}, nil
}

// Max is the greatest message.
func (r *ring) Max() int { return len(r.data)/2 - recordHead }

func (r *ring) capacity() uint32 { return uint32(len(r.data)) }

// offset is where a position lies in the data.
func (r *ring) offset(position uint32) uint32 { return position & (r.capacity() - 1) }

// length is the first word of the record at an offset.
func (r *ring) length(at uint32) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&r.data[at]))
}

// Producer is the sending side of a ring.
type Producer struct {
	ring
	pending uint32 // bytes of the reserved message, 0 for none
}

// NewProducer makes the sending side of a ring in mem, which must begin as zeros.
func NewProducer(mem []byte) (*Producer, error) {
	r, err := newRing(mem)
	return &Producer{ring: r}, err
}

// Reserve waits for room and returns the payload of a message to be written;
// Commit sends it. A second Reserve without Commit begins anew.
func (p *Producer) Reserve(n int, patience *Patience) ([]byte, error) {
	if n < 0 || n > p.Max() {
		return nil, fmt.Errorf("a message of %d bytes in a ring for %d", n, p.Max())
	}
	return p.reserve(uint32(n), patience)
}

func (p *Producer) reserve(n uint32, patience *Patience) ([]byte, error) {
	need := uint32(record(int(n)))
	at := p.offset(p.position)
	skip := uint32(0)
	if room := p.capacity() - at; need > room {
		skip = room
	}
	for {
		used := p.position - p.seen
		if used > p.capacity() {
			return nil, fmt.Errorf("a ring of %d bytes with %d in use: %w", p.capacity(), used, ErrCorrupt)
		}
		if p.capacity()-used >= skip+need {
			break
		}
		tail, err := p.tail.WaitNot(p.seen, patience)
		if err != nil {
			return nil, err
		}
		if p.position-tail >= used { // every step must give room, or this would never end
			return nil, fmt.Errorf("the consumer's position went from %d to %d: %w", p.seen, tail, ErrCorrupt)
		}
		p.seen = tail
	}
	if skip > 0 {
		p.length(at).Store(markSkip)
		p.position += skip // the consumer learns of it with the next Commit
		at = 0
	}
	p.length(at).Store(n)
	p.pending = need
	return p.data[at+recordHead : at+recordHead+n : at+recordHead+n], nil
}

// Commit sends the reserved message.
func (p *Producer) Commit() {
	p.position += p.pending
	p.pending = 0
	p.head.Set(p.position)
}

// Send copies a message into the ring.
func (p *Producer) Send(message []byte, patience *Patience) error {
	to, err := p.Reserve(len(message), patience)
	if err != nil {
		return err
	}
	copy(to, message)
	p.Commit()
	return nil
}

// Close tells the consumer that nothing more comes.
func (p *Producer) Close(patience *Patience) error {
	if _, err := p.reserve(0, patience); err != nil {
		return err
	}
	p.length(p.offset(p.position)).Store(markClose)
	p.Commit()
	return nil
}

// Consumer is the receiving side of a ring.
type Consumer struct {
	ring
	pending uint32
}

// NewConsumer makes the receiving side of a ring in mem.
func NewConsumer(mem []byte) (*Consumer, error) {
	r, err := newRing(mem)
	return &Consumer{ring: r}, err
}

// Next waits for a message and returns its payload, which stays valid until
// Release. After the producer's Close it returns io.EOF.
func (c *Consumer) Next(patience *Patience) ([]byte, error) {
	if c.seen == c.position {
		head, err := c.head.WaitNot(c.position, patience)
		if err != nil {
			return nil, err
		}
		c.seen = head
	}
	there := c.seen - c.position
	if there > c.capacity() || there%8 != 0 {
		return nil, fmt.Errorf("a ring of %d bytes with %d in use: %w", c.capacity(), there, ErrCorrupt)
	}
	at := c.offset(c.position)
	n := c.length(at).Load()
	if n == markSkip {
		room := c.capacity() - at
		if at == 0 || room >= there {
			return nil, fmt.Errorf("a ring skips %d of %d bytes: %w", room, there, ErrCorrupt)
		}
		c.position += room
		there -= room
		at = 0
		n = c.length(at).Load()
	}
	if n == markClose {
		return nil, io.EOF
	}
	need := (uint64(n) + recordHead + 7) &^ 7
	if need > uint64(there) || uint64(at)+need > uint64(c.capacity()) {
		return nil, fmt.Errorf("a message of %d bytes where %d are: %w", n, there, ErrCorrupt)
	}
	c.pending = uint32(need)
	return c.data[at+recordHead : at+recordHead+n : at+recordHead+n], nil
}

// Release gives the room of the last message back.
func (c *Consumer) Release() {
	c.position += c.pending
	c.pending = 0
	c.tail.Set(c.position)
}

// Recv copies the next message into buf and returns its length; a longer one is
// refused and stays.
func (c *Consumer) Recv(buf []byte, patience *Patience) (int, error) {
	m, err := c.Next(patience)
	if err != nil {
		return 0, err
	}
	if len(m) > len(buf) {
		return 0, fmt.Errorf("a message of %d bytes for a buffer of %d", len(m), len(buf))
	}
	n := copy(buf, m)
	c.Release()
	return n, nil
}
