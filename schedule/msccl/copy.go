package msccl

import "math"

// startCopy reads a copy from input to output that a rank makes by itself, as the first compilers wrote it.
func (p *parser) startCopy(a *attrs) error {
	if p.steps++; p.steps > maxSteps {
		return p.errorf("more than %d steps; expected an algorithm that a GPU can run", maxSteps)
	}
	line, _ := p.dec.InputPos()
	p.copies = append(p.copies, Step{
		Op: Copy, Src: Input, SrcOff: a.num("i_off", -1, 0, math.MaxInt32), Dst: Output, DstOff: a.num("o_off", -1, 0, math.MaxInt32),
		Count: a.num("cnt", 1, 1, math.MaxInt32), DepBlock: -1, DepStep: -1, Line: line,
	})
	return a.err
}

// endGPU makes the copies of a GPU thread blocks, which every runtime has; neighbours are one step.
func (p *parser) endGPU() {
	if len(p.copies) == 0 {
		return
	}
	g := &p.algo.GPUs[len(p.algo.GPUs)-1]
	var b *Block
	for _, s := range p.copies {
		if b == nil || len(b.Steps) == maxBlockSteps {
			g.Blocks = append(g.Blocks, Block{ID: len(g.Blocks), Send: -1, Recv: -1, Line: s.Line})
			b = &g.Blocks[len(g.Blocks)-1]
		}
		if k := len(b.Steps); k > 0 {
			last := &b.Steps[k-1]
			if last.SrcOff+last.Count == s.SrcOff && last.DstOff+last.Count == s.DstOff && last.Count+s.Count <= maxCount {
				last.Count += s.Count
				continue
			}
		}
		s.Index = len(b.Steps)
		b.Steps = append(b.Steps, s)
	}
	p.copies = nil
}
