package msccl

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"busbar.dev/schedule"
)

// errSendWait is the refusal of waits that LL does not keep: the threads of a block that send do
// not meet at the end of the step.
var errSendWait = errors.New("with LL, in RCCL a send is not done reading when its step is done, and what waits for it may overwrite its data; use Simple or LL128")

// ref is a step of a block.
type ref struct{ block, step int }

// touched is who wrote a chunk last, and who has read it since.
type touched struct {
	writer ref
	wrote  bool
	reads  []ref
}

// emitter makes the steps of one rank.
type emitter struct {
	l     *lowering
	x     *rank
	cells map[int]*touched
}

// emit makes the steps of all ranks, and the file.
func (l *lowering) emit() (*Algo, error) {
	s := l.s
	a := &Algo{
		Runtime: RCCL, // whose rules are the stricter ones
		Name:    l.set.Name, Proto: l.set.Proto, Coll: word(l.kind), Channels: s.Lanes, ChunksPerLoop: s.Layout.Chunks, NGPUs: s.Ranks,
		InPlace: l.kind.InPlace(), OutOfPlace: !l.set.InPlace || !l.kind.InPlace(), MinBytes: l.set.MinBytes, MaxBytes: l.set.MaxBytes,
	}
	v := View{Kind: l.kind}
	for _, x := range l.ranks {
		e := &emitter{l: l, x: x, cells: map[int]*touched{}}
		for i := range x.ops {
			if x.ops[i].taken {
				continue
			}
			if err := e.op(&x.ops[i]); err != nil {
				return nil, fmt.Errorf("rank %d lane %d: %s: %w", x.id, x.ops[i].lane, x.ops[i].Op, err)
			}
		}
		g := GPU{ID: x.id, Scratch: x.spare + len(x.kept)}
		g.Input, g.Output = v.sizes(a)
		if err := x.blocksTo(&g); err != nil {
			return nil, err
		}
		a.GPUs = append(a.GPUs, g)
	}
	return a, nil
}

// blocksTo hands the blocks over, within the reader's limits.
func (x *rank) blocksTo(g *GPU) error {
	for _, b := range x.blocks {
		if len(b.steps) == 0 {
			continue
		}
		if n := len(b.steps); n > maxBlockSteps {
			return fmt.Errorf("rank %d lane %d needs %d steps; the reader takes %d", x.id, b.lane, n, maxBlockSteps)
		}
		g.Blocks = append(g.Blocks, Block{ID: len(g.Blocks), Send: b.send, Recv: b.recv, Channel: b.lane, Steps: b.steps})
	}
	switch n := len(g.Blocks); {
	case n > maxBlocks:
		return fmt.Errorf("rank %d lane %d needs %d thread blocks; the reader takes %d", x.id, g.Blocks[maxBlocks].Channel, n, maxBlocks)
	case n == 0:
		return fmt.Errorf("rank %d has nothing to do in any lane; the reader wants a thread block for every rank", x.id)
	}
	return nil
}

// peers holds the connections of a lane to what the reader takes.
func (x *rank) peers() error {
	for _, conns := range []map[peer]int{x.send, x.recv} {
		count := map[int]int{}
		for p := range conns {
			count[p.lane]++
		}
		for _, lane := range slices.Sorted(maps.Keys(count)) {
			if n := count[lane]; n > maxChannelPeers {
				return fmt.Errorf("rank %d lane %d has %d peers; the reader takes %d", x.id, lane, n, maxChannelPeers)
			}
		}
	}
	return nil
}

// kinds of instructions, by verb and whether the chunks are passed on.
func (o *op) instruction() Op {
	switch {
	case o.Verb == schedule.Send:
		return Send
	case o.Verb == schedule.Recv && o.next >= 0:
		return RecvCopySend
	case o.Verb == schedule.Recv:
		return Recv
	case o.Verb == schedule.RecvReduce && o.pass:
		return RecvReduceSend
	case o.Verb == schedule.RecvReduce && o.next >= 0:
		return RecvReduceCpySend
	case o.Verb == schedule.RecvReduce:
		return RecvReduceCopy
	case o.Verb == schedule.Fold:
		return Reduce
	}
	return Copy
}

