package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"busbar.dev/ask"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/query"
	"busbar.dev/report"
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

// TestReadBack asks every question that is a command of its own by its first example: a document that was read from
// JSON prints the same.
func TestReadBack(t *testing.T) {
	t.Chdir("../..")
	for _, q := range ask.Questions {
		if q.Help == "" {
			continue
		}
		t.Run(q.Name, func(t *testing.T) {
			args := strings.Fields(q.Examples[0])[1:]
			parser, err := kong.New(grammar(args), kong.Name("busbar"))
			if err != nil {
				t.Fatal(err)
			}
			k, err := parser.Parse(args)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := q.Run(t.Context(), k.Selected().Target.Interface().(askCmd).Ask, query.Env{})
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(doc).Elem()).Interface()
			data, err := json.Marshal(doc)
			if err = cmp.Or(err, json.Unmarshal(data, back)); err != nil {
				t.Fatal(err)
			}
			var was, is bytes.Buffer
			verbose := report.TextOptions{Verbose: true, Groups: true}
			if err := cmp.Or(q.Text(&was, doc, verbose), q.Text(&is, back, verbose)); err != nil || was.String() != is.String() {
				t.Errorf("%v; was:\n%s\nis:\n%s", err, was.String(), is.String())
			}
		})
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
