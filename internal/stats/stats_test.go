package stats_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"busbar.dev/internal/stats"
)

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		list []float64
		q    float64
		want float64
	}{
		{nil, 0.5, 0},
		{[]float64{3}, 0.9, 3},
		{[]float64{4, 1, 3, 2}, 0.5, 2.5},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.9, 10},
		{[]float64{1, 2}, 1, 2},
	} {
		if got := stats.Quantile(c.list, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("the %g-quantile of %v is %g, want %g", c.q, c.list, got, c.want)
		}
	}
}

// Against a sorted list, of any length and with ties.
func TestAgainstSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 30), 1, 200).Draw(t, "list")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		sorted := slices.Sorted(slices.Values(list))
		if got := stats.Nearest(slices.Clone(list), q); got != sorted[stats.At(len(list), q)] {
			t.Fatalf("Nearest(%v) is %d", q, got)
		}
		if got := stats.MedianLow(slices.Clone(list)); got != sorted[(len(list)-1)/2] {
			t.Fatalf("MedianLow is %d", got)
		}
		if stats.At(len(list), 0) != 0 || stats.At(len(list), 1) != len(list)-1 || stats.At(len(list), 0.5) != len(list)/2 {
			t.Fatal("the ends and the middle")
		}
		kept := slices.Clone(sorted)
		stats.Nearest(kept, q)
		if !slices.Equal(kept, sorted) {
			t.Fatal("a sorted list was reordered")
		}
		floats := make([]float64, len(list))
		for i, v := range list {
			floats[i] = float64(v)
		}
		low, high := float64(sorted[(len(list)-1)/2]), float64(sorted[len(list)/2])
		if got := stats.Median(floats); got != (low+high)/2 {
			t.Fatalf("Median is %v of %v and %v", got, low, high)
		}
	})
}

func TestEmpty(t *testing.T) {
	if stats.Nearest([]time.Duration(nil), 0.5) != 0 || stats.MedianLow([]string(nil)) != "" ||
		stats.Median([]float32{}) != 0 || stats.At(0, 0.5) != 0 {
		t.Error("an empty list has a median")
	}
}

func Example() {
	errors := []float64{0.1, 0.4, 0.2, 0.3}
	fmt.Println(stats.Median(errors), stats.Nearest(errors, 0.5), stats.MedianLow(errors))
	// Output: 0.25 0.3 0.2
}

func BenchmarkNearest(b *testing.B) {
	list := make([]float32, 100000)
	work := make([]float32, len(list))
	for i := range list {
		list[i] = float32(i * 7919 % len(list))
	}
	for b.Loop() {
		copy(work, list)
		stats.Nearest(work, 0.75)
	}
}
