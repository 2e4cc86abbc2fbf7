package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

func TestParse(t *testing.T) {
	m, err := workload.Parse("layers=12,hidden=768")
	if err != nil || m.Params() != 124_439_808 || m.Dims.Heads != 12 {
		t.Errorf("GPT-2 in words: %v, %v", m, err)
	}
	if m, err := workload.Parse("layers=2, hidden=16, heads=2, ffn=32, vocab=100, context=8"); err != nil ||
		len(m.Tensors()) != 2+2*12+2 || m.Seq != 8 {
		t.Errorf("a small one: %v, %v", m, err)
	}
	if _, err := workload.Parse("gpt2-xl"); err != nil {
		t.Error(err)
	}
	for word, want := range map[string]string{
		"hidden=768":                  "layers is 0",
		"layers=2,hidden=x":           `hidden is "x"`,
		"layers=2,width=8":            `"width" is no dimension`,
		"layers=2,hidden=8,":          `"" is no dimension`,
		"layers=2,hidden=-8":          `hidden is "-8"`,
		"layers=99999999999999":       "expected 1 to",
		"layers=65536,hidden=4194304": "at most 1e15",
		"big":                         "is unknown; busbar list models lists all",
	} {
		if _, err := workload.Parse(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", word, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"gpt2", "layers=2,hidden=64", "layers=1,hidden=8,heads=2,ffn=3,vocab=4,context=5", "=,",
		"layers=65536,hidden=16777216",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := workload.Parse(s)
		if err != nil {
			return
		}
		if m.Dims.Check() != nil || m.Params() < 1 || m.Forward(m.Seq) <= 0 {
			t.Errorf("%q: %+v", s, m.Dims)
		}
	})
}
