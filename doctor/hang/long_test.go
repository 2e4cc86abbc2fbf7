package hang

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// gaveUp is what the watchdogs of ranks write, each in a collective of its own; the rank that is left out writes none.
func gaveUp(ranks, out int, seq func(rank int) int) string {
	var b strings.Builder
	for r := range ranks {
		if r != out {
			fmt.Fprintf(&b, "[rank%d]:[E1116 02:35:23.156796868 ProcessGroupNCCL.cpp:632] [Rank %d] Watchdog caught collective "+
				"operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "+
				"600021 milliseconds before timing out.\n", r, r, seq(r))
		}
	}
	return b.String()
}

// TestLongLog reads a log that is longer than what is held of it to its end.
func TestLongLog(t *testing.T) {
	line := "Loading " + strings.Repeat("shard 17 of the checkpoint, ", 300) + "done\n"
	end := gaveUp(4, 2, func(int) int { return 9 })
	c, b := NewCase(), cluster.NewBudget(cluster.Limits{}, nil)
	left := b.HoldLeft()
	known, err := c.Read(b, "job.log", io.MultiReader(strings.NewReader(strings.Repeat(line, beginning/len(line)+2)),
		strings.NewReader(end)))
	if err != nil || known != 1 || b.HoldLeft() != left {
		t.Fatalf("%d known, %v, %d of %d left", known, err, b.HoldLeft(), left)
	}
	if v := c.Judge(); v.Kind != NoReport || len(v.Ranks) != 1 || v.Ranks[0].Rank != 2 {
		t.Errorf("%s %v", v.Kind, v.Ranks)
	}
}

// TestOwnCollectives judges ranks that each give up in another collective as it judges those that are in one.
func TestOwnCollectives(t *testing.T) {
	for _, seq := range []func(int) int{func(int) int { return 1000 }, func(r int) int { return 1000 + r }} {
		c := NewCase()
		if _, err := c.Add("job.log", []byte(gaveUp(3000, 7, seq))); err != nil {
			t.Fatal(err)
		}
		if v := c.Judge(); v.Kind != NoReport || len(v.Ranks) != 1 || v.Ranks[0].Rank != 7 || v.Sequence != 1000 {
			t.Errorf("%s %v #%d", v.Kind, v.Ranks, v.Sequence)
		}
	}
	var ops []opRef
	for seq := range int32(500) {
		ops = append(ops, opRef{1, seq, -1}, opRef{1, seq, 3})
	}
	list := thinned(slices.Clone(ops))
	if len(list) != 500+2*someOps || list[0] != ops[0] || list[len(list)-2] != ops[len(ops)-2] {
		t.Errorf("%d of %d: %v … %v", len(list), len(ops), list[0], list[len(list)-2])
	}
}

// TestCrowdedBeginning keeps how ranks end, however many there are that begin.
func TestCrowdedBeginning(t *testing.T) {
	var b strings.Builder
	for r := range 1<<16 + 10 {
		fmt.Fprintf(&b, "n1:%d:%d [0] NCCL INFO ncclCommInitRank comm 0x7f%d rank %d nranks 70000 cudaDev 0 nvmlDev 0 "+
			"busId 1b000 "+
			"commId 0xabc - Init START\n", 1000+r, 1000+r, r, r)
	}
	c := NewCase()
	if _, err := c.Add("job.log", []byte(b.String()+gaveUp(4, 2, func(int) int { return 9 }))); err != nil {
		t.Fatal(err)
	}
	if !c.Waits() {
		t.Error("the watchdogs at the end are not known")
	}
}
