package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that may not be listed is a matter of rights, not a bad input.
func TestLockedFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may list every folder")
	}
	dir := filepath.Join(t.TempDir(), "locked")
	if err := os.Mkdir(dir, 0); err != nil {
		t.Fatal(err)
	}
	var out, stderr bytes.Buffer
	if code := run(context.Background(), strings.NewReader(""), &out, &stderr, []string{"map", dir}); code != exitCannot {
		t.Errorf("exit code %d, want %d; %s", code, exitCannot, stderr.String())
	}
}
