package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/internal/texttab"
	"busbar.dev/lab"
)

// TestRowsOnTerminal: rows of a table and the line that tells the progress share a terminal, and
// neither comes into the middle of the other.
func TestRowsOnTerminal(t *testing.T) {
	all := benchOnTerminal(t)
	progress := regexp.MustCompile(`\r\x1b\[K([^\r\n]* …)?`)
	rows := regexp.MustCompile(`(?m)^ +\d+ +\d+ +float +sum +-1( +[0-9.]+ +[0-9.]+ +[0-9.]+ +N/A){2}\r$`)
	if !bytes.Contains(all, []byte("size 2 of 8 …")) {
		t.Errorf("no progress was shown:\n%q", all)
	}
	if got := len(rows.FindAll(progress.ReplaceAll(all, nil), -1)); got != 8 {
		t.Errorf("%d rows; expected 8:\n%q", got, all)
	}
	// A row that begins where a progress line ended without being cleared would hide in it.
	if bad := regexp.MustCompile(` …[^\r]`).Find(all); bad != nil {
		t.Errorf("%q follows a progress line that was not cleared:\n%q", bad, all)
	}
	// A narrow terminal gets the columns that differ, and no line is broken.
	t.Setenv("COLUMNS", "80")
	all = progress.ReplaceAll(benchOnTerminal(t), nil)
	rows = regexp.MustCompile(`(?m)^ +\d+( +[0-9.]+ +[0-9.]+ +[0-9.]+ +N/A){2}\r$`)
	if got := len(rows.FindAll(all, -1)); got != 8 {
		t.Errorf("%d narrow rows; expected 8:\n%q", got, all)
	}
	for line := range strings.Lines(string(all)) {
		if texttab.Width(strings.TrimSpace(line)) > 80 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
}

// benchOnTerminal is what a sweep over eight sizes prints on a terminal.
func benchOnTerminal(t *testing.T) []byte {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outside, inside, err := lab.OpenTerminal()
	if err != nil {
		t.Skipf("needs a terminal: %v", err)
	}
	defer outside.Close()
	cmd := exec.Cmd{
		Path: self, Args: []string{"busbar", "bench", "-n", "4", "-e", "1K", "--iters", "2", "--transport", "tcp"},
		Stdout: inside, Stderr: inside,
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inside.Close()
	var all bytes.Buffer
	all.ReadFrom(outside) // ends with an error when the last that has the terminal open is gone
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, all.Bytes())
	}
	return all.Bytes()
}
