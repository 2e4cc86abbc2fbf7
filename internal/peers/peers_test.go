//go:build unix

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

func TestReadCell(t *testing.T) {
	for text, want := range map[string]struct {
		cell
		part string
	}{
		"tcp,all_reduce,8,32K":   {cell{"tcp", "all_reduce", 8, 32 << 10}, "tcp"},
		"shm,all_to_all,4,1K":    {cell{"ops shm", "all_to_all", 4, 1 << 10}, "ops"},
		"2x2,all_reduce,4,1M":    {cell{"2x2", "all_reduce", 4, 1 << 20}, "shaped"},
		"tcp,all_reduce,8":       {},
		"tcp,all_reduce,x,32K":   {},
		"tcp,all_reduce,8,heavy": {},
	} {
		c, part, err := readCell(text)
		if (err != nil) != (want.part == "") || c != nil && err == nil && (*c != want.cell || part != want.part) {
			t.Errorf("%q: %v of %q, %v; want %v", text, c, part, err, want)
		}
	}
}

// A cell alone is a trial of one size, and nothing of other trials.
func TestNarrowed(t *testing.T) {
	b := &book{only: &cell{"tcp", "all_reduce", 4, 64}}
	x := trial{section: "tcp", op: "all_reduce", ranks: 4, sizes: []int64{8, 64}}
	if !b.narrowed(&x) || len(x.sizes) != 1 || x.sizes[0] != 64 {
		t.Errorf("left %v", x.sizes)
	}
	x.ranks = 8
	if b.narrowed(&x) {
		t.Error("eight ranks are another cell")
	}
}

// The spread pairs rounds, takes the faster of Gloo's algorithms, and counts rounds at the goal.
func TestSpread(t *testing.T) {
	k := key{"tcp", "all_reduce", 2, 64, "Gloo"}
	b := &book{machine: &machine{}, samples: map[key][]sample{}, again: 3, close: []key{k}}
	add := func(side string, list ...sample) { b.samples[key{"tcp", "all_reduce", 2, 64, side}] = list }
	add(us, sample{10, 0, 0}, sample{10, 0, 1}, sample{10, 0, 2}, sample{10, 0.9, 3}, sample{10, 0, 4})
	add("Gloo/ring", sample{9, 0, 0}, sample{30, 0, 1}, sample{12, 0, 2}, sample{50, 0, 3})
	add("Gloo/hd", sample{20, 0, 0}, sample{15, 0, 1}, sample{20, 0, 2}, sample{50, 0, 3})
	add(us+"/ring", sample{5, 0, 0})
	var text strings.Builder
	b.spread(&text)
	if want := "| all_reduce, tcp | 2 | 64 B | Gloo | 1.20 | 0.90–1.50 | 0.90–1.50 | 2 of 3 |"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
	text.Reset()
	b.own(&text)
	if want := "| all_reduce, tcp | 2 | 64 B | ring | 5.00 µs | 2.00 |"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
}
