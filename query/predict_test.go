package query

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
)

// TestPredictStops ends a long question soon after whoever asked has gone.
func TestPredictStops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	q := Predict{Cluster: "dgx-h100:64", Algo: "all", Min: "8", Max: "8G", Factor: 1.01}
	done := make(chan error, 1)
	go func() {
		_, err := q.Run(ctx, Env{})
		done <- err
	}()
	stop()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(eventually.Limit):
		t.Fatal("still at work")
	}
}

// TestPredictRepeats gets the same document every time: of links that are equally busy the first in the order of the
// cluster is named, not one by chance.
func TestPredictRepeats(t *testing.T) {
	for cluster, times := range map[string]int{"dgx-h100:64": 5, "../docs/examples/leaf-spine.yaml": 50} {
		first := ""
		for i := range times {
			d, err := Predict{Cluster: cluster, Op: "all_to_all", Size: "64M"}.Run(t.Context(), Env{})
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			if first == "" {
				first = string(text)
			}
			if string(text) != first {
				t.Fatalf("%s, run %d:\n%s\nthe first:\n%s", cluster, i, text, first)
			}
		}
	}
}

// TestZeroValues asks with nothing but a cluster: all else has defaults.
func TestZeroValues(t *testing.T) {
	d, err := Predict{Cluster: "dgx-h100:2"}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Rows) != 25 || d.Rows[0].Size != 8 || d.Rows[0].Dtype != "float" || d.Op.String() != "all_reduce" {
		t.Errorf("%d rows, the first %+v", len(d.Rows), d.Rows[0])
	}
}

// TestTagsHold refuses from a program what the command line refuses.
func TestTagsHold(t *testing.T) {
	for _, c := range []struct {
		q    Predict
		want string
	}{
		{Predict{Cluster: "dgx-h100", Proto: "ll256"}, "expected one of auto, ll, ll128, simple"},
		{Predict{}, "no cluster given"},
		{Predict{Cluster: "dgx-h100", Size: "1M", Min: "8"}, "expected one of them"},
	} {
		if _, err := c.q.Run(t.Context(), Env{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.q, err, c.want)
		}
	}
}

// TestCommandLine says what to type for a question.
func TestCommandLine(t *testing.T) {
	q := Predict{
		Cluster: "dgx-h100:2", Size: "1G", Op: "all_reduce", Factor: 2, Plan: true, Env: []string{"NCCL_ALGO=Ring", "A=b"},
	}
	got := strings.Join(CommandLine([]string{"predict"}, q), " ")
	if want := "busbar predict -c dgx-h100:2 --size 1G --nccl-plan --env NCCL_ALGO=Ring --env A=b"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
