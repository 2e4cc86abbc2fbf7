package workload_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"busbar.dev/workload"
)

// Small models with every field that decides what their layers are.
const (
	deepseekText = `{"model_type":"deepseek_v3","num_hidden_layers":4,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"vocab_size":90,"n_routed_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":8,"first_k_dense_replace":1,"moe_layer_freq":1,"q_lora_rank":8,"kv_lora_rank":8,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8}`
	qwenMoEText  = `{"model_type":"qwen3_moe","num_hidden_layers":4,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":90,"num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":8,"decoder_sparse_step":1,"mlp_only_layers":[]}`
	qwenNextText = `{"model_type":"qwen3_next","num_hidden_layers":4,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":90,"num_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":8,"shared_expert_intermediate_size":8,"linear_num_value_heads":4,"linear_num_key_heads":2,"linear_key_head_dim":8,"linear_value_head_dim":8,"full_attention_interval":4}`
	mistralText  = `{"architectures":["MistralForCausalLM"],"model_type":"mistral","num_hidden_layers":4,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":90,"sliding_window":null}`
	gemmaText    = `{"model_type":"gemma3_text","num_hidden_layers":4,"hidden_size":64,"intermediate_size":96,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":90,"sliding_window":16,"sliding_window_pattern":2}`
)

// A size of nothing is refused by its name, and so is a word that no layer has.
func TestConfigRefuses(t *testing.T) {
	for _, x := range []struct{ text, from, to, want string }{
		{deepseekText, `"kv_lora_rank":8`, `"kv_lora_rank":0`, "kv_lora_rank is 0; expected at least 1"},
		{deepseekText, `"v_head_dim":8`, `"v_head_dim":0`, "v_head_dim is 0"},
		{deepseekText, `"moe_intermediate_size":8`, `"moe_intermediate_size":0`, "moe_intermediate_size is 0"},
		{deepseekText, `"moe_layer_freq":1`, `"moe_layer_freq":0`, "moe_layer_freq is 0"},
		{deepseekText, `"q_lora_rank":8`, `"q_lora_rank":0`, "q_lora_rank is 0"},
		{qwenNextText, `"linear_num_value_heads":4`, `"linear_num_value_heads":0`, "linear_num_value_heads is 0"},
		{qwenNextText, `"linear_value_head_dim":8`, `"linear_value_head_dim":0`, "linear_value_head_dim is 0"},
		{
			qwenNextText, `"full_attention_interval":4`,
			`"layer_types":["linear_attention","linear_attention","full_attention"]`,
			"layer_types has 3 words and the model 4 layers",
		},
		{
			qwenNextText, `"full_attention_interval":4`,
			`"layer_types":["linear_attention","linear_attention","full_attention","sliding_attention"]`,
			`layer_types has "sliding_attention"; expected linear_attention or full_attention`,
		},
		{qwenMoEText, `"decoder_sparse_step":1`, `"decoder_sparse_step":0`, "decoder_sparse_step is 0"},
		{qwenMoEText, `"mlp_only_layers":[]`, `"mlp_only_layers":"x"`, "mlp_only_layers is \"x\"; expected a list"},
		{qwenMoEText, `"head_dim":16`, `"head_dim":0`, "head_dim is 0"},
		{mistralText, `"num_key_value_heads":2`, `"num_key_value_heads":0`, "num_key_value_heads is 0"},
		{mistralText, `"intermediate_size":96`, `"intermediate_size":0`, "intermediate_size is 0"},
		{mistralText, `"intermediate_size":96,`, ``, "no intermediate_size"},
		{mistralText, `"sliding_window":null`, `"sliding_window":0`, "sliding_window is 0"},
		{
			gemmaText, `"sliding_window_pattern":2`, `"layer_types":["foo","full_attention","full_attention","full_attention"]`,
			`layer_types has "foo"`,
		},
		{gemmaText, `"sliding_window_pattern":2`, `"layer_types":{}`, "layer_types is {}; expected a list"},
		{`[1]`, ``, ``, "found a JSON array; expected a config.json"},
		{`null`, ``, ``, "found a JSON null"},
	} {
		text := strings.Replace(x.text, x.from, x.to, 1)
		if _, err := workload.ReadConfig("config.json", []byte(text)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v; expected %q", text, err, x.want)
		}
	}
}

