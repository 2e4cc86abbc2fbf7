package workload_test

import (
	"fmt"
	"math"
	"testing"

	"busbar.dev/workload"
)

// Hybrids that config.json describes have as many parameters as their publishers state: by cards on Hugging Face, in
// round billions.
func TestMixerCounts(t *testing.T) {
	list := func(n int64, at ...int64) string {
		kinds := make([]string, n)
		for i := range kinds {
			kinds[i] = "\"mamba\""
		}
		for _, i := range at {
			kinds[i] = "\"attention\""
		}
		text := ""
		for i, k := range kinds {
			if i > 0 {
				text += ","
			}
			text += k
		}
		return text
	}
	for _, x := range []struct {
		name, config string
		billions     float64
		off          float64 // that the statement may be
	}{
		{"ibm-ai-platform/Bamba-9B", `{"model_type":"bamba","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"attn_layer_indices":[9,18,27],"mamba_n_heads":128,"mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"mamba_expand":2,"vocab_size":128256}`, 9.78, 0.01},
		{"ibm-granite/granite-4.0-h-small", fmt.Sprintf(`{"model_type":"granitemoehybrid","hidden_size":4096,"intermediate_size":768,"shared_intermediate_size":1536,"num_local_experts":72,"num_experts_per_tok":10,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"mamba_n_heads":128,"mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"vocab_size":100352,"tie_word_embeddings":true,"layer_types":[%s]}`, list(40, 5, 15, 25, 35)), 32, 0.02},
		{"ibm-granite/granite-4.0-h-tiny", fmt.Sprintf(`{"model_type":"granitemoehybrid","hidden_size":1536,"intermediate_size":512,"shared_intermediate_size":1024,"num_local_experts":64,"num_experts_per_tok":6,"num_hidden_layers":40,"num_attention_heads":12,"num_key_value_heads":4,"mamba_n_heads":48,"mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"vocab_size":100352,"tie_word_embeddings":true,"layer_types":[%s]}`, list(40, 5, 15, 25, 35)), 7, 0.03},
		{"tiiuae/Falcon-H1-0.5B-Base", `{"model_type":"falcon_h1","hidden_size":1024,"intermediate_size":2048,"num_hidden_layers":36,"num_attention_heads":8,"num_key_value_heads":2,"head_dim":64,"mamba_d_ssm":1536,"mamba_n_heads":24,"mamba_d_head":64,"mamba_n_groups":1,"mamba_d_state":128,"vocab_size":32784}`, 0.521, 0.005},
		{"ai21labs/Jamba-v0.1", `{"model_type":"jamba","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"num_experts":16,"num_experts_per_tok":2,"attn_layer_period":8,"attn_layer_offset":4,"expert_layer_period":2,"expert_layer_offset":1,"mamba_d_state":16,"mamba_dt_rank":256,"vocab_size":65536}`, 51.6, 0.005},
		{"LiquidAI/LFM2-1.2B", `{"model_type":"lfm2","hidden_size":2048,"block_ff_dim":12288,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"full_attn_idxs":[2,5,8,10,12,14],"vocab_size":65536}`, 1.17, 0.01},
		{"LiquidAI/LFM2-8B-A1B", `{"model_type":"lfm2_moe","hidden_size":2048,"intermediate_size":7168,"moe_intermediate_size":1792,"num_hidden_layers":24,"num_attention_heads":32,"num_key_value_heads":8,"num_experts":32,"num_experts_per_tok":4,"num_dense_layers":2,"layer_types":["conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","conv","full_attention","conv","conv","full_attention","conv","conv"],"vocab_size":65536}`, 8.34, 0.01},
		{"Qwen/Qwen3-Next-80B-A3B", `{"model_type":"qwen3_next","hidden_size":2048,"intermediate_size":5120,"num_hidden_layers":48,"num_attention_heads":16,"num_key_value_heads":2,"head_dim":256,"num_experts":512,"num_experts_per_tok":10,"moe_intermediate_size":512,"shared_expert_intermediate_size":512,"linear_num_value_heads":32,"linear_num_key_heads":16,"linear_value_head_dim":128,"linear_key_head_dim":128,"full_attention_interval":4,"vocab_size":151936}`, 79.67, 0.01},
	} {
		m, err := workload.ReadConfig("config.json", []byte(x.config))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if got := float64(m.Params()) / 1e9; math.Abs(got/x.billions-1) > x.off {
			t.Errorf("%s: %.3f billion parameters; %.3g are stated", x.name, got, x.billions)
		}
		j := workload.Job{
			Model: m, Seq: 4096, MicroBatch: 1, GlobalBatch: 1, Precision: workload.BF16, Kernels: workload.Compiled,
		}
		if j.Memory().Activations <= 0 || m.Forward(4096) <= 0 {
			t.Errorf("%s: %v of activations", x.name, j.Memory().Activations)
		}
	}
}

// A layer that predicts a further token is one more of the last kind with a projection, and computes the head again.
// DeepSeek-V3's has 11.6 billion beside what it shares: 14 with copies of embedding and head (its card).
func TestPredicting(t *testing.T) {
	m, err := workload.Find("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	more := m.Predicting(1)
	if n := float64(more.Params()-m.Params()) / 1e9; n < 11.4 || n > 11.8 {
		t.Errorf("%.2f billion parameters more", n)
	}
	if a, b := m.Forward(4096), more.Forward(4096); b <= a*(1+1.0/61) || b > a*1.06 {
		t.Errorf("%.3g operations, %.3g with one more token", a, b)
	}
	if m.Predicting(0) != m || len(m.Blocks) == len(more.Blocks) {
		t.Error("the model itself changed")
	}
}

func TestFindHub(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-3.1-8B": "llama3.1-8b", "llama-3-8b": "llama3-8b", "Qwen/Qwen3-30B-A3B-Instruct": "qwen3-30b-a3b",
		"openai/gpt-oss-120b": "gpt-oss-120b", "deepseek-ai/DeepSeek-V3": "deepseek-v3",
		"mistralai/Mixtral-8x7B-v0.1":         "mixtral-8x7b",
		"meta-llama/Meta-Llama-3-8B-Instruct": "llama3-8b", "Llama 3 8B": "llama3-8b",
		"Qwen/Qwen3-30B-A3B-Thinking-2507": "qwen3-30b-a3b", "meta-llama/Llama-2-7b-chat-hf": "llama2-7b",
	} {
		if m := workload.FindHub(name); m == nil || m.Name != want {
			t.Errorf("%s: %+v; expected %s", name, m, want)
		}
	}
	for _, name := range []string{"", "/", "llama", "nobody/model", "-instruct"} {
		if m := workload.FindHub(name); m != nil {
			t.Errorf("%s is %s", name, m.Name)
		}
	}
}
