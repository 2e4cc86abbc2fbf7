package workload_test

// Counts of the checkpoints on Hugging Face of models of 2024 to 2026, from their safetensors' metadata: of 51 of 54 as
// others record them (AlexsJones/llmfit, hf_models.json of 2026-05-12; published_source in models.csv names each). Of
// glm4-32b and two Nemotrons there is no such record.
func init() {
	for name, n := range map[string]int64{
		"llama3.1-8b":        8030261248,
		"llama3.1-70b":       70553706496,
		"llama3.1-405b":      405853388800,
		"llama3.2-1b":        1235814400,
		"llama3.2-3b":        3212749824,
		"llama3.3-70b":       70553706496,
		"qwen2.5-0.5b":       494032768,
		"qwen2.5-1.5b":       1543714304,
		"qwen2.5-3b":         3085938688,
		"qwen2.5-7b":         7615616512,
		"qwen2.5-14b":        14770033664,
		"qwen2.5-32b":        32763876352,
		"qwen2.5-72b":        72706203648,
		"qwen3-0.6b":         596049920,
		"qwen3-1.7b":         1720574976,
		"qwen3-4b":           4022468096,
		"qwen3-8b":           8190735360,
		"qwen3-14b":          14768307200,
		"qwen3-32b":          32762123264,
		"qwen3-30b-a3b":      30532122624,
		"qwen3-235b-a22b":    235093634560,
		"mistral-7b":         7248023552,
		"mistral-nemo-12b":   12247782400,
		"mistral-small-24b":  23572403200,
		"mistral-large-123b": 122610069504,
		"gemma2-2b":          2614341888,
		"gemma2-9b":          9241705984,
		"gemma2-27b":         27227128320,
		"gemma3-1b":          999885952,
		"deepseek-r1":        671026419200,
		"gpt-oss-20b":        20914757184,
		"gpt-oss-120b":       116829156672,
		"phi3-mini":          3821079552,
		"phi4-14b":           14659507200,
		"glm4-9b":            9400279040,
		"glm4-32b":           32566081536,
		"olmo2-7b":           7298617344,
		"olmo2-13b":          13716198400,
		"olmo2-32b":          32234279936,
		"granite3-2b":        2533531648,
		"granite3-8b":        8170848256,
		"smollm2-135m":       134515008,
		"smollm2-360m":       361821120,
		"smollm2-1.7b":       1711376384,
		"smollm3-3b":         3075098624,
		"nemotron-h-8b":      8100852736,
		// Hugging Face's count of the whole, less the part that sees, which is the same in both.
		"llama4-scout":    108641793536 - 871932416,
		"llama4-maverick": 401583781376 - 871932416,
		// KerasHub's presets, and the 64 words by which Hugging Face pads.
		"gemma3-4b":              3880099328 + 64*2560,
		"gemma3-12b":             11765788416 + 64*3840,
		"gemma3-27b":             27009002240 + 64*5376,
		"nemotron3-nano-30b-a3b": 31577937344,
	} {
		counts[name] = n
	}
	// What cards state in billions. Super's is with the module that predicts a further token, 123.6; ours is without.
	for name, n := range map[string]float64{
		"nemotron-h-56b":            56,
		"nemotron3-super-120b-a12b": 121,
	} {
		rounded[name] = struct {
			billions float64
			digits   int
		}{n, 0}
	}
}
