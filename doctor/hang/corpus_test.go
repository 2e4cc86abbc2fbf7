package hang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/corpus"
)

// scenario is a line of the captures' index.
type scenario struct {
	Name  string `json:"scenario"`
	Truth struct {
		Culprits []int  `json:"culprits"`
		Cause    string `json:"cause"`
		Hung     bool   `json:"hung"`
		Outcome  string `json:"outcome"`
	} `json:"truth"`
}

// kindsOf are the kinds that name a planted fault.
var kindsOf = map[string][]Kind{
	"ckpt": {Checkpoint}, "order": {Order}, "dataloader": {DataLoading}, "exception": {Exited}, "gpu_assert": {GPUFault}, "none": {NoKind},
	"skip_comm": {NeverJoined}, "kill9": {Killed}, "late_start": {NeverJoined}, "mismatch_op": {OpMismatch}, "mismatch_size": {SizeMismatch},
	"sigstop": {Stopped}, "slow": {Late}, "spin": {Kernel}, "sleep": {Late}, "late_comm": {NeverJoined},
}

// capture reads a folder, without what the experiment itself wrote down.
func capture(t *testing.T, dir string) *Case {
	t.Helper()
	c := NewCase()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "truth.json" || strings.HasPrefix(d.Name(), "fr_trace") || strings.HasPrefix(d.Name(), "events.") || d.Name() == "timeline.jsonl" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if _, err := c.AddFile(name, data); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// only is what one source alone has of a case.
func only(c *Case, signal string) *Case {
	keep := NewCase()
	switch signal {
	case fromRAS:
		keep.ras = c.ras
	case fromRecorder:
		keep.rec = c.rec
	case fromLog:
		keep.logs = c.logs
	default:
		return c
	}
	return keep
}

// TestCaptures judges every capture with a planted fault: the right rank and the right kind.
func TestCaptures(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "corpus", "live-jobs")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.jsonl"))
	if err != nil {
		t.Skip("no captures of live jobs: ", err)
	}
	var table strings.Builder
	for line := range bytes.Lines(index) {
		var s scenario
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s | %s %v |", s.Name, s.Truth.Cause, s.Truth.Culprits)
		all := capture(t, filepath.Join(dir, s.Name))
		for _, signal := range []string{fromRAS, fromRecorder, fromLog, ""} {
			v := only(all, signal).Judge()
			var ranks []int
			for _, r := range v.Ranks {
				ranks = append(ranks, r.Rank)
			}
			right := slices.Equal(ranks, s.Truth.Culprits) && slices.Contains(kindsOf[s.Truth.Cause], v.Kind)
			mark := ""
			if right {
				mark = "✓ "
			}
			fmt.Fprintf(&table, " %s%s %s %v %.2f |", mark, v.State, v.Kind, ranks, v.Confidence)
			if signal == "" && !right {
				t.Errorf("%s: %s %s %v, planted %s %v: %s", s.Name, v.State, v.Kind, ranks, s.Truth.Cause, s.Truth.Culprits, v.Text)
			}
			if signal == "" && s.Truth.Cause == "none" && v.Severity() > 0 {
				t.Errorf("%s: a healthy job has severity %v", s.Name, v.Severity())
			}
		}
		table.WriteByte('\n')
	}
	t.Log("\n| scenario | planted | RAS | recorder | log | all |\n|---|---|---|---|---|---|\n" + table.String())
}