// op makes the steps of an op.
func (e *emitter) op(o *op) error {
	b := e.block(o)
	do := o.instruction()
	return e.l.pieces(o, func(from, to int) error {
		s := Step{Op: do, Src: Output, Dst: Output, Count: to - from, DepBlock: -1, DepStep: -1}
		if p := o.spots[from].src; do.reads() {
			s.Src, s.SrcOff = p.buf, p.off
		}
		if p := o.spots[from].dst; do.writes() {
			s.Dst, s.DstOff = p.buf, p.off
		}
		if do.reads() && s.Src == 0 || do == Reduce && s.Dst == 0 {
			return fmt.Errorf("reads what nobody has written")
		}
		return e.step(b, o, s, from, to)
	})
}

// block is the one that an op belongs to. A local op goes where its data was made, else to a block
// of its lane's own.
func (e *emitter) block(o *op) int {
	x := e.x
	p := peer{o.lane, int(o.Peer)}
	switch {
	case o.Verb == schedule.Send:
		return x.send[p]
	case o.Verb.Receives():
		return x.recv[p]
	}
	if c := e.cells[cell(o.Buf, o.From)]; o.Verb.Local() && c != nil && c.wrote && x.blocks[c.writer.block].lane == o.lane {
		return c.writer.block
	}
	if _, ok := x.local[o.lane]; !ok {
		x.local[o.lane] = x.add(o.lane, -1, -1)
	}
	return x.local[o.lane]
}

func cell(b schedule.Buffer, chunk int32) int { return int(chunk)*4 + int(b) }

// each calls f with the chunks that a part of an op touches in the schedule's memory.
func (o *op) each(from, to int, f func(cell int, writes bool)) {
	if o.Verb == schedule.Nop {
		return
	}
	for k := int32(from); k < int32(to); k++ {
		f(cell(o.Buf, o.From+k), o.Verb.Receives() && !o.pass)
		if o.Verb.Local() {
			f(cell(o.Dst, o.At+k), true)
		}
	}
}

// step adds a step and the waits it needs: for the last writer of what it reads or writes, and for
// the readers of what it writes. Every wait is stated, also one that would follow from others.
func (e *emitter) step(b int, o *op, s Step, from, to int) error {
	x := e.x
	blk := x.blocks[b]
	need := map[int]int{} // by block: steps
	after := func(r ref) {
		if r.block != b && blk.waited(r.block) <= r.step {
			need[r.block] = max(need[r.block], r.step+1)
		}
	}
	o.each(from, to, func(c int, writes bool) {
		t := e.cells[c]
		if t == nil {
			return
		}
		if t.wrote {
			after(t.writer)
		}
		if writes {
			for _, r := range t.reads {
				after(r)
			}
		}
	})
	for i, k := range slices.Sorted(maps.Keys(need)) {
		target := &x.blocks[k].steps[need[k]-1]
		if target.Op == Send && e.l.set.Proto == "LL" {
			return errSendWait
		}
		target.HasDep = true
		blk.learn(k, need[k])
		if i > 0 { // all waits but the last are nops before the step
			blk.push(Step{Op: Nop, Src: Input, SrcOff: -1, Dst: Output, DstOff: -1, DepBlock: s.DepBlock, DepStep: s.DepStep})
		}
		s.DepBlock, s.DepStep = k, need[k]-1
	}
	blk.push(s)
	me := ref{b, len(blk.steps) - 1}
	o.each(from, to, func(c int, writes bool) {
		t := e.cells[c]
		if t == nil {
			t = &touched{}
			e.cells[c] = t
		}
		if writes {
			*t = touched{writer: me, wrote: true}
		} else {
			t.reads = append(t.reads, me)
		}
	})
	return nil
}

// learn notes that the block has waited for steps of another.
func (b *block) learn(other, steps int) {
	for len(b.known) <= other {
		b.known = append(b.known, 0)
	}
	b.known[other] = steps
}

func (b *block) waited(other int) int {
	if other < len(b.known) {
		return b.known[other]
	}
	return 0
}

// push adds a step. The reader takes reductions that follow each other and go to one place for one
// instruction, with the count of the last; a flag keeps those apart that differ in it.
func (b *block) push(s Step) {
	s.Index = len(b.steps)
	if n := len(b.steps); n > 0 {
		if p := &b.steps[n-1]; p.Op == Reduce && s.Op == Reduce && p.Count != s.Count {
			p.HasDep = true
		}
	}
	b.steps = append(b.steps, s)
}
