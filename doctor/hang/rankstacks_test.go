package hang

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

// TestForkedRanks: ranks that are forks of one process have main threads of the same number, and each has its own stack
// all the same.
func TestForkedRanks(t *testing.T) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	for _, forked := range []bool{false, true} {
		c := NewCase()
		for r := range j.Ranks {
			thread := r
			if forked {
				thread = 0
			}
			text := j.Stack(thread, "evaluate")
			if r != j.Culprit {
				text = strings.Replace(text, "/job/train.py\", line 60 in evaluate",
					"/lib/python3/site-packages/torch/distributed/distributed_c10d.py\", line 5030 in barrier", 1)
			}
			for name, data := range map[string][]byte{"nccl_trace_rank_": j.Dump(r), "stack.": []byte(text)} {
				if _, err := c.Add(fmt.Sprintf("%s%d", name, r), data); err != nil {
					t.Fatal(err)
				}
			}
			c.rec.Dumps[r].Thread = fmt.Sprint(0x7f0000000000 + thread)
		}
		if v := c.Judge(); v.Kind != Evaluation || v.State != Stalled || fmt.Sprint(ranksOf(v)) != "[2]" {
			t.Errorf("forked %v: %s %s %v: %s", forked, v.State, v.Kind, ranksOf(v), v.Text)
		}
	}
}
