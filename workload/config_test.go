package workload_test

import (
	"math"
	"strings"
	"testing"

	"busbar.dev/workload"
)

// configTexts are the dimensions of published config.json files, and the parameters of their
// checkpoints.
var configTexts = []struct {
	text   string
	params int64
}{
	{`{"model_type":"gpt2","n_layer":12,"n_embd":768,"n_head":12,"n_inner":null,"vocab_size":50257,"n_positions":1024}`, 124_439_808},
	{`{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":8192,"tie_word_embeddings":false}`, 8_030_261_248},
	{`{"model_type":"mistral","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"max_position_embeddings":32768}`, 7_241_732_096},
	{`{"model_type":"qwen2","num_hidden_layers":28,"hidden_size":3584,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"max_position_embeddings":32768,"tie_word_embeddings":false}`, 7_615_616_512},
	{`{"model_type":"mixtral","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000,"max_position_embeddings":32768,"num_local_experts":8,"num_experts_per_tok":2}`, 46_702_792_704},
	{`{"model_type":"gpt_neox","num_hidden_layers":44,"hidden_size":6144,"num_attention_heads":64,"intermediate_size":24576,"vocab_size":50432,"max_position_embeddings":2048}`, 20_554_567_680},
	{`{"model_type":"bloom","n_layer":24,"hidden_size":1024,"n_head":16,"vocab_size":250880}`, 559_214_592},
	{`{"model_type":"opt","num_hidden_layers":24,"hidden_size":1024,"num_attention_heads":16,"ffn_dim":4096,"vocab_size":50272,"max_position_embeddings":2048,"word_embed_proj_dim":512}`, 331_196_416},
	{`{"model_type":"bert","num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":30522,"max_position_embeddings":512}`, 110_106_428},
	{`{"model_type":"gemma","num_hidden_layers":28,"hidden_size":3072,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"intermediate_size":24576,"vocab_size":256000,"max_position_embeddings":8192}`, 8_537_680_896},
	{`{"model_type":"gemma2","num_hidden_layers":42,"hidden_size":3584,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,"intermediate_size":14336,"vocab_size":256000,"max_position_embeddings":8192}`, 9_241_705_984},
	{`{"model_type":"gemma3_text","num_hidden_layers":26,"hidden_size":1152,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":256,"intermediate_size":6912,"vocab_size":262144,"max_position_embeddings":32768}`, 999_885_952},
	{`{"model_type":"qwen3","num_hidden_layers":36,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"intermediate_size":12288,"vocab_size":151936,"max_position_embeddings":40960,"tie_word_embeddings":false}`, 8_190_735_360},
	{`{"model_type":"qwen3_moe","num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"intermediate_size":6144,"moe_intermediate_size":768,"num_experts":128,"num_experts_per_tok":8,"vocab_size":151936,"max_position_embeddings":40960}`, 30_532_122_624},
	{`{"model_type":"qwen2_moe","num_hidden_layers":24,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":5632,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,"num_experts_per_tok":4,"vocab_size":151936,"max_position_embeddings":8192}`, 14_315_784_192},
	{`{"model_type":"olmoe","num_hidden_layers":16,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":1024,"num_experts":64,"num_experts_per_tok":8,"vocab_size":50304,"max_position_embeddings":4096}`, 6_919_161_856},
	{`{"model_type":"gpt_oss","num_hidden_layers":24,"hidden_size":2880,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"intermediate_size":2880,"num_local_experts":32,"num_experts_per_tok":4,"vocab_size":201088,"max_position_embeddings":131072}`, 20_914_757_184},
	{`{"model_type":"deepseek_v2","num_hidden_layers":27,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,"first_k_dense_replace":1,"q_lora_rank":null,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":102400,"max_position_embeddings":163840}`, 15_706_484_224},
	// Hugging Face counts 81,324,862,720 with the module for a further token: a layer with attention, a product of twice
	// the width, three norms.
	{`{"model_type":"qwen3_next","num_hidden_layers":48,"hidden_size":2048,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"intermediate_size":5120,"full_attention_interval":4,"linear_num_value_heads":32,"linear_num_key_heads":16,"linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,"num_experts":512,"num_experts_per_tok":10,"moe_intermediate_size":512,"shared_expert_intermediate_size":512,"vocab_size":151936,"max_position_embeddings":262144}`, 81_324_862_720 - 1_642_076_672 - 2*2048*2048 - 3*2048},
	{`{"model_type":"phi","num_hidden_layers":32,"hidden_size":2560,"num_attention_heads":32,"intermediate_size":10240,"vocab_size":51200,"max_position_embeddings":2048}`, 2_779_683_840},
	{`{"model_type":"phi3","num_hidden_layers":32,"hidden_size":3072,"num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":8192,"vocab_size":32064,"max_position_embeddings":4096}`, 3_821_079_552},
	{`{"model_type":"olmo","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"intermediate_size":11008,"vocab_size":50304,"max_position_embeddings":2048}`, 6_888_095_744},
	{`{"model_type":"olmo2","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":11008,"vocab_size":100352,"max_position_embeddings":4096}`, 7_298_617_344},
	{`{"model_type":"granite","num_hidden_layers":40,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":12800,"vocab_size":49155,"max_position_embeddings":4096,"tie_word_embeddings":true}`, 8_170_848_256},
	{`{"model_type":"internlm2","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":92544,"max_position_embeddings":32768}`, 7_737_708_544},
	{`{"model_type":"cohere","num_hidden_layers":40,"hidden_size":8192,"num_attention_heads":64,"num_key_value_heads":64,"intermediate_size":22528,"vocab_size":256000,"max_position_embeddings":8192}`, 34_980_831_232},
	{`{"model_type":"stablelm","num_hidden_layers":24,"hidden_size":2048,"num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":5632,"vocab_size":100352,"use_qkv_bias":true,"max_position_embeddings":4096}`, 1_644_515_328},
	{`{"model_type":"starcoder2","num_hidden_layers":30,"hidden_size":3072,"num_attention_heads":24,"num_key_value_heads":2,"intermediate_size":12288,"vocab_size":49152,"max_position_embeddings":16384}`, 3_030_371_328},
	{`{"model_type":"gptj","n_layer":28,"n_embd":4096,"n_head":16,"n_inner":null,"vocab_size":50400,"n_positions":2048}`, 6_050_882_784},
	{`{"model_type":"gpt_neo","num_layers":32,"hidden_size":2560,"num_heads":20,"intermediate_size":null,"vocab_size":50257,"max_position_embeddings":2048}`, 2_651_307_520},
	{`{"model_type":"gpt_bigcode","n_layer":40,"n_embd":6144,"n_head":48,"n_inner":24576,"vocab_size":49152,"n_positions":8192,"multi_query":true}`, 15_517_456_384},
	{`{"model_type":"mpt","n_layers":32,"d_model":4096,"n_heads":32,"expansion_ratio":4,"vocab_size":50432,"max_seq_len":2048}`, 6_649_286_656},
	{`{"model_type":"falcon","num_hidden_layers":32,"hidden_size":4544,"num_attention_heads":71,"vocab_size":65024,"bias":false,"multi_query":true,"parallel_attn":true,"new_decoder_architecture":false}`, 6_921_720_704},
	{`{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","num_hidden_layers":26,"hidden_size":1152,"num_attention_heads":4,"num_key_value_heads":1,"head_dim":256,"intermediate_size":6912,"vocab_size":262144}}`, 999_885_952},
	{`{"model_type":"roberta","num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":50265,"max_position_embeddings":514,"type_vocab_size":1}`, 124_697_433},
	{`{"model_type":"distilbert","n_layers":6,"dim":768,"n_heads":12,"hidden_dim":3072,"vocab_size":30522,"max_position_embeddings":512}`, 66_985_530},
	{`{"model_type":"vit","num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,"image_size":224,"patch_size":16}`, 86_567_656},
}

