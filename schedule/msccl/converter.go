package msccl

import (
	"fmt"

	"busbar.dev/schedule"
)

// converter turns the programs of GPUs into those of ranks.
type converter struct {
	a       *Algo
	v       View
	lanes   *lanes
	n       int // lanes of the schedule, the last of which copies where there are copies
	input   int // chunks of scratch that stand for the input, out of place
	scratch int // chunks of the file's scratch
	temp    int // all of it
}

// regions lays out the scratch: input, scratch, and what passes through rrs, which the file never
// stores.
func (c *converter) regions() {
	for i := range c.a.GPUs {
		g := &c.a.GPUs[i]
		if c.copies() {
			c.input = max(c.input, g.Input)
		}
		c.scratch = max(c.scratch, g.Scratch)
	}
	c.temp = c.input + c.scratch
	for i := range c.a.GPUs {
		n := c.input + c.scratch
		for j := range c.a.GPUs[i].Blocks {
			n += passing(&c.a.GPUs[i].Blocks[j])
		}
		c.temp = max(c.temp, n)
	}
}

// copies reports whether the input has to be copied away first.
func (c *converter) copies() bool { return !c.v.InPlace && c.v.Kind.InPlace() }

// passing is the most chunks that pass through a block without being stored.
func passing(b *Block) int {
	n := 0
	for k := range b.Steps {
		if s := &b.Steps[k]; s.Op == RecvReduceSend {
			n = max(n, s.Count)
		}
	}
	return n
}

// place is where a chunk of the file lies in the schedule.
func (c *converter) place(g *GPU, b Buffer, off int) (schedule.Buffer, int32) {
	in, out := c.v.shifts(c.a, g.ID)
	switch {
	case b == Scratch:
		return schedule.Temp, int32(c.input + off)
	case !c.v.Kind.InPlace() && b == Output:
		return schedule.Out, int32(off)
	case b == Output:
		return schedule.Data, int32(out + off)
	case c.copies():
		return schedule.Temp, int32(off)
	}
	return schedule.Data, int32(in + off)
}

// writer emits the ops of one GPU.
type writer struct {
	*converter
	g     *GPU
	i     int // index of g
	prog  [][]schedule.Op
	known [][]int32     // by lane: ops of other lanes that it has waited for
	ends  [][][2]int32  // by block and step: ops of the block's two lanes up to there
	sure  [][][]int16   // by block and step: steps of other blocks that are done by then
	pass  []int32       // by block: where its passing chunks lie
	todo  []int         // by block: the next step
	wait  schedule.Wait // for the copies
}

// gpu converts one program, in an order in which every wait comes after what it waits for.
func (c *converter) gpu(i int) ([][]schedule.Op, error) {
	g := &c.a.GPUs[i]
	w := &writer{converter: c, g: g, i: i, prog: make([][]schedule.Op, c.n), known: make([][]int32, c.n)}
	for l := range w.known {
		w.known[l] = make([]int32, c.n)
	}
	w.copyInput()
	pass := int32(c.input + c.scratch)
	for j := range g.Blocks {
		w.ends, w.sure = append(w.ends, nil), append(w.sure, nil)
		w.pass = append(w.pass, pass)
		pass += int32(passing(&g.Blocks[j]))
	}
	w.todo = make([]int, len(g.Blocks))
	for moved := true; moved; {
		moved = false
		for j := range g.Blocks {
			b := &g.Blocks[j]
			for ; w.todo[j] < len(b.Steps); w.todo[j]++ {
				s := &b.Steps[w.todo[j]]
				if s.DepBlock >= 0 && s.DepBlock != j && w.todo[s.DepBlock] <= s.DepStep {
					break
				}
				if err := w.step(j, b, s); err != nil {
					return nil, fmt.Errorf("%sgpu %d tb %d step %d: %w", line(s.Line), g.ID, b.ID, s.Index, err)
				}
				moved = true
			}
		}
	}
	return w.prog, nil
}

// copyInput fills the chunks that stand for the input of a call that is not in place.
func (w *writer) copyInput() {
	in, _ := w.v.sizes(w.a)
	if !w.copies() || !w.v.contributes(w.g.ID) {
		return
	}
	if in = min(in, w.g.Input); in == 0 {
		return
	}
	from, _ := w.v.shifts(w.a, w.g.ID)
	last := w.n - 1
	w.prog[last] = []schedule.Op{{Verb: schedule.Copy, Buf: schedule.Data, From: int32(from), To: int32(from + in), Dst: schedule.Temp}}
	w.wait = schedule.Wait{Lane: int32(last), Count: 1}
}

// learn joins what a step knows: what the step before it knew, what it waits for, and what that
// knew.
func (w *writer) learn(j int, s *Step) []int16 {
	sure := make([]int16, len(w.g.Blocks))
	if s.Index > 0 {
		copy(sure, w.sure[j][s.Index-1])
	}
	if s.DepBlock >= 0 && s.DepBlock != j {
		for k, n := range w.sure[s.DepBlock][s.DepStep] {
			sure[k] = max(sure[k], n)
		}
		sure[s.DepBlock] = max(sure[s.DepBlock], int16(s.DepStep+1))
	}
	sure[j] = int16(s.Index)
	return sure
}

