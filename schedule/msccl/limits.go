package msccl

import "fmt"

// What the readers take, which are one code (msccl_struct.h and msccl_parser.cc in RCCL 2.22 and in MSCCL's executor). The reader
// refuses a count of 72; it holds 32 peers a channel, but reads the entry after the last one it
// filled, so that 31 are safe.
const (
	maxBlockSteps   = 64    // nops count
	maxBlocks       = 64    // of a GPU
	maxCount        = 71    // chunks of a step
	maxChannels     = 128   // of a file
	maxChannelPeers = 31    // of a GPU on one channel, in either direction
	maxOffset       = 32767 // chunks of a buffer
	maxName         = 200   // bytes; the reader keeps 255 of what is escaped
	maxRankNodes    = 4096  // elements that the reader keeps for a rank: algo, gpu, tb, step
)

// Limits reports the first thing that the runtime's reader or its interpreter would not take, in a file
// whose parts fit together: too many steps, blocks or chunks, and waits that it does not
// understand.
func (a *Algo) Limits() error {
	if a.Channels > maxChannels {
		return fmt.Errorf("%d channels; the reader takes %d", a.Channels, maxChannels)
	}
	for i := range a.GPUs {
		g := &a.GPUs[i]
		if n := len(g.Blocks); n > maxBlocks {
			return fmt.Errorf("gpu %d has %d thread blocks; the reader takes %d", g.ID, n, maxBlocks)
		}
		if max(g.Input, g.Output, g.Scratch) > maxOffset+1 {
			return fmt.Errorf("gpu %d has buffers of %d, %d and %d chunks; the reader takes %d", g.ID, g.Input, g.Output, g.Scratch, maxOffset+1)
		}
		elements := 2 + len(g.Blocks)
		sends, recvs := map[int]int{}, map[int]int{}
		for j := range g.Blocks {
			b := &g.Blocks[j]
			elements += len(b.Steps)
			if b.Send >= 0 {
				sends[b.Channel]++
			}
			if b.Recv >= 0 {
				recvs[b.Channel]++
			}
			if n := max(sends[b.Channel], recvs[b.Channel]); n > maxChannelPeers {
				return fmt.Errorf("gpu %d has %d peers on channel %d; the reader takes %d", g.ID, n, b.Channel, maxChannelPeers)
			}
			if err := a.blockLimits(g, b); err != nil {
				return err
			}
		}
		if elements > maxRankNodes {
			return fmt.Errorf("gpu %d has %d elements; the reader takes %d", g.ID, elements, maxRankNodes)
		}
	}
	return nil
}

// blockLimits holds one block to the reader's rules. A nop stands for one more wait of the
// instruction after it, and the reader counts it only where that instruction waits as well.
func (a *Algo) blockLimits(g *GPU, b *Block) error {
	if n := len(b.Steps); n > maxBlockSteps {
		return fmt.Errorf("gpu %d tb %d has %d steps; the reader takes %d", g.ID, b.ID, n, maxBlockSteps)
	}
	waits := false
	for k := range b.Steps {
		s := &b.Steps[k]
		at := fmt.Sprintf("gpu %d tb %d step %d", g.ID, b.ID, s.Index)
		switch {
		case s.Op == Nop && s.DepBlock < 0:
			return fmt.Errorf("%s is a nop that waits for nothing; the reader drops it and miscounts the steps after it", at)
		case s.Op != Nop && waits && s.DepBlock < 0:
			return fmt.Errorf("%s follows a nop and waits for nothing; the reader wants the last wait of a chain on the instruction itself", at)
		case s.DepBlock >= 0 && a.Proto == "LL" && a.Runtime == RCCL && g.target(s) == Send:
			return fmt.Errorf("%s waits for a send: %w", at, errSendWait)
		case s.Op != Nop && (s.Count < 1 || s.Count > maxCount):
			return fmt.Errorf("%s moves %d chunks; the reader takes 1 to %d", at, s.Count, maxCount)
		}
		waits = s.Op == Nop
	}
	return nil
}

// target is the instruction that a step waits for.
func (g *GPU) target(s *Step) Op {
	if s.DepBlock >= len(g.Blocks) || s.DepStep < 0 || s.DepStep >= len(g.Blocks[s.DepBlock].Steps) {
		return ""
	}
	return g.Blocks[s.DepBlock].Steps[s.DepStep].Op
}

// slots is the number of messages that a connection holds before a send waits: NCCL's queue has 8
// steps, of which a message of the Simple protocol takes 4.
func slots(proto string) int {
	if proto == "LL" || proto == "LL128" {
		return 8
	}
	return 2
}

// perMessage is how many chunks go in one message at least, by the file's greatest size and the
// default buffers. Without a greatest size it is one.
func (a *Algo) perMessage() int {
	if a.MaxBytes == 0 {
		return 1
	}
	room := int64(2 << 20) // half of 4 MiB
	switch {
	case a.Proto == "LL":
		room = 16 << 10 // half of 8 lines of 16 bytes for each of 256 threads
	case a.Proto == "LL128":
		room = 49 << 10 // 7/8 of 28 elements of 8 bytes for each of 256 threads
	case a.Coll == "broadcast" || a.Coll == "reduce":
		room = 512 << 10 // one step of the queue, not four
	}
	n := int64(a.ChunksPerLoop)
	return int(min(max(room/((a.MaxBytes+n-1)/n), 1), maxCount))
}
