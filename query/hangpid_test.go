package query

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"busbar.dev/input/procs"
)

// TestHangPID finds a job by one process: its logs and dumps, also of ranks that are gone, but none that is older than
// the job.
func TestHangPID(t *testing.T) {
	dir := t.TempDir()
	started := time.Now().Add(-time.Minute)
	var want []string
	for _, name := range []string{"rank_0.log", "rank_1.log", "trace_0"} {
		want = append(want, filepath.Join(dir, name))
	}
	for _, name := range append(slices.Clone(want), filepath.Join(dir, "trace_1")) {
		if err := os.WriteFile(name, []byte("[rank1]: ValueError: loss is NaN\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "trace_1"), started, started.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	ranks := []procs.Process{{
		PID: 7, Rank: 0, World: 2, State: 'T', Started: started, RAS: "127.0.0.1:1", Dump: filepath.Join(dir, "trace_0"),
		Logs: []string{filepath.Join(dir, "rank_0.log")},
	}}
	env := Env{Processes: func(pid int) ([]procs.Process, error) { return ranks, nil }}
	q := Hang{PID: 7}
	l, err := q.processes(&env)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.Written(env.files()); !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	os.Remove(filepath.Join(dir, "trace_0")) // no dump
	doc, err := q.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Kind != "stopped" || len(doc.Ranks) != 1 || doc.Ranks[0].Rank != 0 || !doc.Wrong() {
		t.Errorf("%s %v: %s", doc.Kind, doc.Ranks, doc.Text)
	}
}
