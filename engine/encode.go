package engine

// encoded is what follows the header of a send whose elements travel compressed. They are encoded ahead, a
// part at a time, into memory of the link; only the first send in a link's queue has any there.
func (p *posted) encoded(bufs [][]byte) [][]byte {
	l := p.step.link
	if l.er == l.ew && p.spilled != nil {
		return append(bufs, p.spilled[:min(len(p.spilled), turnBytes)])
	}
	if l.er == l.ew {
		l.er, l.ew = 0, p.encode(l.enc)
	}
	if l.er == l.ew {
		return bufs
	}
	return append(bufs, l.enc[l.er:l.ew])
}

// encode fills a buffer with what comes next and takes it over where the program says so.
func (p *posted) encode(to []byte) (w int) {
	c := p.lane.call
	for p.seg < len(p.step.segs) {
		x := p.step.segs[p.seg]
		n := min(x.n-p.off, wirePiece)
		size := int(c.codec.size(n))
		if len(to)-w < size {
			return w
		}
		mem := c.mem[x.mem][x.off+p.off : x.off+p.off+n]
		wire := to[w : w+size]
		c.codec.Encode(wire, mem)
		if x.round {
			c.codec.Decode(mem, wire)
		}
		w += size
		p.took += n
		if p.off += n; p.off == x.n {
			p.seg, p.off = p.seg+1, 0
		}
	}
	return w
}

// decode is deliver of a frame whose elements travel compressed.
func (l *link) decode() (int64, error) {
	ln := l.cur
	st, k := &ln.steps[ln.pc], ln.call.codec
	var sum int64
	for l.left > 0 {
		x := st.segs[ln.seg]
		room := min(x.n-ln.off, ln.allowed())
		if room <= 0 {
			l.gated = true
			return sum, nil
		}
		n, wire := k.whole(min(int64(l.w-l.r), l.left), room)
		if n == 0 {
			if more, err := l.refill(); !more {
				return sum, err
			}
			continue
		}
		ln.call.landWire(st.verb, x, ln.off, n, l.buf[l.r:l.r+int(wire)])
		l.r += int(wire)
		l.left -= wire
		sum += wire
		if ln.land(x.n, n); sum >= turnBytes && l.left > 0 {
			return sum, nil
		}
	}
	return l.delivered(sum), nil
}

// landWire puts elements that came compressed to their place. They begin at a block's
// beginning and end at a block's end.
func (c *Call) landWire(v verb, x seg, off, n int64, wire []byte) {
	at := c.mem[x.mem][x.off+off : x.off+off+n]
	if v != recvReduce {
		c.codec.Decode(at, wire)
		return
	}
	a := at
	if x.first {
		a = c.mem[srcMem][x.off+off : x.off+off+n]
	}
	if c.codec.adds {
		c.codec.DecodeAdd(at, a, wire)
		return
	}
	for len(at) > 0 {
		k := min(len(at), wirePiece)
		size := c.codec.size(int64(k))
		c.codec.Decode(c.codec.scratch[:k], wire[:size])
		c.arith.combine(at[:k], a[:k], c.codec.scratch[:k])
		at, a, wire = at[k:], a[k:], wire[size:]
	}
}

// landAll puts a whole message to its place.
func (c *Call) landAll(st *step, data []byte) {
	for _, x := range st.segs {
		if c.codec == nil {
			c.receiveInto(st.verb, x, 0, data[:x.n])
			data = data[x.n:]
			continue
		}
		size := c.codec.size(x.n)
		c.landWire(st.verb, x, 0, x.n, data[:size])
		data = data[size:]
	}
}
