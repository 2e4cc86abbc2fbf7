package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFolderIsOwn refuses a folder in which somebody else may have left keys.
func TestFolderIsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := (Folder{Data: dir}).Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (Folder{Data: dir}).Make(); err == nil || !strings.Contains(err.Error(), "written to by other users") {
		t.Errorf("a folder for everybody: %v", err)
	}
}
