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
	if err := own(dir, os.Geteuid()+1); err == nil || !strings.Contains(err.Error(), "belongs to user") {
		t.Errorf("the folder of another user: %v", err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := (Folder{Data: dir}).Make(); err == nil || !strings.Contains(err.Error(), "everybody may write to it") {
		t.Errorf("a folder for everybody: %v", err)
	}
}
