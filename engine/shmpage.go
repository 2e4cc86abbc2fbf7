package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"busbar.dev/internal/shm"
)

// page is what a rank tells the others.
type page struct {
	seg   *shm.Segment
	mem   []byte
	seq   [2]*atomic.Uint64 // run times 4, and the stage that is done; of odd runs the second, which may be the same word
	sleep *atomic.Uint32    // the rank sleeps
	link  *link             // to it; nil of the own page
}

// Layout of a page: words of 8 bytes, then slots. What changes with every run lies apart from what
// says that a rank sleeps. A vector of a few elements lies beside the word that says that it is
// there: every line of memory that one processor writes and another reads takes a hundred nanoseconds.
const (
	pageSeq   = 0
	pageBrief = 8  // a vector of a few elements
	pageSrc   = 16 // arena and offset of the contribution
	pageDst   = 32 // of the result
	pageSleep = 256
	pageData  = 4096
	pageLine  = 128 // lines are 64 bytes, and processors fetch them in pairs
	brief     = pageLine / 2
	noArena   = ^uint64(0) // others cannot map it
)

// newPage is the page in a segment. Where slots lie beside the word of a run, each has one.
func newPage(seg *shm.Segment, l *link, short bool) page {
	p := page{seg: seg, mem: seg.Bytes(), link: l}
	p.seq = [2]*atomic.Uint64{p.word(pageSeq), p.word(pageSeq)}
	if short {
		p.seq[1] = p.word(pageSeq + pageLine)
	}
	p.sleep = (*atomic.Uint32)(unsafe.Pointer(&p.mem[pageSleep]))
	return p
}

// word is one of the page's.
func (p *page) word(at int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&p.mem[at])) }

func (p *page) put(at int, w spot) {
	id := noArena
	if w.in != nil {
		id = uint64(w.in.id)
	}
	p.word(at).Store(id)
	p.word(at + 8).Store(uint64(w.off))
}

// place is the part of another rank's vector that its page names; nil where it is not known yet.
func (b *shmExchange) place(r, at int, from, to int64) ([]byte, error) {
	p := &b.pages[r]
	id := p.word(at).Load()
	off := p.word(at + 8).Load()
	var seg *shm.Segment
	if id < maxArenas {
		seg = p.link.maps[uint32(id)]
	}
	if seg == nil {
		_, err := p.link.ask()
		return nil, err
	}
	if n := uint64(len(seg.Bytes())); off > n || uint64(to) > n-off {
		return nil, &protocolError{
			p.link.peer, fmt.Sprintf("%s: a vector at %d of memory %d, which has %d bytes", b.c.name, off, id, n),
		}
	}
	return seg.Bytes()[off+uint64(from) : off+uint64(to)], nil
}

// ask reads what the peer says for itself, though no message of it is waited for.
func (l *link) ask() (moved bool, err error) {
	if l.ended != nil {
		return false, &linkError{l, l.ended}
	}
	moved, err = l.rx()
	var bad *protocolError
	if err != nil && !errors.As(err, &bad) {
		l.ended = err
		err = &linkError{l, err}
	}
	return moved, err
}

// maxHandles limits how many calls a peer may be ahead.
const maxHandles = 1 << 16

// receiveHandle takes the handle of a peer's page; an empty one says that it does not take part.
func (l *link) receiveHandle(call uint64, text string) error {
	if _, twice := l.handles[call]; twice || len(l.handles) >= maxHandles {
		return &protocolError{l.peer, fmt.Sprintf("a page of call %d, after %d others", call, len(l.handles))}
	}
	if l.d.calls[call] == nil && call < l.d.nextID {
		return nil // forgotten meanwhile
	}
	var v pageHandle
	if text != "" {
		v.seg, v.err = l.open(text)
	}
	l.handles[call] = v
	return nil
}

// pageHandle is a peer's page; none where it takes no part. A page that cannot be mapped matters only
// when the call is run: the peer may have forgotten it.
type pageHandle struct {
	seg *shm.Segment
	err error
}

// arm says that this rank is about to sleep.
func (b *shmExchange) arm(asleep uint32) {
	if p := &b.pages[b.c.g.rank]; p.sleep != nil {
		p.sleep.Store(asleep)
	}
}

// waitingFor is the rank that a run waits for, in words for a person.
func (b *shmExchange) waitingFor() (rank int, doing string) {
	for r := range b.pages {
		if what := b.missingFrom(r); what != "" {
			return r, what
		}
	}
	return -1, ""
}

// missingFrom is what a run waits for of a rank; "" when for nothing.
func (b *shmExchange) missingFrom(r int) string {
	switch p := &b.pages[r]; {
	case p.link == nil:
	case b.stage == exchangeHandles && r >= b.at:
		return "its page"
	case b.stage == exchangeRoom && !b.past(r, postedShare-8):
		return "its reading what the run before the last gave it"
	case b.stage == exchangeInputs && !b.past(r, postedInput) && (!b.rooted() || r == b.c.op.Root):
		return "its contribution"
	case (b.stage == exchangeShares || b.stage == exchangeLanes) && b.waits() && !b.past(r, postedShare):
		return "its part of the work"
	}
	return ""
}

// close gives the pages back.
func (b *shmExchange) close() {
	for r := range b.pages {
		p := &b.pages[r]
		if p.link != nil {
			if v := p.link.handles[b.c.id]; v.seg != nil {
				v.seg.Close()
			}
			delete(p.link.handles, b.c.id)
		}
		if p.seg != nil {
			p.seg.Close()
			p.seg = nil
		}
	}
}
