//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestBenchUsage: what cannot be is found before anything is started, and the exit code says
// whose fault it is.
func TestBenchUsage(t *testing.T) {
	dir := t.TempDir()
	one := selfSigned(t, dir)
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	two := selfSigned(t, other)
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"bench -n 0", exitBad, "--ranks 0: expected 1 or more\nsee: busbar bench --help"},
		{"bench --ranks=-3", exitBad, "--ranks -3: expected 1 or more"},
		{"bench --channels 0", exitBad, "--channels 0: expected 1 or more"},
		{"bench --conns 0", exitBad, "--conns 0: expected from 1 to 64"},
		{"bench --conns 100000", exitBad, "--conns 100000: expected from 1 to 64"},
		{"bench --timeout 0", exitBad, "--timeout 0s: expected 50ms or more"},
		{"bench --timeout 1ns", exitBad, "--timeout 1ns: expected 50ms or more"},
		{"bench --iters 0", exitBad, "--iters 0: expected 1 or more"},
		{"bench --bind nosuch0", exitBad, `"nosuch0": neither an address nor an interface`},
		{"bench -n 2 --rank 2 --meet ./x", exitBad, "rank 2 of 2; ranks are 0 to 1"},
		{"bench -n 2 --rank=-1 --meet ./x", exitBad, "--rank -1: expected 0 or more"},
		{"bench -n 2 --meet ./x", exitBad, "--meet needs --rank"},
		{"bench -n 2 --rank 0 --meet localhost", exitBad, "expected host:port"},
		{"bench -n 2 --rank 0 --meet localhost:99999", exitBad, "from 1 to 65535"},
		{"bench --tls-cert no.pem --tls-key no.pem --tls-ca no.pem", exitBad, "no.pem: no such file"},
		{
			"bench --tls-cert " + one[0] + " --tls-key " + two[1] + " --tls-ca " + one[0], exitBad, "private key does not match",
		},
		{"bench -n 2 -e 1T", exitCannot, "not enough memory: 2 ranks of 2048.01 GiB need 4096.02 GiB, and "},
		{"bench -n 2 -e 17T", exitBad, "-e 17T: at most 16 TiB"},
		{"bench -n 2 -e 8 -o " + dir + "/none/x.jsonl", exitCannot, "none/x.jsonl: cannot write there: no such file"},
		{"bench -n 2 -e 8 -o " + dir, exitBad, "a folder; give a file name in it"},
		{"bench -n 2 -e 8 -o - --json", exitBad, "both want standard output"},
		{"bench pairs -n 2 -o " + dir + "/none/x.svg", exitCannot, "none/x.svg: cannot write there"},
		{"bench pairs -n 2 --conns x", exitBad, "see: busbar bench pairs --help"},
		{"bench pairs -n 2 --iters 0", exitBad, "see: busbar bench pairs --help"},
		{"bench step -m gpt2 -n 2 -o " + dir + "/none/x.json", exitCannot, "none/x.json: cannot write there"},
		{"bench step -m gpt2 -n 2 --compute 0s", exitBad, "--compute 0s: expected 1us or more"},
		{"bench step -m llama2-70b -n 64", exitCannot, "not enough memory: 64 ranks of "},
		{"bench gpu -c nosuch", exitBad, "-c: nosuch: no such file"},
		{"bench gpu --timeout 0", exitBad, "--timeout 0s: expected 1ms or more"},
		{"bench gpu --repeat 0", exitBad, "--repeat 0: expected from 1 to 1000\nsee: busbar bench gpu --help"},
		{"bench diff", exitBad, "bench diff is now: busbar diff"},
		{"diff", exitBad, "see: busbar diff --help"},
	} {
		var out, errs bytes.Buffer
		code := run(context.Background(), strings.NewReader(""), &out, &errs, strings.Fields(tt.args))
		if code != tt.code || out.Len() > 0 || !strings.Contains(errs.String(), tt.says) {
			t.Errorf("%s: exit code %d, %q, %q; expected %d, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.says)
		}
	}
	var names []string
	list, _ := os.ReadDir(dir)
	for _, x := range list {
		names = append(names, x.Name())
	}
	if len(names) != 3 {
		t.Errorf("left behind: %q", names)
	}
}

// TestHelpSentences: no sentence of a command's help has more than 30 words; what stands between parentheses, colons
// and semicolons counts by itself. internal/rules holds the help of flags to the same.
func TestHelpSentences(t *testing.T) {
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	end := regexp.MustCompile(`[.;:] |[()\n]`)
	for _, n := range callable(parser.Model.Children) {
		text, _, _ := strings.Cut(strings.ReplaceAll(helpSection(commandWords(n)), "\n", " "), "Examples:")
		for _, s := range append(end.Split(text, -1), end.Split(n.Help, -1)...) {
			if k := len(strings.Fields(s)); k > 30 {
				t.Errorf("busbar %s --help: a sentence of %d words: %s", commandWords(n), k, s)
			}
		}
	}
}

// TestBenchParcel: the variable that ranks get from us is nobody else's to set.
func TestBenchParcel(t *testing.T) {
	for _, word := range []string{"1", "x"} {
		t.Setenv("BUSBAR_PARCEL", word)
		var out, errs bytes.Buffer
		if code := run(context.Background(), strings.NewReader(""), &out, &errs,
			[]string{"bench", "-n", "2", "-e", "8"}); code != exitBad || !strings.Contains(errs.String(), "unset it") {
			t.Errorf("%s: exit code %d: %s", word, code, errs.String())
		}
	}
}

func TestBenchGPUDryRun(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(context.Background(), strings.NewReader(""), &out, &errs, []string{
		"bench", "gpu", "--dry-run", "--json", "--algos", "ring", "--protos", "ll", "--launch", `mpirun -x "A=b c"`,
	})
	var doc struct {
		Commands []struct {
			Setting string
			Env     map[string]string
			Args    []string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out.String(), errs.String())
	}
	if len(doc.Commands) != 2 || doc.Commands[1].Env["NCCL_ALGO"] != "ring" || doc.Commands[0].Args[2] != "A=b c" {
		t.Errorf("%+v", doc)
	}
}

// TestWritable: to try whether a file can be written neither makes one nor changes one.
func TestWritable(t *testing.T) {
	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	if err := os.WriteFile(kept, []byte("words"), 0o640); err != nil {
		t.Fatal(err)
	}
	e := &env{}
	for _, name := range []string{"", "-", kept, filepath.Join(dir, "new"), "/dev/null", "/dev/stderr"} {
		if err := e.writable(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{dir, filepath.Join(dir, "none", "x"), filepath.Join(kept, "x")} {
		if err := e.writable(name); err == nil {
			t.Errorf("%q can be written", name)
		}
	}
	list, _ := os.ReadDir(dir)
	data, _ := os.ReadFile(kept)
	if len(list) != 1 || string(data) != "words" {
		t.Errorf("%v, %q", list, data)
	}
}

// TestShortHelpHasExamples: -h of a command whose help has examples shows one that fits its width.
func TestShortHelpHasExamples(t *testing.T) {
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range callable(parser.Model.Children) {
		if strings.Contains(helpText(n, true), "Examples:\n\n") {
			t.Errorf("busbar %s -h has no example", commandWords(n))
		}
	}
}
