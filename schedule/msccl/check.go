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
	open := map[wire]int{}
	ends := map[end]int{}
	for i := range a.GPUs {
		g := &a.GPUs[i]
		for j := range g.Blocks {
			b := &g.Blocks[j]
			if b.Send == g.ID || b.Recv == g.ID {
				return fmt.Errorf("%sgpu %d tb %d has itself as peer", line(b.Line), g.ID, b.ID)
			}
			if err := alone(g, b, ends); err != nil {
				return err
			}
			for k := range b.Steps {
				s := &b.Steps[k]
				if err := checkStep(g, b, s); err != nil {
					return fmt.Errorf("%sgpu %d tb %d step %d: %w", line(s.Line), g.ID, b.ID, s.Index, err)
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

// end is one end of a wire.
type end struct {
	gpu, peer, channel int
	sends              bool
}

// alone reports a second block at one end of a wire: the two would take each
// other's messages.
func alone(g *GPU, b *Block, ends map[end]int) error {
	for _, e := range []end{{g.ID, b.Send, b.Channel, true}, {g.ID, b.Recv, b.Channel, false}} {
		if e.peer < 0 {
			continue
		}
		if other, ok := ends[e]; ok {
			return fmt.Errorf("%sgpu %d tb %d and tb %d both have peer %d on channel %d in one direction; expected one block for each end of a connection", line(b.Line), g.ID, other, b.ID, e.peer, b.Channel)
		}
		ends[e] = b.ID
	}
	return nil
}

func checkStep(g *GPU, b *Block, s *Step) error {
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
	if s.Op.reads() && !inside(g, s.Src, s.SrcOff, s.Count) {
		return fmt.Errorf("reads %d chunks at %s[%d], which is outside the buffer", s.Count, s.Src, s.SrcOff)
	}
	if s.Op.writes() && !inside(g, s.Dst, s.DstOff, s.Count) {
		return fmt.Errorf("writes %d chunks at %s[%d], which is outside the buffer", s.Count, s.Dst, s.DstOff)
	}
	return nil
}

// inside reports whether chunks lie in a buffer.
func inside(g *GPU, b Buffer, off, n int) bool {
	size := g.Scratch
	switch b {
	case Input:
		size = g.Input
	case Output:
		size = g.Output
	}
	return off >= 0 && n > 0 && off <= size-n
}

// line says where in a file something is; nothing where there is no file.
func line(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("line %d: ", n)
}
