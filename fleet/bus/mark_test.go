package bus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMarkClosed: a write that was due when the server closed leaves the folder alone, which may be another's by then.
func TestMarkClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mark")
	m, err := openMark(path)
	if err != nil {
		t.Fatal(err)
	}
	m.note(7, time.Now(), 3)
	if err := m.close(); err != nil {
		t.Fatal(err)
	}
	back, err := openMark(path)
	if err != nil || back.before.Last != 7 || back.own() != 3 {
		t.Fatalf("%+v, %v", back, err)
	}
	if err := errors.Join(os.Remove(path), m.write()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s was written after the mark was closed: %v", path, err)
	}
}