func TestReadConfig(t *testing.T) {
	for _, x := range configTexts {
		m, err := workload.ReadConfig("config.json", []byte(x.text))
		if err != nil {
			t.Errorf("%s: %v", x.text, err)
			continue
		}
		if m.Params() != x.params {
			t.Errorf("%s: %d parameters; expected %d", x.text, m.Params(), x.params)
		}
	}
	for text, want := range map[string]string{
		`{`:                                   "config.json: unexpected end",
		`[]`:                                  "expected a config.json of Hugging Face",
		`{"model_type":"mamba"}`:              `model_type is "mamba"; expected one of bamba, bert, bloom`,
		`{}`:                                  `model_type is ""`,
		`{"model_type":"llama"}`:              "no num_hidden_layers",
		`{"model_type":"gpt2","n_layer":1.5}`: "n_layer is 1.5; expected a whole number",
		strings.Replace(configTexts[1].text, `"num_attention_heads":32`, `"num_attention_heads":31`,
			1): "cannot be divided evenly by 31 heads",
		strings.Replace(configTexts[4].text, `"num_experts_per_tok":2`, `"num_experts_per_tok":9`, 1): "top_k is 9",
	} {
		if _, err := workload.ReadConfig("config.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %q", text, err, want)
		}
	}
}

func FuzzReadConfig(f *testing.F) {
	for _, x := range configTexts {
		f.Add([]byte(x.text))
	}
	f.Add([]byte(`{"model_type":"deepseek_v3","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"vocab_size":9,"n_routed_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":8,"q_lora_rank":8,"kv_lora_rank":8,"qk_nope_head_dim":8,"qk_rope_head_dim":4,"v_head_dim":8}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := workload.ReadConfig("config.json", data)
		if err == nil && (m.Dims.Check() != nil || m.Params() < 1 || m.Forward(m.Seq) <= 0) {
			t.Errorf("%s: %+v", data, m.Dims)
		}
	})
}

// A number of parameters is enough; what is missing follows, and what contradicts is refused.
func TestSolve(t *testing.T) {
	for word, want := range map[string]float64{
		"params=20B,layers=48":             20e9,
		"params=20B,layers=48,hidden=6144": 20e9,
		"params=175B":                      175e9,
		"params=1.3b,hidden=2048":          1.3e9,
		"params=350M,layers=24":            350e6,
		"params=124M,layers=12,hidden=768": 124.4e6,
		"params=1T":                        1e12,
	} {
		m, err := workload.Parse(word)
		if err != nil {
			t.Errorf("%s: %v", word, err)
			continue
		}
		if got := float64(m.Params()); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%s: %g parameters, %+v", word, got, m.Dims)
		}
		if m.Dims.Hidden >= 4096 && m.Dims.Heads%8 != 0 {
			t.Errorf("%s: %d heads, which eight ranks cannot share", word, m.Dims.Heads)
		}
	}
	for word, want := range map[string]string{
		"params=20B,layers=12,hidden=768": "params says 20B",
		"params=x":                        `params is "x"`,
		"params=-4B":                      "expected a number of parameters",
		"params=1e30":                     "expected a number of parameters",
		"params=20B,layers=48,hidden=6144,ffn=24576": "params says 20B",
		"params=20B,layers=-1":                       "at least 1",
	} {
		if _, err := workload.Parse(word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %q", word, err, want)
		}
	}
}

// Fields that a file leaves out are those of transformers' configuration classes; what a file says beyond is noted.
func TestConfigDefaults(t *testing.T) {
	for _, c := range []struct {
		text   string
		params int64
		seq    int64
		note   string
	}{
		// google/gemma-3-4b: the decoder alone.
		{`{"model_type":"gemma3","text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024}}`, 3_880_263_168, 4096, "vocab_size 262208"},
		{`{"model_type":"qwen3","num_hidden_layers":36,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":12288,"max_position_embeddings":40960}`, 8_190_735_360, 4096, "vocab_size 151936"},
		{`{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":131072,"num_nextn_predict_layers":1}`, 8_030_261_248, 8192, "--mtp 1"},
		// mistralai/Mamba-Codestral-7B-v0.1.
		{`{"model_type":"mamba2","num_hidden_layers":64,"hidden_size":4096}`, 7_285_403_648, 4096, "num_heads 128"},
	} {
		m, err := workload.ReadConfig("config.json", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if m.Params() != c.params || m.Seq != c.seq || !strings.Contains(strings.Join(m.Notes, "; "), c.note) {
			t.Errorf("%s: %d parameters, sequences of %d, notes %q; want %d, %d and %q", c.text, m.Params(), m.Seq, m.Notes,
				c.params, c.seq, c.note)
		}
	}
	if _, err := workload.ReadConfig("config.json", []byte(`{"model_type":"llama","num_hidden_layers":32}`)); err == nil {
		t.Error("a file without a width is taken")
	}
}
