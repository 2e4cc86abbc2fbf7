package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// doctorRun runs the command and returns its exit code and streams.
func doctorRun(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), strings.NewReader(stdin), &out, &errs, append([]string{"doctor"}, args...))
	return code, out.String(), errs.String()
}

func TestDoctorExitCodes(t *testing.T) {
	const sick = "n1:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000\n"
	dir := t.TempDir()
	log := filepath.Join(dir, "a.log")
	if err := os.WriteFile(log, []byte(sick), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		stdin string
		args  string
		code  int
		says  string
	}{
		{sick, "-", exitWrong, "duplicate-gpu"},
		{"all is well\n", "-", exitDone, "No known fault is named in it. Nothing else was judged."},
		{"import torch\nx = 1\n", "-", exitCannot, "nothing that was given could be examined"},
		{"import torch\nx = 1\n", "- --fail-on never", exitDone, "Nothing in it was recognised"},
		{
			`{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [], "displayTimeUnit": "ms"}`, "-", exitBad,
			"no kernels in this trace",
		},
		{"# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 " +
			"graph: 0\n#\n# Using devices\n#  Rank  0 Group  0 Pid  1 on n1 device  0 [0x10] NVIDIA H100\n#  Rank  1 Group  0 " +
			"Pid  2 on n1 device  1 [0x20] NVIDIA H100\n#\n#       size         count      type   redop    root     time   " +
			"algbw   busbw #wrong     time   algbw   busbw #wrong\n#        (B)    (elements)                               " +
			"(us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n     1048576        262144     float     sum      -1    " +
			"20.00   52.43   52.43      0    20.00   52.43   52.43      0\n# Out of bounds values : 0 OK\n# Avg bus bandwidth " +
			"   : 43.69\n", "-", exitDone, "No problems found"},
		{sick, "- --json", exitWrong, `"id": "duplicate-gpu"`},
		{sick, "- --fail-on never", exitDone, "duplicate-gpu"},
		{sick, "- --format markdown", exitWrong, "####"},
		{"", dir, exitWrong, log + ":1"},
		{"", log, exitWrong, "duplicate-gpu"},
		{"", "", exitBad, "nothing to read"},
		{"", "/no/such/file", exitBad, "no such file"},
		{"", "- -o pdf", exitBad, "expected text"},
		{"", "- --fail-on x", exitBad, `must be one of "note"`},
		{"", "- --mask x", exitBad, "expected addresses"},
		{"a\x00b", "-", exitBad, "binary data"},
	} {
		code, out, errs := doctorRun(t, c.stdin, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("doctor %s: exit %d, want %d with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

// This machine can be read, and nothing about it is told as if somebody had
// complained.
func TestDoctorLive(t *testing.T) {
	code, out, errs := doctorRun(t, "", "--live", "--json")
	if code != exitDone && code != exitWrong || !strings.Contains(out, `"findings"`) || strings.Contains(out, "Possibly") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}
