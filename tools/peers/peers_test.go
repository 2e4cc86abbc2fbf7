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
	const doc = `{"rows":[{"size_bytes":8,"time_s":{"mean":0.000002},"in_place":{"time_s":{"mean":0.000001}}}]}`
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

// The median of the rounds and the faster algorithm of a side count, and what misses its goal is bold.
func TestReport(t *testing.T) {
	b := &book{samples: map[key][]sample{}}
	add := func(side string, list ...sample) { b.samples[key{"tcp", "all_reduce", 2, 16 << 20, side}] = list }
	add(us, sample{100, 0}, sample{10, 1}, sample{11, 2})
	add("Open MPI", sample{22, 1})
	add("MPICH", sample{5, 1})
	add("Gloo/ring", sample{30, 1})
	add("Gloo/hd", sample{20, 1})
	add(plain, sample{9, 1})
	var text strings.Builder
	missed, goals := b.table(&text, tableOf("tcp", "all_reduce"))
	if missed != 2 || goals != 4 {
		t.Errorf("%d of %d goals missed in\n%s", missed, goals, text.String())
	}
	if want := "| 16 MiB | 11.0 µs | 2.00× | **0.45×** | 1.82× | **82%** |"; !strings.Contains(text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
}

// The spread pairs rounds, takes the faster of Gloo's algorithms, and counts rounds at the goal.
func TestSpread(t *testing.T) {
	k := key{"tcp", "all_reduce", 2, 64, "Gloo"}
	b := &book{samples: map[key][]sample{}, again: 3, close: []key{k}}
	add := func(side string, list ...sample) { b.samples[key{"tcp", "all_reduce", 2, 64, side}] = list }
	add(us, sample{10, 0}, sample{10, 1}, sample{10, 2}, sample{10, 4})
	add("Gloo/ring", sample{9, 0}, sample{30, 1}, sample{12, 2}, sample{50, 3})
	add("Gloo/hd", sample{20, 0}, sample{15, 1}, sample{20, 2}, sample{50, 3})
	var text strings.Builder
	b.spread(&text)
	if want := "| all_reduce, tcp | 2 | 64 B | Gloo | 1.20 | 0.90–1.50 | 0.90–1.50 | 2 of 3 |"; !strings.Contains(
		text.String(), want) {
		t.Errorf("no %q in\n%s", want, text.String())
	}
}
