package engine

import (
	"fmt"
	"unsafe"

	"busbar.dev/coll"
)

// Buffers is the memory of a call, as coll.Op.Send and coll.Op.Recv size it for a rank. A call
// is in place where the two share memory the way nccl-tests has it: the whole for all_reduce,
// broadcast and reduce; the rank's own block for all_gather, gather, reduce_scatter and
// scatter. In place, what a reduce_scatter does not return is used as scratch. all_to_all and
// sendrecv cannot be in place.
type Buffers struct {
	Send, Recv []byte
	// Factor is what the rank's contribution is multiplied with by mulsum.
	Factor float64
}

// Bytes is the memory of a slice.
func Bytes[T ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64](
	s []T,
) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

// same reports whether two pieces of memory begin at one place.
func same(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// overlap reports whether two pieces of memory share a byte.
func overlap(a, b []byte) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	x, y := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return x < y+uintptr(len(b)) && y < x+uintptr(len(a))
}

// move is a copy before or after the program.
type move struct{ dst, src []byte }

// binding is how a call's buffers become the memories of its program.
type binding struct {
	before, after move
	apart         bool   // the contribution does not lie in Data
	result        []byte // what avg divides
	contribution  []byte // what mulsum multiplies, after the copy
}

// Bind gives a call its memory, for this run and those that follow. The call keeps the
// buffers; they must not be touched while it is under way.
func (c *Call) Bind(b Buffers) error {
	if c.busy.Load() {
		return fmt.Errorf("%s: buffers cannot change while the call is under way", c.name)
	}
	n, rank, op := c.g.size, c.g.rank, c.op
	send, recv := int64(op.Send(n, rank)), int64(op.Recv(n, rank))
	if int64(len(b.Send)) < send || int64(len(b.Recv)) < recv {
		return fmt.Errorf("%s: rank %d has buffers of %d and %d bytes; it sends %d and receives %d", c.name, rank,
			len(b.Send), len(b.Recv), send, recv)
	}
	b.Send, b.Recv = b.Send[:send:send], b.Recv[:recv:recv]
	if op.Reduce == coll.MulSum && op.Kind.Reduces() {
		if err := c.arith.factor(op.Type, b.Factor); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	c.place(b)
	x := &c.bound
	if x.before.src != nil && overlap(x.before.src, x.before.dst) || x.apart && overlap(b.Send, c.mem[dataMem]) ||
		!op.Kind.InPlace() && overlap(b.Send, b.Recv) {
		return fmt.Errorf("%s: the send buffer overlaps the receive buffer in a way that is not in place", c.name)
	}
	for m := range c.mem {
		c.where[m] = c.g.memory.locate(c.mem[m])
	}
	c.ready = true
	return nil
}

// place says which buffers the program works on, and what is copied before and after.
func (c *Call) place(b Buffers) {
	n, rank, op := c.g.size, c.g.rank, c.op
	block := int64(op.Block(n))
	at := int64(rank) * block
	c.bound = binding{}
	x := &c.bound
	// reduction lets the program take the contribution from the send buffer.
	reduction := func(data []byte) {
		c.mem[dataMem], c.mem[srcMem], x.contribution = data, data, data
		switch {
		case same(b.Send, data) || len(data) == 0:
		case op.Reduce == coll.MulSum:
			x.before = move{data, b.Send}
		default:
			c.mem[srcMem], x.apart = b.Send, true
		}
	}
	own := func(data []byte) []byte { return data[at : at+block] }
	switch op.Kind {
	case coll.AllReduce:
		reduction(b.Recv)
		x.result = b.Recv
	case coll.Reduce:
		if rank == op.Root {
			reduction(b.Recv)
			x.result = b.Recv
		} else {
			reduction(c.own(dataMem))
		}
	case coll.Broadcast:
		c.mem[dataMem] = b.Recv
		if len(b.Send) > 0 && !same(b.Send, b.Recv) {
			x.before = move{b.Recv, b.Send}
		}
	case coll.AllGather, coll.Hypercube, coll.Gather:
		data := b.Recv
		if len(b.Recv) == 0 {
			data = c.own(dataMem)
		}
		if mine := own(data); !same(mine, b.Send) {
			x.before = move{mine, b.Send}
		}
		c.mem[dataMem] = data
	case coll.ReduceScatter:
		data := b.Send
		if !same(own(b.Send), b.Recv) {
			data = c.own(dataMem)
			x.after = move{b.Recv, own(data)}
		}
		reduction(data)
		x.result = own(data)
	case coll.Scatter:
		data := b.Send
		if rank != op.Root || c.writes {
			data = c.own(dataMem)
			x.before = move{data, b.Send}
		}
		if mine := own(data); !same(mine, b.Recv) {
			x.after = move{b.Recv, mine}
		}
		c.mem[dataMem] = data
	case coll.AllToAll, coll.AllToAllV, coll.SendRecv:
		data := b.Send
		if c.writes {
			data = c.own(dataMem)
			x.before = move{data, b.Send}
		}
		c.mem[dataMem], c.mem[outMem] = data, b.Recv
	}
}

// own is memory that the call has for itself, made when first needed.
func (c *Call) own(m memory) []byte {
	if c.owned[m] == nil {
		c.owned[m] = aligned(c.need[m])
	}
	return c.owned[m]
}

// aligned is memory that begins at a multiple of 64 bytes, as vectors like it; long ones at one
// of the size of a huge page, which they ask for.
func aligned(n int64) []byte {
	if n >= 2*hugePage {
		b := make([]byte, n+hugePage-1)
		skip := int64(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & (hugePage - 1))
		b = b[skip : skip+n : skip+n]
		wantHuge(b[:n&^(hugePage-1)])
		return b
	}
	b := make([]byte, n+63)
	skip := int64(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	return b[skip : skip+n : skip+n]
}
