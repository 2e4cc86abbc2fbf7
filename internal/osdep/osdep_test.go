package osdep

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Lock(first, true); err != nil {
		t.Fatal(err)
	}
	if err := Lock(second, false); !Locked(err) {
		t.Errorf("two have it: %v", err)
	}
	first.Close()
	if err := Lock(second, false); err != nil {
		t.Errorf("after the first was closed: %v", err)
	}
	if err := Writable(name); err != nil {
		t.Error(err)
	}
	if err := Writable(name + ".not"); err == nil {
		t.Error("what does not exist can be written")
	}
	if Gone(os.Getpid()) {
		t.Error("this process is gone")
	}
}
