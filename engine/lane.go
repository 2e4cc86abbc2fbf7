package engine

// laneState is what a lane waits for.
type laneState uint8

const (
	runs          laneState = iota
	awaitsMessage           // registered with a link
	receives                // a message is coming in
	awaitsSend              // for a send of its own to be done
	awaitsLane
	ended
)

// lane is how far a lane of a call has come.
type lane struct {
	call  *Call
	id    int
	steps []step
	pc    int
	state laneState
	queue bool // in the group's list of lanes that may go on

	seg  int // of the receive that is under way
	off  int64
	got  int64
	gate *posted // a send that still reads what the receive writes, byte by byte in step

	sends []posted // a ring of sends that are under way, the oldest at first
	first int
	count int
}

// posted is a send under way.
type posted struct {
	lane *lane
	step *step
	pc   int
	hdr  [headerLen]byte
	sent int64 // header and all
	seg  int
	off  int64
	took int64 // bytes of the message that are not needed any more

	// spilled is a copy of what is still to be sent, of a send whose memory others wait for.
	spilled []byte

	raw   []byte // a frame of the engine's own, of no lane
	ref   bool   // the bytes stay where they are
	where [refLen]byte
}

// window is how many sends of a lane may be under way.
const window = 32

// pieces appends what is still to be sent, at most turnBytes of it.
func (p *posted) pieces(bufs [][]byte) [][]byte {
	if p.raw != nil {
		return append(bufs, p.raw[p.sent:])
	}
	if p.sent < headerLen {
		bufs = append(bufs, p.hdr[p.sent:])
	}
	if p.ref {
		return append(bufs, p.where[max(p.sent-headerLen, 0):])
	}
	if p.spilled != nil {
		return append(bufs, p.spilled[:min(len(p.spilled), turnBytes)])
	}
	c, off, most := p.lane.call, p.off, int64(turnBytes)
	for k := p.seg; k < len(p.step.segs) && len(bufs) < cap(bufs) && most > 0; k++ {
		x := p.step.segs[k]
		n := min(x.n-off, most)
		bufs = append(bufs, c.mem[x.mem][x.off+off:x.off+off+n])
		off = 0
		most -= n
	}
	return bufs
}

// wrote counts what was taken over and reports whether that was all.
func (p *posted) wrote(n int64) bool {
	if p.raw != nil || p.ref {
		p.sent += n
		return p.raw != nil && p.sent == int64(len(p.raw)) || p.ref && p.sent == headerLen+refLen
	}
	h := min(n, max(headerLen-p.sent, 0))
	p.sent += n
	n -= h
	if p.spilled != nil {
		p.spilled = p.spilled[n:]
		return p.sent == headerLen+p.step.bytes
	}
	p.took += n
	for n > 0 {
		k := min(n, p.step.segs[p.seg].n-p.off)
		p.off += k
		n -= k
		if p.off == p.step.segs[p.seg].n {
			p.seg, p.off = p.seg+1, 0
		}
	}
	return p.sent == headerLen+p.step.bytes
}

// done is the number of ops of the lane that are done, all before them included.
func (ln *lane) done() int {
	if ln.count > 0 {
		return ln.sends[ln.first].pc
	}
	return ln.pc
}

// wants reports whether the lane waits for a message of a link.
func (ln *lane) wants(l *link) bool {
	return ln.state == awaitsMessage && ln.steps[ln.pc].link == l
}

// allowed is how much more of a receive may be written.
func (ln *lane) allowed() int64 {
	if ln.gate == nil {
		return 1 << 62
	}
	if ln.gate.ref {
		return 0 // until the peer has taken it
	}
	n := ln.gate.took - ln.got
	return n - n%ln.call.elem
}

