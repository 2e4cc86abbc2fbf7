package msccl

import (
	"cmp"
	"fmt"
	"slices"
)

// Check reports the first thing that keeps the parts of the algorithm from
// fitting together: a step that sends in a block without a peer, chunks outside
// a buffer, a dependency on a step that is not there, or two ends of a channel
// that do not exchange as many messages.
func (a *Algo) Check() error {
	if len(a.GPUs) != a.NGPUs {
		return fmt.Errorf("%d GPUs described of %d", len(a.GPUs), a.NGPUs)
	}
	// open counts the chunks that one end of a wire sends and the other does not
	// take.
	type wire struct{ from, to, channel int }
	open := map[wire]int{}
	for i := range a.GPUs {
		g := &a.GPUs[i]
		for j := range g.Blocks {
			b := &g.Blocks[j]
			if b.Send == g.ID || b.Recv == g.ID {
				return fmt.Errorf("line %d: gpu %d tb %d has itself as peer", b.Line, g.ID, b.ID)
			}
			for k := range b.Steps {
				s := &b.Steps[k]
				if err := a.checkStep(g, b, s); err != nil {
					return fmt.Errorf("line %d: gpu %d tb %d step %d: %w", s.Line, g.ID, b.ID, s.Index, err)
				}
				if s.Op.Sends() {
					open[wire{g.ID, b.Send, b.Channel}] += s.Count
				}
				if s.Op.Receives() {
					open[wire{b.Recv, g.ID, b.Channel}] -= s.Count
				}
			}
		}
	}
	var left []wire
	for w, n := range open {
		if n != 0 {
			left = append(left, w)
		}
	}
	if len(left) == 0 {
		return nil
	}
	w := slices.MinFunc(left, func(x, y wire) int {
		return cmp.Or(x.from-y.from, x.to-y.to, x.channel-y.channel)
	})
	if n := open[w]; n < 0 {
		return fmt.Errorf("gpu %d to gpu %d on channel %d: %d chunks more are received than sent", w.from, w.to, w.channel, -n)
	}
	return fmt.Errorf("gpu %d to gpu %d on channel %d: %d chunks more are sent than received", w.from, w.to, w.channel, open[w])
}

func (a *Algo) checkStep(g *GPU, b *Block, s *Step) error {
	if s.Op.Sends() && b.Send < 0 {
		return fmt.Errorf("%s in a block that sends to nobody", s.Op)
	}
	if s.Op.Receives() && b.Recv < 0 {
		return fmt.Errorf("%s in a block that receives from nobody", s.Op)
	}
	if s.DepBlock >= 0 {
		if s.DepBlock >= len(g.Blocks) || s.DepStep < 0 || s.DepStep >= len(g.Blocks[s.DepBlock].Steps) {
			return fmt.Errorf("waits for tb %d step %d, which is not there", s.DepBlock, s.DepStep)
		}
		if s.DepBlock == b.ID && s.DepStep >= s.Index {
			return fmt.Errorf("waits for itself or for a later step of its own block")
		}
	}
	reads := s.Op == Send || s.Op == Copy || s.Op == Reduce || s.Op == RecvReduceSend || s.Op == RecvReduceCopy || s.Op == RecvReduceCpySend
	writes := s.Op == Recv || s.Op == Copy || s.Op == Reduce || s.Op == RecvCopySend || s.Op == RecvReduceCopy || s.Op == RecvReduceCpySend
	if reads && !a.inside(g, s.Src, s.SrcOff, s.Count) {
		return fmt.Errorf("reads %d chunks at %s[%d], which is outside the buffer", s.Count, s.Src, s.SrcOff)
	}
	if writes && !a.inside(g, s.Dst, s.DstOff, s.Count) {
		return fmt.Errorf("writes %d chunks at %s[%d], which is outside the buffer", s.Count, s.Dst, s.DstOff)
	}
	return nil
}

// inside reports whether chunks lie in a buffer. In place, input and output are
// one memory, and a file gives the chunks of one of them only.
func (a *Algo) inside(g *GPU, b Buffer, off, n int) bool {
	size := g.Scratch
	switch b {
	case Input:
		size = g.Input
	case Output:
		size = g.Output
	}
	if a.InPlace && b != Scratch {
		size = max(g.Input, g.Output)
	}
	return off >= 0 && n > 0 && off <= size-n
}
