package ranks

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMeetFolder: what a killed launcher left goes with the next run; what is held stays, and so
// does what is no folder of ours.
func TestMeetFolder(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	held, done, err := meetFolder()
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(temp, meetPrefix+"1")
	other := filepath.Join(temp, "busbar-bench-2")
	file, link := filepath.Join(temp, meetPrefix+"3"), filepath.Join(temp, meetPrefix+"4")
	for _, dir := range []string{left, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{file, filepath.Join(left, "meet"), filepath.Join(other, "meet")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	next, over, err := meetFolder()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{held, next, filepath.Join(other, "meet"), file, link} {
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("removed: %v", err)
		}
	}
	if _, err := os.Lstat(left); err == nil {
		t.Errorf("%s was left", left)
	}
	done()
	over()
	for _, name := range []string{held, next} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was left", name)
		}
	}
}