// advance runs the lane until it must wait.
func (ln *lane) advance() error {
	c := ln.call
	switch ln.state {
	case receives, ended:
		return nil
	case awaitsMessage:
		return ln.steps[ln.pc].link.takeKept(ln)
	}
	for ln.pc < len(ln.steps) {
		st := &ln.steps[ln.pc]
		if w := st.op.After; w.Count > 0 && c.lanes[w.Lane].done() < c.doneAt(w) {
			ln.state = awaitsLane
			return nil
		}
		ln.state = runs
		switch st.verb {
		case send:
			if ln.count == len(ln.sends) {
				ln.state = awaitsSend
				return nil
			}
			if err := ln.post(st); err != nil {
				return err
			}
		case recv, recvReduce:
			hazard, more := ln.hazard(st.segs)
			if hazard != nil && (more || !sameSegs(hazard.step.segs, st.segs)) {
				ln.state = awaitsSend
				return nil
			}
			ln.gate, ln.seg, ln.off, ln.got = hazard, 0, 0, 0
			ln.state = awaitsMessage
			st.link.waiting++
			c.d.list(st.link)
			if len(st.link.kept) > 0 {
				return st.link.takeKept(ln)
			}
			return nil
		case copies, fold, sumAll:
			hazard, _ := ln.hazard(st.dst)
			if hazard != nil {
				ln.state = awaitsSend
				return nil
			}
			c.local(st)
		}
		ln.pc++
		if c.waits {
			c.wakeWaiting()
		}
	}
	if ln.count == 0 && ln.state != ended {
		ln.state = ended
		c.left--
		if c.left == 0 {
			c.d.finish(c, nil)
		}
	} else if ln.state != ended {
		ln.state = awaitsSend
	}
	return nil
}

// post begins a send.
func (ln *lane) post(st *step) error {
	p := &ln.sends[(ln.first+ln.count)%len(ln.sends)]
	ln.count++
	*p = posted{lane: ln, step: st, pc: ln.pc}
	header{
		program: ln.call.program, call: ln.call.id, lane: uint32(ln.id), op: uint32(ln.pc), length: uint64(st.bytes),
	}.put(&p.hdr)
	l := st.link
	idle := !l.writing()
	l.refer(p, ln.call)
	l.post(p)
	ln.call.d.list(l)
	if !idle {
		return nil
	}
	if l.ended != nil {
		return &linkError{l, l.ended}
	}
	if _, err := l.tx(); err != nil {
		return &linkError{l, err}
	}
	return nil
}

// sent notes that a send is done. Sends to several peers may finish in any order; only the
// oldest ones leave the ring.
func (ln *lane) sent(p *posted) {
	p.step = nil
	if ln.gate == p {
		ln.gate = nil
	}
	for ln.count > 0 && ln.sends[ln.first].step == nil {
		ln.first = (ln.first + 1) % len(ln.sends)
		ln.count--
	}
	c := ln.call
	if ln.state == awaitsSend || ln.state == awaitsMessage && len(ln.steps[ln.pc].link.kept) > 0 {
		c.d.wakeLane(ln)
	}
	if c.waits {
		c.wakeWaiting()
	}
}

// land notes that n more bytes of a piece of size bytes have found their place.
func (ln *lane) land(size, n int64) {
	ln.got += n
	if ln.off += n; ln.off == size {
		ln.seg, ln.off = ln.seg+1, 0
	}
}

// received notes that the receive is done.
func (ln *lane) received() {
	ln.gate = nil
	ln.pc++
	ln.state = runs
	ln.call.d.wakeLane(ln)
	if ln.call.waits {
		ln.call.wakeWaiting()
	}
}

// hazard is the oldest send under way that reads what would be written, and whether there are
// more of them.
func (ln *lane) hazard(segs []seg) (oldest *posted, more bool) {
	for k := range ln.count {
		p := &ln.sends[(ln.first+k)%len(ln.sends)]
		if p.step == nil || p.spilled != nil || !touch(p.step.segs, segs) {
			continue
		}
		if oldest != nil {
			return oldest, true
		}
		oldest = p
	}
	return oldest, false
}

func touch(a, b []seg) bool {
	for _, x := range a {
		for _, y := range b {
			if place(x.mem) == place(y.mem) && x.mem != padMem && x.off < y.off+y.n && y.off < x.off+x.n {
				return true
			}
		}
	}
	return false
}

// place is a memory as hazards see it: in place, the contribution lies in Data.
func place(m memory) memory {
	if m == srcMem {
		return dataMem
	}
	return m
}

func sameSegs(a, b []seg) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if place(a[i].mem) != place(b[i].mem) || a[i].off != b[i].off || a[i].n != b[i].n {
			return false
		}
	}
	return true
}
