package engine

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/internal/shm"
)

// exchange is how ranks of one host do a collective in which everybody talks to everybody,
// without messages: each rank has a page that the others read, on which it says how far it is
// and where its vectors lie, or which holds them if they are short. The others take what they
// need from there, and add in the order of ranks, so that all get the same bits.
//
// A rank that cannot take part says so before the first run, and then nobody does: the program
// of the schedule runs instead.
type shmExchange struct {
	c     *Call
	seg   *shm.Segment // of the own page; nil where this rank cannot take part
	pages []page       // of all ranks, in order
	on    bool         // all take part
	asked bool         // all have said whether they do

	whole bool  // what a rank offers is written on the page
	short bool  // beside the word that says so
	size  int64 // of the vector
	slot0 int64 // where the first slot of the page begins
	slot1 int64 // bytes of a slot
	apart int64 // of a slot from the other

	run   uint64 // number of the run, from 1
	stage exchangeStage
	at    int      // rank that is looked at next
	from  int      // how many ranks have been taken from
	off   int64    // within the share that is summed
	src   [][]byte // the own share of all contributions
	dst   [][]byte // and of all results
	acc   []byte
}

// exchangeStage is what a run waits for.
type exchangeStage uint8

const (
	exchangeIdle exchangeStage = iota
	exchangeHandles
	exchangeRoom // of the root of a broadcast: for the slot to be read
	exchangeInputs
	exchangeSums
	exchangeShares
	exchangeLanes // of the root of a broadcast: for all to know that the program runs
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

// newShmExchange makes an exchange for a call that may use one; nil for others. The vote is sent once
// the call has its number.
func (g *Group) newShmExchange(c *Call) (*shmExchange, error) {
	if !g.canExchange(c) {
		return nil, nil
	}
	b := &shmExchange{
		c: c, size: int64(c.op.Size(g.size)), pages: make([]page, g.size), src: make([][]byte, g.size),
		dst: make([][]byte, g.size),
	}
	_, from, to := b.offer(g.rank)
	if c.op.Kind == coll.Broadcast {
		from, to = 0, b.size
	}
	b.whole = c.s.Name == "one_shot" || c.op.Kind != coll.AllReduce && to-from <= slotTo
	if b.whole {
		b.layOut(to - from)
	}
	b.acc = aligned(min(accPiece, b.size))
	near := !g.alone
	for r := range g.size {
		if r == g.rank {
			continue
		}
		b.pages[r].link = g.driver.peers[r][0]
		near = near && b.pages[r].link.ring != nil
	}
	if !near {
		return b, nil
	}
	seg, err := shm.Create(b.pageSize())
	if err != nil {
		if g.cfg.Transport == Shm {
			return nil, err
		}
		return b, nil
	}
	b.seg = seg
	b.pages[g.rank] = newPage(seg, nil, b.short)
	return b, nil
}

// layOut finds places for two slots of so many bytes.
func (b *shmExchange) layOut(n int64) {
	b.slot0, b.slot1, b.apart = pageData, n, (n+pageLine-1)&^(pageLine-1)
	if b.short = n <= brief && !b.rooted(); !b.short {
		return
	}
	b.slot0, b.apart = pageBrief, pageLine
	if n > pageLine/2-pageBrief {
		b.slot0 = pageLine / 2 // in one line by itself rather than in parts of two
	}
}

func (b *shmExchange) pageSize() int64 { return (pageData + 2*b.apart + 4095) &^ 4095 }

// sendHandle tells the others whether this rank takes part, and where its page is.
func (b *shmExchange) sendHandle() {
	handle := ""
	if b.seg != nil {
		handle = b.seg.Handle().String()
	}
	for r := range b.pages {
		l := b.pages[r].link
		if l == nil {
			continue
		}
		l.tell(tellBoard, uint32(b.c.id), handle)
		l.tx() // an error will come again
	}
}

// begin starts a run; the driver calls it.
func (b *shmExchange) begin() {
	b.at, b.off, b.from = 0, 0, 0
	if !b.asked {
		b.stage = exchangeHandles
		return
	}
	b.post()
}

// count takes the votes that have come.
func (b *shmExchange) count() (moved bool, err error) {
	for ; b.at < len(b.pages); b.at++ {
		l := b.pages[b.at].link
		if l == nil {
			continue
		}
		v, ok := l.handles[b.c.id]
		if !ok {
			return l.ask()
		}
		if v.err != nil {
			return false, &linkError{l, v.err}
		}
		delete(l.handles, b.c.id)
		if v.seg == nil {
			continue
		}
		if n := int64(len(v.seg.Bytes())); n != b.pageSize() {
			v.seg.Close()
			return false, &protocolError{l.peer, fmt.Sprintf("%s: a page of %d bytes; expected %d", b.c.name, n, b.pageSize())}
		}
		b.pages[b.at] = newPage(v.seg, l, b.short)
	}
	b.asked, b.on, b.at = true, true, 0
	for _, p := range b.pages {
		b.on = b.on && p.mem != nil
	}
	if !b.on {
		b.lanes()
		return true, nil
	}
	b.post()
	return true, nil
}

// post says that what this rank offers can be read.
func (b *shmExchange) post() {
	b.run++
	if b.whole && b.rooted() && b.own() && b.run > 2 {
		b.stage = exchangeRoom
		return
	}
	b.publish()
}

func (b *shmExchange) publish() {
	b.at, b.stage = 0, exchangeInputs
	rank := b.c.g.rank
	m, from, to := b.offer(rank)
	if b.rooted() && !b.own() {
		return
	}
	own := &b.pages[rank]
	if b.whole {
		copy(b.slot(own), b.c.mem[m][from:to])
		b.publishStage(postedInput)
		return
	}
	w, d := b.c.where[m], b.c.where[dataMem]
	for r := range b.pages {
		if l := b.pages[r].link; l != nil {
			l.shareArena(w.in)
			if b.pushes() {
				l.shareArena(d.in)
			}
		}
	}
	own.put(pageSrc, w)
	own.put(pageDst, d)
	b.publishStage(postedInput)
}

// slot is where a page holds what is offered in this run; two of them, so that nobody has to wait
// until the others have read the last one.
func (b *shmExchange) slot(p *page) []byte {
	at := b.slot0 + int64(b.run&1)*b.apart
	return p.mem[at : at+b.slot1]
}

// publishStage tells how far this rank is, and wakes who sleeps.
func (b *shmExchange) publishStage(done uint64) {
	b.pages[b.c.g.rank].seq[b.run&1].Store(4*b.run + done)
	for r := range b.pages {
		p := &b.pages[r]
		if p.link != nil && p.sleep.Load() != 0 && p.sleep.CompareAndSwap(1, 0) {
			p.link.ring.ring()
		}
	}
}

// past reports whether a rank has done a stage.
func (b *shmExchange) past(r int, done int64) bool {
	return int64(b.pages[r].seq[b.run&1].Load()) >= 4*int64(b.run)+done
}

// all reports whether all ranks have done a stage.
func (b *shmExchange) all(done int64) bool {
	for b.at < len(b.pages) && (b.pages[b.at].link == nil || b.past(b.at, done)) {
		b.at++
	}
	return b.at == len(b.pages)
}

// poll goes on as far as possible.
func (b *shmExchange) poll() (moved bool, err error) {
	for {
		switch b.stage {
		case exchangeIdle:
			return moved, nil
		case exchangeHandles:
			return b.count()
		case exchangeRoom:
			if !b.all(postedShare - 8) { // of the run before the last
				return moved, nil
			}
			b.publish()
		case exchangeInputs:
			if !b.inputs() {
				return moved, nil
			}
			if ok, err := b.open(); !ok || err != nil {
				return moved || b.stage == exchangeIdle, err
			}
			b.stage = exchangeSums
		case exchangeSums:
			if !b.work() {
				return true, nil
			}
			if b.whole && !b.rooted() {
				b.finished()
				return true, nil
			}
			b.at, b.stage = 0, exchangeShares
			b.publishStage(postedShare)
		case exchangeShares:
			if b.waits() && !b.all(postedShare) {
				return moved, nil
			}
			b.finished()
			return true, nil
		case exchangeLanes:
			if !b.all(postedShare) {
				return moved, nil
			}
			b.lanes()
			return true, nil
		}
		moved = true
	}
}

// lanes lets the program run instead.
func (b *shmExchange) lanes() {
	b.stage = exchangeIdle
	b.c.enterLanes()
}

func (b *shmExchange) finished() {
	// Once all have offered something, all have mapped all pages; the root of a broadcast waits
	// for that from its third run on.
	if b.run == 1 && !b.rooted() || b.run == 3 {
		b.seg.Settle()
	}
	b.stage = exchangeIdle
	b.c.d.finish(b.c, nil)
}
