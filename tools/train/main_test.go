package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestUltrascale holds memory of published runs of nanotron, steps on few nodes, and what is said to fit, to limits: so
// that a change which helps other runs does not spoil these.
func TestUltrascale(t *testing.T) {
	shared := os.Getenv("BUSBAR_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	list, err := lines[run](filepath.Join(shared, "truth", "ultrascale.jsonl"))
	if os.IsNotExist(err) {
		t.Skip("no published runs beside the repository: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	lost, err := lines[failed](filepath.Join(shared, "truth", "ultrascale-failed.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var memory []float64
	refused := 0
	for i := range list {
		j, err := list[i].job()
		if err != nil {
			t.Fatalf("%s: %v", list[i].ID, err)
		}
		memory = append(memory, math.Abs(j.StageMemory(0).Total().GiB()/list[i].Measured.Memory-1))
		if !fits(j) {
			refused++
		}
	}
	slices.Sort(memory)
	median, p90 := memory[len(memory)/2], memory[len(memory)*9/10]
	if median > 0.08 || p90 > 0.25 || float64(refused) > 0.02*float64(len(list)) {
		t.Errorf("memory of %d runs: median %.1f%%, 90th percentile %.1f%%; %d said not to fit; expected at most 8%%, "+
			"25%%, 2%%",
			len(list), 100*median, 100*p90, refused)
	}
	counts := countFailed(lost, list, "all", false)
	not, fit := counts["said not to fit"], counts["said to fit"]
	if float64(not) < 0.8*float64(not+fit) {
		t.Errorf("%d of %d failures that can be memory's are said not to fit; expected 80%%", not, not+fit)
	}
	t.Logf("memory median %.1f%%, p90 %.1f%%; ran and refused %d of %d; failures refused %d of %d", 100*median, 100*p90,
		refused, len(list), not, not+fit)
}
