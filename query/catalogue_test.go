package query_test

import (
	"encoding/json"
	"strings"
	"testing"

	"busbar.dev/query"
)

// TestCatalogue asks for the lists: a table alone, all of them, one model, and what does not exist.
func TestCatalogue(t *testing.T) {
	all, err := query.List{What: "hardware"}.Run(t.Context(), query.Env{})
	if err != nil || len(all.GPUs) == 0 || len(all.Links) == 0 || len(all.NICs) == 0 || len(all.Switches) == 0 {
		t.Errorf("hardware: %+v, %v", all, err)
	}
	one, err := query.List{What: "hardware", Words: []string{"nic"}}.Run(t.Context(), query.Env{})
	if err != nil || len(one.NICs) == 0 || one.GPUs != nil || one.Links != nil || one.Switches != nil {
		t.Errorf("hardware nic: %+v, %v", one, err)
	}
	if _, err := (query.List{What: "hardware", Words: []string{"cables"}}).Run(t.Context(), query.Env{}); err == nil ||
		!strings.Contains(err.Error(), "none of the hardware has these words") {
		t.Errorf("hardware cables: %v", err)
	}
	presets, err := query.List{What: "presets"}.Run(t.Context(), query.Env{})
	if err != nil || len(presets.Presets) < 50 {
		t.Errorf("presets: %v", err)
	}
	if _, err := (query.List{What: "models", Words: []string{"gpt9"}}).Run(t.Context(), query.Env{}); err == nil {
		t.Error("a model that nobody knows was found")
	}
}

// TestListWords: words choose, in any case, and what nothing has is refused.
func TestListWords(t *testing.T) {
	some, err := query.List{What: "models", Words: []string{"Qwen", "235"}}.Run(t.Context(), query.Env{})
	if err != nil || len(some.Models) == 0 || len(some.Models) > 3 {
		t.Errorf("%v, %d models", err, len(some.Models))
	}
	for _, what := range []string{"presets", "hardware", "frameworks", "causes", "algorithms"} {
		if _, err := (query.List{What: what}).Run(t.Context(), query.Env{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := (query.List{What: what, Words: []string{"xyzzy"}}).Run(t.Context(), query.Env{}); err == nil {
			t.Errorf("%s xyzzy was found", what)
		}
	}
	if _, err := (query.List{What: "cables"}).Run(t.Context(), query.Env{}); err == nil {
		t.Error("cables are listed")
	}
}

// TestModelsDoc has two shapes: a list, or the fields of one model.
func TestModelsDoc(t *testing.T) {
	for model, want := range map[string]string{"": `{"models":[{"name":"gpt2",`, "gpt2": `{"name":"gpt2",`} {
		doc, err := query.List{What: "models", Words: strings.Fields(model)}.Run(t.Context(), query.Env{})
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
