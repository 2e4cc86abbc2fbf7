package hang

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"busbar.dev/input/flightrec"
	"busbar.dev/internal/test/synth/livejob"
)

// TestSibling has a rank that waits in the making of a communicator. Who else is to come is known where the others made
// one of the same kind, and no other kind has as many that are left.
func TestSibling(t *testing.T) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 9, Fault: livejob.Late, Culprit: 2}
	for name, x := range map[string]struct {
		made []int // a group of a kind of its own
		want []int
	}{
		"none":         {nil, nil},
		"the other":    {[]int{1, 3}, []int{0}},
		"one of three": {[]int{0, 1, 3}, nil},
	} {
		c := NewCase()
		for r := range j.Ranks {
			if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), j.Dump(r)); err != nil {
				t.Fatal(err)
			}
		}
		stack := strings.Replace(j.Stack(2, "evaluate"), "/job/train.py\", line 60 in evaluate",
			"/lib/python3/site-packages/torch/distributed/distributed_c10d.py\", line 3068 in all_reduce", 1)
		if _, err := c.Add("stack.2", []byte(stack)); err != nil {
			t.Fatal(err)
		}
		c.rec.Groups = append(c.rec.Groups, flightrec.Group{Name: "9", Desc: "experts", Ranks: x.made})
		v := c.Judge()
		if v.State != Hung || v.Kind != NeverJoined || !slices.Equal(ranksOf(v), x.want) ||
			x.want != nil && v.Communicator.Name != "ranks 0, 2" {
			t.Errorf("%s: %s %s %v %+v: %s", name, v.State, v.Kind, ranksOf(v), v.Communicator, v.Text)
		}
	}
}

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
