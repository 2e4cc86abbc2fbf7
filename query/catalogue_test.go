package query_test

import (
	"encoding/json"
	"strings"
	"testing"

	"busbar.dev/query"
)

// TestCatalogue asks for the lists: a table alone, all of them, one model, and what does not exist.
func TestCatalogue(t *testing.T) {
	all, err := query.Hardware{}.Run(t.Context(), query.Env{})
	if err != nil || len(all.GPUs) == 0 || len(all.Links) == 0 || len(all.NICs) == 0 || len(all.Switches) == 0 {
		t.Errorf("hardware: %+v, %v", all, err)
	}
	one, err := query.Hardware{Table: "nic"}.Run(t.Context(), query.Env{})
	if err != nil || len(one.NICs) == 0 || one.GPUs != nil || one.Links != nil || one.Switches != nil {
		t.Errorf("hardware nic: %+v, %v", one, err)
	}
	if _, err := (query.Hardware{Table: "cables"}).Run(t.Context(), query.Env{}); err == nil ||
		!strings.Contains(err.Error(), "expected one of all") {
		t.Errorf("hardware cables: %v", err)
	}
	presets, err := query.Presets{}.Run(t.Context(), query.Env{})
	if err != nil || len(presets.Presets) < 50 {
		t.Errorf("presets: %v", err)
	}
	if _, err := (query.Models{Model: "gpt9"}).Run(t.Context(), query.Env{}); err == nil {
		t.Error("a model that nobody knows was found")
	}
}

// TestModelsDoc has two shapes: a list, or the fields of one model.
func TestModelsDoc(t *testing.T) {
	for model, want := range map[string]string{"": `{"models":[{"name":"gpt2",`, "gpt2": `{"name":"gpt2",`} {
		doc, err := query.Models{Model: model}.Run(t.Context(), query.Env{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(doc)
		if err != nil || !strings.HasPrefix(string(text), want) ||
			strings.Contains(string(text), `"tensors"`) != (model != "") {
			t.Errorf("models %s: %.80s, %v", model, text, err)
		}
	}
}
