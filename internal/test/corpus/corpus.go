// Package corpus finds the real samples that tests read where they lie.
//
// The samples are other people's data and are not part of this repository. A
// test that needs one is skipped, with the reason, when the folder is absent: it
// adds to the tests on synthetic samples (internal/test/synth), which stand alone.
// It is looked for in $BUSBAR_SHARED, else in a folder named shared beside the
// repository.
package corpus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dir returns the folder that holds corpus/, truth/ and the rest, or skips the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("BUSBAR_SHARED")
	if dir == "" {
		dir = filepath.Join(filepath.Dir(root(t)), "shared")
	}
	if _, err := os.Stat(filepath.Join(dir, "corpus")); err != nil {
		t.Skipf("an additional pass over real samples, which are not here: %v; set BUSBAR_SHARED to their folder", err)
	}
	return dir
}

// root is the repository's folder: the nearest one above the test's with a go.mod. What the compiler recorded does not
// tell it, for programs are built with -trimpath too.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatalf("no go.mod above %s", dir)
		}
	}
}

// Open reads one sample, named as in INDEX.jsonl.
func Open(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(t), "corpus", filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Read reads a file and its name, unpacked by the program xz where it was packed so; without that program the test is
// skipped.
func Read(t testing.TB, path string) (name string, data []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if name = strings.TrimSuffix(filepath.Base(path), ".xz"); err == nil && name != filepath.Base(path) {
		if _, err := exec.LookPath("xz"); err != nil {
			t.Skip("samples are packed: ", err)
		}
		data, err = exec.CommandContext(t.Context(), "xz", "-dc", path).Output()
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return name, data
}

// Entry is one line of INDEX.jsonl.
type Entry struct {
	File     string         `json:"file"`
	Format   string         `json:"format"`
	Kind     string         `json:"kind"`
	Hardware string         `json:"hardware"`
	MustFind string         `json:"must_find"`
	Quirks   string         `json:"quirks"`
	Facts    map[string]any `json:"facts"`
}

// Index lists the samples of the given formats, all of them when none is given.
func Index(t testing.TB, formats ...string) []Entry {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(t), "corpus", "INDEX.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Entry
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var e Entry
		if err := json.Unmarshal(sc.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		for _, f := range formats {
			if e.Format == f {
				all = append(all, e)
			}
		}
		if len(formats) == 0 {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		t.Fatalf("INDEX.jsonl lists no sample of %q", formats)
	}
	return all
}
