package msccl

import (
	"encoding/xml"
	"fmt"
	"math/rand/v2"
	"slices"

	"busbar.dev/coll"
)

// The interpreter below follows RCCL's parser and kernel, not this package: it reads the text itself, makes
// transmissions of steps as that parser does (waits of nops handed on, reductions to one place
// joined), keeps flags by a running count of steps, and runs on numbers over queues of few messages, in
// random order.

type xmlStep struct {
	S      int    `xml:"s,attr"`
	Type   string `xml:"type,attr"`
	SrcBuf string `xml:"srcbuf,attr"`
	SrcOff int    `xml:"srcoff,attr"`
	DstBuf string `xml:"dstbuf,attr"`
	DstOff int    `xml:"dstoff,attr"`
	Cnt    int    `xml:"cnt,attr"`
	DepID  int    `xml:"depid,attr"`
	Deps   int    `xml:"deps,attr"`
	HasDep int    `xml:"hasdep,attr"`
}

type xmlBlock struct {
	ID    int       `xml:"id,attr"`
	Send  int       `xml:"send,attr"`
	Recv  int       `xml:"recv,attr"`
	Chan  int       `xml:"chan,attr"`
	Steps []xmlStep `xml:"step"`
}

type xmlGPU struct {
	ID     int        `xml:"id,attr"`
	Input  int        `xml:"i_chunks,attr"`
	Output int        `xml:"o_chunks,attr"`
	Temp   int        `xml:"s_chunks,attr"`
	Blocks []xmlBlock `xml:"tb"`
}

type xmlAlgo struct {
	Chunks     int      `xml:"nchunksperloop,attr"`
	Channels   int      `xml:"nchannels,attr"`
	Ranks      int      `xml:"ngpus,attr"`
	Coll       string   `xml:"coll,attr"`
	Proto      string   `xml:"proto,attr"`
	InPlace    int      `xml:"inplace,attr"`
	OutOfPlace int      `xml:"outofplace,attr"`
	GPUs       []xmlGPU `xml:"gpu"`
}

// transmission is an instruction with all its waits.
type transmission struct {
	xmlStep
	deps []xmlStep // of which DepID and Deps count
	from []int     // sources of a joined reduction
}

// parse makes transmissions, or says why RCCL would not load the file.
func parse(b xmlBlock) ([]transmission, error) {
	var list []transmission
	var waits []xmlStep
	open := false // the last one is a reduction that another may join
	for _, s := range b.Steps {
		if s.S >= 64 || s.Type != "nop" && (s.Cnt < 0 || s.Cnt >= 72) {
			return nil, fmt.Errorf("step %d count %d", s.S, s.Cnt)
		}
		if s.DepID >= 0 {
			waits = append(waits, s)
		}
		if s.Type == "nop" {
			continue
		}
		if n := len(list); s.Type == "re" && open && list[n-1].DstBuf == s.DstBuf && list[n-1].DstOff == s.DstOff && list[n-1].SrcBuf == s.SrcBuf && s.DepID < 0 {
			list[n-1].from = append(list[n-1].from, s.SrcOff)
			list[n-1].Cnt, list[n-1].HasDep = s.Cnt, s.HasDep
		} else {
			if len(waits) > 0 && s.DepID < 0 {
				return nil, fmt.Errorf("step %d: the last wait of a chain must be the instruction's", s.S)
			}
			list = append(list, transmission{s, waits, []int{s.SrcOff}})
			waits = nil
		}
		open = s.Type == "re" && s.HasDep == 0
	}
	return list, nil
}

type interpBlock struct {
	gpu        int
	send, recv int
	ch         int
	list       []transmission
	pc, done   int
	step       int // running count, as the kernel keeps it
	flag       int
	started    bool
}

type interpreter struct {
	a      *xmlAlgo
	mem    []map[string][]uint64
	queues map[[3]int][][]uint64
	blocks []*interpBlock
	of     [][]*interpBlock
	slots  int
	per    int // chunks of a message
}

func unmarshal(text []byte) (*xmlAlgo, error) {
	a := &xmlAlgo{}
	return a, xml.Unmarshal(text, a)
}

// interpret runs a file on random numbers and reports the first rank whose result is wrong.
func interpret(a *xmlAlgo, kind coll.Kind, root int, inPlace bool, rnd *rand.Rand) error {
	m := &interpreter{a: a, queues: map[[3]int][][]uint64{}, per: 1 + rnd.IntN(2)*rnd.IntN(8)}
	m.slots = map[string]int{"Simple": 2, "LL": 8, "LL128": 8}[m.a.Proto]
	input := m.load(kind, root, inPlace, rnd)
	for _, g := range m.a.GPUs {
		if len(g.Blocks) > 64 || len(g.Blocks) == 0 {
			return fmt.Errorf("gpu %d has %d blocks", g.ID, len(g.Blocks))
		}
		var mine []*interpBlock
		for _, b := range g.Blocks {
			list, err := parse(b)
			if err != nil || b.Chan >= m.a.Channels || b.ID != len(mine) {
				return fmt.Errorf("gpu %d block %d: %v", g.ID, b.ID, err)
			}
			mine = append(mine, &interpBlock{gpu: g.ID, send: b.Send, recv: b.Recv, ch: b.Chan, list: list, flag: -1})
		}
		m.of = append(m.of, mine)
		m.blocks = append(m.blocks, mine...)
	}
	if err := m.run(rnd); err != nil {
		return err
	}
	if !inPlace {
		for r := range m.mem {
			if !slices.Equal(m.mem[r]["i"], input[r][:len(m.mem[r]["i"])]) {
				return fmt.Errorf("rank %d has written its input", r)
			}
		}
	}
	return m.verify(kind, root, input)
}

