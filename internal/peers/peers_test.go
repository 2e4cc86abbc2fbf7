package main

import (
	"strings"
	"testing"
)

func TestRows(t *testing.T) {
	got, err := rows("Open MPI", "all_reduce", "noise\nrow 8 400 1.250\nrow 64 400 bad\nrow 512 10 3\n")
	if err != nil || len(got) != 2 || got[8] != 1.25 || got[512] != 3 {
		t.Errorf("read %v, %v", got, err)
	}
	const doc = `{"rows":[{"size_bytes":8,"time_us":{"mean":2},"in_place":{"time_us":{"mean":1}}}]}`
	for op, want := range map[string]float64{"all_reduce": 1, "all_gather": 2} {
		if got, err := rows(us, op, doc); err != nil || got[8] != want {
			t.Errorf("%s: read %v, %v; want %v", op, got, err, want)
		}
	}
	for _, bad := range []string{"", "{}", "[1]"} {
		if _, err := rows(us, "all_reduce", bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// Quiet rounds count where there are two, the faster algorithm of a side counts, and what misses
// its goal is bold.
func TestReport(t *testing.T) {
	b := &book{machine: &machine{}, samples: map[key][]sample{}}
	add := func(side string, list ...sample) { b.samples[key{"tcp", "all_reduce", 2, 16 << 20, side}] = list }
	add(us, sample{100, 0.5, 0}, sample{10, 0, 1}, sample{12, 0.05, 2})
	add("Open MPI", sample{22, 0.9, 1})
	add("MPICH", sample{5, 0, 1})
	add("Gloo/ring", sample{30, 0, 1})
	add("Gloo/hd", sample{20, 0, 1})
	add(plain, sample{9, 0, 1})
	var text strings.Builder
	missed, goals := b.table(&text, tables()[0])
	if missed != 2 || goals != 4 {
		t.Errorf("%d of %d goals missed in\n%s", missed, goals, text.String())
	}
	if want := "| 16 MiB | 11.0 µs | 2.00× | **0.45×** | 1.82× | **82%** |"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
}

// The sources are there, and a trial's words are those that they expect.
func TestWords(t *testing.T) {
	for _, name := range []string{"mpi.c", "gloo.cc", "ring.c"} {
		if _, err := sources.ReadFile("src/" + name); err != nil {
			t.Error(err)
		}
	}
	x := trial{op: "all_reduce", iters: 5, warm: 2, budget: 0.5, sizes: []int64{8, 64}}
	if got, want := strings.Join(x.words(), " "), "all_reduce 5 0.5 2 8 64"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}
