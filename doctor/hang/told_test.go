package hang

import (
	"fmt"
	"slices"
	"testing"
)

// TestToldOps reads what people quote: the watchdogs of a job gave up at the same number, one rank in another
// collective than the rest. Numbers of different groups say nothing of each other.
func TestToldOps(t *testing.T) {
	const caught = "[rank%d]:[E1116 10:00:0%d.1 ProcessGroupNCCL.cpp:616] [Rank %d] Watchdog caught collective " +
		"operation timeout: WorkNCCL(SeqNum=41, OpType=%s, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for " +
		"600012 milliseconds before timing out.\n"
	const at = "[rank%d]:[E1116 10:00:0%d.2 ProcessGroupNCCL.cpp:1785] [PG ID %d PG GUID %d(%s) Rank %d]  failure " +
		"detected " +
		"by watchdog at work sequence id: 41 PG status: last enqueued work: 41, last completed work: 40\n"
	for name, x := range map[string]struct {
		groups []int // of each rank; nil: the lines do not say
		ops    []string
		want   []int
	}{
		"one rank": {nil, []string{"ALLREDUCE", "ALLREDUCE", "BROADCAST", "ALLREDUCE"}, []int{2}},
		"in one group": {
			[]int{0, 0, 0, 0}, []string{"ALLREDUCE", "_ALLGATHER_BASE", "ALLREDUCE", "ALLREDUCE"}, []int{1},
		},
		"two groups": {[]int{3, 3, 5, 5}, []string{"ALLREDUCE", "ALLREDUCE", "BROADCAST", "BROADCAST"}, nil},
		"all alike":  {nil, []string{"ALLREDUCE", "ALLREDUCE", "ALLREDUCE", "ALLREDUCE"}, nil},
	} {
		text := ""
		for r, op := range x.ops {
			text += fmt.Sprintf(caught, r, r, r, op)
			if x.groups != nil {
				text += fmt.Sprintf(at, r, r, x.groups[r], x.groups[r], "group", r)
			}
		}
		c := NewCase()
		if _, err := c.Add("job.log", []byte(text)); err != nil {
			t.Fatal(err)
		}
		v := c.Judge()
		if !c.Waits() || (v.Kind == OpMismatch) != (x.want != nil) || x.want != nil &&
			(v.State != Hung || !slices.Equal(ranksOf(v), x.want)) {
			t.Errorf("%s: %s %s %v: %s", name, v.State, v.Kind, ranksOf(v), v.Text)
		}
	}
}
