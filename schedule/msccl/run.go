package msccl

import (
	"fmt"
	"slices"
)

// runner lets all blocks of a file run as the interpreter on the GPUs would, without data: queues
// of limited length, flags that blocks wait for. A step is as many messages as the file's greatest
// size may make of it; without one every chunk is a message of its own, which is what happens to
// large data and the least that the queues hold.
type runner struct {
	a      *Algo
	v      View
	per    int // chunks of a message
	blocks []runBlock
	first  []int // of a GPU's blocks, by index of the GPU
	queues map[wire]int
	filled [][3][]bool // by index of the GPU: chunks that hold something
	ready  []int       // blocks that may go on
	queued []bool
	takes  map[wire]int // the block at the far end of a wire
	gives  map[wire]int // and at the near end
}

type wire struct{ from, to, channel int }

// runBlock is how far a block has come. The flag is the number of the last step done that others
// may wait for, plus one.
type runBlock struct {
	gpu      int // index in a.GPUs
	b        *Block
	pc, done int // step, and chunks of it that are done
	flag     int
}

// run reports a block that waits for ever, a read of memory that holds nothing, or an output that
// nobody fills.
func (a *Algo) run(v View) error {
	r := &runner{a: a, v: v, per: a.perMessage(), queues: map[wire]int{}, takes: map[wire]int{}, gives: map[wire]int{}, filled: make([][3][]bool, len(a.GPUs))}
	for i := range a.GPUs {
		g := &a.GPUs[i]
		r.first = append(r.first, len(r.blocks))
		for j := range g.Blocks {
			x := runBlock{gpu: i, b: &g.Blocks[j]}
			r.takes[r.in(&x)], r.gives[r.out(&x)] = len(r.blocks), len(r.blocks)
			r.blocks = append(r.blocks, x)
		}
		for b, n := range []int{g.Input, g.Output, g.Scratch} {
			r.filled[i][b] = make([]bool, n)
		}
		for c := range g.Input {
			r.filled[i][0][c] = v.contributes(g.ID)
		}
	}
	r.first = append(r.first, len(r.blocks))
	r.queued = make([]bool, len(r.blocks))
	for i := range slices.Backward(r.blocks) {
		r.wake(i)
	}
	for len(r.ready) > 0 {
		i := r.ready[len(r.ready)-1]
		r.ready = r.ready[:len(r.ready)-1]
		r.queued[i] = false
		if err := r.advance(i); err != nil {
			return err
		}
	}
	for i := range r.blocks {
		x := &r.blocks[i]
		if x.pc < len(x.b.Steps) {
			return r.fault(x, "waits for ever: "+r.why(x))
		}
	}
	return r.results()
}

func (r *runner) wake(i int) {
	if !r.queued[i] {
		r.queued[i] = true
		r.ready = append(r.ready, i)
	}
}

func (r *runner) fault(x *runBlock, what string) error {
	s := &x.b.Steps[x.pc]
	return fmt.Errorf("%sgpu %d tb %d step %d (%s): %s", line(s.Line), r.a.GPUs[x.gpu].ID, x.b.ID, s.Index, s.Op, what)
}

// why says what a block waits for.
func (r *runner) why(x *runBlock) string {
	s := &x.b.Steps[x.pc]
	if !r.flagged(x, s) {
		return fmt.Sprintf("tb %d does not say that it has done step %d (hasdep there, or a wait that comes round)", s.DepBlock, s.DepStep)
	}
	if s.Op.Receives() && r.queues[r.in(x)] == 0 {
		return fmt.Sprintf("gpu %d sends nothing more on channel %d before it goes on itself", x.b.Recv, x.b.Channel)
	}
	return fmt.Sprintf("the queue to gpu %d on channel %d is full (%s holds %d messages, here of %d chunks each) and nobody empties it", x.b.Send, x.b.Channel, r.a.Proto, slots(r.a.Proto), r.per)
}

func (r *runner) in(x *runBlock) wire {
	return wire{x.b.Recv, r.a.GPUs[x.gpu].ID, x.b.Channel}
}

func (r *runner) out(x *runBlock) wire {
	return wire{r.a.GPUs[x.gpu].ID, x.b.Send, x.b.Channel}
}

// flagged reports whether what a step waits for has been done.
func (r *runner) flagged(x *runBlock, s *Step) bool {
	return s.DepBlock < 0 || r.blocks[r.first[x.gpu]+s.DepBlock].flag > s.DepStep
}

// advance runs a block until it must wait, and wakes those that may wait for it.
func (r *runner) advance(i int) error {
	x := &r.blocks[i]
	for x.pc < len(x.b.Steps) {
		s := &x.b.Steps[x.pc]
		if !r.flagged(x, s) {
			return nil
		}
		for s.Op != Nop && x.done < s.Count {
			recv, send := s.Op.Receives(), s.Op.Sends()
			if recv && r.queues[r.in(x)] == 0 || send && r.queues[r.out(x)] >= slots(r.a.Proto) {
				return nil
			}
			if recv {
				r.queues[r.in(x)]--
				r.wake(r.gives[r.in(x)])
			}
			if send {
				r.queues[r.out(x)]++
				r.wake(r.takes[r.out(x)])
			}
			for end := min(x.done+r.per, s.Count); x.done < end; x.done++ {
				if err := r.touch(x, s); err != nil {
					return err
				}
			}
		}
		if s.HasDep && s.Op != Nop { // a nop leaves no flag
			x.flag = s.Index + 1
			for j := r.first[x.gpu]; j < r.first[x.gpu+1]; j++ {
				r.wake(j)
			}
		}
		x.pc, x.done = x.pc+1, 0
	}
	return nil
}

// touch notes what one chunk of a step reads and writes.
func (r *runner) touch(x *runBlock, s *Step) error {
	if s.Op.reads() {
		if c := r.cell(x, s.Src, s.SrcOff+x.done); c != nil && !*c {
			return r.fault(x, fmt.Sprintf("reads %s[%d], which holds nothing yet", s.Src, s.SrcOff+x.done))
		}
	}
	if s.Op == Reduce {
		if c := r.cell(x, s.Dst, s.DstOff+x.done); c != nil && !*c {
			return r.fault(x, fmt.Sprintf("adds to %s[%d], which holds nothing yet", s.Dst, s.DstOff+x.done))
		}
	}
	if s.Op.writes() {
		if c := r.cell(x, s.Dst, s.DstOff+x.done); c != nil {
			*c = true
		}
	}
	return nil
}

// cell is where a chunk's state is kept, or nil where input and output are one memory: what that
// holds is for schedule.Check to tell.
func (r *runner) cell(x *runBlock, b Buffer, off int) *bool {
	if b != Scratch && r.v.InPlace {
		return nil
	}
	cells := r.filled[x.gpu][map[Buffer]int{Input: 0, Output: 1, Scratch: 2}[b]]
	if off >= len(cells) {
		return nil
	}
	return &cells[off]
}

// results reports an output that nobody filled.
func (r *runner) results() error {
	if r.v.InPlace {
		return nil
	}
	_, want := r.v.sizes(r.a)
	for i := range r.a.GPUs {
		cells := r.filled[i][1]
		for c := range want {
			if r.v.hasResult(r.a.GPUs[i].ID) && (c >= len(cells) || !cells[c]) {
				return fmt.Errorf("gpu %d: nobody writes o[%d], and the call is not in place", r.a.GPUs[i].ID, c)
			}
		}
	}
	return nil
}
