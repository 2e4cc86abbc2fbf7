package reduce

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Format is a smaller form of float32 for the wire. The package comment has
// what each loses.
type Format uint8

// The formats.
const (
	Float16 Format = iota + 1
	BFloat16
	Int8
)

// String is the word of the command line.
func (f Format) String() string {
	names := map[Format]string{Float16: "fp16", BFloat16: "bf16", Int8: "int8"}
	if s, ok := names[f]; ok {
		return s
	}
	return fmt.Sprintf("format %d", uint8(f))
}

// BlockElems is the number of elements that share a scale in Int8. A block on
// the wire is its float32 scale and then a byte for each element; the last block
// may be shorter.
const BlockElems = 256

// Size is the number of bytes that so many elements take on the wire.
func (f Format) Size(elems int) int {
	if f == Int8 {
		return elems + 4*((elems+BlockElems-1)/BlockElems)
	}
	return 2 * elems
}

// Codec turns float32 into a Format and back. It is safe for concurrent use.
type Codec struct {
	format Format
	half   half
	block  block
}

// half is the kernels of a 16-bit format. They take elements by the vector and
// leave the rest.
type half struct {
	lanes          int
	encode, decode func(dst, src *byte, n int)
	decodeAdd      func(dst, a, src *byte, n int)
	widen          func(uint16) float32
	narrow         func(float32) uint16
}

// block is the kernels of a full block of Int8.
type block struct {
	peak          func(src *byte) uint32
	quantize      func(dst, src *byte, scale float32)
	dequantize    func(dst, src *byte, scale float32)
	dequantizeAdd func(dst, a, src *byte, scale float32)
}

// Codec returns the path's codec of a format.
func (p Path) Codec(f Format) (*Codec, error) {
	c := &Codec{format: f, half: p.half(f), block: p.block()}
	switch f {
	case Float16:
		c.half.widen, c.half.narrow = widen16, narrow16
	case BFloat16:
		c.half.widen, c.half.narrow = widenB, narrowB
	case Int8:
	default:
		return nil, fmt.Errorf("%v is not one of fp16, bf16, int8", f)
	}
	return c, nil
}

// Format is what the codec turns float32 into.
func (c *Codec) Format() Format { return c.format }

// Encode writes the float32 of src. dst has the Size of so many elements.
func (c *Codec) Encode(dst, src []byte) {
	c.check(src, dst)
	if c.format == Int8 {
		c.eachBlock(src, dst, func(src, wire []byte) { c.block.encode(wire, src) })
		return
	}
	for len(src) > 0 {
		n := min(stride/4, len(src)/4)
		c.half.encodeAll(dst[:2*n], src[:4*n])
		dst, src = dst[2*n:], src[4*n:]
	}
}

// Decode writes the float32 that src stands for.
func (c *Codec) Decode(dst, src []byte) {
	c.check(dst, src)
	if c.format == Int8 {
		c.eachBlock(dst, src, func(dst, wire []byte) { c.block.decode(dst, wire) })
		return
	}
	for len(dst) > 0 {
		n := min(stride/4, len(dst)/4)
		c.half.decodeAll(dst[:4*n], src[:2*n])
		dst, src = dst[4*n:], src[2*n:]
	}
}

// DecodeAdd is dst = a + what src stands for, without a buffer between. dst and
// a, float32 both, may be the same.
func (c *Codec) DecodeAdd(dst, a, src []byte) {
	c.check(dst, src)
	if len(a) != len(dst) {
		panic("reduce: operands differ in length")
	}
	if c.format == Int8 {
		c.eachBlock(dst, src, func(dst, wire []byte) {
			c.block.decodeAdd(dst, a[:len(dst)], wire)
			a = a[len(dst):]
		})
		return
	}
	for len(dst) > 0 {
		n := min(stride/4, len(dst)/4)
		c.half.decodeAddAll(dst[:4*n], a[:4*n], src[:2*n])
		dst, a, src = dst[4*n:], a[4*n:], src[2*n:]
	}
}

func (c *Codec) check(floats, wire []byte) {
	if len(floats)%4 != 0 || len(wire) != c.format.Size(len(floats)/4) {
		panic("reduce: the wire's length is not the size of so many elements")
	}
}

