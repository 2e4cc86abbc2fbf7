package workload

import (
	"slices"
	"strings"
	"testing"
)

// Names that are off by a letter are answered with the nearest, never with the whole list; names of Hugging Face are
// known.
func TestNearNames(t *testing.T) {
	for name, want := range map[string]string{
		"lama3-8b": "llama3-8b", "lamma3-8b": "llama3-8b", "someone/llama3-8c": "llama3-8b",
	} {
		_, err := Find(name)
		if near := Near(name); len(near) == 0 || near[0] != want || len(near) > mostNear || err == nil ||
			!strings.Contains(err.Error(), "did you mean "+want) {
			t.Errorf("%s: %v, %v", name, near, err)
		}
	}
	if _, err := Find("zzzzzz"); err == nil || len(err.Error()) > 100 ||
		!strings.Contains(err.Error(), "busbar list models") {
		t.Error(err)
	}
	for alias, want := range aliases {
		for _, who := range []string{"", "google/", "OPENAI-community/"} {
			if m, err := Find(who + strings.ToUpper(alias)); err != nil || m.Name != want {
				t.Errorf("%s%s: %v", who, alias, err)
			}
		}
		if !slices.Contains(Names(), want) {
			t.Errorf("%s is no model", want)
		}
	}
}

// alpha and dropout of an adapter change no time; what is no number is refused.
func TestLoRAWithoutTime(t *testing.T) {
	want, _ := ParseLoRA("rank=16")
	if got, err := ParseLoRA("rank=16,alpha=32,dropout=0.05"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"rank=16,alpha=x", "rank=16,dropout=1", "rank=16,alpha=1,alpha=2", "alpha=32"} {
		if l, err := ParseLoRA(bad); err == nil {
			t.Errorf("%s: %+v", bad, l)
		}
	}
}
