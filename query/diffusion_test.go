package query

import (
	"strings"
	"testing"
)

// The third source document: "Training with extremely compute-heavy models (e.g., diffusion models with 256x256
// images): Communication to computation ratio is low; network topology shifts the needle only marginally."
func TestDiffusionNeedsLittleNetwork(t *testing.T) {
	step := func(model, rate string) float64 {
		var notes []string
		env := Env{Note: func(s string) { notes = append(notes, s) }}
		doc, err := Step{Job: Job{
			Cluster: "dgx-h100:2", Model: model, Micro: 32, Set: []string{"network.gbps=" + rate},
		}}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(notes, "\n"), "no published step of a diffusion model") {
			t.Errorf("%s: notes %q", model, notes)
		}
		return float64(doc.Rows[0].Step)
	}
	for _, model := range []string{"dit-xl-2", "sdxl"} {
		if fast, slow := step(model, "400"), step(model, "100"); slow/fast > 1.02 || slow < fast {
			t.Errorf("%s: %g s at 400 Gb/s, %g s at 100 Gb/s", model, fast, slow)
		}
	}
}
