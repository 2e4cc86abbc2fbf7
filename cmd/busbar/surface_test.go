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
		"predict -c dgx-h100:1 --rounds --proto ll":           "--proto has no effect on busbar predict --rounds",
		"predict -c dgx-h100:1 --op moe_dispatch --algo ring": "--algo has no effect",
	} {
		if code, _, errs := calledAs(t, line); code != exitBad || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
}

// TestSpellings: what people write is taken, and old and guessed names are answered with the new ones.
func TestSpellings(t *testing.T) {
	whole := "step -c dgx-h100:2 -m llama3-8b --parallel tp=2,zero=1 --global-batch 32 --micro-batch 2 --seq 4096 --json"
	_, want, _ := calledAs(t, whole)
	for _, line := range []string{
		"step -c dgx-h100:2 -m llama3-8b --tp 2 --zero=1 --batch 32 --mbs 2 --seq-len 4096 --json",
		"step -c dgx-h100:2 -m llama3-8b --parallel tp=2 --zero 1 --gbs=32 --micro-batch-size 2 --seq 4096 --json",
	} {
		if _, got, errs := calledAs(t, line); got != want || want == "" {
			t.Errorf("%s: another answer than %s: %s", line, whole, errs)
		}
	}
	for _, line := range []string{
		"predict 8xh100 --size 1M", "predict h100x8 --size 1M", "predict a100:4 --size 1M", "predict 1xh200 --rounds",
		"predict dgx-h100:2 --nic 400G --size 1M", "predict dgx-h100:2 --nic 100G --size 1M",
		"step -c dgx-h100:1 -m layers=2,hidden=512,heads=8,kv_heads=2,vocab=1000 --micro-batch 1",
		"goodput -c dgx-h100:2 -m gpt2 --price 2.5", "step -c dgx-h100:32 -m qwen3-235b --parallel tp=8,pp=4,ep=8,zero=1",
		"predict -c baskerville --compare 1x4,9x9 --size 1M",
	} {
		if code, _, errs := calledAs(t, line); code > exitWrong {
			t.Errorf("%s: exit %d: %s", line, code, errs)
		}
	}
	for line, says := range map[string]string{
		"why": "busbar doctor", "validate x.jsonl": "busbar calibrate --check", "experts": "busbar predict --op moe_dispatch",
		"models qwen": "busbar list models", "order pairs": "busbar fleet order", "doctor bench x": "busbar doctor TABLE",
		"step --table csv": "--csv and --markdown", "step --goodput": "busbar goodput",
		"predict h10 --size 1M": "h100", "step -c dgx-h100 -m qwen3-236b": "qwen3-235b-a22b",
	} {
		if code, out, errs := calledAs(t, line); code != exitBad || out != "" || !strings.Contains(errs, says) {
			t.Errorf("%s: exit %d: %s%s", line, code, out, errs)
		}
	}
}
