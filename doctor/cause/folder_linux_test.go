package cause

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestForgedRules: a folder of causes that somebody hands over may hold pipes and very long files: none is waited for
// or read.
func TestForgedRules(t *testing.T) {
	pipe, long := t.TempDir(), t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(pipe, "pipe.yaml"), 0o600); err != nil {
		t.Skip(err)
	}
	f, err := os.Create(filepath.Join(long, "long.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	for _, dir := range []string{pipe, long} {
		if _, err := Load(os.DirFS(dir), "."); err == nil || !strings.Contains(err.Error(), "expected a file of at most") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
