package step

import (
	"fmt"

	"busbar/coll"
)

// Bar is something that takes its time in a step: on one rank of a stage, on its stream of
// computing or of traffic.
type Bar struct {
	Stage    int
	Traffic  bool
	Name     string
	Kind     byte // f forward, b backward, t traffic, u update
	From, To float64
	Bytes    float64
}

// maxBars bounds a timeline; beyond, nothing can be seen in it.
const maxBars = 50_000

// Timeline plays the step as the frameworks lay it out, and gives back every bar.
func (p *Prepared) Timeline(g *GPU) ([]Bar, error) {
	x := &pricing{Prepared: p, g: g, traffic: map[Group]*Traffic{}}
	if err := x.cut(); err != nil {
		return nil, err
	}
	s := p.j.Split
	n := p.j.Micros() * int64(s.PP) * 2 * int64(s.Chunks)
	if s.PP == 1 {
		n = p.j.Micros() * int64(len(p.kinds)) * 4
	}
	if n > maxBars {
		return nil, fmt.Errorf("a timeline of %d bars; at most %d are drawn: take fewer micro-batches (--global-batch)", n, maxBars)
	}
	t := &timeline{x: x}
	switch {
	case s.PP > 1:
		return t.pipeline()
	case s.ZeRO == 3 && s.Shard > 1:
		return t.sharded()
	}
	return t.replicated()
}

// timeline collects bars.
type timeline struct {
	x    *pricing
	bars []Bar
}

func (t *timeline) add(stage int, traffic bool, kind byte, name string, from, took, bytes float64) float64 {
	if took > 0 {
		t.bars = append(t.bars, Bar{stage, traffic, name, kind, from, from + took, bytes})
	}
	return from + took
}

// replicated is forward and backward through all blocks, gradients by bucket beside the last
// backward pass, the update, and the gathering of parameters that are divided.
func (t *timeline) replicated() ([]Bar, error) {
	x := t.x
	st := &x.stages[0]
	at := 0.0
	micros := int(x.j.Micros())
	for m := range micros {
		for i, d := range st.fwd {
			at = t.add(0, false, 'f', fmt.Sprintf("forward %d, micro-batch %d", i, m), at, d, 0)
		}
		if m == micros-1 {
			break
		}
		for i := len(st.bwd) - 1; i >= 0; i-- {
			at = t.add(0, false, 'b', fmt.Sprintf("backward %d, micro-batch %d", i, m), at, st.bwd[i], 0)
		}
	}
	begin := at
	for i := len(st.bwd) - 1; i >= 0; i-- {
		at = t.add(0, false, 'b', fmt.Sprintf("backward %d, micro-batch %d", i, micros-1), at, st.bwd[i], 0)
	}
	end := at
	ready, sizes := x.buckets(st)
	free := 0.0
	for i := range ready {
		one, _, err := x.bucket(sizes[i])
		if err != nil {
			return nil, err
		}
		start := max(free, begin+ready[i])
		if x.j.Sync {
			start = max(free, end)
		}
		free = t.add(0, true, 't', fmt.Sprintf("gradients, bucket %d", i), start, one, sizes[i])
	}
	at = t.add(0, false, 'u', "update", max(end, free), x.optimizer(sum(st.params)), 0)
	if s := x.j.Split; s.ZeRO > 0 && s.Shard > 1 {
		bytes := sum(st.params) * x.j.ParamWidth()
		one, _, err := x.f.Seconds(Shards, coll.AllGather, bytes)
		if err != nil {
			return nil, err
		}
		t.add(0, true, 't', "new parameters", at, one, bytes)
	}
	return t.bars, nil
}

