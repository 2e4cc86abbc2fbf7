package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWritePlan: a plan that cannot be written leaves an earlier one as it was, and a folder that filled meanwhile is
// not written into.
func TestWritePlan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder", "run 1")
	one := []File{
		{Name: "README", Text: "1"},
		{Name: "edited.sh", Text: "1"},
		{Name: "old.sh", Text: "1", Run: true},
		{Name: "train.py", Text: "1"},
		{Name: "plan.json", Text: "1"},
	}
	two := []File{{Name: "README", Text: "2"}, {Name: "plan.json", Text: "2"}}
	if err := Write(dir, one, false); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, two, false); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second plan without force: %v; expected a refusal", err)
	}
	// a name that no file can have
	bad := append([]File{{Name: strings.Repeat("n", 300), Text: "2"}}, two...)
	if err := Write(dir, bad, true); err == nil {
		t.Error("a file that cannot be written: no error")
	}
	contents(t, dir, "README=1 edited.sh=1 old.sh=1 plan.json=1 train.py=1")
	for _, name := range []string{"edited.sh", "mine.py"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(dir, stagedName+"2147483646")
	if err := os.Mkdir(killed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, two, true); err != nil {
		t.Fatal(err)
	}
	contents(t, dir, "README=2 edited.sh=x mine.py=x plan.json=2")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// contents compares a folder's files with NAME=TEXT words.
func contents(t *testing.T, dir, want string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		if f.Name() == listName {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, f.Name()))
		got = append(got, f.Name()+"="+string(data))
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s has %s; expected %s", dir, text, want)
	}
}
