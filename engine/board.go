package engine

import (
	"busbar/coll"
	"busbar/internal/shm"
)

// board is how ranks of one host do an all-reduce in which everybody talks to everybody,
// without messages: each rank has a page that the others read, on which it says how far it is
// and where its vectors lie. The others take what they need from there, and add in the order
// of ranks, so that all get the same bits.
//
// A rank that cannot take part says so before the first run, and then nobody does: the program
// of the schedule runs instead.
type board struct {
	c     *Call
	seg   *shm.Segment // of the own page; nil where this rank cannot take part
	pages []page       // of all ranks, in order
	on    bool         // all take part
	asked bool         // all have said whether they do

	whole bool  // one shot: vectors are written on the page
	size  int64 // of the vector
	slots int64 // bytes of a slot of the page

	run   uint64 // number of the run, from 1
	stage boardStage
	at    int      // rank that is looked at next
	off   int64    // within the share that is summed
	src   [][]byte // the own share of all contributions
	dst   [][]byte // and of all results
	acc   []byte
}

// boardStage is what a run waits for.
type boardStage uint8

const (
	boardIdle boardStage = iota
	boardVotes
	boardInputs
	boardSums
	boardShares
)

// Stages that a rank has done, added to four times the run.
const (
	postedInput = 1 + iota
	postedShare
)

// Sizes, measured on two cores.
const (
	accPiece  = 16 << 10  // fits into the first-level cache
	pushPiece = 256 << 10 // fits into the second-level cache
	shareTurn = 1 << 20   // what is summed before others have their turn
)

// newBoard makes a board for a call that may use one; nil for others. The vote is sent once
// the call has its number.
func (g *Group) newBoard(c *Call) (*board, error) {
	s, w := c.s, g.world()
	if c.op.Kind != coll.AllReduce || c.wire != Uncompressed || w.net == nil || g.Transport() != Shm || g.size < 2 {
		return nil, nil
	}
	// Where a job outlives its members, none of them may write into another's results: one that
	// was left behind might wake up late.
	if s.Name != "one_shot" && (s.Name != "direct" || w.net.lodger) {
		return nil, nil
	}
	b := &board{c: c, whole: s.Name == "one_shot", size: int64(c.op.Size(g.size)), pages: make([]page, g.size), src: make([][]byte, g.size), dst: make([][]byte, g.size)}
	if b.whole {
		b.slots = 2 * ((b.size + 127) &^ 127)
	}
	b.acc = aligned(min(accPiece, b.size))
	near := !w.alone
	for r := range g.size {
		if r == g.rank {
			continue
		}
		b.pages[r].link = w.peers[g.worldRank(r)][0]
		_, ok := b.pages[r].link.s.(*ringPair)
		near = near && ok
	}
	if !near {
		return b, nil
	}
	seg, err := shm.Create((pageData + b.slots + 4095) &^ 4095)
	if err != nil {
		if w.cfg.Transport == Shm {
			return nil, err
		}
		return b, nil
	}
	b.seg = seg
	b.pages[g.rank] = newPage(seg, nil)
	return b, nil
}

// share is the part of the vector that a rank sums: whole lines of memory.
func (b *board) share(rank int) (from, to int64) {
	lines, n := (b.size+63)/64, int64(len(b.pages))
	return lines * int64(rank) / n * 64, min(lines*int64(rank+1)/n*64, b.size)
}

// vote tells the others whether this rank takes part, and where its page is.
func (b *board) vote() {
	handle := ""
	if b.seg != nil {
		handle = b.seg.Handle().String()
	}
	for r := range b.pages {
		l := b.pages[r].link
		if l == nil {
			continue
		}
		h := header{program: noProgram, call: tellBoard, lane: uint32(b.c.id), op: uint32(b.c.id >> 32), length: uint64(len(handle))}
		p := &posted{raw: make([]byte, headerLen)}
		h.put((*[headerLen]byte)(p.raw))
		p.raw = append(p.raw, handle...)
		l.post(p)
		b.c.g.list(l)
		l.tx() // an error will come again
	}
}

// begin starts a run; the driver calls it.
func (b *board) begin() {
	b.at, b.off = 0, 0
	if !b.asked {
		b.stage = boardVotes
		return
	}
	b.post()
}

// count takes the votes that have come.
func (b *board) count() (moved bool, err error) {
	for ; b.at < len(b.pages); b.at++ {
		l := b.pages[b.at].link
		if l == nil {
			continue
		}
		v, ok := l.votes[b.c.id]
		if !ok {
			return l.ask()
		}
		delete(l.votes, b.c.id)
		if v == nil || int64(len(v.Bytes())) != (pageData+b.slots+4095)&^4095 {
			if v != nil {
				v.Close()
			}
			b.pages[b.at].mem = nil
			continue
		}
		b.pages[b.at] = newPage(v, l)
	}
	b.asked, b.on, b.at = true, true, 0
	for _, p := range b.pages {
		b.on = b.on && p.mem != nil
	}
	if !b.on {
		b.stage = boardIdle
		b.c.enterLanes()
		return true, nil
	}
	b.post()
	return true, nil
}

