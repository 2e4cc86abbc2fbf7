package ranks

import "testing"

// Ranks get a processor each where there are enough, and share them evenly where there are not.
func TestProcessorOf(t *testing.T) {
	for _, tt := range []struct{ ranks, processors int }{{1, 2}, {2, 2}, {4, 2}, {5, 2}, {8, 3}, {3, 16}, {64, 2}} {
		count := make([]int, tt.processors)
		for r := range tt.ranks {
			count[processorOf(r, tt.ranks, tt.processors)]++
		}
		for k, n := range count {
			least, most := tt.ranks/tt.processors, (tt.ranks+tt.processors-1)/tt.processors
			if n < least || n > most {
				t.Errorf("%d ranks on %d processors: %d of them on processor %d", tt.ranks, tt.processors, n, k)
			}
		}
	}
}
