package main

import (
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/ask"
)

// tabled are the commands that print tables, with arguments that make them
// print one. FLEET stands for the server's folder. Those of ask print one by their first example.
var tabled = map[string]string{
	"map":               "map dgx-h100:2",
	"bench":             "bench -n 2 -b 8 -e 64 -f 8 --iters 1 --warmup 0",
	"bench pairs":       "bench pairs -n 2 --size 4K --iters 1",
	"bench step":        "bench step -n 2 -m layers=2,hidden=64,vocab=128 --compute 1ms --iters 1",
	"bench gpu":         "bench gpu --by nccl-tests -g 8 -b 1K -e 1K --algos ring --protos ll",
	"diff":              "diff docs/examples/before.jsonl docs/examples/after.jsonl",
	"predict":           "predict -c dgx-h100:2 --size 1M",
	"calibrate":         "calibrate -c p5:2 --nccl 2.28 docs/examples/two-nodes.log",
	"step":              "step -c dgx-h100:2 -m llama3-8b --parallel zero=3",
	"list":              "list presets",
	"goodput":           "goodput -c dgx-h100:2 -m llama3-8b --parallel zero=3",
	"plan":              "plan -c dgx-h100:2 -m llama3-8b --global-batch 64",
	"place":             "place -c dgx-h100:4 -m llama3-8b --parallel zero=3 --nodes 2 --free node[0-3]",
	"doctor":            "doctor docs/examples/job.log",
	"hang":              "hang docs/examples/hang",
	"jobs":              "jobs docs/examples/jobs -c dgx-h100:2",
	"check":             "check -n 2 --size 4K",
	"fleet nodes":       "fleet nodes --data FLEET",
	"fleet order list":  "fleet order list --all --data FLEET",
	"fleet order pairs": "fleet order pairs --wait --data FLEET",
	"serve token list":  "serve token list --data FLEET",
}

// untabled are the commands whose output is no table, and those whose tables are tried elsewhere.
var untabled = map[string]string{
	"lab":                    "only has subcommands",
	"lab up":                 "needs root; its table is that of lab status",
	"lab exec":               "prints what the program prints",
	"lab shell":              "is a shell",
	"lab status":             "needs root; testdata/script/lab.txtar",
	"lab down":               "one line",
	"lab fault":              "one line",
	"lab heal":               "one line",
	"bench rdma":             "needs perftest and ports; TestTablesAreTaken in report",
	"bench gpu pairs":        "needs GPUs; its report is that of bench pairs",
	"bench gpu node":         "needs GPUs; TestTablesAreTaken in report",
	"fleet order":            "only has subcommands",
	"fleet order watch":      "its report is that of order pairs",
	"fleet order collective": "TestTablesAreTaken in report",
	"fleet order gpu":        "as order collective and order pairs; TestOrderGPU",
	"fleet order rdma":       "as order pairs; TestOrderRDMA",
	"fleet order check":      "a hostlist for a scheduler",
	"fleet order cancel":     "one line per order",
	"serve":                  "runs until it is stopped",
	"serve token":            "only has subcommands",
	"serve token add":        "one token",
	"serve token revoke":     "one line",
	"serve token node":       "credentials",
	"agent":                  "runs until it is stopped",
	"exec":                   "becomes another program",
	"fleet":                  "only has subcommands",
	"fleet links":            "needs measurements over time; TestTablesAreTaken in report",
}

// TestEveryTable: whatever prints a table prints it as CSV and as Markdown, and chosen columns of it. A command
// has to be in one of the two lists.
func TestEveryTable(t *testing.T) {
	if testing.Short() {
		t.Skip("computes, and takes minutes under the race detector")
	}
	parser, err := newParser(nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range callable(parser.Model.Children) {
		names = append(names, commandWords(n))
	}
	f := newServedFleet(t)
	f.join("gpu01", "gpu02")
	if code, _, errs := f.busbar("fleet", "order", "pairs", "--wait"); code != exitDone {
		t.Fatal(errs)
	}
	for _, name := range names {
		args := tabled[name]
		if q := ask.Named(name); q != nil && q.Group != "" {
			args = firstExample(q)
		}
		if args == "" {
			if untabled[name] == "" {
				t.Errorf("busbar %s is new: does it print a table? Put it into tabled or untabled", name)
			}
			continue
		}
		t.Run(strings.ReplaceAll(name, " ", "_"),
			func(t *testing.T) {
				everyFormat(t, strings.Fields(strings.ReplaceAll(args, "FLEET", f.data)), true)
			})
	}
	for name := range tabled {
		if !slices.Contains(names, name) || untabled[name] != "" {
			t.Errorf("busbar %s: no such command, or in both lists", name)
		}
	}
}

// everyFormat runs a command for its tables as CSV, and for the first column of the first as Markdown. Where it need
// not have one, it may say so instead.
func everyFormat(t *testing.T, args []string, must bool) {
	text := tableOutput(t, append(args, "--csv")...)
	if text == "" && !must {
		return
	}
	first, _, _ := strings.Cut(text, "\n\n")
	rows, err := csv.NewReader(strings.NewReader(first + "\n")).ReadAll() // which refuses rows of unequal lengths
	if err != nil || len(rows) < 2 {
		t.Fatalf("%d rows, %v:\n%s", len(rows), err, text)
	}
	head := rows[0][slices.IndexFunc(rows[0], func(h string) bool { return h != "" })]
	name, _, _ := strings.Cut(head, " (")
	text = tableOutput(t, append(args, "--markdown", "--columns", name)...)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) < 3 || lines[0] != "| "+head+" |" && lines[0] != "| "+name+" |" || !strings.HasPrefix(lines[1], "| --") {
		t.Errorf("--columns %q:\n%s", name, text)
	}
	for _, l := range lines {
		if l != "" && !strings.HasPrefix(l, "| ") {
			t.Errorf("not a line of a table: %q", l)
		}
	}
}

// tableOutput is what a process of the command prints, in the root of the sources: ranks are processes too, and their
// tables come through it.
func tableOutput(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	cmd := &exec.Cmd{Path: self, Args: append([]string{"busbar"}, args...), Dir: root, Stderr: &errs}
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code > exitWrong && !strings.Contains(errs.String(), "has no table") {
		t.Fatalf("busbar %s: exit code %d, %v\n%s%s", strings.Join(args, " "), code, err, out, errs.String())
	}
	return string(out)
}
