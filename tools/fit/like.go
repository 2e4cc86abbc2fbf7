package main

import (
	"math"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/workload"
)

// like is the model that a text names in its own way, as tables do: "Llama-3.1 405B", "Qwen3 30B-A3B (MoE)"; nil where
// there is none. Of words that name one, from one of the first on, the most are taken, unless the text states a size
// that is not the model's.
func like(text string) *workload.Model {
	words := strings.FieldsFunc(text[strings.LastIndexByte(text, '/')+1:], func(r rune) bool {
		return strings.ContainsRune(" -_(),", r)
	})
	for from := range min(len(words), 4) {
		for to := min(len(words), from+8); to > from; to-- {
			if m := workload.FindHub(strings.Join(words[from:to], "-")); m != nil && sized(text, m) {
				return m
			}
		}
	}
	return nil
}

var sizeIn = lazyre.New(`(?i)(^|[^a-z0-9.])(\d+(?:\.\d+)?)\s?([bmt])($|[^a-z0-9])`)

// sized reports that no size which a text states contradicts a model: 16B of "DeepSeek-V2-Lite 16B" does V2's 236B.
func sized(text string, m *workload.Model) bool {
	found := sizeIn.FindStringSubmatch(text)
	if found == nil {
		return true
	}
	n, err := strconv.ParseFloat(found[2]+map[string]string{"m": "e6", "b": "e9", "t": "e12"}[strings.ToLower(found[3])],
		64)
	return err != nil || n <= 0 || math.Abs(math.Log(float64(m.Params())/n)) < 0.3
}