// Fields that say which layers have experts, windows or linear attention are read.
func TestConfigLayers(t *testing.T) {
	for _, x := range []struct {
		text, from, to string
		experts        string // of every layer: e where it has some
		windows        string // w where tokens see a window
		scans          string // s where it is linear attention
	}{
		{deepseekText, "", "", ".eee", "....", "...."},
		{deepseekText, `"moe_layer_freq":1`, `"moe_layer_freq":2`, "..e.", "....", "...."},
		{qwenMoEText, "", "", "eeee", "....", "...."},
		{qwenMoEText, `"decoder_sparse_step":1`, `"decoder_sparse_step":2`, ".e.e", "....", "...."},
		{qwenMoEText, `"mlp_only_layers":[]`, `"mlp_only_layers":[0,1]`, "..ee", "....", "...."},
		{qwenMoEText, `"mlp_only_layers":[]`, `"mlp_only_layers":[0,1,2,3]`, "....", "....", "...."},
		{qwenMoEText, `"mlp_only_layers":[]`, `"sliding_window":16`, "eeee", "....", "...."},
		{
			qwenMoEText, `"mlp_only_layers":[]`, `"sliding_window":16,"use_sliding_window":true,"max_window_layers":2`, "eeee",
			"..ww", "....",
		},
		{mistralText, "", "", "....", "....", "...."},
		{mistralText, `"sliding_window":null`, `"sliding_window":16`, "....", "wwww", "...."},
		{gemmaText, "", "", "....", "w.w.", "...."},
		{
			gemmaText, `"sliding_window_pattern":2`,
			`"layer_types":["full_attention","sliding_attention","sliding_attention","full_attention"]`, "....", ".ww.", "....",
		},
		{qwenNextText, "", "", "eeee", "....", "sss."},
		{
			qwenNextText, `"full_attention_interval":4`,
			`"layer_types":["full_attention","linear_attention","linear_attention","full_attention"]`, "eeee", "....", ".ss.",
		},
	} {
		text := strings.Replace(x.text, x.from, x.to, 1)
		m, err := workload.ReadConfig("config.json", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var experts, windows, scans strings.Builder
		for i := range m.Blocks {
			if m.Blocks[i].Kind != workload.Layer {
				continue
			}
			e, w, s := ".", ".", "."
			for _, p := range m.Blocks[i].Parts {
				if p.Experts > 0 {
					e = "e"
				}
				if p.Window > 0 {
					w = "w"
				}
				if p.Kind == workload.Scan {
					s = "s"
				}
			}
			experts.WriteString(e)
			windows.WriteString(w)
			scans.WriteString(s)
		}
		if experts.String() != x.experts || windows.String() != x.windows || scans.String() != x.scans {
			t.Errorf("%s: experts %s, windows %s, linear attention %s; expected %s, %s, %s", text, &experts, &windows, &scans,
				x.experts, x.windows, x.scans)
		}
		if f := m.Forward(64); !(f > 0) || math.IsInf(f, 0) {
			t.Errorf("%s: %g operations", text, f)
		}
	}
}

// What of a file is left out, or contradicts the rest, is noted.
func TestConfigNotes(t *testing.T) {
	inside := `"text_config":` + gemmaText
	for text, want := range map[string]string{
		mistralText: "",
		strings.Replace(mistralText, "MistralFor", "LlamaFor",
			1): "architectures says LlamaForCausalLM and model_type mistral; model_type is taken",
		strings.Replace(mistralText, `"sliding_window":null`, `"text_config":{"model_type":"llama"}`, 1):                                   "text_config is left out: model_type mistral beside it is taken",
		`{"model_type":"gemma3","architectures":["Gemma3ForConditionalGeneration"],` + inside + `}`:                                        "",
		`{"model_type":"gemma3",` + inside + `,"hidden_size":128}`:                                                                         "hidden_size is 64 in text_config and 128 beside it; text_config is taken",
		`{"model_type":"gemma3",` + inside + `,"vision_config":{"model_type":"siglip_vision_model","num_hidden_layers":27}}`:               "vision_config (siglip_vision_model, num_hidden_layers 27) is left out: the language model alone is computed",
		strings.Replace(deepseekText, `"model_type":"deepseek_v3"`, `"model_type":"kimi_k2","architectures":["DeepseekV3ForCausalLM"]`, 1): "",
	} {
		m, err := workload.ReadConfig("config.json", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		// TestConfigDefaults has these
		notes := slices.DeleteFunc(m.Notes, func(n string) bool { return strings.Contains(n, "defaults of transformers") })
		if got := strings.TrimPrefix(strings.Join(notes, "; "), "config.json: "); got != want {
			t.Errorf("%s: noted %q; expected %q", text, got, want)
		}
	}
}
