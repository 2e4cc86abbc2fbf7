package step

import (
	"cmp"
	"fmt"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload/pipeline"
)

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
		t.add(y.Rank, false, "fbw"[y.Pass.Kind], name, y.From, y.To-y.From, 0)
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
			t.add(y.Rank, true, 't', fmt.Sprintf("to stage %d, micro-batch %d", r, y.Pass.Micro), y.To, one, bytes)
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
		free = t.add(stage, true, 't', fmt.Sprintf("gradients of %d, %.0f buckets", i, b.count), from, took, unit.Volume(b.count)*b.bytes)
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
		e = t.add(r, false, 'u', "update", e, took, 0)
		if s := x.j.Split; s.ZeRO > 0 && s.Shard > 1 {
			bytes := unit.Volume(params * x.j.GatherWidth())
			one, _, err := x.f.Time(Shards, coll.AllGather, bytes)
			if err != nil {
				return nil, err
			}
			t.add(r, true, 't', "new parameters", e, one, bytes)
		}
	}
	slices.SortStableFunc(t.bars, func(a, b Bar) int { return cmp.Compare(a.From, b.From) })
	return t.bars, nil
}
