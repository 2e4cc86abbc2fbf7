package bus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedKeys damages each file of the keys, or puts that of another server there: the server says which one it is
// and what to do, and makes no other in its place.
func TestDamagedKeys(t *testing.T) {
	other := filepath.Join(t.TempDir(), "keys")
	if _, err := OpenKeys(other); err != nil {
		t.Fatal(err)
	}
	start := func(dir string) error {
		s, err := Start(ServerConfig{Dir: dir})
		if err == nil {
			_, err = s.Keys().Issued()
			s.Close()
		}
		return err
	}
	whole := t.TempDir()
	if err := start(whole); err != nil {
		t.Fatal(err)
	}
	keys, err := OpenKeys(filepath.Join(whole, "keys"))
	if err == nil {
		_, _, err = keys.Issue("a", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(keys.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := f.Name()
		if name == keysLock {
			continue
		}
		foreign, _ := os.ReadFile(filepath.Join(other, name))
		for what, data := range map[string][]byte{"empty": {}, "damaged": []byte("SAdamaged.e30.x\n"), "another's": foreign} {
			if data == nil {
				continue
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "keys", name)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			err := start(dir)
			if what == "another's" { // another key beside an account that is not its own
				path = filepath.Join(dir, "keys", accountFile)
			}
			if what == "another's" && name == "system.nk" {
				if err != nil { // nothing hangs on it
					t.Errorf("%s of %s: %v", name, what, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "restore the file") {
				t.Errorf("%s %s: %v; want an error that names it and what to do", what, name, err)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "keys", name)); string(after) != string(data) {
				t.Errorf("%s %s was replaced", what, name)
			}
		}
	}
}
