// Package xz unpacks files that xz made: one stream of blocks that LZMA2 packed. Checks are read and not computed, for what
// is unpacked goes to readers that doubt it anyway; filters for machine code and the old .lzma form are refused.
// Source: the .xz file format, version 1.2.1, and the LZMA specification in xz-java's and 7-Zip's documentation.
package xz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

var magic = []byte("\xfd7zXZ\x00")

// Match reports a file that xz made.
func Match(data []byte) bool { return bytes.HasPrefix(data, magic) }

var errCut = errors.New("xz: the file is cut off; copy it again")

// Unpack gives what was packed, at most so many bytes of it; more is an error.
func Unpack(data []byte, most int) ([]byte, error) {
	if !Match(data) || len(data) < 12 {
		return nil, errors.New("xz: not a file that xz made")
	}
	check := map[byte]int{0: 0, 1: 4, 4: 8, 10: 32}
	size, ok := check[data[7]&15]
	if !ok {
		return nil, fmt.Errorf("xz: check of type %d is not known", data[7]&15)
	}
	d := &decoder{in: data[12:], most: most}
	for {
		if len(d.in) == 0 {
			return nil, errCut
		}
		if d.in[0] == 0 { // the index: nothing more is packed
			return d.out, nil
		}
		if err := d.block(size); err != nil {
			return nil, err
		}
	}
}

// decoder unpacks blocks. Its output is its dictionary too.
type decoder struct {
	in   []byte
	out  []byte
	most int
	from int // where the dictionary begins in out

	code, rng uint32
	state     int
	reps      [4]uint32
	lc, lp    uint
	pb        uint
	ready     bool // properties were given

	literal                 []uint16
	isMatch                 [12 << 4]uint16
	isRep, isG0, isG1, isG2 [12]uint16
	isRep0Long              [12 << 4]uint16
	posSlot                 [4][64]uint16
	posSpecial              [128]uint16
	align                   [16]uint16
	lengths, repLengths     lengthCoder
	failed                  bool
}

type lengthCoder struct {
	choice, choice2 uint16
	low, mid        [16][8]uint16
	high            [256]uint16
}

// block unpacks one block: a header with one filter, chunks of LZMA2, padding and a check.
func (d *decoder) block(check int) error {
	n := (int(d.in[0]) + 1) * 4
	if len(d.in) < n || n < 8 {
		return errCut
	}
	h := d.in[1 : n-4]
	flags := h[0]
	if flags&3 != 0 {
		return errors.New("xz: packed with a filter besides LZMA2, which is not read")
	}
	h = h[1:]
	for _, bit := range []byte{0x40, 0x80} { // sizes, which the chunks tell too
		if flags&bit != 0 {
			_, k := binary.Uvarint(h)
			if k <= 0 {
				return errCut
			}
			h = h[k:]
		}
	}
	if len(h) < 3 || h[0] != 0x21 || h[1] != 1 {
		return errors.New("xz: packed with another filter than LZMA2, which is not read")
	}
	whole := d.in
	d.in = d.in[n:]
	d.from, d.ready = len(d.out), false
	for {
		if len(d.in) == 0 {
			return errCut
		}
		done, err := d.chunk()
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	used := len(whole) - len(d.in)
	skip := (4-used%4)%4 + check
	if len(d.in) < skip {
		return errCut
	}
	d.in = d.in[skip:]
	return nil
}

// chunk unpacks one chunk of LZMA2.
func (d *decoder) chunk() (done bool, err error) {
	control := d.in[0]
	if control == 0 {
		d.in = d.in[1:]
		return true, nil
	}
	if control < 0x80 { // bytes as they are
		if control > 2 || len(d.in) < 3 {
			return false, errors.New("xz: damaged")
		}
		size := int(binary.BigEndian.Uint16(d.in[1:])) + 1
		if len(d.in) < 3+size {
			return false, errCut
		}
		if control == 1 {
			d.from = len(d.out)
		}
		if len(d.out)+size > d.most {
			return false, fmt.Errorf("xz: more than %d bytes when unpacked", d.most)
		}
		d.out = append(d.out, d.in[3:3+size]...)
		d.in = d.in[3+size:]
		return false, nil
	}
	if len(d.in) < 6 {
		return false, errCut
	}
	size := int(control&0x1f)<<16 + int(binary.BigEndian.Uint16(d.in[1:])) + 1
	packed := int(binary.BigEndian.Uint16(d.in[3:])) + 1
	at := 5
	switch reset := control >> 5 & 3; {
	case reset >= 2:
		if err := d.properties(d.in[5]); err != nil {
			return false, err
		}
		at = 6
		if reset == 3 {
			d.from = len(d.out)
		}
		d.reset()
	case !d.ready:
		return false, errors.New("xz: damaged: a chunk before its properties")
	case reset == 1:
		d.reset()
	}
	if len(d.in) < at+packed || packed < 5 {
		return false, errCut
	}
	if len(d.out)+size > d.most {
		return false, fmt.Errorf("xz: more than %d bytes when unpacked", d.most)
	}
	rest := d.in[at+packed:]
	d.in = d.in[at : at+packed]
	if err := d.lzma(size); err != nil {
		return false, err
	}
	d.in = rest
	return false, nil
}

// properties reads the three figures that models of literals and positions have.
func (d *decoder) properties(b byte) error {
	if b > 224 {
		return errors.New("xz: damaged properties")
	}
	d.lc, d.lp, d.pb = uint(b%9), uint(b/9%5), uint(b/45)
	if d.lc+d.lp > 4 {
		return errors.New("xz: damaged properties")
	}
	d.ready = true
	return nil
}

func half(p []uint16) {
	for i := range p {
		p[i] = 1 << 10
	}
}

// reset forgets what was learned.
func (d *decoder) reset() {
	d.state, d.reps = 0, [4]uint32{}
	if n := 0x300 << (d.lc + d.lp); len(d.literal) != n {
		d.literal = make([]uint16, n)
	}
	half(d.literal)
	half(d.isMatch[:])
	half(d.isRep[:])
	half(d.isG0[:])
	half(d.isG1[:])
	half(d.isG2[:])
	half(d.isRep0Long[:])
	for i := range d.posSlot {
		half(d.posSlot[i][:])
	}
	half(d.posSpecial[:])
	half(d.align[:])
	for _, l := range []*lengthCoder{&d.lengths, &d.repLengths} {
		l.choice, l.choice2 = 1<<10, 1<<10
		for i := range l.low {
			half(l.low[i][:])
			half(l.mid[i][:])
		}
		half(l.high[:])
	}
}