// load fills the buffers. Values of a chunk that holds nothing are numbers too, so that a read of it spoils a result.
func (m *interpreter) load(kind coll.Kind, root int, inPlace bool, rnd *rand.Rand) [][]uint64 {
	fill := func(n int) []uint64 {
		v := make([]uint64, n)
		for i := range v {
			v[i] = rnd.Uint64()
		}
		return v
	}
	n, chunks := m.a.Ranks, m.a.Chunks
	part := chunks / n
	var input [][]uint64
	for r, g := range m.a.GPUs {
		all := fill(chunks)
		in, out := all, fill(chunks)
		switch {
		case kind == coll.AllGather && inPlace:
			in, out = all[r*part:(r+1)*part], all
		case kind == coll.AllGather:
			in = fill(part)
		case kind == coll.ReduceScatter && inPlace:
			out = all[r*part : (r+1)*part]
		case kind == coll.ReduceScatter:
			out = fill(part)
		case inPlace:
			out = all
		}
		input = append(input, slices.Clone(in))
		m.mem = append(m.mem, map[string][]uint64{"i": in[:min(len(in), g.Input)], "o": out[:min(len(out), g.Output)], "s": fill(g.Temp)})
		if len(in) < g.Input || len(out) < g.Output {
			panic("the file says that buffers are greater than they are")
		}
	}
	return input
}

func (m *interpreter) run(rnd *rand.Rand) error {
	for {
		moved, ended := false, true
		for _, i := range rnd.Perm(len(m.blocks)) {
			b := m.blocks[i]
			for range 1 + rnd.IntN(3) {
				ok, err := m.once(b)
				if err != nil {
					return err
				}
				moved = moved || ok
			}
			ended = ended && b.pc == len(b.list)
		}
		if ended {
			break
		}
		if !moved {
			return fmt.Errorf("stuck")
		}
	}
	for k, q := range m.queues {
		if len(q) > 0 {
			return fmt.Errorf("%d messages left from %d to %d on channel %d", len(q), k[0], k[1], k[2])
		}
	}
	return nil
}

// once does one message's worth of a block's instruction.
func (m *interpreter) once(b *interpBlock) (bool, error) {
	if b.pc == len(b.list) {
		return false, nil
	}
	t := &b.list[b.pc]
	if !b.started {
		for _, d := range t.deps {
			if m.of[b.gpu][d.DepID].flag < d.Deps {
				return false, nil
			}
		}
		b.step += max(len(t.deps)-1, 0)
		b.started = true
	}
	in, out := [3]int{b.recv, b.gpu, b.ch}, [3]int{b.gpu, b.send, b.ch}
	recv := t.Type[0] == 'r' && t.Type != "re"
	send := t.Type[len(t.Type)-1] == 's'
	if recv && len(m.queues[in]) == 0 || send && len(m.queues[out]) >= m.slots {
		return false, nil
	}
	n := min(m.per, t.Cnt-b.done)
	mem := m.mem[b.gpu]
	var v []uint64
	if recv {
		v = m.queues[in][0]
		m.queues[in] = m.queues[in][1:]
		if len(v) != n {
			return false, fmt.Errorf("gpu %d takes a message of %d chunks for %d", b.gpu, len(v), n)
		}
	} else if t.Type != "re" {
		v = slices.Clone(mem[t.SrcBuf][t.SrcOff+b.done:][:n])
	}
	switch t.Type {
	case "rrs", "rrc", "rrcs":
		for i := range v {
			v[i] += mem[t.SrcBuf][t.SrcOff+b.done+i]
		}
	case "re":
		for i := range n {
			for _, from := range t.from {
				mem[t.DstBuf][t.DstOff+b.done+i] += mem[t.SrcBuf][from+b.done+i]
			}
		}
	}
	if t.Type == "r" || t.Type == "rcs" || t.Type == "rrc" || t.Type == "rrcs" || t.Type == "cpy" {
		copy(mem[t.DstBuf][t.DstOff+b.done:][:n], v)
	}
	if send {
		m.queues[out] = append(m.queues[out], v)
	}
	if b.done += n; b.done == t.Cnt {
		b.step += len(t.from) - 1
		if t.HasDep == 1 {
			b.flag = b.step
		}
		b.step, b.pc, b.done, b.started = b.step+1, b.pc+1, 0, false
	}
	return true, nil
}

func (m *interpreter) verify(kind coll.Kind, root int, input [][]uint64) error {
	n := m.a.Ranks
	part := m.a.Chunks / n
	for r := range n {
		var want []uint64
		sum := func(from, to int) {
			for c := from; c < to; c++ {
				var x uint64
				for q := range n {
					x += input[q][c]
				}
				want = append(want, x)
			}
		}
		switch kind {
		case coll.AllReduce:
			sum(0, m.a.Chunks)
		case coll.Reduce:
			if r == root {
				sum(0, m.a.Chunks)
			}
		case coll.ReduceScatter:
			sum(r*part, (r+1)*part)
		case coll.Broadcast:
			want = input[root]
		case coll.AllGather:
			want = slices.Concat(input...)
		case coll.AllToAll:
			for q := range n {
				want = append(want, input[q][r*part:(r+1)*part]...)
			}
		}
		if got := m.mem[r]["o"]; !slices.Equal(got[:len(want)], want) {
			return fmt.Errorf("rank %d ends with wrong numbers", r)
		}
	}
	return nil
}
