package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse is the model of a name, or one shaped like GPT-2 of dimensions in words:
// layers=48,hidden=6144 with heads, ffn, vocab and context where they are not the usual ones
// (a head of 64 units, four times the width, GPT-2's 50257 words and 1024 tokens). With
// params=20B what is missing follows from it.
func Parse(word string) (*Model, error) {
	if !strings.Contains(word, "=") {
		return Find(word)
	}
	if len(word) > 256 {
		return nil, fmt.Errorf("model %.20q…: expected a name, or dimensions such as layers=48,hidden=6144", word)
	}
	d := Dims{Vocab: 50257, Context: 1024}
	fields := map[string]*int64{
		"layers": &d.Layers, "hidden": &d.Hidden, "heads": &d.Heads, "ffn": &d.FFN, "vocab": &d.Vocab, "context": &d.Context,
		"kv_heads": &d.KVHeads,
	}
	params := 0.0
	said := map[string]bool{}
	for _, part := range strings.Split(word, ",") {
		key, text, _ := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		if said[key] {
			return nil, fmt.Errorf("model %q: %s is said twice", word, key)
		}
		said[key] = true
		if key == "params" {
			var err error
			if params, err = parseParams(text); err != nil {
				return nil, fmt.Errorf("model %q: %w", word, err)
			}
			continue
		}
		to, ok := fields[key]
		if !ok {
			return nil,
				fmt.Errorf("model %q: %q is no dimension; expected params, layers, hidden, heads, kv_heads, ffn, vocab, "+
					"context",
					word, key)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("model %q: %s is %q; expected a whole number, at least 1", word, key, text)
		}
		*to = n
	}
	if params > 0 {
		if err := solve(&d, params); err != nil {
			return nil, fmt.Errorf("model %q: %w", word, err)
		}
	}
	if d.Heads == 0 {
		if d.Heads = 1; d.Hidden > 64 && d.Hidden%64 == 0 {
			d.Heads = d.Hidden / 64
		}
	}
	if err := d.Check(); err != nil {
		return nil, fmt.Errorf("model %q: %w", word, err)
	}
	family, design := "GPT", "gpt2"
	if d.KVHeads > 0 {
		family, design = "Llama", "llama gated"
	}
	d = d.filled()
	return &Model{
		Name: word, Title: fmt.Sprintf("a %s of %d layers, %d units", family, d.Layers, d.Hidden), Dims: d, Seq: d.Context,
		Blocks: Blocks(design, d), Source: "the command line",
	}, nil
}
