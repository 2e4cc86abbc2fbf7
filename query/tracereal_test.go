package query_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/query"
)

// exposedOf counts anew, from the raw events of a trace, for how long a kernel of NCCL ran and no other kernel did: the
// ends of all kernels in order, and how many of either kind run between two of them.
func exposedOf(t *testing.T, name string) (ms float64, steps int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []struct {
			Cat, Name string
			TS, Dur   float64
		}
	}
	if err := json.NewDecoder(z).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	type edge struct {
		at   float64
		nccl bool
		by   int
	}
	var edges []edge
	for _, e := range doc.TraceEvents {
		switch {
		case e.Cat == "kernel":
			nccl := strings.Contains(strings.ToLower(e.Name), "nccl")
			edges = append(edges, edge{e.TS, nccl, 1}, edge{e.TS + e.Dur, nccl, -1})
		case e.Cat == "user_annotation" && strings.HasPrefix(e.Name, "ProfilerStep"):
			steps++
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	comm, other, us := 0, 0, 0.0
	for i, e := range edges {
		if i > 0 && comm > 0 && other == 0 {
			us += e.at - edges[i-1].at
		}
		if e.nccl {
			comm += e.by
		} else {
			other += e.by
		}
	}
	return us / 1e3, steps
}

// TestTraceOfDDP reads traces of a real job: four ranks of PyTorch's DDP on one H200, of which the CPU's events but for
// collectives were left out. Exposed communication is what the raw kernels add up to.
func TestTraceOfDDP(t *testing.T) {
	files := []string{
		filepath.Join("testdata", "kineto", "ddp-rank0.json.gz"), filepath.Join("testdata", "kineto", "ddp-rank1.json.gz"),
	}
	d, err := query.Trace{Sources: files}.Run(context.Background(), query.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Ranks) != len(files) {
		t.Fatalf("%d ranks of %d files", len(d.Ranks), len(files))
	}
	for i, r := range d.Ranks {
		want, steps := exposedOf(t, files[i])
		have := float64(r.Exposed) * 1e3 * float64(r.Steps)
		if steps != 4 || r.Steps != steps || r.Kernels < 1000 || math.Abs(have/want-1) > 0.01 {
			t.Errorf("rank %d: %.3f ms exposed in %d steps; the kernels of %d steps add up to %.3f", i, have, r.Steps, steps,
				want)
		}
		if r.World != 4 || r.GPU != "NVIDIA H200" || r.Idle < 0 ||
			math.Abs(float64((r.Compute+r.Exposed+r.Copy+r.Idle)/r.Step)-1) > 1e-6 {
			t.Errorf("rank %d: %+v", i, r)
		}
	}
	if len(d.Calls) == 0 || d.Calls[0].Op != "all_reduce" {
		t.Errorf("%+v", d.Calls)
	}
}
