package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/ask"
	"busbar.dev/engine/bench/gpu"
)

// TestExamples runs the examples of the help texts and of README.md's shell blocks
// as a newcomer would in the root of the sources, in the order in which they
// stand. Those that need something of their own (a pipe, another program, other
// hosts) do not begin with "busbar".
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes minutes under the race detector")
	}
	docs, err := filepath.Abs("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	texts := []string{
		mapCmd{}.Help(), predictCmd{}.Help(), schedCmd{}.Help(), validateCmd{}.Help(), calibrateCmd{}.Help(),
		benchDiffCmd{}.Help(), doctorRunCmd{}.Help(), string(readme),
	}
	for _, q := range ask.Questions {
		if q.Help != "" && q.Name != "trace" { // whose traces are the reader's own
			texts = append(texts, q.Detail())
		}
	}
	for _, text := range texts {
		for _, l := range strings.Split(text, "\n") {
			if l = strings.TrimSpace(l); strings.HasPrefix(l, "busbar ") && !needsServer(l) {
				lines = append(lines, l)
			}
		}
	}
	if len(lines) < 20 {
		t.Errorf("%d examples; expected those of six commands", len(lines))
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(docs, "docs"); err != nil {
		t.Skipf("no links here: %v", err)
	}
	for _, l := range lines {
		command, _, _ := strings.Cut(l, " #")
		words, err := gpu.SplitWords(command)
		if err != nil {
			t.Errorf("%s: %v", l, err)
			continue
		}
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.NewReader(""), &stdout, &stderr, words[1:])
		if code > exitWrong || stdout.Len()+stderr.Len() == 0 && !strings.Contains(l, " -o ") {
			t.Errorf("%s: exit %d\n%s", l, code, stderr.String())
		}
	}
}

// needsServer tells the commands of a fleet, which TestFleet… tries with a server, and measurements of GPUs on other
// hosts.
func needsServer(line string) bool {
	if strings.Contains(line, " --live ") {
		return true
	}
	switch strings.Fields(line)[1] {
	case "serve", "agent", "nodes", "order":
		return true
	}
	return false
}
