package engine

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/reduce"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Wire is how float32 travels from rank to rank. docs/compression.md has what each loses.
type Wire uint8

// Wires. The zero value changes nothing.
const (
	Uncompressed Wire = iota
	FP16              // half the bytes; beyond 65504 there is only infinity
	BF16              // half the bytes, the range of float32
	Int8              // a quarter and 1.6 %: blocks of 256 elements with a scale each
)

var wireNames = [...]string{"none", "fp16", "bf16", "int8"}

// String is the word of the command line.
func (w Wire) String() string {
	if int(w) >= len(wireNames) {
		return fmt.Sprintf("wire(%d)", uint8(w))
	}
	return wireNames[w]
}

// ParseWire reads the word of the command line.
func ParseWire(s string) (Wire, error) {
	for w, name := range wireNames {
		if strings.EqualFold(s, name) {
			return Wire(w), nil
		}
	}
	return 0, fmt.Errorf("compression %q is not one of %s", s, strings.Join(wireNames[:], ", "))
}

// Options are what a call may have beside its operation. The zero value is what Prepare takes.
type Options struct {
	// Wire makes float32 smaller on its way. Where all ranks share a host or a process
	// nothing is compressed, because copies there cost less than codecs; in any other group
	// every message is, also between neighbours, so that the result does not depend on who
	// they are.
	Wire Wire
	// Force compresses within a host too.
	Force bool
}

// CanCompress reports why an operation cannot be compressed; nil when it can.
func CanCompress(op coll.Op, w Wire) error {
	switch {
	case w == Uncompressed:
		return nil
	case int(w) >= len(wireNames):
		return fmt.Errorf("%v is not one of %s", w, strings.Join(wireNames[:], ", "))
	case op.Type != coll.Float:
		return fmt.Errorf("%s makes float32 smaller; the elements are %s", w, op.Type)
	case op.Kind == coll.Barrier || op.Kind == coll.AllToAllV:
		return fmt.Errorf("%s cannot be compressed: its messages have no fixed elements", op.Kind)
	case op.Kind.Reduces() && op.Reduce == coll.Prod:
		return fmt.Errorf("a product cannot be compressed: the errors of the factors multiply without bound")
	case op.Kind.Reduces() && op.Reduce == coll.MulSum:
		return fmt.Errorf("mulsum cannot be compressed: its factors are unknown to the bound of the error")
	case w == Int8 && op.Kind.Reduces() && (op.Reduce == coll.Min || op.Reduce == coll.Max):
		return fmt.Errorf("int8 cannot carry %s: a block with one infinite element or NaN travels as NaN, which %s passes over, and the block's other elements would be lost unseen; use fp16 or bf16", op.Reduce, op.Reduce)
	}
	return nil
}

// wireFor is what a call of this group really does.
func (g *Group) wireFor(op coll.Op, o Options) (Wire, error) {
	if err := CanCompress(op, o.Wire); err != nil {
		return 0, err
	}
	if t := g.Transport(); !o.Force && (t == Shm || t == Mem) {
		return Uncompressed, nil
	}
	return o.Wire, nil
}

// codec is how a call's elements travel.
type codec struct {
	*reduce.Codec
	adds    bool   // the reduction is a sum, which decoding can do at once
	scratch []byte // for what cannot
	wire    []byte // for rounding in place
}

// Sizes of what is encoded and decoded at once: multiples of a block, so that blocks are the
// same wherever a chunk passes.
const (
	blockBytes = 4 * reduce.BlockElems
	wirePiece  = 32 * blockBytes
	encStage   = 64 << 10 // encoded ahead of a connection
)

func newCodec(w Wire, op coll.Op) (*codec, error) {
	f := map[Wire]reduce.Format{FP16: reduce.Float16, BF16: reduce.BFloat16, Int8: reduce.Int8}[w]
	c, err := reduce.Best().Codec(f)
	if err != nil {
		return nil, err
	}
	return &codec{c, op.Reduce == coll.Sum || op.Reduce == coll.Avg, make([]byte, wirePiece), make([]byte, wirePiece)}, nil
}

// size is what n bytes of float32 take on the wire.
func (k *codec) size(n int64) int64 { return int64(k.Format().Size(int(n / 4))) }

// whole is how many bytes of float32, of room that ends at a block's end, can be decoded from
// the first bytes of a message.
func (k *codec) whole(have, room int64) (n, wire int64) {
	if k.Format() != reduce.Int8 {
		n = min(have/2*4, room)
		return n, n / 2
	}
	const full = blockBytes/4 + 4
	blocks := min(have/full, room/blockBytes)
	n, wire = blocks*blockBytes, blocks*full
	if rest := room - n; rest > 0 && rest < blockBytes && have-wire >= rest/4+4 {
		return room, wire + rest/4 + 4
	}
	return n, wire
}

// round makes elements what a peer would get of them.
func (k *codec) round(mem, wire []byte) {
	for len(mem) > 0 {
		n := min(len(mem), wirePiece)
		w := wire[:k.size(int64(n))]
		k.Encode(w, mem[:n])
		k.Decode(mem[:n], w)
		mem = mem[n:]
	}
}

// Wire is how the call's elements travel.
func (c *Call) Wire() Wire { return c.wire }

// Traffic is what this rank sends in one run, without headers: the bytes of the elements, and
// those that travel for them.
func (c *Call) Traffic() (payload, wire unit.Bytes) {
	for i := range c.lanes {
		for k := range c.lanes[i].steps {
			if st := &c.lanes[i].steps[k]; st.verb == send {
				payload += unit.Bytes(st.bytes)
				wire += unit.Bytes(st.wire)
			}
		}
	}
	return payload, wire
}

// compress lets the program's messages travel compressed, and refuses what would not give all
// ranks the same bits.
func (k *compiler) compress(w Wire) (err error) {
	if w == Uncompressed {
		return nil
	}
	if k.codec, err = newCodec(w, k.op); err != nil {
		return err
	}
	k.wire = w
	k.findRounds()
	if k.wire == Int8 && k.padded {
		return fmt.Errorf("%s by %s moves %d bytes through scratch whose parts differ in length, where int8 has no fixed blocks; take another algorithm or size", k.s.Kind, k.s.Name, k.op.Size(k.s.Ranks))
	}
	if k.crossed {
		return fmt.Errorf("%s by %s copies in one lane what another one sends, and would copy it rounded or not; take another algorithm", k.s.Kind, k.s.Name)
	}
	return nil
}

// pickWire is Pick for a call that is compressed: the first choice that can be.
func (g *Group) pickWire(op coll.Op, w Wire) (*schedule.Schedule, error) {
	s, err := g.Pick(op)
	if err != nil || w != Int8 || s.Temp == 0 {
		return s, err
	}
	for _, name := range []string{"ring", "pairwise", "direct", "chain"} {
		if x, err := schedule.Build(op.Kind, name, schedule.Params{Ranks: g.size, Root: op.Root}); err == nil && x.Temp == 0 {
			return x, nil
		}
	}
	return s, nil // it may do
}
