package hang

import (
	"fmt"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/input/procs"
	"busbar.dev/internal/test/synth/livejob"
)

// A wait of a running job may end by itself, until it has lasted.
func TestLasting(t *testing.T) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 3, Fault: livejob.Late, Culprit: 1}
	newest := int64(0)
	for r := range j.Ranks {
		for _, e := range j.Entries(r) {
			newest = max(newest, e.Created)
		}
	}
	for after, want := range map[time.Duration]finding.Severity{2 * time.Second: finding.Note, time.Minute: finding.Warn} {
		c := NewCase()
		for r := range j.Ranks {
			if _, err := c.Add(fmt.Sprintf("nccl_trace_rank_%d", r), j.Dump(r)); err != nil {
				t.Fatal(err)
			}
		}
		c.AddProcesses([]procs.Process{{Rank: 0, PID: 10000, World: 4, State: 'S'}})
		c.AskedAt(time.Unix(0, newest).Add(after))
		if v := c.Judge(); v.State != Stalled || v.Severity() != want || v.Ranks[0].Rank != 1 {
			t.Errorf("after %v: %s, %v: %s", after, v.State, v.Severity(), v.Text)
		}
	}
	v := Verdict{State: Stalled, Kind: Checkpoint, MayPass: true}
	if v.Lasted(time.Minute); !v.MayPass {
		t.Error("a checkpoint of a minute is no fault")
	}
	if v.Lasted(LastingWork); v.MayPass {
		t.Error("a checkpoint of five minutes is one")
	}
}
