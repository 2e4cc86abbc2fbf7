package hang

import (
	"fmt"
	"slices"
	"testing"

	"busbar.dev/internal/test/synth/livejob"
)

// files adds everything that a synthetic job tells.
func files(t testing.TB, j *livejob.Job) *Case {
	t.Helper()
	c := NewCase()
	add := func(name string, data []byte) {
		if _, err := c.Add(name, data); err != nil {
			t.Fatal(err)
		}
	}
	gone := j.Fault == livejob.Killed || j.Fault == livejob.Stopped
	for r := range j.Ranks {
		if !gone || r != j.Culprit {
			add(fmt.Sprintf("nccl_trace_rank_%d", r), j.Dump(r))
		}
		add(fmt.Sprintf("stderr.%d.log", r), []byte(j.Log(r)))
	}
	add("ras.1.json", []byte(j.RAS("2026-11-16 02:00:05", true)))
	add("ras.2.json", []byte(j.RAS("2026-11-16 02:00:20", true)))
	return c
}

// faultKinds are the kinds that name a synthetic job's fault.
var faultKinds = map[livejob.Fault]Kind{
	livejob.None: NoKind, livejob.Late: Late, livejob.Killed: Killed, livejob.Stopped: Stopped, livejob.Op: OpMismatch,
	livejob.Size:  SizeMismatch,
	livejob.Order: Order, livejob.Kernel: Kernel,
}

// TestSyntheticFaults plants every fault at several ranks of jobs of several shapes.
func TestSyntheticFaults(t *testing.T) {
	for fault, kind := range faultKinds {
		for _, shape := range [][2]int{{4, 2}, {8, 2}, {16, 4}, {24, 8}} {
			for _, culprit := range []int{0, 3, shape[0] - 1} {
				j := &livejob.Job{Ranks: shape[0], TP: shape[1], Steps: 9, Fault: fault, Culprit: culprit}
				v := files(t, j).Judge()
				var ranks []int
				for _, r := range v.Ranks {
					ranks = append(ranks, r.Rank)
				}
				wantRanks := []int{culprit}
				if fault == livejob.None {
					wantRanks = nil
				}
				if v.Kind != kind || !slices.Equal(ranks, wantRanks) {
					t.Errorf("%s at rank %d of %v: %s %s %v (%s)", fault, culprit, shape, v.State, v.Kind, ranks, v.Text)
				}
				if fault == livejob.Late &&
					(v.Op != "all_reduce" || v.Sequence != 17 || v.Communicator == nil || v.Communicator.Group != "dp") {
					t.Errorf("%s at rank %d of %v: waits in %s #%d on %+v", fault, culprit, shape, v.Op, v.Sequence, v.Communicator)
				}
			}
		}
	}
}