// post says that the contribution can be read.
func (b *board) post() {
	b.run++
	b.stage = boardInputs
	own := &b.pages[b.c.of.rank]
	src := b.c.mem[srcMem]
	if b.whole {
		copy(b.slot(own, b.run), src[:b.size])
		b.say(postedInput)
		return
	}
	w, d := b.c.where[srcMem], b.c.where[dataMem]
	for r := range b.pages {
		if l := b.pages[r].link; l != nil {
			l.tell(w.in)
			l.tell(d.in)
		}
	}
	own.put(pageSrc, w)
	own.put(pageDst, d)
	b.say(postedInput)
}

// slot is where a page holds the vector of a run; two of them, so that nobody has to wait
// until the others have read the last one.
func (b *board) slot(p *page, run uint64) []byte {
	at := pageData + int64(run&1)*(b.slots/2)
	return p.mem[at : at+b.size]
}

// say tells how far this rank is, and wakes who sleeps.
func (b *board) say(done uint64) {
	b.pages[b.c.of.rank].seq.Store(4*b.run + done)
	for r := range b.pages {
		p := &b.pages[r]
		if p.link != nil && p.sleep.Load() != 0 && p.sleep.CompareAndSwap(1, 0) {
			p.link.s.(*ringPair).ring()
		}
	}
}

// past reports whether a rank has done a stage.
func (b *board) past(r int, done uint64) bool { return b.pages[r].seq.Load() >= 4*b.run+done }

// all reports whether all ranks have done a stage.
func (b *board) all(done uint64) bool {
	for b.at < len(b.pages) && (b.pages[b.at].link == nil || b.past(b.at, done)) {
		b.at++
	}
	return b.at == len(b.pages)
}

// poll goes on as far as possible.
func (b *board) poll() (moved bool, err error) {
	for {
		switch b.stage {
		case boardIdle:
			return moved, nil
		case boardVotes:
			ok, err := b.count()
			return ok, err
		case boardInputs:
			if !b.all(postedInput) {
				return moved, nil
			}
			if b.whole {
				b.sumWhole()
				return true, nil
			}
			if b.elsewhere() {
				b.stage = boardIdle
				b.c.enterLanes()
				return true, nil
			}
			if ok, err := b.findShares(); !ok || err != nil {
				return moved, err
			}
			b.stage = boardSums
		case boardSums:
			if !b.sum() {
				return true, nil
			}
			b.at, b.stage = 0, boardShares
			b.say(postedShare)
		case boardShares:
			if !b.all(postedShare) {
				return moved, nil
			}
			b.over()
			return true, nil
		}
		moved = true
	}
}

func (b *board) over() {
	if b.run == 1 {
		b.seg.Settle() // all have mapped it
	}
	b.stage = boardIdle
	b.c.g.finish(b.c, nil)
}

// sumWhole adds the vectors of all pages.
func (b *board) sumWhole() {
	dst, sum := b.c.mem[dataMem][:b.size], b.c.arith.combine
	sum(dst, b.slot(&b.pages[0], b.run), b.slot(&b.pages[1], b.run))
	for r := 2; r < len(b.pages); r++ {
		sum(dst, dst, b.slot(&b.pages[r], b.run))
	}
	b.over()
}

// elsewhere reports whether some rank's vectors lie where others cannot read them: the program
// runs then. All ranks come to the same answer, for nobody can end the run, and begin another,
// before all have begun with the program.
func (b *board) elsewhere() bool {
	for r := range b.pages {
		if p := &b.pages[r]; p.word(pageSrc).Load() == noArena || p.word(pageDst).Load() == noArena {
			return true
		}
	}
	return false
}

// findShares finds the own share of all contributions and results.
func (b *board) findShares() (bool, error) {
	rank := b.c.of.rank
	from, to := b.share(rank)
	for r := range b.pages {
		if r == rank {
			b.src[r], b.dst[r] = b.c.mem[srcMem][from:to], b.c.mem[dataMem][from:to]
			continue
		}
		var err error
		if b.src[r], err = b.place(r, pageSrc, from, to); b.src[r] == nil || err != nil {
			return false, err
		}
		if b.dst[r], err = b.place(r, pageDst, from, to); b.dst[r] == nil || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sum adds up the own share and gives it to all, some of it at a time; true when that was all.
func (b *board) sum() bool {
	rank := b.c.of.rank
	from, to := b.share(rank)
	end := min(b.off+shareTurn, to-from)
	for b.off < end {
		x, y := b.off, min(b.off+pushPiece, end)
		b.add(b.dst[rank], x, y)
		for r := range b.dst {
			if r != rank {
				copy(b.dst[r][x:y], b.dst[rank][x:y])
			}
		}
		b.off = y
	}
	return b.off == to-from
}

// add sums a part of the own share. In place, dst holds the own contribution, which must not
// be lost before its turn has come.
func (b *board) add(dst []byte, x, y int64) {
	sum, last := b.c.arith.combine, len(b.src)-1
	for x < y {
		z := min(x+accPiece, y)
		if last == 1 {
			z = y
		}
		a := b.src[0][x:z]
		for r := 1; r < last; r++ {
			acc := b.acc[:z-x]
			sum(acc, a, b.src[r][x:z])
			a = acc
		}
		sum(dst[x:z], a, b.src[last][x:z])
		x = z
	}
}
