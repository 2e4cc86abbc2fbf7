package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
)

// TestDoctorBenchOnCorpus runs every output of nccl-tests: none that is healthy
// may raise more than a note.
func TestDoctorBenchOnCorpus(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Dir(t), "corpus", "nccl-tests", "*"))
	if err != nil || len(files) == 0 {
		t.Skip("no outputs")
	}
	slow := map[string]bool{"socket-thread-validation.md": true} // P2P and shared memory switched off
	count := map[int]int{}
	for _, f := range files {
		code, _, stderr := calledAs(t, "doctor "+f+" -q")
		count[code]++
		switch name := filepath.Base(f); {
		case code == 1 && !slow[name], code == 0 && slow[name]:
			t.Errorf("%s: exit %d", name, code)
		case code > 1 && !strings.Contains(stderr, "--op") && !strings.Contains(stderr, "-c"):
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
	t.Logf("%d outputs: %d raise nothing above a note, %d a warning, %d need --op or -c", len(files), count[0], count[1],
		count[2])
}

func TestDoctorBenchReadsJSON(t *testing.T) {
	dir := t.TempDir()
	ours := filepath.Join(dir, "ours.json")
	text := `{"op":"all_reduce","ranks":4,"transport":"tcp","dtype":"float","hosts":["a","b","c","d"],"rows":[{"size_bytes":67108864,"time_us":{"median":900000,"mean":900000},"wrong":0}]}`
	if err := os.WriteFile(ours, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := calledAs(t, "doctor "+ours+" --json")
	if code != 0 ||
		!strings.Contains(stdout, `"unjudged"`) {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	if code, _, stderr = calledAs(t, "doctor "+filepath.Join("testdata", "none.json")); code != exitBad ||
		!strings.Contains(stderr, "no such file") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// Our own engine chooses an algorithm by size: that is one sweep.
func TestDoctorBenchOneSweep(t *testing.T) {
	code, stdout, stderr := calledAs(t, "doctor ../../docs/examples/before.jsonl")
	if code != 0 || strings.Count(stdout, "all_reduce, 4 ranks") != 1 {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestDoctorExplainUsage(t *testing.T) {
	for _, x := range []struct {
		line string
		code int
		says string
	}{
		{"doctor --explain ../../docs/examples/job.log", exitBad, "no rings and no trees in this log"},
		{"doctor --explain ../../docs/examples/rings.log -o x.gif", exitBad, "expected a file name that ends in .txt"},
		{"doctor --explain ../../docs/examples/rings.log --comm 9", exitBad, "the log has 0 (0xb5b5b5b5, 4 ranks)"},
		{"doctor --explain ../../docs/examples/rings.log --size many", exitBad, "--size"},
		{"doctor --explain nowhere", exitBad, "no such file or folder"},
		{
			"doctor --explain ../../docs/examples/rings.log -o " + t.TempDir() + "/none/x.txt", exitCannot, "cannot write there",
		},
	} {
		if code, _, stderr := calledAs(t, x.line); code != x.code || !strings.Contains(stderr, x.says) {
			t.Errorf("%s: exit %d: %s", x.line, code, stderr)
		}
	}
}

// calledAs runs a command line of words without blanks in them.
func calledAs(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), strings.NewReader(""), &out, &errs, strings.Fields(line))
	return code, out.String(), errs.String()
}
