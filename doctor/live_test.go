package doctor

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/internal/test/corpus"
)

// The files of live jobs with a planted fault, given to doctor: the first finding names the rank, whatever else the
// logs say. A healthy job is not said to hang.
func TestLiveJobs(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "corpus", "live-jobs")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.jsonl"))
	if err != nil {
		t.Skip("no captures of live jobs: ", err)
	}
	words := vocabulary()
	right, all := 0, 0
	for line := range bytes.Lines(index) {
		var s struct {
			Name  string `json:"scenario"`
			Truth struct {
				Culprits []int  `json:"culprits"`
				Cause    string `json:"cause"`
			} `json:"truth"`
		}
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		if testing.Short() && all > 4 {
			break
		}
		r := words.NewReader()
		err := filepath.WalkDir(filepath.Join(dir, s.Name), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "truth.json" || strings.HasPrefix(d.Name(), "fr_trace") ||
				strings.HasPrefix(d.Name(), "events.") || d.Name() == "timeline.jsonl" {
				return err
			}
			name, data := corpus.Read(t, path)
			_ = r.Read(name, bytes.NewReader(data)) // what is no text is passed over, as in a folder
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		report := Examine(set)
		all++
		first := len(report.Findings) > 0 && strings.HasPrefix(report.Findings[0].ID, "job-") &&
			slices.Equal(report.Findings[0].Ranks, s.Truth.Culprits)
		blames := slices.ContainsFunc(report.Findings,
			func(f finding.Finding) bool { return strings.HasPrefix(f.ID, "job-") && f.Severity != finding.Note })
		switch {
		case s.Truth.Cause == "none" && blames:
			t.Errorf("%s: healthy, and %v", s.Name, ids(report))
		case s.Truth.Cause == "none" || first:
			right++
		default:
			t.Logf("%s: planted %s %v, said %v", s.Name, s.Truth.Cause, s.Truth.Culprits, ids(report))
		}
	}
	t.Logf("%d of %d", right, all)
	if right < all {
		t.Errorf("%d of %d name the rank first", right, all)
	}
}
