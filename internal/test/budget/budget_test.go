package budget

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestRatchet adds a function without room and deletes one, in a checkout of its own.
func TestRatchet(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	count := func() Counts {
		t.Helper()
		c, err := Checkout(root)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	git("init", "-q")
	const one, two, three = "func one() int { return 1 }\n", "func two() int { return 2 }\n",
		"func three() int { return 3 }\n"
	write("a/a.go", "package a\n\n// One says one.\n"+one+two)
	write("a/a_test.go", "package a\n"+one)
	write("a/testdata/x.go", "package x\n"+one)
	write("tools/t.go", "package main\n"+one)
	write("README.md", "three words here\n")
	write("a/words.csv", "seven\n,")
	write("a/data/machines.csv", "as many as are sold\n")
	first := count()
	if first["tokens a"] != 20 || first["tokens all"] != 20 || first["tests"] != 11 || first["tokens tools"] != 11 ||
		first["words of documents"] != 3 || first["bytes of embedded data"] != 7 {
		t.Fatalf("%v", first)
	}
	limit, err := Read([]byte(first.Text()))
	if err != nil || len(limit.Over(first)) > 0 {
		t.Fatalf("%v, %v: %v", limit, err, limit.Over(first))
	}
	write("a/more.go", "package a\n"+three) // not known to git yet
	if got := limit.Over(count()); len(got) != 3 {
		t.Fatalf("a function without room: %q", got)
	}
	write("a/a.go", "package a\n")
	write("a/more.go", "package a\n"+three)
	low := limit.Lowered(count())
	if low["tokens a"] != 13 || low["tokens all"] != 13 || !slices.Equal(low.Over(count()), []string{
		"tests are 0.85 of the code's tokens; expected 0.5 to 0.8",
	}) {
		t.Fatalf("after a function went: %v, %q", low, low.Over(count()))
	}
	write("a/a.go", "package a\n"+one+two)
	if got := low.Over(count()); len(got) != 3 {
		t.Fatalf("what was taken out came back: %q", got)
	}
}

func TestRead(t *testing.T) {
	for _, text := range []string{"x\n", "tokens a many\n", " 5\n", "a 1\na 2\n"} {
		if c, err := Read([]byte(text)); err == nil && c[""] == 0 {
			t.Errorf("%q: %v", text, c)
		}
	}
}
