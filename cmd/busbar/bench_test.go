package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"busbar/input/nccltests"
)

// The table is one that readers of nccl-tests' output understand.
func TestBenchTableIsRead(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), strings.NewReader(""), &out, &errs, []string{"bench", "-n", "4", "--transport", "mem", "-b", "8", "-e", "64K", "-f", "8", "--iters", "2", "--check"}); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	r, err := nccltests.ReadResult("bench", strings.NewReader(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tables) != 1 || len(r.Tables[0].Rows) != 5 || r.Tables[0].NRanks() != 4 {
		t.Errorf("read %d tables of %s", len(r.Tables), out.String())
	}
}
