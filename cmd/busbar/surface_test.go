package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestSurface holds the command line to what one can take in: twenty commands, thirty flags of each, 130 in all, and
// help on one screen.
func TestSurface(t *testing.T) {
	code, out, errs := calledAs(t, "list commands --json")
	var doc commandsDoc
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone {
		t.Fatalf("exit %d, %v: %s", code, err, errs)
	}
	if len(doc.Commands) == 0 || len(doc.Commands) > 20 {
		t.Errorf("%d commands; expected at most 20", len(doc.Commands))
	}
	distinct, groups := map[string]bool{"help": true}, map[string]bool{}
	var walk func(list []listedCommand)
	walk = func(list []listedCommand) {
		for _, c := range list {
			if n := len(c.Flags) + 1; n > 30 { // with --help
				t.Errorf("busbar %s has %d flags; expected at most 30", c.Name, n)
			}
			if c.Name != "lab shell" && len(c.Commands) == 0 && len(c.Flags) < 5 {
				t.Errorf("busbar %s lists %d flags; expected those that every command has", c.Name, len(c.Flags))
			}
			for _, f := range c.Flags {
				distinct[f.Name] = true
			}
			oneScreen(t, c.Name)
			walk(c.Commands)
		}
	}
	walk(doc.Commands)
	if len(distinct) > 130 {
		t.Errorf("%d distinct flags; expected at most 130", len(distinct))
	}
	for _, c := range doc.Commands {
		groups[c.Group] = true
	}
	if len(groups) != 6 || groups[""] {
		t.Errorf("groups %v; expected six", groups)
	}
}

// oneScreen holds -h to 40 lines of 80 columns.
func oneScreen(t *testing.T, command string) {
	t.Helper()
	code, out, errs := calledAs(t, command+" -h")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitDone || errs != "" || len(lines) > 40 || !strings.HasPrefix(out, "Usage: busbar "+command) {
		t.Errorf("busbar %s -h: exit %d, %d lines: %s%s", command, code, len(lines), errs, out)
	}
	if !strings.Contains(out, "\nExamples:\n") {
		t.Errorf("busbar %s -h has no example", command)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l); n > 80 {
			t.Errorf("busbar %s -h: %d columns: %s", command, n, l)
		}
	}
}

// TestKeys: every key is a flag of its command, takes a value through --set, and stands in --help.
func TestKeys(t *testing.T) {
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, n := range callable(parser.Model.Children) {
		top, _, _ := strings.Cut(commandWords(n), " ")
		for _, f := range allFlags(n) {
			if isKey(f) {
				used[top+" "+f.Name], used[" "+f.Name] = true, true
				if !strings.Contains(helpText(n, false), "\n  "+f.Name+"=") {
					t.Errorf("busbar %s --help does not list the key %s", commandWords(n), f.Name)
				}
			}
		}
	}
	for command, names := range keys {
		for name := range strings.FieldsSeq(names) {
			if !used[command+" "+name] {
				t.Errorf("%q has no flag %s that could be a key", command, name)
			}
		}
	}
	for line, says := range map[string]string{
		"step -c dgx-h100:1 -m gpt2 --set kernels=odd":        "--kernels must be one of",
		"step -c dgx-h100:1 -m gpt2 --set nothing=1":          "--set nothing=1",
		"step -c dgx-h100:1 -m gpt2 --set mfu=0.4":            "--mfu has no effect on busbar step",
		"predict -c dgx-h100:1 --rounds --size 1M":            "--size has no effect on busbar predict --rounds",
		"predict -c dgx-h100:1 --op moe_dispatch --algo ring": "--algo has no effect",
	} {
		if code, _, errs := calledAs(t, line); code != exitBad || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
}
