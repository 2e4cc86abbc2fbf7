package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// layerTypes is what layer_types says of every layer; none where it is not there.
func (c *config) layerTypes() []string {
	_, v := c.find([]string{"layer_types"})
	if v == nil {
		return nil
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		c.refuse("layer_types is %.40s; expected a list of words", v)
	}
	return list
}

// layerWords are the words of layer_types, as Hugging Face's transformers have them for a kind of model.
func layerWords(kind string) []string {
	switch kind {
	case "granitemoehybrid":
		return []string{"mamba", "attention"}
	case "lfm2", "lfm2_moe":
		return []string{"conv", "full_attention"}
	case "qwen3_next":
		return []string{"linear_attention", "full_attention"}
	case "llama4_text":
		return []string{"chunked_attention", "full_attention"}
	}
	return []string{"sliding_attention", "full_attention"}
}

// periods are the kinds of models in which every so-manieth layer sees all tokens where the file does not list them.
var periods = map[string]int64{"gemma2": 2, "gemma3_text": 6, "gpt_oss": 2, "olmo3": 4}

// windows is how many tokens before it a token of each layer sees, 0 where it sees all; none where all layers see all.
func (c *config) windows(kind string, layers int64) []int64 {
	types := c.layerTypes()
	if n := int64(len(types)); types != nil && n != layers {
		c.refuse("layer_types has %d words and the model %d layers; expected one for each", n, layers)
	}
	for _, t := range types {
		if words := layerWords(kind); !slices.Contains(words, t) {
			c.refuse("layer_types has %.40q; expected %s", t, strings.Join(words, " or "))
		}
	}
	window, first := c.window(kind)
	if window == 0 || c.err != nil || layers > maxLayers {
		return nil
	}
	every := c.size(periods[kind], "sliding_window_pattern", "_sliding_window_pattern")
	list := make([]int64, layers)
	for i := range list {
		at := int64(i)
		slides := at >= first
		switch {
		case types != nil:
			slides = types[i] != "full_attention"
		case every > 0:
			slides = (at+1)%every != 0
		}
		if slides {
			list[i] = window
		}
	}
	return list
}

// window is how many tokens a layer that does not see all sees, 0 where there is none, and the first layer that has it.
func (c *config) window(kind string) (window, first int64) {
	switch kind {
	case "gemma2", "gemma3_text", "gpt_oss", "olmo3", "mistral", "mixtral", "phi3", "starcoder2":
		return c.size(0, "sliding_window"), 0
	case "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "smollm3":
		if c.yes("use_sliding_window", false) {
			return c.size(0, "sliding_window"), c.number0(28, "max_window_layers")
		}
	case "llama4_text": // tokens see those of their chunk: half of it before them, as in a window of half the size
		if c.has("layer_types") {
			return c.size(8192, "attention_chunk_size") / 2, 0
		}
	}
	return 0, 0
}

// setWindows gives layers the windows of their attention.
func setWindows(blocks []Block, windows []int64) {
	layer := 0
	for i := range blocks {
		if blocks[i].Kind != Layer || layer >= len(windows) {
			continue
		}
		for k := range blocks[i].Parts {
			if p := &blocks[i].Parts[k]; p.Kind == Attention {
				p.Window = windows[layer]
			}
		}
		layer++
	}
}

// maxModel bounds the parameters of a model.
const maxModel = 1e15

// sound reports a model that cannot be computed: a part of no size, or more parameters than any has.
func (m *Model) sound() error {
	params := 0.0
	for i := range m.Blocks {
		for _, p := range m.Blocks[i].Parts {
			wide := p.Out > 0 && p.In > 0
			switch p.Kind {
			case Norm, Added:
				wide = p.Out > 0
			case Attention:
				wide = p.Heads > 0 && p.HeadDim > 0 && p.KVHeads > 0
			case Scan:
				wide = p.Heads > 0 && p.HeadDim > 0 && p.KVHeads > 0 && p.State > 0
			}
			if !wide {
				return fmt.Errorf("%s of %s has no size (%d by %d); expected at least 1", p.Name, m.Blocks[i].Name, p.In, p.Out)
			}
			for _, t := range p.Tensors() {
				n := float64(max(1, p.Experts))
				for _, d := range t.Shape {
					n *= float64(d)
				}
				params += n
			}
		}
	}
	if !(params > 0 && params <= maxModel) {
		return fmt.Errorf("%.3g parameters; expected at most %.0e", params, maxModel)
	}
	return nil
}
