package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"busbar.dev/ask"
)

// TestSeeds holds docs/seeds.md to what there is: every command and flag that it names, and every test.
func TestSeeds(t *testing.T) {
	text, err := os.ReadFile("../../docs/seeds.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for f := range reflect.TypeFor[command]().Fields() {
		known[strings.ToLower(f.Name)] = true
	}
	for _, q := range ask.Questions {
		known[strings.Fields(q.Name)[0]] = true
	}
	for _, m := range regexp.MustCompile("`busbar ([a-z]+)").FindAllStringSubmatch(string(text), -1) {
		if !known[m[1]] {
			t.Errorf("docs/seeds.md names a command that there is not: %s", m[0])
		}
	}
	tests := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range definition.FindAllSubmatch(data, -1) {
			tests[strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")+"."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[3]) == "test" {
			continue
		}
		rows++
		for name := range strings.SplitSeq(cells[3], ",") {
			if name = strings.TrimSpace(name); !tests[name] {
				t.Errorf("no test %q, which docs/seeds.md names", name)
			}
		}
	}
	if rows < 45 {
		t.Errorf("%d rows; is the table cut off?", rows)
	}
}
