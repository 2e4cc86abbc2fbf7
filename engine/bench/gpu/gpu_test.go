package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/engine/ranks"
	"busbar.dev/nccl"
)

// fake is an all_reduce_perf that takes 30 µs by NCCL's choice, 20 by the ring and 40 by the tree, and knows no LL128.
func fake(_ context.Context, args []string, w io.Writer) error {
	us := 30
	switch {
	case slices.Contains(args, "NCCL_PROTO=ll128"):
		fmt.Fprintln(w, "node0: Test NCCL failure common.cu:958 'invalid usage'")
		return errors.New("exit status 3")
	case slices.Contains(args, "NCCL_ALGO=ring"):
		us = 20
	case slices.Contains(args, "NCCL_ALGO=tree"):
		us = 40
	}
	fmt.Fprintf(w, "# nThread 1 nGpus 2 minBytes 1024 maxBytes 1024 step: 4(factor) warmup iters: 5 iters: 20 agg "+
		"iters: 1 validation: 0 graph: 0\n#\n"+
		"# Using devices\n#  Rank  0 Group  0 Pid   100 on node0 device  0 [0x07] NVIDIA H100\n#  Rank  1 Group  0 Pid   "+
		"101 on node0 device  1 [0x0a] NVIDIA H100\n#\n"+
		"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "+
		"#wrong\n"+
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"+
		"        1024           256     float     sum      -1    %d.00    0.05    0.05    N/A    %d.00    0.05    0.05    "+
		"N/A\n# Avg bus bandwidth    : 0.05\n", us, us)
	return nil
}

func TestBest(t *testing.T) {
	test := &Test{
		Program: "/opt/all_reduce_perf", Kind: coll.AllReduce, Min: 1024, Max: 1024, Factor: 4, Warm: 5, Iters: 20, GPUs: 2,
		Cluster: "c",
	}
	var got Results
	refused := 0
	settings := Settings([]nccl.Algo{nccl.Ring, nccl.Tree, nccl.NVLS}, []nccl.Proto{nccl.LL128, nccl.Simple}, []int{0, 8})
	if len(settings) != 1+5+1+5 || !settings[0].Auto() || settings[11].String() != "nvls/simple, 8 channels" {
		t.Fatalf("settings %v", settings)
	}
	for _, s := range settings {
		list, _, err := test.Measure(context.Background(), fake, s)
		if err != nil {
			if !strings.Contains(err.Error(), "exit status 3") || s.Proto != "ll128" {
				t.Errorf("%v: %v", s, err)
			}
			refused++
			continue
		}
		if x := list[0]; x.Cluster != "c" || x.Points[0].Channels != s.Channels || x.Ranks != 2 {
			t.Errorf("%v: %+v", s, x)
		}
		got.Add(s, list)
	}
	got.Find()
	best := got.Rows
	if got.Settings != 8 || refused != 4 || len(best) != 1 || best[0].Auto.Micros() != 30 || best[0].Time.Micros() != 20 ||
		best[0].Setting.Algo != "ring" ||
		best[0].Lost != 0.5 {
		t.Errorf("%d refused, best %+v", refused, best)
	}
}

// A program that cannot be started says so, and nothing else.
func TestUnstarted(t *testing.T) {
	test := &Test{Program: "/nowhere", Kind: coll.AllReduce}
	_, _, err := test.Measure(context.Background(), func(context.Context, []string, io.Writer) error {
		return &ranks.StartError{Program: "/nowhere", Err: errors.New("no such file")}
	}, Setting{Algo: "auto", Proto: "auto"})
	if err == nil || err.Error() != "/nowhere: no such file" {
		t.Errorf("%v", err)
	}
}