// step converts one step.
func (w *writer) step(j int, b *Block, s *Step) error {
	w.sure[j] = append(w.sure[j], w.learn(j, s))
	send, recv := w.lanes.send[w.i][j], w.lanes.recv[w.i][j]
	err := w.ops(j, b, s, send, recv)
	w.ends[j] = append(w.ends[j], [2]int32{int32(len(w.prog[send])), int32(len(w.prog[recv]))})
	return err
}

// ops emits the ops of a step.
func (w *writer) ops(j int, b *Block, s *Step, send, recv int) error {
	if s.Op == Nop {
		return nil // what it waits for is known to the step after it
	}
	n := int32(s.Count)
	src, dst, err := w.operands(s)
	if err != nil {
		return err
	}
	if s.Op == RecvReduceSend {
		dst = span{schedule.Temp, w.pass[j]}
	}
	emit := func(lane int, o schedule.Op) { w.emit(j, lane, s.Index, o) }
	copied := func() {
		if src != dst {
			emit(recv, schedule.Op{Verb: schedule.Copy, Buf: src.buf, From: src.at, To: src.at + n, Dst: dst.buf, At: dst.at})
		}
	}
	switch s.Op {
	case Send:
		emit(send, schedule.Op{Verb: schedule.Send, Buf: src.buf, From: src.at, To: src.at + n, Peer: int32(b.Send)})
	case Copy:
		copied()
	case Reduce:
		emit(recv, schedule.Op{Verb: schedule.Fold, Buf: src.buf, From: src.at, To: src.at + n, Dst: dst.buf, At: dst.at})
	case Recv, RecvCopySend:
		emit(recv, schedule.Op{Verb: schedule.Recv, Buf: dst.buf, From: dst.at, To: dst.at + n, Peer: int32(b.Recv)})
	case RecvReduceCopy, RecvReduceCpySend, RecvReduceSend:
		copied()
		emit(recv, schedule.Op{Verb: schedule.RecvReduce, Buf: dst.buf, From: dst.at, To: dst.at + n, Peer: int32(b.Recv)})
	}
	if s.Op.Receives() && s.Op.Sends() {
		emit(send, schedule.Op{Verb: schedule.Send, Buf: dst.buf, From: dst.at, To: dst.at + n, Peer: int32(b.Send)})
	}
	return nil
}

// span is where a range begins.
type span struct {
	buf schedule.Buffer
	at  int32
}

// operands are the ranges that a step reads and writes.
func (w *writer) operands(s *Step) (src, dst span, err error) {
	for _, x := range []struct {
		used bool
		b    Buffer
		off  int
		to   *span
	}{{s.Op.reads(), s.Src, s.SrcOff, &src}, {s.Op.writes(), s.Dst, s.DstOff, &dst}} {
		if !x.used {
			continue
		}
		if w.copies() && x.b == Input && x.off+s.Count > w.g.Input {
			return src, dst, fmt.Errorf("%s[%d] is outside the input of a call that is not in place", x.b, x.off+s.Count-1)
		}
		if w.copies() && x.b == Input && x.to == &dst {
			return src, dst, fmt.Errorf("writes the input of a call that is not in place")
		}
		if w.v.usesOutput(w.g.ID, x.b) {
			return src, dst, fmt.Errorf("uses the output, which only the root of a reduce has")
		}
		x.to.buf, x.to.at = w.place(w.g, x.b, x.off)
	}
	return src, dst, nil
}

// emit adds an op to a lane, with nops before it for all that it waits for but the last.
func (w *writer) emit(j, lane, step int, o schedule.Op) {
	var waits []schedule.Wait
	need := func(l, count int32) {
		if int(l) != lane && w.known[lane][l] < count {
			w.known[lane][l] = count
			waits = append(waits, schedule.Wait{Lane: l, Count: count})
		}
	}
	if w.wait.Count > 0 {
		need(w.wait.Lane, w.wait.Count)
	}
	for k, n := range w.sure[j][step] {
		if n > 0 && k != j {
			e := w.ends[k][n-1]
			need(int32(w.lanes.send[w.i][k]), e[0])
			need(int32(w.lanes.recv[w.i][k]), e[1])
		}
	}
	for _, l := range []int{w.lanes.send[w.i][j], w.lanes.recv[w.i][j]} {
		need(int32(l), int32(len(w.prog[l])))
	}
	for k, x := range waits {
		if k == len(waits)-1 {
			o.After = x
			break
		}
		w.prog[lane] = append(w.prog[lane], schedule.Op{Verb: schedule.Nop, After: x})
	}
	w.prog[lane] = append(w.prog[lane], o)
}
