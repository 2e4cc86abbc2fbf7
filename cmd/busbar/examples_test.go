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
	texts := []string{string(readme)}
	for _, command := range []string{
		"map", "list", "calibrate", "predict", "step", "goodput", "doctor", "diff", "self-test",
	} {
		texts = append(texts, helpSection(command))
	}
	for _, q := range ask.Questions {
		texts = append(texts, q.About)
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

// firstExample is how the help of a question first asks it, behind the program's name.
func firstExample(q *ask.Question) string {
	_, line, _ := strings.Cut(q.About, "Examples:\n  busbar ")
	line, _, _ = strings.Cut(line, "\n")
	return line
}

// TestReadBack asks questions that few fields make, and those that are commands of their own by their first example: a
// document that was read from JSON prints the same.
func TestReadBack(t *testing.T) {
	job := map[string]string{"cluster": "dgx-h100:2", "model": "llama3-8b", "parallel": "zero=3"}
	for name, fields := range map[string]map[string]string{
		"presets": {}, "models": {}, "hardware": {}, "frameworks": {}, "causes": {}, "algorithms": {}, "self-test": {},
		"sched": {"layout": "2x2"}, "experts": {"cluster": "dgx-h100:2"},
		"envelope": {"cluster": "dgx-h100:2", "model": "llama3-8b"}, "scale": job,
	} {
		q := ask.Named(name)
		question := q.New()
		for _, p := range q.Params() {
			if text := fields[p.Name]; text != "" {
				if err := p.Set(question, text); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Run(name, func(t *testing.T) { readBack(t, q, question) })
	}
	for _, q := range ask.Questions {
		if q.Group == "" {
			continue
		}
		words := strings.Fields(firstExample(q))
		parser, err := newParser(words)
		if err != nil {
			t.Fatal(err)
		}
		k, err := parser.Parse(words)
		if err != nil {
			t.Fatalf("%s: the first example of its help, %q: %v", q.Name, words, err)
		}
		c := k.Selected().Target.Addr().Interface().(*questionCmd)
		t.Run(q.Name, func(t *testing.T) { readBack(t, q, c.Question) })
	}
}

// readBack prints the answer to a question as it comes, and after JSON.
func readBack(t *testing.T, q *ask.Question, question any) {
	doc, err := q.Run(t.Context(), question, query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	back := reflect.New(reflect.TypeOf(doc).Elem()).Interface()
	data, err := json.Marshal(doc)
	if err = cmp.Or(err, json.Unmarshal(data, back)); err != nil {
		t.Fatal(err)
	}
	var was, is bytes.Buffer
	verbose := report.TextOptions{Verbose: true}
	if err := cmp.Or(q.Text(&was, doc, verbose), q.Text(&is, back, verbose)); err != nil || was.String() != is.String() {
		t.Errorf("%v; was:\n%s\nis:\n%s", err, was.String(), is.String())
	}
}

// needsServer tells the commands of a fleet, which TestFleet… tries with a server, and measurements of GPUs on other
// hosts.
func needsServer(line string) bool {
	if strings.Contains(line, " --live ") {
		return true
	}
	switch strings.Fields(line)[1] {
	case "serve", "agent", "fleet":
		return true
	}
	return false
}
