package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNamesPackages holds the table of ARCHITECTURE.md to the packages that exist: each is named there, and
// nothing else is. input/<tool> stands for every reader, internal/* for everything below internal.
func TestArchitectureNamesPackages(t *testing.T) {
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cell, ok := strings.CutPrefix(line, "| `"); ok {
			cell, _, _ = strings.Cut("`"+cell, " | ")
			for _, q := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				for _, name := range braces(q[1]) {
					named[name] = true
				}
			}
		}
	}
	if len(named) < 40 {
		t.Fatalf("only %d names in the table", len(named))
	}
	for _, p := range all(t) {
		path := strings.TrimPrefix(p.ImportPath, module+"/")
		reader := strings.HasPrefix(path, "input/")
		if !named[path] && !reader && !strings.HasPrefix(path, "internal/") {
			t.Errorf("%s is not in the table of ARCHITECTURE.md", path)
		}
	}
	for name := range named {
		dir := strings.TrimSuffix(strings.TrimSuffix(name, "/*"), "/<tool>")
		if info, err := os.Stat(filepath.Join("../..", dir)); err != nil || !info.IsDir() {
			t.Errorf("ARCHITECTURE.md names %s, which is no folder", name)
		}
	}
}

// braces writes a/{b,c} out: a/b, a/c.
func braces(name string) []string {
	head, rest, ok := strings.Cut(name, "{")
	if !ok {
		return []string{name}
	}
	inside, tail, _ := strings.Cut(rest, "}")
	var list []string
	for x := range strings.SplitSeq(inside, ",") {
		list = append(list, head+x+tail)
	}
	return list
}

// TestIndexNamesDocuments holds docs/README.md to the documents that exist: each is reachable from there. The manual's
// pages are TestManualLinks's of cmd/busbar, which writes their links.
func TestIndexNamesDocuments(t *testing.T) {
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, pattern := range []string{"*.md", "*/*.md"} {
		files, _ := filepath.Glob("../../docs/" + pattern)
		for _, f := range files {
			name, _ := filepath.Rel("../../docs", f)
			count++
			if name != "README.md" && filepath.Dir(name) != "manual" &&
				!strings.Contains(string(index), "("+filepath.ToSlash(name)+")") {
				t.Errorf("docs/README.md does not link %s", name)
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d documents", count)
	}
}
