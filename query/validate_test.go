package query

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestValidate scores the points of an example, some of them, and none.
func TestValidate(t *testing.T) {
	all, err := Validate{Files: []string{"../docs/examples/points.jsonl"}}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if all.Points == 0 || len(all.Rows) != all.Points || all.Predicted != all.Points || all.Wrong() || all.Err() != nil {
		t.Errorf("%d points, %d rows, %d predicted, %v", all.Points, len(all.Rows), all.Predicted, all.Err())
	}
	some, err := Validate{
		Files: []string{"../docs/examples/points.jsonl"}, Class: "nvlink-single-node", MaxMedian: new(0.0),
	}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if some.Points == 0 || some.Points >= all.Points || !some.Wrong() ||
		!strings.Contains(some.Missed[0], "more than 0.0%") {
		t.Errorf("%d of %d points, %q", some.Points, all.Points, some.Missed)
	}
	if _, err := (Validate{Files: []string{"../docs/examples/points.jsonl"}, Class: "tpu"}).Run(t.Context(),
		Env{}); err == nil || !strings.Contains(err.Error(), "there are multi-node-infiniband, nvlink-single-node") {
		t.Errorf("a class that is not there: %v", err)
	}
	env := Env{Files: fstest.MapFS{"empty.jsonl": {}}}
	none, err := Validate{Files: []string{"empty.jsonl"}}.Run(t.Context(), env)
	if err != nil || none.Err() == nil || !strings.Contains(none.Err().Error(), "nothing to grade") {
		t.Errorf("nothing: %v, %v", err, none)
	}
	bounded, err := Validate{Files: []string{"empty.jsonl"}, MaxP90: new(0.4)}.Run(t.Context(), env)
	if err != nil || bounded.Err() != nil || !bounded.Wrong() {
		t.Errorf("nothing within a bound: %v, %v", err, bounded)
	}
}

// TestValidateOn takes an output of nccl-tests on the cluster that is given.
func TestValidateOn(t *testing.T) {
	q := Validate{Files: []string{"../docs/examples/two-nodes.log"}}
	if _, err := q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), "give it with cluster") {
		t.Errorf("without a cluster: %v", err)
	}
	q.Cluster = "dgx-h100"
	d, err := q.Run(t.Context(), Env{})
	if err != nil || d.Points != 15 || d.Rows[0].Machine == "" {
		t.Errorf("%v, %+v", err, d)
	}
}
