package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the outputs in the manual")

// TestManual runs every `$ busbar …` line of the console blocks in README.md, docs/steps.md,
// docs/tutorials and docs/manual and compares what follows it. A line that is only … stands for any
// number of lines. Commands run in docs/examples; "# exit N" behind a command is
// its expected exit code.
func TestManual(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes minutes under the race detector")
	}
	pages, err := filepath.Glob("../../docs/manual/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no manual: %v", err)
	}
	tutorials, err := filepath.Glob("../../docs/tutorials/*.md")
	if err != nil || len(tutorials) == 0 {
		t.Fatalf("no tutorials: %v", err)
	}
	pages = append(append(pages, tutorials...), "../../README.md", "../../docs/steps.md")
	for i := range pages {
		if pages[i], err = filepath.Abs(pages[i]); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir("../../docs/examples")
	for _, page := range pages { // go test -run TestManual/plan.md is one page
		t.Run(filepath.Base(page), func(t *testing.T) { checkPage(t, page) })
	}
}

// TestManualLinks holds the table of README.md and the list of docs/README.md to the manual: each page is linked there.
// With -update a new page's link is put behind that of the command which it follows in busbar --help.
func TestManualLinks(t *testing.T) {
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, format := range map[string]string{
		"../../README.md": "[`%s`](docs/manual/%[1]s.md)", "../../docs/README.md": "[%s](manual/%[1]s.md)",
	} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, before := string(data), ""
		for _, n := range parser.Model.Children {
			link := fmt.Sprintf(format, n.Name)
			if _, err := os.Stat("../../docs/manual/" + n.Name + ".md"); err != nil {
				continue
			}
			if !strings.Contains(text, link) {
				if !*update || before == "" {
					t.Errorf("%s does not link the page of %s; make update does it", filepath.Base(file), n.Name)
					continue
				}
				text = strings.Replace(text, before, before+", "+link, 1)
			}
			before = link
		}
		if text != string(data) {
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPictures holds the pictures of the documents to what commands draw, in docs/examples. The page's is of a browser.
func TestPictures(t *testing.T) {
	t.Chdir("../../docs/examples")
	for name, command := range map[string]string{
		"baskerville": "map baskerville:2", "predict": "predict -c dgx-h100:2",
	} {
		file := "../pictures/" + name + ".svg"
		var drawn, stderr bytes.Buffer
		code := run(t.Context(), strings.NewReader(""), &drawn, &stderr, strings.Fields(command+" -o svg=-"))
		if code != exitDone {
			t.Fatalf("busbar %s: exit %d\n%s", command, code, stderr.String())
		}
		if *update {
			if err := os.WriteFile(file, drawn.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(kept, drawn.Bytes()) {
			t.Errorf("%s is not what busbar %s -o svg draws (%v); make update does it", file, command, err)
		}
	}
}

// checkPage checks one page, or rewrites its outputs.
func checkPage(t *testing.T, page string) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	lines := strings.Split(string(data), "\n")
	inside := false
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out = append(out, line)
		if strings.HasPrefix(line, "```") {
			inside = line == "```console"
			continue
		}
		if !inside || !strings.HasPrefix(line, "$ busbar ") {
			continue
		}
		end := i + 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "$ ") && !strings.HasPrefix(lines[end], "```") {
			end++
		}
		want := lines[i+1 : end]
		got := runLine(t, page, i+1, line)
		switch {
		case matches(want, got):
			out = append(out, want...)
		case *update && !contains(want, "…"):
			out = append(out, got...)
		default:
			t.Errorf("%s:%d: %s\nprinted:\n%s", filepath.Base(page), i+1, line, strings.Join(got, "\n"))
			out = append(out, want...)
		}
		i = end - 1
	}
	if text := strings.Join(out, "\n"); *update && text != string(data) {
		if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func runLine(t *testing.T, page string, n int, line string) []string {
	t.Helper()
	command, note, _ := strings.Cut(strings.TrimPrefix(line, "$ busbar "), " # exit ")
	wantCode := 0
	if note != "" {
		fmt.Sscan(note, &wantCode)
	}
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), strings.NewReader(""), &stdout, &stderr, strings.Fields(command))
	if code != wantCode {
		t.Errorf("%s:%d: %s: exit %d, want %d\n%s", filepath.Base(page), n, line, code, wantCode, stderr.String())
	}
	text := strings.TrimRight(stdout.String()+stderr.String(), "\n")
	got := strings.Split(text, "\n")
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	return got
}

func contains(lines []string, s string) bool {
	for _, l := range lines {
		if strings.TrimSpace(l) == s {
			return true
		}
	}
	return false
}

// matches compares lines; … in want stands for any number of lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == "…" {
		for skip := 0; skip <= len(got); skip++ {
			if matches(want[1:], got[skip:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && strings.TrimRight(want[0], " ") == got[0] && matches(want[1:], got[1:])
}
