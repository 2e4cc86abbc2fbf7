package engine

import "busbar.dev/coll"

// slotTo is how much a rank offers on its page, of collectives whose schedule does not say.
const slotTo = 4 << 10

// canExchange reports whether a call may go by an exchange. Where ranks outlive the group, as those of a star do, none
// of them may write into another's results, as an all-reduce of long vectors does: one that was left behind might wake
// up late.
func (g *Group) canExchange(c *Call) bool {
	if g.net == nil || g.size < 2 || g.Transport() != Shm {
		return false
	}
	switch name := c.s.Name; c.op.Kind {
	case coll.AllReduce:
		return name == "one_shot" || name == "direct" && !g.net.borrowed
	case coll.AllGather, coll.AllToAll, coll.ReduceScatter:
		return name == "direct"
	case coll.Broadcast:
		return name == "binomial"
	}
	return false
}

// rooted reports whether only the root has something to offer.
func (b *shmExchange) rooted() bool { return b.c.op.Kind == coll.Broadcast }

// own reports whether this rank is the root.
func (b *shmExchange) own() bool { return b.c.g.rank == b.c.op.Root }

// pushes reports whether ranks write into each other's results.
func (b *shmExchange) pushes() bool { return b.c.op.Kind == coll.AllReduce }

// waits reports whether a rank that is done must wait for the others: they read what is its own.
func (b *shmExchange) waits() bool { return !b.rooted() || b.own() && !b.whole }

// offer is what a rank lets others read.
func (b *shmExchange) offer(rank int) (m memory, from, to int64) {
	block := b.size / int64(len(b.pages))
	switch b.c.op.Kind {
	case coll.AllGather:
		return dataMem, block * int64(rank), block * int64(rank+1)
	case coll.AllToAll:
		return dataMem, 0, b.size
	case coll.Broadcast:
		if rank != b.c.op.Root {
			return dataMem, 0, 0
		}
		return dataMem, 0, b.size
	}
	return srcMem, 0, b.size
}

// share is the part of the vector that a rank answers for: what it sums, in whole lines of memory
// where nobody asks for something else; what it takes of the others' otherwise.
func (b *shmExchange) share(rank int) (from, to int64) {
	n := int64(len(b.pages))
	switch b.c.op.Kind {
	case coll.AllReduce:
		if b.whole {
			return 0, b.size
		}
		lines := (b.size + 63) / 64
		return lines * int64(rank) / n * 64, min(lines*int64(rank+1)/n*64, b.size)
	case coll.Broadcast:
		return 0, b.size
	}
	block := b.size / n
	return block * int64(rank), block * int64(rank+1)
}

// inputs reports whether there is everything that this rank needs.
func (b *shmExchange) inputs() bool {
	if b.rooted() {
		return b.own() || b.past(b.c.op.Root, postedInput)
	}
	return b.all(postedInput)
}

// elsewhere reports whether some vector lies where others cannot read it: the program runs then.
// All ranks come to the same answer, for nobody can end the run, and begin another, before all
// have begun with the program.
func (b *shmExchange) elsewhere() bool {
	for r := range b.pages {
		if b.rooted() && r != b.c.op.Root {
			continue
		}
		if p := &b.pages[r]; p.word(pageSrc).Load() == noArena || b.pushes() && p.word(pageDst).Load() == noArena {
			return true
		}
	}
	return false
}

// open finds what this rank takes from every rank, and where that goes; false when something is
// not known yet, or the program runs.
func (b *shmExchange) open() (bool, error) {
	if !b.whole && b.elsewhere() {
		if b.rooted() { // others might not have looked when the root is at the next run
			b.publishStage(postedShare)
			if b.own() {
				b.at, b.stage = 0, exchangeLanes
				return false, nil
			}
		}
		b.lanes()
		return false, nil
	}
	rank := b.c.g.rank
	for r := range b.pages {
		from, to := b.share(rank)
		m, at, _ := b.offer(r)
		if b.c.op.Kind == coll.AllGather {
			from, to = b.share(r)
		}
		var err error
		switch {
		case b.rooted() && r != b.c.op.Root:
			b.src[r] = nil
		case r == rank:
			b.src[r] = b.c.mem[m][from:to]
		case b.whole:
			b.src[r] = b.slot(&b.pages[r])[from-at : to-at]
		default:
			if b.src[r], err = b.place(r, pageSrc, from, to); b.src[r] == nil {
				return false, err
			}
		}
		if b.dst[r], err = b.result(r); b.dst[r] == nil && err == nil && b.pushes() && !b.whole {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// result is where something goes: of an all-reduce the own share in a rank's result, else what
// is taken from that rank in the own one.
func (b *shmExchange) result(r int) ([]byte, error) {
	c, rank := b.c, b.c.g.rank
	from, to := b.share(rank)
	switch c.op.Kind {
	case coll.AllReduce:
		if r != rank && !b.whole {
			return b.place(r, pageDst, from, to)
		}
	case coll.AllToAll:
		from, to = b.share(r)
		return c.mem[outMem][from:to], nil
	case coll.AllGather:
		from, to = b.share(r)
	}
	return c.mem[dataMem][from:to], nil
}

// work does this rank's part, some of it at a time; true when that was all.
func (b *shmExchange) work() bool {
	if b.c.op.Kind.Reduces() {
		return b.sum()
	}
	n, rank := len(b.pages), b.c.g.rank
	for moved := int64(0); b.from < n; {
		r := (rank + 1 + b.from) % n
		if b.c.op.Kind != coll.AllToAll && r == rank {
			b.from++ // it is where it belongs
			continue
		}
		k := min(int64(len(b.src[r]))-b.off, pushPiece)
		if moved += k; moved > shareTurn+pushPiece {
			return false
		}
		copy(b.dst[r][b.off:b.off+k], b.src[r][b.off:])
		if b.off += k; b.off == int64(len(b.src[r])) {
			b.off = 0
			b.from++
		}
	}
	return true
}

// sum adds up the own share, and in an all-reduce gives it to all.
func (b *shmExchange) sum() bool {
	rank := b.c.g.rank
	size := int64(len(b.dst[rank]))
	end := min(b.off+shareTurn, size)
	for b.off < end {
		x, y := b.off, min(b.off+pushPiece, end)
		b.add(b.dst[rank], x, y)
		for r := range b.dst {
			if r != rank && b.pushes() && !b.whole {
				copy(b.dst[r][x:y], b.dst[rank][x:y])
			}
		}
		b.off = y
	}
	return b.off == size
}

// add sums a part of the own share. In place, dst holds the own contribution, which must not
// be lost before its turn has come.
func (b *shmExchange) add(dst []byte, x, y int64) {
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
