package step

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Bar is something that takes its time in a step: on one rank of a stage, on its stream of
// computing or of traffic.
type Bar struct {
	Stage   int         `json:"stage"`
	Traffic bool        `json:"traffic,omitempty"`
	Host    bool        `json:"host,omitempty"` // of copies to the host and back, beside both
	Name    string      `json:"name"`
	Kind    BarKind     `json:"kind"`
	From    unit.Span   `json:"from_s"`
	To      unit.Span   `json:"to_s"`
	Bytes   unit.Volume `json:"bytes,omitempty"`
}

// BarKind is what a bar is of: f forward, b backward, w gradients of weights, e encoding, h copies to the host, t
// traffic, u update.
type BarKind byte

// MarshalText writes the letter.
func (k BarKind) MarshalText() ([]byte, error) { return []byte{byte(k)}, nil }

// UnmarshalText reads the letter.
func (k *BarKind) UnmarshalText(text []byte) error {
	if len(text) != 1 {
		return fmt.Errorf("%.20q; expected one letter", text)
	}
	*k = BarKind(text[0])
	return nil
}

// maxBars bounds a timeline; beyond, nothing can be seen in it.
const maxBars = 50_000

// Timeline plays the step as the frameworks run it, and gives back every bar.
func (p *Prepared) Timeline(g *GPU) ([]Bar, error) {
	x := &pricing{Prepared: p, g: g}
	if err := x.assignBlocks(); err != nil {
		return nil, err
	}
	x.slowed(unit.Span(g.spread(p.j.Split.Ranks())))
	s := p.j.Split
	n := p.j.Micros()*int64(p.shape.Ranks*p.shape.Chunks)*3 + int64(len(p.kinds))
	if s.PP == 1 {
		n = p.j.Micros() * int64(len(p.kinds)) * 4
	}
	if n > maxBars {
		return nil, fmt.Errorf("a timeline of %d bars; at most %d are drawn: take fewer micro-batches (--global-batch)", n,
			maxBars)
	}
	t := &timeline{x: x}
	switch {
	case s.PP > 1:
		return t.pipeline()
	case s.ZeRO == 3 && s.Shard > 1 || p.j.Offload == workload.OffloadParams:
		return t.sharded()
	}
	return t.replicated()
}

// slowed makes every pass as long as on the slowest of all ranks, for which the others wait: Price counts so too.
func (p *pricing) slowed(late unit.Span) {
	for i := range p.stages {
		st := &p.stages[i]
		for k := range st.fwd {
			st.fwd[k] *= late
			st.bwd[k] *= late
		}
	}
	for k := range p.times.Forward {
		p.times.Forward[k] *= late
		p.times.Backward[k] *= late
		p.times.Weight[k] *= late
	}
}

// timeline collects bars.
type timeline struct {
	x      *pricing
	bars   []Bar
	copied unit.Span // when the last copy to the host ends
}

func (t *timeline) addTask(stage int, traffic bool, kind byte, name string, from, took unit.Span,
	bytes unit.Volume,
) unit.Span {
	if took > 0 {
		t.bars = append(t.bars, Bar{
			Stage: stage, Traffic: traffic, Name: name, Kind: BarKind(kind), From: from, To: from + took, Bytes: bytes,
		})
	}
	return from + took
}

