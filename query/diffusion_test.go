package query

import (
	"strings"
	"testing"
)

// The third source document: "Training with extremely compute-heavy models (e.g., diffusion models with 256x256
// images): Communication to computation ratio is low; network topology shifts the needle only marginally."
func TestDiffusionNeedsLittleNetwork(t *testing.T) {
	step := func(rate string) float64 {
		var notes []string
		env := Env{Note: func(s string) { notes = append(notes, s) }}
		doc, err := Step{Job: Job{
			Cluster: "dgx-h100:2", Model: "dit-xl-2", Micro: 32, Set: []string{"network.gbps=" + rate},
		}}.Run(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(notes, "\n"), "no published step of a diffusion model") {
			t.Errorf("notes %q", notes)
		}
		return float64(doc.Rows[0].Step)
	}
	if fast, slow := step("400"), step("100"); slow/fast > 1.02 || slow < fast {
		t.Errorf("%g s at 400 Gb/s, %g s at 100 Gb/s", fast, slow)
	}
}
