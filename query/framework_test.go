package query

import (
	"strings"
	"testing"
)

// TestTakenAsSharding checks that a name whose programs run DDP unless they are configured otherwise is said to be
// taken for sharding, and only then.
func TestTakenAsSharding(t *testing.T) {
	for _, c := range []struct {
		framework, parallel, lora, want string
	}{
		{"hf", "", "", "--parallel zero=0"},
		{"trainer", "", "", "--parallel zero=0"},
		{"accelerate", "", "", "--framework ddp"},
		{"lightning", "", "", "--framework ddp"},
		{"hf", "zero=3", "", ""},
		{"hf", "", "rank=16", ""},
		{"fsdp", "", "", ""},
		{"ddp", "", "", ""},
	} {
		d, err := Step{Job: Job{
			Cluster: "4x4090", Model: "gpt2-large", Framework: c.framework, Parallel: Parallel(c.parallel),
			FineTuning: FineTuning{LoRA: c.lora},
		}}.Run(t.Context(), Env{Flags: true, Note: func(string) {}})
		if err != nil {
			t.Fatal(c.framework, err)
		}
		said := ""
		for _, n := range d.Notes {
			if strings.Contains(n, "unless it is configured so") {
				said = n
			}
		}
		if (said != "") != (c.want != "") {
			t.Errorf("%+v: said is %q", c, said)
		}
	}
}
