package step

import (
	"fmt"

	"busbar/pipeline"
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
	ends := make([]float64, x.shape.Ranks)
	plan.Play(&x.times, func(y pipeline.Seen) {
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
		}
	})
	end := 0.0
	for _, e := range ends {
		end = max(end, e)
	}
	for r, e := range ends {
		if !x.shape.Schedule.Splits() {
			e = end // the norm of gradients is of all stages
		}
		took, err := x.optimizer(sum(x.stages[r].params))
		if err != nil {
			return nil, err
		}
		t.add(r, false, 'u', "update", e, took, 0)
	}
	return t.bars, nil
}
