package bus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDamagedKeys damages each file of the keys: the server says which one it is and what to do, and makes no other in
// its place.
func TestDamagedKeys(t *testing.T) {
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
		for what, data := range map[string][]byte{"empty": {}, "damaged": []byte("SAdamaged.e30.x\n"), "no": nil} {
			if data == nil && name == issuedFile { // as where nothing was issued
				continue
			}
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "keys", name)
			err := os.WriteFile(path, data, 0o600)
			if data == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = start(dir)
			if err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "restore the file") {
				t.Errorf("%s %s: %v; want an error that names it and what to do", what, name, err)
			}
			if after, _ := os.ReadFile(filepath.Join(dir, "keys", name)); string(after) != string(data) {
				t.Errorf("%s %s was replaced", what, name)
			}
		}
	}
	if err := os.Rename(keys.dir, keys.dir+"-away"); err != nil { // as the error says
		t.Fatal(err)
	}
	if err := start(whole); err != nil {
		t.Error(err)
	}
}

// TestRevokedAhead withdraws credentials that were issued while the clock was ahead.
func TestRevokedAhead(t *testing.T) {
	k, err := OpenKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Issue("no name", 0); err == nil {
		t.Error("credentials for what is no name")
	}
	_, issued, err := k.Issue("ahead", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Revoke("ahead"); err != nil {
		t.Fatal(err)
	}
	a, err := k.claims(nil)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Revocations.IsRevoked(issued.Key, time.Now().Add(1000*time.Hour)) {
		t.Error("credentials of a clock that was ahead are not withdrawn")
	}
}
