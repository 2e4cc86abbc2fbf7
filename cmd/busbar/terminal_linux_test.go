package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"busbar.dev/lab"
)

// TestRowsOnTerminal: rows of a table and the line that tells the progress share a terminal, and
// neither comes into the middle of the other.
func TestRowsOnTerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	outside, inside, err := lab.OpenTerminal()
	if err != nil {
		t.Skipf("needs a terminal: %v", err)
	}
	defer outside.Close()
	cmd := exec.Cmd{Path: self, Args: []string{"busbar", "bench", "-n", "4", "-e", "1K", "--iters", "2", "--transport", "tcp"}, Stdout: inside, Stderr: inside}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inside.Close()
	var all bytes.Buffer
	all.ReadFrom(outside) // ends with an error when the last that has the terminal open is gone
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, all.Bytes())
	}
	progress := regexp.MustCompile(`\r\x1b\[K([^\r\n]* …)?`)
	rows := regexp.MustCompile(`(?m)^ +\d+ +\d+ +float +sum +-1( +[0-9.]+ +[0-9.]+ +[0-9.]+ +N/A){2}\r$`)
	if !bytes.Contains(all.Bytes(), []byte("size 2 of 8 …")) {
		t.Errorf("no progress was shown:\n%q", all.Bytes())
	}
	if got := len(rows.FindAll(progress.ReplaceAll(all.Bytes(), nil), -1)); got != 8 {
		t.Errorf("%d rows; expected 8:\n%q", got, all.Bytes())
	}
	// A row that begins where a progress line ended without being cleared would hide in it.
	if bad := regexp.MustCompile(` …[^\r]`).Find(all.Bytes()); bad != nil {
		t.Errorf("%q follows a progress line that was not cleared:\n%q", bad, all.Bytes())
	}
}