// sharded is the two streams of ZeRO 3.
func (t *timeline) sharded() ([]Bar, error) {
	x := t.x
	st := &x.stages[0]
	gather, scatter, _, err := x.shares(st)
	if err != nil {
		return nil, err
	}
	at := 0.0
	for m := range x.j.Micros() {
		end, _ := fsdp(st.fwd, st.bwd, gather, scatter, func(traffic bool, kind byte, block int, from, took float64) {
			name := map[byte]string{'f': "forward", 'b': "backward", 'g': "parameters of", 's': "gradients of"}[kind]
			if traffic {
				kind = 't'
			}
			t.add(0, traffic, kind, fmt.Sprintf("%s %d, micro-batch %d", name, block, m), at+from, took, 0)
		})
		at += end
	}
	t.add(0, false, 'u', "update", at, x.optimizer(sum(st.params)), 0)
	return t.bars, nil
}

// pipeline plays the schedule of every stage: as many forward passes as keep the stages behind
// it busy, then one forward and one backward in turn, then the backward passes that are left. With
// chunks a rank has several stages, which follow each other round the ranks.
func (t *timeline) pipeline() ([]Bar, error) {
	x := t.x
	s := x.j.Split
	micros, v := int(x.j.Micros()), s.Chunks
	var orders [][]slot
	for r := range s.PP {
		orders = append(orders, order(s.PP, v, micros, r))
	}
	type key struct{ stage, micro int }
	done := [2]map[key]float64{{}, {}}
	free, pc := make([]float64, s.PP), make([]int, s.PP)
	for left := s.PP * len(orders[0]); left > 0; {
		moved := false
		for r := range s.PP {
			for pc[r] < len(orders[r]) {
				w := orders[r][pc[r]]
				virtual := w.chunk*s.PP + r
				from, ok := 0.0, true
				if w.back {
					from, ok = done[0][key{virtual, w.micro}]
					if virtual < s.PP*v-1 {
						from, ok = done[1][key{virtual + 1, w.micro}]
					}
				} else if virtual > 0 {
					from, ok = done[0][key{virtual - 1, w.micro}]
				}
				if !ok {
					break
				}
				took, kind, name, k := x.stages[r].forward()/float64(v), byte('f'), "forward", 0
				if w.back {
					took, kind, name, k = x.stages[r].backward()/float64(v), 'b', "backward", 1
				}
				if v > 1 {
					name += fmt.Sprintf(", chunk %d", w.chunk)
				}
				free[r] = t.add(r, false, kind, fmt.Sprintf("%s, micro-batch %d", name, w.micro), max(free[r], from), took, 0)
				done[k][key{virtual, w.micro}] = free[r]
				pc[r]++
				left--
				moved = true
			}
		}
		if !moved {
			return nil, fmt.Errorf("the schedule of %d stages with %d chunks and %d micro-batches stops", s.PP, v, micros)
		}
	}
	for r := range s.PP {
		t.add(r, false, 'u', "update", free[r], x.optimizer(sum(x.stages[r].params)), 0)
	}
	return t.bars, nil
}

// slot is one pass of a rank.
type slot struct {
	micro, chunk int
	back         bool
}

// order is what a rank of a pipeline does, one pass after the other (1F1B; interleaved with
// chunks: Narayanan et al. 2021, section 2.2).
func order(pp, chunks, micros, rank int) []slot {
	n := micros * chunks
	pass := func(k int, back bool) slot {
		if chunks == 1 {
			return slot{k, 0, back}
		}
		// Groups of pp micro-batches go through all chunks before the next group.
		group, in := k/(pp*chunks), k%(pp*chunks)
		c := in / pp
		if back {
			c = chunks - 1 - c
		}
		return slot{group*pp + in%pp, c, back}
	}
	warm := min(n, pp-rank-1)
	if chunks > 1 {
		warm = min(n, (pp-rank-1)*2+(chunks-1)*pp)
	}
	var list []slot
	for k := range warm {
		list = append(list, pass(k, false))
	}
	for k := warm; k < n; k++ {
		list = append(list, pass(k, false), pass(k-warm, true))
	}
	for k := n - warm; k < n; k++ {
		list = append(list, pass(k, true))
	}
	return list
}
