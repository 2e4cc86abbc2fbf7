package query

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestCalibrate fits a sweep and keeps what it found with the cluster.
func TestCalibrate(t *testing.T) {
	d, err := Calibrate{
		Files: []string{"../docs/examples/two-nodes.log"}, Cluster: "dgx-h100", NCCL: "2.28",
	}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if d.Wrong() || d.HeldOut == nil || d.After.Median >= d.Before.Median || d.Points != 15 ||
		d.Described.Nodes[0].Hosts != "node[0-1]" ||
		d.Described.Calibration != d.Calibration {
		t.Errorf("%+v", d)
	}
	if m := d.Measured[0]; m.Op != "all_reduce" || m.Layout != "2x8" || m.NCCLFrom != "--nccl" {
		t.Errorf("measured %+v", m)
	}
}

// TestCalibrateRefuses says which measurements and which words cannot both be right.
func TestCalibrateRefuses(t *testing.T) {
	point := func(id, us string) string {
		return `{"id":"` + id + `","collective":"all_reduce","nodes":1,"gpus_per_node":8,"gpu":"H100-SXM","intra_node":"NVSwitch","nccl_version":"2.27.3","sizes_bytes":[1024],"time_us":[` + us + `],"grade":"A","source":"synthetic"}` + "\n"
	}
	env := Env{Files: fstest.MapFS{"contrary.jsonl": {Data: []byte(point("a", "20") + point("b", "90"))}}}
	d, err := Calibrate{Files: []string{"contrary.jsonl"}, Cluster: "dgx-h100:1"}.Run(t.Context(), env)
	if err != nil || !d.Wrong() || len(d.Dropped) != 1 || !strings.Contains(d.Dropped[0].Reason, "×4.50 apart") {
		t.Errorf("contrary measurements: %v, %+v", err, d)
	}
	env.Files = fstest.MapFS{"many.jsonl": {Data: []byte(strings.Repeat(point("a", "20"), mostFitted+1))}}
	if _, err := (Calibrate{Files: []string{"many.jsonl"}, Cluster: "dgx-h100:1"}).Run(t.Context(), env); err == nil ||
		!strings.Contains(err.Error(), "expected at most 20000") {
		t.Errorf("too many points: %v", err)
	}
	for _, c := range []struct {
		q    Calibrate
		want string
	}{
		{Calibrate{}, "which cluster was measured"},
		{Calibrate{Cluster: "dgx-h100:2", Op: "all_gather"}, "is of all_reduce, and op says all_gather"},
		{Calibrate{Cluster: "dgx-h100:2", Layout: "1x8"}, "ran on 2x8, and layout says 1x8"},
		{Calibrate{Cluster: "dgx-h100:1"}, "has 1 node; 2 were measured"},
		{Calibrate{Cluster: "dgx-a100:2"}, "measured on"},
	} {
		c.q.Files = []string{"../docs/examples/two-nodes.log"}
		if _, err := c.q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
}