// replicated is forward and backward through all blocks, gradients by bucket beside the last
// backward pass, the update, and the gathering of parameters that are divided.
func (t *timeline) replicated() ([]Bar, error) {
	x := t.x
	st := &x.stages[0]
	at := unit.Span(0)
	micros := int(x.j.Micros())
	for m := range micros {
		for i, d := range st.fwd {
			at = t.addTask(0, false, 'f', fmt.Sprintf("forward %d, micro-batch %d", i, m), at, d, 0)
		}
		if m == micros-1 {
			break
		}
		t.copyDown(at, m)
		for i := len(st.bwd) - 1; i >= 0; i-- {
			at = t.addTask(0, false, 'b', fmt.Sprintf("backward %d, micro-batch %d", i, m), at, st.bwd[i], 0)
		}
	}
	begin := at
	for i := len(st.bwd) - 1; i >= 0; i-- {
		at = t.addTask(0, false, 'b', fmt.Sprintf("backward %d, micro-batch %d", i, micros-1), at, st.bwd[i], 0)
	}
	end := at
	t.copyDown(begin, micros-1)
	c := clock{}
	encode := unit.Span(0)
	for i, b := range x.buckets(st) {
		one, _, err := x.bucket(b.bytes)
		if err != nil {
			return nil, err
		}
		each := unit.Span(b.count) * x.encoding(b.bytes)
		b.ready += begin
		at = t.addTask(0, false, 'e', fmt.Sprintf("encoding %d", i), at, each, 0)
		encode += each
		from := c.addBuckets(&b, one, encode, end, x.j.Sync)
		for k := range int(b.count) {
			t.addTask(0, true, 't', fmt.Sprintf("gradients of %d, bucket %d", i, k), from+unit.Span(k)*one, one, b.bytes)
		}
	}
	took, err := x.optimizer(x.trained(st))
	if err != nil {
		return nil, err
	}
	at = max(at, c.free, t.copied)
	t.copyUp(at)
	at = t.addTask(0, false, 'u', "update", at, took, 0)
	if s := x.j.Split; s.ZeRO > 0 && s.Shard > 1 {
		bytes := unit.Volume(x.trained(st) * x.j.GatherWidth())
		one, _, err := x.among(Shards, coll.AllGather, bytes)
		if err != nil {
			return nil, err
		}
		t.addTask(0, true, 't', "new parameters", at, one, bytes)
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
	at := unit.Span(0)
	for m := range x.j.Micros() {
		end, _ := fsdp(st.fwd, st.bwd, gather, scatter, func(traffic bool, kind byte, block int, from, took unit.Span) {
			name := map[byte]string{'f': "forward", 'b': "backward", 'g': "parameters of", 's': "gradients of"}[kind]
			if traffic {
				kind = 't'
			}
			t.addTask(0, traffic, kind, fmt.Sprintf("%s %d, micro-batch %d", name, block, m), at+from, took, 0)
		})
		at += end
	}
	took, err := x.optimizer(x.trained(st))
	if err != nil {
		return nil, err
	}
	t.addTask(0, false, 'u', "update", at, took, 0)
	return t.bars, nil
}

// pipeline plays the schedule of every stage, and the messages between them. With chunks a rank
// has several stages.
func (t *timeline) pipeline() ([]Bar, error) {
	x := t.x
	plan, err := pipeline.NewPlan(x.shape)
	if err != nil {
		return nil, err
	}
	bytes, one, _, err := x.message()
	if err != nil {
		return nil, err
	}
	x.times.Message = one
	last := x.shape.Ranks*x.shape.Chunks - 1
	ends, sent := make([]unit.Span, x.shape.Ranks), make([][]Bar, x.shape.Ranks)
	plan.Simulate(&x.times, func(y pipeline.Event) {
		name := y.Pass.Kind.String()
		if x.shape.Chunks > 1 {
			name += fmt.Sprintf(", chunk %d", y.Pass.Chunk)
		}
		name += fmt.Sprintf(", micro-batch %d", y.Pass.Micro)
		t.addTask(y.Rank, false, "fbw"[y.Pass.Kind], name, y.From, y.To-y.From, 0)
		ends[y.Rank] = y.To
		place := x.shape.Place(y.Rank, int(y.Pass.Chunk))
		to := place
		switch {
		case y.Pass.Kind == pipeline.Forward && place < last:
			to++
		case y.Pass.Kind == pipeline.Backward && place > 0:
			to--
		}
		if r, _ := x.shape.Owner(to); r != y.Rank {
			t.addTask(y.Rank, true, 't', fmt.Sprintf("to stage %d, micro-batch %d", r, y.Pass.Micro), y.To, one, bytes)
			sent[y.Rank] = append(sent[y.Rank], Bar{From: y.To, To: y.To + one})
		}
	})
	for r, e := range ends {
		if ends[r], err = t.summed(r, e, sent[r]); err != nil {
			return nil, err
		}
	}
	return t.updates(ends)
}

// summed puts the sums of a stage's gradients beside its last backward pass, which ends then, in
// the gaps that messages leave, and says when the last one ends.
func (t *timeline) summed(stage int, end unit.Span, sent []Bar) (unit.Span, error) {
	x := t.x
	st := &x.stages[stage]
	if s := x.j.Split; s.DP*s.CP == 1 {
		return end, nil
	}
	begin, k := end-st.backward(), 0
	var free, encode unit.Span
	for i, b := range x.buckets(st) {
		one, _, err := x.bucket(b.bytes)
		if err != nil {
			return 0, err
		}
		encode += unit.Span(b.count) * x.encoding(b.bytes)
		took := unit.Span(b.count) * one
		from := max(free, begin+b.ready+encode)
		if x.j.Sync {
			from = max(free, end+encode)
		}
		for ; k < len(sent) && sent[k].From < from+took; k++ {
			from = max(from, sent[k].To)
		}
		free = t.addTask(stage, true, 't', fmt.Sprintf("gradients of %d, %.0f buckets", i, b.count), from, took,
			unit.Volume(b.count)*b.bytes)
	}
	return max(end, free), nil
}

// updates are those of all stages and, where replicas divide them, the gathering of what is new.
func (t *timeline) updates(ends []unit.Span) ([]Bar, error) {
	x := t.x
	end := slices.Max(ends)
	for r, e := range ends {
		if !x.shape.Schedule.Splits() {
			e = end // the norm of gradients is of all stages
		}
		params := x.trained(&x.stages[r])
		took, err := x.optimizer(params)
		if err != nil {
			return nil, err
		}
		e = t.addTask(r, false, 'u', "update", e, took, 0)
		if s := x.j.Split; s.ZeRO > 0 && s.Shard > 1 {
			bytes := unit.Volume(params * x.j.GatherWidth())
			one, _, err := x.among(Shards, coll.AllGather, bytes)
			if err != nil {
				return nil, err
			}
			t.addTask(r, true, 't', "new parameters", e, one, bytes)
		}
	}
	slices.SortStableFunc(t.bars, func(a, b Bar) int { return cmp.Compare(a.From, b.From) })
	return t.bars, nil
}
