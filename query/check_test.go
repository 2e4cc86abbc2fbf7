package query

import (
	"testing"

	"busbar.dev/engine/ranks"
	"busbar.dev/measure"
)

// TestCheckInProcess: ranks of this process are checked over its loopback, and give a verdict.
func TestCheckInProcess(t *testing.T) {
	job := ranks.DefaultJob()
	job.Ranks = 3
	doc, err := Check{Size: "64K", Iters: 2}.RunOn(t.Context(), Env{}, measure.Programs{}, Ranks[*measure.Check]{Job: job})
	if err != nil || doc == nil || len(doc.Nodes) != 1 || doc.Rounds < 3 || doc.Partners != 2 {
		t.Fatalf("%+v, %v", doc, err)
	}
	job.Transport = "mem"
	if _, err := (Check{Size: "64K", Iters: 2}).RunOn(t.Context(), Env{}, measure.Programs{},
		Ranks[*measure.Check]{Job: job}); err == nil {
		t.Error("a check without connections")
	}
}
