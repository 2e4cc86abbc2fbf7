package query

import (
	"encoding/json"
	"reflect"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// TestTypedFields asks with typed values and with texts: it is one question, in JSON and on the command line too.
func TestTypedFields(t *testing.T) {
	typed := Predict{
		Cluster: "dgx-h100:2", Layout: LayoutOf(2, 4), Op: OpOf(coll.AllGather), Size: SizeOf(unit.MiB, 1320*unit.MB),
		Dtype: DtypeOf(coll.BFloat16),
	}
	text := Predict{Cluster: "dgx-h100:2", Layout: "2x4", Op: "all_gather", Size: "1MiB,1320MB", Dtype: "bfloat16"}
	if !reflect.DeepEqual(typed, text) {
		t.Errorf("%+v, want %+v", typed, text)
	}
	data, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var back Predict
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, typed) {
		t.Errorf("%s is read back as %+v, %v", data, back, err)
	}
	if got := ShellLine(CommandLine([]string{"predict"}, typed)); got != "busbar predict -c dgx-h100:2 --layout 2x4 "+
		"--op all_gather --size 1MiB,1320MB --dtype bfloat16" {
		t.Error(got)
	}
	job := Job{
		Parallel: ParallelOf(workload.Split{DP: 2, TP: 8, PP: 2, ZeRO: 1}), Recompute: workload.Full,
		Precision: workload.BF16,
		Schedule:  pipeline.ZeroBubble, Bucket: SizeOf(25 * unit.MiB), Compare: "1x8,2x8",
	}
	if split, err := job.Parallel.split(); err != nil || split.TP != 8 || split.PP != 2 || split.ZeRO != 1 {
		t.Errorf("%s is %+v, %v", job.Parallel, split, err)
	}
	for _, s := range []workload.Split{
		{TP: 4},
		{TP: 2, ZeRO: 3, Shard: 8},
		{ZeRO: 3, Shard: workload.ShardNode},
		{DP: 4, TP: 2, PP: 2, CP: 2, Chunks: 4, SeqParallel: true},
		{EP: 8, ETP: 1, TP: 2},
	} {
		back, err := ParallelOf(s).split()
		if again := ParallelOf(back); err != nil || again != ParallelOf(s) || back.DP != s.DP || back.Shard != s.Shard ||
			back.Chunks != s.Chunks {
			t.Errorf("%+v is %s, read back as %+v, %v", s, ParallelOf(s), back, err)
		}
	}
	if job.Compare != "1x8,2x8" || job.Bucket != "25MiB" {
		t.Errorf("%+v", job)
	}
}

// TestTypedAnswers asks the same both ways.
func TestTypedAnswers(t *testing.T) {
	ask := func(q Predict) string {
		d, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if a, b := ask(Predict{Cluster: "dgx-h100:2", Size: SizeOf(unit.GiB)}),
		ask(Predict{Cluster: "dgx-h100:2", Op: "AllReduce", Size: "1G"}); a != b {
		t.Errorf("typed:\n%s\nas text:\n%s", a, b)
	}
}

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
