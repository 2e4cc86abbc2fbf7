package finding_test

import (
	"encoding/json"
	"fmt"
	"slices"

	"busbar.dev/finding"
)

// Findings of any origin sort, count and print alike.
func Example() {
	list := []finding.Finding{
		{ID: "nic-far", Severity: finding.Note, Where: "node0/gpu0", Text: "the nearest NIC is behind the host bridge"},
		{ID: "nic-shared", Severity: finding.Warn, Where: "node0/mlx5_0", Text: "4 GPUs share one NIC", Fix: "add NICs"},
	}
	slices.SortStableFunc(list, finding.BySeverity)
	fmt.Println(finding.Count(list))
	for _, f := range list {
		fmt.Println(f.Severity, f.ID, f.Where)
	}
	fmt.Println("serious:", finding.Serious(list))
	// Output:
	// 1 warning, 1 note
	// warn nic-shared node0/mlx5_0
	// note nic-far node0/gpu0
	// serious: true
}

// A severity is a word in JSON and in flags, and compares as a number.
func ExampleSeverity() {
	least, err := finding.ParseSeverity("warn")
	if err != nil {
		fmt.Println(err)
		return
	}
	var f finding.Finding
	if err := json.Unmarshal([]byte(`{"id":"silent:node7","kind":"silent","severity":"error"}`), &f); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Severity, f.Severity >= least)
	// Output:
	// error true
}
