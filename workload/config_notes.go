package workload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// contradictions notes what of a file is left out, or says something else than the part of it that is taken.
func (c *config) contradictions(outer map[string]json.RawMessage, kind string) {
	own := (&config{fields: outer}).text("model_type")
	for _, name := range slices.Sorted(maps.Keys(outer)) {
		var tower config
		if !strings.HasSuffix(name, "_config") || name == "quantization_config" || json.Unmarshal(outer[name], &tower.fields) != nil || len(tower.fields) == 0 {
			continue
		}
		switch {
		case name != "text_config":
			c.note("%s (%s) is left out: the language model alone is computed", name, tower.outline())
		case own == kind:
			c.note("text_config is left out: model_type %s beside it is taken", kind)
		default:
			c.differences(outer)
		}
	}
	var classes []string
	_ = json.Unmarshal(outer["architectures"], &classes) // what is no list names no class
	for _, class := range classes {
		word := strings.ToLower(class)
		if other := kindOfClass(word); other != "" && other != kind && !strings.HasPrefix(word, classWord(own)) && kind != "kimi_k2" { // whose class is DeepSeek's
			c.note("architectures says %.60s and model_type %.60s; model_type is taken", class, own)
		}
	}
}

func (c *config) note(format string, args ...any) {
	c.notes = append(c.notes, c.name+": "+fmt.Sprintf(format, args...))
}

// outline is a tower in a few words.
func (c *config) outline() string {
	text := "no model_type"
	if kind := c.text("model_type"); kind != "" {
		text = fmt.Sprintf("%.60s", kind)
	}
	if n, v := c.find([]string{"num_hidden_layers", "depth", "num_layers", "encoder_layers"}); v != nil {
		text += fmt.Sprintf(", %s %.20s", n, v)
	}
	return text
}

// differences notes fields beside text_config that say something else than those in it.
func (c *config) differences(outer map[string]json.RawMessage) {
	for _, name := range []string{"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"} {
		_, in := c.find([]string{name})
		_, out := (&config{fields: outer}).find([]string{name})
		if in != nil && out != nil && !bytes.Equal(in, out) {
			c.note("%s is %.20s in text_config and %.20s beside it; text_config is taken", name, in, out)
		}
	}
}

// classWord is a model_type as it begins the names of its classes: qwen3_moe is Qwen3MoeForCausalLM's.
func classWord(kind string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(strings.TrimSuffix(kind, "_text")))
}

// kindOfClass is the kind of model that a class is named after, in lower case; "" where none is known.
func kindOfClass(class string) string {
	best := ""
	for _, kind := range kinds() {
		if word := classWord(kind); strings.HasPrefix(class, word) && len(word) > len(classWord(best)) {
			best = kind
		}
	}
	return best
}
