package xz

import "errors"

// next reads a byte of the range coder.
func (d *decoder) next() uint32 {
	if len(d.in) == 0 {
		d.failed = true
		return 0
	}
	b := d.in[0]
	d.in = d.in[1:]
	return uint32(b)
}

// bit decodes one bit and learns from it.
func (d *decoder) bit(p *uint16) uint32 {
	if d.rng < 1<<24 {
		d.rng <<= 8
		d.code = d.code<<8 | d.next()
	}
	bound := d.rng >> 11 * uint32(*p)
	if d.code < bound {
		d.rng = bound
		*p += (2048 - *p) >> 5
		return 0
	}
	d.rng -= bound
	d.code -= bound
	*p -= *p >> 5
	return 1
}

// direct decodes bits that nothing is learned from.
func (d *decoder) direct(n int) uint32 {
	var v uint32
	for range n {
		if d.rng < 1<<24 {
			d.rng <<= 8
			d.code = d.code<<8 | d.next()
		}
		d.rng >>= 1
		v <<= 1
		if d.code >= d.rng {
			d.code -= d.rng
			v |= 1
		}
	}
	return v
}

// tree decodes a number of n bits, the highest first.
func (d *decoder) tree(p []uint16, n int) uint32 {
	m := uint32(1)
	for range n {
		m = m<<1 | d.bit(&p[m])
	}
	return m - 1<<n
}

// reverse decodes a number of n bits, the lowest first.
func (d *decoder) reverse(p []uint16, n int) uint32 {
	m, v := uint32(1), uint32(0)
	for i := range n {
		b := d.bit(&p[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

func (d *decoder) length(l *lengthCoder, pos uint) int {
	if d.bit(&l.choice) == 0 {
		return int(d.tree(l.low[pos][:], 3)) + 2
	}
	if d.bit(&l.choice2) == 0 {
		return int(d.tree(l.mid[pos][:], 3)) + 10
	}
	return int(d.tree(l.high[:], 8)) + 18
}

// lzma unpacks a chunk into so many bytes.
func (d *decoder) lzma(size int) error {
	d.failed = false
	d.next() // always zero
	d.rng, d.code = 0xffffffff, 0
	for range 4 {
		d.code = d.code<<8 | d.next()
	}
	end := len(d.out) + size
	for len(d.out) < end && !d.failed {
		pos := uint(len(d.out)-d.from) & (1<<d.pb - 1)
		if d.bit(&d.isMatch[uint(d.state)<<4+pos]) == 0 {
			d.byteOut()
			continue
		}
		n := 0
		if d.bit(&d.isRep[d.state]) == 0 {
			d.reps[3], d.reps[2], d.reps[1] = d.reps[2], d.reps[1], d.reps[0]
			n = d.length(&d.lengths, pos)
			d.state = after(d.state, 7, 10)
			d.reps[0] = d.distance(n)
		} else if n = d.again(pos); n == 0 {
			continue // one byte, written
		}
		if int64(d.reps[0]) >= int64(len(d.out)-d.from) || len(d.out)+n > end {
			return errors.New("xz: damaged: a reference before the beginning or beyond the end")
		}
		for range n {
			d.out = append(d.out, d.out[len(d.out)-int(d.reps[0])-1])
		}
	}
	if d.failed {
		return errCut
	}
	return nil
}

// after is the state that follows.
func after(state, early, late int) int {
	if state < 7 {
		return early
	}
	return late
}

// again decodes a repeated distance and the length of the match; 0 where it was a single byte, which is written, or is impossible.
func (d *decoder) again(pos uint) int {
	if d.bit(&d.isG0[d.state]) == 0 {
		if d.bit(&d.isRep0Long[uint(d.state)<<4+pos]) == 0 {
			d.state = after(d.state, 9, 11)
			if int64(d.reps[0]) >= int64(len(d.out)-d.from) {
				d.failed = true
				return 0
			}
			d.out = append(d.out, d.out[len(d.out)-int(d.reps[0])-1])
			return 0
		}
	} else {
		dist := d.reps[1]
		if d.bit(&d.isG1[d.state]) != 0 {
			dist = d.reps[2]
			if d.bit(&d.isG2[d.state]) != 0 {
				dist, d.reps[3] = d.reps[3], d.reps[2]
			}
			d.reps[2] = d.reps[1]
		}
		d.reps[1], d.reps[0] = d.reps[0], dist
	}
	n := d.length(&d.repLengths, pos)
	d.state = after(d.state, 8, 11)
	return n
}

// byteOut decodes one literal.
func (d *decoder) byteOut() {
	at := len(d.out) - d.from
	prev := uint(0)
	if at > 0 {
		prev = uint(d.out[len(d.out)-1])
	}
	model := (uint(at)&(1<<d.lp-1))<<d.lc + prev>>(8-d.lc)
	p := d.literal[0x300*model : 0x300*model+0x300]
	m := uint32(1)
	if d.state >= 7 {
		if int64(d.reps[0]) >= int64(at) {
			d.failed = true
			return
		}
		match := uint32(d.out[len(d.out)-int(d.reps[0])-1])
		for m < 0x100 {
			want := match >> 7 & 1
			match <<= 1
			b := d.bit(&p[(1+want)<<8+m])
			m = m<<1 | b
			if b != want {
				break
			}
		}
	}
	for m < 0x100 {
		m = m<<1 | d.bit(&p[m])
	}
	d.out = append(d.out, byte(m))
	switch {
	case d.state < 4:
		d.state = 0
	case d.state < 10:
		d.state -= 3
	default:
		d.state -= 6
	}
}

// distance decodes how far back a match lies.
func (d *decoder) distance(length int) uint32 {
	slot := d.tree(d.posSlot[min(length-2, 3)][:], 6)
	if slot < 4 {
		return slot
	}
	n := int(slot>>1 - 1)
	dist := (2 | slot&1) << n
	if slot < 14 {
		return dist + d.reverse(d.posSpecial[dist-slot:], n)
	}
	dist += d.direct(n-4) << 4
	return dist + d.reverse(d.align[:], 4)
}
