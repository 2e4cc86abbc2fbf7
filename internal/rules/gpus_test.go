package rules

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"busbar.dev/hardware"
)

// TestNoGPUNames holds Go to decide by columns of the catalogue and not by a GPU's name, which the next GPU does not
// have: no string is one, nor an alternative of an expression. Sentences may have one as an example; tests and figures
// that were fitted to runs on a GPU name it.
func TestNoGPUNames(t *testing.T) {
	names := map[string]bool{}
	for _, m := range hardware.GPUs() {
		chip, _, _ := strings.Cut(m.Name, "-")
		for _, n := range append([]string{m.Name, m.Title, chip}, m.Names...) {
			names[strings.ToLower(n)] = true
		}
	}
	for _, file := range sources(t) {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text[:min(len(text), 400)], []byte("DO NOT EDIT")) {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			l, ok := n.(*ast.BasicLit)
			if !ok || l.Kind != token.STRING {
				return true
			}
			s, err := strconv.Unquote(l.Value)
			if err != nil {
				t.Fatal(err)
			}
			for part := range strings.SplitSeq(strings.ToLower(s), "|") {
				if names[strings.TrimSpace(strings.ReplaceAll(part, `\b`, ""))] {
					t.Errorf("%s: %q names a GPU; expected a column of hardware/data/gpus.csv that says what it is about it",
						set.Position(l.Pos()), part)
				}
			}
			return true
		})
	}
}

// sources are the files of programs, tests and modules of their own apart.
func sources(t *testing.T) (list []string) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "*.go").Output()
	if err != nil {
		t.Skip("not in a checkout:", err)
	}
	for _, f := range strings.Fields(string(out)) {
		if !strings.HasSuffix(f, "_test.go") && !strings.HasPrefix(f, "tools/") && !strings.HasPrefix(f, "internal/test/") &&
			!strings.Contains(f, "testdata/") {
			list = append(list, f)
		}
	}
	return list
}
