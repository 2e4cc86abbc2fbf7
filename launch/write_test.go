package launch

import (
	"errors"
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
	for name, put := range map[string]func(string) error{ // of the user's, who loses none
		"README":   func(to string) error { return os.WriteFile(to, []byte("3"), 0o600) },
		"mine.py":  func(string) error { return nil },
		"train.py": func(to string) error { return os.Mkdir(to, 0o700) },
		"b.sh":     func(to string) error { return os.Symlink("mine.py", to) },
		listName: func(to string) error {
			return errors.Join(os.Remove(to), os.Symlink(os.DevNull, to)) // to read a pipe would wait
		},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		if err := Write(dir, two, false); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(os.WriteFile(filepath.Join(dir, "mine.py"), nil, 0o600), put(filepath.Join(dir, name)))
		if err != nil {
			t.Fatal(err)
		}
		was := listing(dir)
		three := []File{{Name: name, Text: "4"}, {Name: "plan.json", Text: "4"}}
		if err := Write(dir, three, true); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("over %s: %v; expected a refusal", name, err)
		}
		if is := listing(dir); is != was {
			t.Errorf("over %s: %s; expected %s", name, is, was)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, listName), []byte(listed("l", []byte("x"))), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("mine.py", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	if old, yours := earlier(two, dir); len(old)+len(yours) > 0 {
		t.Errorf("a link in the list, and files as they would be written: %v, %v; expected none", old, yours)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// contents compares a folder's files with NAME=TEXT words.
func contents(t *testing.T, dir, want string) {
	t.Helper()
	if text := listing(dir); text != want {
		t.Errorf("%s has %s; expected %s", dir, text, want)
	}
}

func listing(dir string) string {
	list, _ := os.ReadDir(dir)
	var got []string
	for _, f := range list {
		if f.Name() != listName {
			data, _ := os.ReadFile(filepath.Join(dir, f.Name()))
			got = append(got, f.Name()+"="+string(data))
		}
	}
	return strings.Join(got, " ")
}
