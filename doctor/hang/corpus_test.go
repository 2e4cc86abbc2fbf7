package hang

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
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
	"ckpt": {Checkpoint}, "order": {Order}, "dataloader": {DataLoading}, "exception": {Exited}, "gpu_assert": {GPUFault},
	"none":      {NoKind},
	"skip_comm": {NeverJoined}, "kill9": {Killed}, "late_start": {NeverJoined}, "mismatch_op": {OpMismatch},
	"mismatch_size": {SizeMismatch},
	"sigstop":       {Stopped}, "slow": {Late}, "spin": {Kernel}, "sleep": {Late}, "late_comm": {NeverJoined},
}

// capture reads a folder, without what the experiment itself wrote down.
func capture(t *testing.T, dir string) *Case {
	t.Helper()
	c := NewCase()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "truth.json" || strings.HasPrefix(d.Name(), "fr_trace") ||
			strings.HasPrefix(d.Name(), "events.") || d.Name() == "timeline.jsonl" {
			return err
		}
		name, data := corpus.Read(t, path)
		if in, _ := filepath.Rel(dir, filepath.Dir(path)); in != "." {
			name = filepath.Join(in, name)
		}
		if _, err := c.Read(nil, name, bytes.NewReader(data)); err != nil {
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

var update = flag.Bool("update", false, "rewrite the table of captures in docs/manual/hang.md")

// TestCaptures judges every capture with a planted fault: the right rank and the right kind. The manual has the table
// of what each signal alone says.
func TestCaptures(t *testing.T) {
	var table strings.Builder
	table.WriteString("| capture | planted | RAS alone | recorder alone | logs alone | all together |\n" +
		"|---|---|---|---|---|---|\n")
	eachCapture(t, func(s *scenario, all *Case) {
		var row strings.Builder
		fmt.Fprintf(&row, "| %s | %s |", s.Name,
			strings.TrimSpace(s.Truth.Cause+" "+strings.Trim(fmt.Sprint(s.Truth.Culprits), "[]")))
		for _, signal := range []string{fromRAS, fromRecorder, fromLog, ""} {
			v := only(all, signal).Judge()
			ranks := ranksOf(v)
			right := slices.Equal(ranks, s.Truth.Culprits) && slices.Contains(kindsOf[s.Truth.Cause], v.Kind)
			row.WriteString(" " + tableCell(v, right) + " |")
			if signal == "" && !right {
				t.Errorf("%s: %s %s %v, planted %s %v: %s", s.Name, v.State, v.Kind, ranks, s.Truth.Cause, s.Truth.Culprits, v.Text)
			}
			if signal == "" && s.Truth.Cause == "none" && v.Severity() > 0 {
				t.Errorf("%s: a healthy job has severity %v", s.Name, v.Severity())
			}
		}
		if !strings.HasSuffix(s.Name, "__b") { // the second capture of a fault
			table.WriteString(row.String() + "\n")
		}
	})
	const file, begin, end = "../../docs/manual/hang.md", "<!-- captures -->\n", "<!-- end of captures -->"
	manual, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(manual), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no %s", file, begin)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Errorf("%s is not what the captures give; go test ./doctor/hang -run TestCaptures -update writes it:\n%s", file,
			table.String())
	} else if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func tableCell(v *Verdict, right bool) string {
	text := string(v.State)
	if v.Kind != NoKind && v.Kind != UnknownKind {
		text += ", " + string(v.Kind)
	}
	if r := ranksOf(v); len(r) > 0 {
		text += " " + strings.Trim(fmt.Sprint(r), "[]")
	}
	if right {
		text += " ✓"
	}
	return text
}
