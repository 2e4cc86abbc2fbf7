package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"busbar.dev/input/nccltests"
)

// The table is one that readers of nccl-tests' output understand.
func TestBenchTableIsRead(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), strings.NewReader(""), &out, &errs,
		[]string{
			"bench", "-n", "4", "--transport", "mem", "-b", "8", "-e", "64K", "-f", "8", "--iters", "2", "--check",
		}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	r, err := nccltests.ReadOutput("bench", strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tables) != 1 || len(r.Tables[0].Sweeps[0].Points) != 5 || r.Tables[0].NRanks() != 4 {
		t.Errorf("read %d tables of %s", len(r.Tables), out.String())
	}
}

// Programs that are not installed are not the input's fault.
func TestBenchGPUWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var out, errs bytes.Buffer
	if code := run(context.Background(), strings.NewReader(""), &out, &errs,
		[]string{"bench", "gpu"}); code != exitCannot || out.Len() > 0 || !strings.Contains(errs.String(), "not installed") {
		t.Errorf("exit code %d: %s%s", code, out.String(), errs.String())
	}
}
