//go:build unix

package query_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"busbar.dev/query"
)

// What is no config.json is said to be so at once: a pipe is not waited for, and a file that exists is not called
// missing.
func TestModelFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, garbage := filepath.Join(dir, "pipe"), filepath.Join(dir, "garbage")
	if err := os.Mkdir(pipe, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(pipe, "config.json"), 0o644); err != nil {
		t.Skip("no pipes here: ", err)
	}
	if err := os.WriteFile(garbage, []byte("\x7fELF"), 0o644); err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]string{
		pipe:                               "is no regular file",
		filepath.Join(pipe, "config.json"): "is no regular file",
		garbage:                            "expected a config.json of Hugging Face",
		filepath.Join(dir, "none"):         "no such folder",
		filepath.Join(dir, "none\x1b[31m", "x.json"): `none\x1b[31m`,
	} {
		if _, err := query.LoadModel(query.Env{}, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; expected %q", word, err, want)
		}
	}
}