func (c *Codec) eachBlock(floats, wire []byte, do func(floats, wire []byte)) {
	for len(floats) > 0 {
		n := min(BlockElems, len(floats)/4)
		do(floats[:4*n], wire[:4+n])
		floats, wire = floats[4*n:], wire[4+n:]
	}
}

func f32At(b []byte, i int) float32 {
	return math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
}

func putF32(b []byte, i int, f float32) {
	binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(f))
}

// vectors is how many of n elements the kernels take.
func (h half) vectors(n int) int {
	if h.lanes == 0 {
		return 0
	}
	return n - n%h.lanes
}

func (h half) encodeAll(dst, src []byte) {
	n := len(src) / 4
	v := h.vectors(n)
	if v > 0 {
		h.encode(&dst[0], &src[0], v)
	}
	for i := v; i < n; i++ {
		binary.NativeEndian.PutUint16(dst[2*i:], h.narrow(f32At(src, i)))
	}
}

func (h half) decodeAll(dst, src []byte) {
	n := len(dst) / 4
	v := h.vectors(n)
	if v > 0 {
		h.decode(&dst[0], &src[0], v)
	}
	for i := v; i < n; i++ {
		putF32(dst, i, h.widen(binary.NativeEndian.Uint16(src[2*i:])))
	}
}

func (h half) decodeAddAll(dst, a, src []byte) {
	n := len(dst) / 4
	v := h.vectors(n)
	if v > 0 {
		h.decodeAdd(&dst[0], &a[0], &src[0], v)
	}
	nan := math.Float32frombits(nan32)
	for i := v; i < n; i++ {
		putF32(dst, i, one(f32At(a, i)+h.widen(binary.NativeEndian.Uint16(src[2*i:])), nan))
	}
}

// encode writes the scale and the bytes of one block, of at most BlockElems.
func (k block) encode(wire, src []byte) {
	full := k.peak != nil && len(src) == 4*BlockElems
	var peak uint32
	if full {
		peak = k.peak(&src[0])
	} else {
		for i := range len(src) / 4 {
			peak = max(peak, math.Float32bits(f32At(src, i))&^(1<<31))
		}
	}
	scale := scaleFor(peak)
	putF32(wire, 0, scale)
	q := wire[4:]
	switch {
	case scale == 0 || scale != scale:
		clear(q)
	case full:
		k.quantize(&q[0], &src[0], scale)
	default:
		for i := range q {
			v := math.RoundToEven(float64(f32At(src, i) / scale))
			q[i] = byte(int8(max(-128, min(127, v))))
		}
	}
}

// scaleFor is the scale of a block whose greatest magnitude has these bits. It has 17
// significant bits and is no denormal, so that 127 times it is exact: what was decoded then
// encodes to the same bytes again, however often it travels.
func scaleFor(peak uint32) float32 {
	const smallest = 0x1p-126
	switch {
	case peak == 0:
		return 0
	case peak >= 0x7f800000:
		return math.Float32frombits(nan32)
	}
	scale := math.Float32bits(math.Float32frombits(peak) / 127)
	return max(math.Float32frombits(scale&^0x7f), smallest)
}

func (k block) decode(dst, wire []byte) {
	scale, q := f32At(wire, 0), wire[4:]
	if k.dequantize != nil && len(q) == BlockElems {
		k.dequantize(&dst[0], &q[0], scale)
		return
	}
	nan := math.Float32frombits(nan32)
	for i, b := range q {
		putF32(dst, i, one(float32(int8(b))*scale, nan))
	}
}

func (k block) decodeAdd(dst, a, wire []byte) {
	scale, q := f32At(wire, 0), wire[4:]
	if k.dequantizeAdd != nil && len(q) == BlockElems {
		k.dequantizeAdd(&dst[0], &a[0], &q[0], scale)
		return
	}
	nan := math.Float32frombits(nan32)
	for i, b := range q {
		v := float32(float32(int8(b)) * scale) // the conversion forbids a fused multiply-add
		putF32(dst, i, one(f32At(a, i)+v, nan))
	}
}
