package query

import (
	"encoding/json"
	"testing"

	"busbar.dev/cluster"
)

// TestClustersOfEnv asks about a cluster that is a value, twice: the answer is that of its preset, and the value stays
// as it was.
func TestClustersOfEnv(t *testing.T) {
	cl, err := LoadCluster(t.Context(), Env{}, "dgx-h100:2")
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(documentOf(cl))
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Clusters: map[string]*cluster.Cluster{"mine:1": cl}}
	for range 2 {
		own, err := Predict{Cluster: "mine:1", Size: "1G"}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		preset, err := Predict{Cluster: "dgx-h100:2", Size: "1G"}.Run(t.Context(), Env{})
		if err != nil || own.Rows[0].Time != preset.Rows[0].Time {
			t.Errorf("%v, and the preset %v, %v", own.Rows[0].Time, preset.Rows[0].Time, err)
		}
	}
	if after, err := json.Marshal(documentOf(cl)); err != nil || string(after) != string(before) {
		t.Errorf("the cluster was changed by questions about it, %v", err)
	}
}

// TestSteps holds counts of work to what is true of each: they go up to the end, or begin again with the next part of
// the work.
func TestSteps(t *testing.T) {
	var done, total int64
	var calls int
	env := Env{Steps: func(d, n int64) {
		if d < 0 || d > n || d < done && d != 0 {
			t.Errorf("%d of %d after %d of %d", d, n, done, total)
		}
		done, total = d, n
		calls++
	}}
	if _, err := (Scale{Job: Job{Cluster: "dgx-h100:8", Model: "llama3-8b", Parallel: "zero=3"}}).Run(t.Context(),
		env); err != nil || done != total || total != 4 {
		t.Errorf("scale to 8 nodes ended at %d of %d, %v", done, total, err)
	}
	done, total, calls = 0, 0, 0
	if _, err := (Plan{Cluster: "dgx-h100:2", Model: "llama3-8b"}).Run(t.Context(), env); err != nil || calls == 0 ||
		total == 0 {
		t.Errorf("plan was told %d times of %d settings, %v", calls, total, err)
	}
}

func documentOf(cl *cluster.Cluster) *MapDoc {
	d, _ := mapOf(nil, cl) // a nil budget has nothing to stop it
	return d
}
