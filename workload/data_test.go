package workload

import (
	"strings"
	"testing"

	"busbar.dev/internal/csvtable"
)

// TestModelTable reads the catalogue: csvtable refuses unknown and missing columns, names that stand there
// twice and empty sources; here every row has an architecture and dimensions that its blocks need.
func TestModelTable(t *testing.T) {
	list, err := csvtable.Read[modelRow](modelsCSV)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, r := range list {
		used[r.Architecture] = true
		if architectures[r.Architecture] == nil {
			t.Errorf("%s: no architecture %q", r.Name, r.Architecture)
			continue
		}
		if r.Architecture != "resnet" && r.Architecture != "vgg16" && r.Architecture != "sdxl" {
			if err := r.Check(); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		}
		if (r.Patch > 0) != (r.Architecture == "vit" || r.Architecture == "dit") ||
			(r.Stages != stages{}) != (r.Architecture == "resnet") || r.WordWidth > 0 && r.Architecture != "opt" ||
			(r.Latent != Latent{}) != strings.HasPrefix(r.Architecture, "deepseek") {
			t.Errorf("%s: a column of another architecture, or one of its own is empty", r.Name)
		}
	}
	for name := range architectures {
		if !used[name] {
			t.Errorf("architecture %s: no model has it", name)
		}
	}
}
