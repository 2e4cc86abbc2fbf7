package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGPUs makes busbar-gpu and a stand-in for the libraries of GPUs, and sets the environment for them.
func fakeGPUs(t *testing.T) (helper string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds a program")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler: the stand-in for the GPU's libraries cannot be built")
	}
	dir := t.TempDir()
	helper, library := filepath.Join(dir, "busbar-gpu"), filepath.Join(dir, "libfake.so")
	if out, err := exec.Command(cc, "-O1", "-w", "-shared", "-fPIC", "-o", library,
		"../../engine/device/native/testdata/fakegpu.c", "-lm").CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	build := exec.Command("go", "build", "-o", helper, "busbar.dev/cmd/busbar-gpu")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, name := range []string{"CUDA", "NCCL", "NVML", "CUBLASLT"} {
		t.Setenv("BUSBAR_"+name, library)
	}
	return helper
}

func busbarRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), strings.NewReader(""), &out, &errs, args)
	return code, out.String(), errs.String()
}

// bench gpu runs collectives, pairs and a node by busbar-gpu, keeps results that others read, and exits by what it
// found.
func TestBenchGPUOwn(t *testing.T) {
	helper := fakeGPUs(t)
	kept := filepath.Join(t.TempDir(), "gpu.jsonl")
	t.Setenv("FAKE_GPUS", "2")
	t.Setenv("FAKE_NAME", "NVIDIA H100 80GB HBM3")
	code, out, errs := busbarRun(t, "bench", "gpu", "--busbar-gpu", helper, "--op", "all", "-b", "1K", "-e", "32K", "-f",
		"32", "-n", "4", "--iters", "1", "-w", "1", "--check", "-o", kept)
	if code != 0 || strings.Count(out, "# Collective test starting: ") != 9 || strings.Count(out, " float ") != 18 ||
		!strings.Contains(out, "4 ranks share 2 GPUs") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	text := filepath.Join(t.TempDir(), "table.txt")
	if err := os.WriteFile(text, []byte(out[strings.Index(out, "# all_reduce"):strings.Index(out, "# reduce_scatter")]),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{kept, text} { // as records, and as nccl-tests' table
		if code, out, errs := busbarRun(t, "calibrate", "--check", "-c", "dgx-h100:4", "-l", "4x1", "--nccl", "2.28",
			file); code > exitWrong || !strings.Contains(out, "predicted") {
			t.Errorf("validate %s: %d\n%s\n%s", file, code, out, errs)
		}
	}
	if code, out, errs := busbarRun(t, "bench", "gpu", "pairs", "--busbar-gpu", helper, "--size", "64K", "--iters", "1",
		"--check", "-n", "3"); code != 0 || !strings.Contains(out, "3 ranks, 3 pairs, transport nccl") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	if code, out, errs := busbarRun(t, "bench", "gpu", "node", "--busbar-gpu", helper, "--size", "64K", "--iters", "1",
		"--shapes", "16x16x16:half"); code != 0 || !strings.Contains(out, "copies between GPUs") ||
		!strings.Contains(out, "16x16x16") {
		t.Errorf("%d\n%s\n%s", code, out, errs)
	}
	t.Setenv("FAKE_WRONG", "1")
	if code, out, errs := busbarRun(t, "bench", "gpu", "--busbar-gpu", helper, "-b", "4K", "-e", "4K", "-n", "2",
		"--iters", "1", "--check"); code != exitWrong {
		t.Errorf("wrong sums: %d\n%s\n%s", code, out, errs)
	}
	t.Setenv("BUSBAR_NCCL", "/nowhere/libnccl.so.2")
	if code, _, errs := busbarRun(t, "bench", "gpu", "--busbar-gpu", helper, "-n", "2"); code != exitCannot ||
		!strings.Contains(errs, "libnccl.so.2 (NCCL) could not be loaded") ||
		!strings.Contains(errs, "tried /nowhere/libnccl.so.2") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := busbarRun(t, "bench", "gpu", "--busbar-gpu", "/nowhere/busbar-gpu"); code != exitCannot ||
		!strings.Contains(errs, "/nowhere/busbar-gpu") {
		t.Errorf("%d %s", code, errs)
	}
}
