package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestGrammar holds the grammar of one command to be that command's part of the whole.
func TestGrammar(t *testing.T) {
	whole, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range whole.Model.Children {
		part, err := newParser([]string{n.Name})
		if err != nil {
			t.Fatalf("%s: %v", n.Name, err)
		}
		if n.Name == "completion" || n.Name == "man" || n.Name == "list" { // which are about all commands
			if len(part.Model.Children) != len(whole.Model.Children) {
				t.Errorf("%s: %d commands", n.Name, len(part.Model.Children))
			}
			continue
		}
		if len(part.Model.Children) != 1 {
			t.Errorf("%s: %d commands; expected itself alone", n.Name, len(part.Model.Children))
			continue
		}
		if got, want := outline(part.Model.Children[0]), outline(n); got != want {
			t.Errorf("%s is\n%s\nin the whole\n%s", n.Name, got, want)
		}
		if got, want := outline(part.Model.Node),
			outline(whole.Model.Node); strings.Split(got, "\n")[0] != strings.Split(want, "\n")[0] {
			t.Errorf("%s: the program's own flags are\n%s\nin the whole\n%s", n.Name, got, want)
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"stepp"}, {"Step"}, {""}} {
		part, err := newParser(args)
		if err != nil || len(part.Model.Children) != len(whole.Model.Children) {
			t.Errorf("%q: %v; expected all commands", args, err)
		}
	}
}

// outline is a command with its flags and what is below it, as text.
func outline(n *kong.Node) string {
	var b strings.Builder
	b.WriteString(n.Help)
	for _, f := range n.Flags {
		b.WriteString(" --" + f.Name + "=" + f.Default)
	}
	for _, p := range n.Positional {
		b.WriteString(" " + p.Name)
	}
	for _, c := range n.Children {
		b.WriteString("\n" + c.Name + outline(c))
	}
	return b.String()
}
