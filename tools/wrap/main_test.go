package main

import (
	"strings"
	"testing"
)

func TestWrapFile(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, c := range []struct{ name, in, out string }{
		{
			"arguments fill lines",
			"func f() { call(" + strings.Repeat("argument, ", 14) + "last) }",
			"func f() {\n\tcall(" + strings.Repeat("argument, ", 10) + "argument,\n\t\targument, argument, argument, last)\n}",
		},
		{
			"a literal is opened",
			"var x = T{" + strings.Repeat("field: value, ", 9) + "last: value}",
			"var x = T{\n\t" + strings.Repeat("field: value, ", 7) + "field: value,\n\tfield: value, last: value,\n}",
		},
		{
			"a condition ends with its operator",
			"func f() { if " + strings.Repeat("condition && ", 9) + "last { return } }",
			"func f() {\n\tif " + strings.Repeat("condition && ", 8) + "condition &&\n\t\tlast {\n\t\treturn\n\t}\n}",
		},
		{
			"a text is cut at a blank",
			"var x = \"" + long + "\"",
			"var x = \"" + strings.Repeat("word ", 21) + "\" +\n\t\"" + strings.Repeat("word ", 9) + "\"",
		},
		{
			"a paragraph is filled, a directive and a list are not",
			"// F is " + long + "\n// and more.\n//\n//   - a list\n//\n//go:noinline\nfunc F() {}",
			"// F is " + strings.Repeat("word ", 21) + "word\n// " + strings.Repeat("word ", 8) +
				"and more.\n//\n//   - a list\n//\n//go:noinline\nfunc F() {}",
		},
		{
			"what an example prints stays",
			"func F() {\n\tf()\n\t// Output:\n\t// " + strings.TrimSpace(long) + "\n\t// more\n}",
			"func F() {\n\tf()\n\t// Output:\n\t// " + strings.TrimSpace(long) + "\n\t// more\n}",
		},
		{
			"a comment behind code goes above it",
			"func f() {\n\tcall() // " + strings.TrimSpace(long[:115]) + "\n}",
			"func f() {\n\t// " + strings.TrimSpace(long[:115]) + "\n\tcall()\n}",
		},
		{
			"a tag stays", "type T struct {\n\tA int `help:\"" + long + "\"`\n}",
			"type T struct {\n\tA int `help:\"" + long + "\"`\n}",
		},
	} {
		got, err := wrapFile([]byte("package x\n\n" + c.in + "\n"))
		if want := "package x\n\n" + c.out + "\n"; err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, want)
		}
		again, err := wrapFile(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("%s: not the same when wrapped again: %v\n%s", c.name, err, again)
		}
	}
}
