package query

import (
	"strings"
	"testing"
)

// TestNotedForks: answers without a place for two steps say what they depend on, and the command that tells.
func TestNotedForks(t *testing.T) {
	job := Job{Cluster: "baskerville", Layout: "2x2", Model: "gpt2-large", Framework: "ddp", Global: 16}
	for name, ask := range map[string]func(Env) error{
		"need":    func(e Env) error { _, err := Need{Job: job}.Run(t.Context(), e); return err },
		"goodput": func(e Env) error { _, err := Goodput{Job: job}.Run(t.Context(), e); return err },
		"plan": func(e Env) error {
			_, err := Plan{
				Cluster: "baskerville", Layout: "2x2", Model: "gpt2-large", Framework: "ddp", Global: 16,
			}.Run(t.Context(), e)
			return err
		},
	} {
		var notes []string
		if err := ask(Env{Note: func(s string) { notes = append(notes, s) }}); err != nil {
			t.Fatal(name, err)
		}
		if text := strings.Join(notes, "\n"); !strings.Contains(text, "depends on what nobody said") ||
			!strings.Contains(text, "nvidia-smi topo -m") {
			t.Errorf("%s notes %q", name, text)
		}
	}
}
