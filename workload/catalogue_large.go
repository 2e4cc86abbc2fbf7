package workload

import "fmt"

// Sources of the larger and newer models.
const (
	bloomFrom    = "BigScience 2022, BLOOM (arXiv 2211.05100), table 3; config.json of bigscience/%s on Hugging Face"
	bloomCount   = "number of elements of the checkpoint bigscience/%s (safetensors) on Hugging Face"
	optPaper     = "Zhang et al. 2022, OPT (arXiv 2205.01068), table 1; config.json of facebook/%s on Hugging Face"
	optCount     = "number of elements of the checkpoint facebook/%s on Hugging Face, the head counted with the embedding"
	optNominal   = "Zhang et al. 2022, OPT (arXiv 2205.01068), table 1, by name"
	megatronFrom = "Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters (arXiv 2104.04473), table 1"
	mptFrom      = "MosaicML, llm-foundry, scripts/train/yamls/pretrain"
	mptCount     = "MosaicML, llm-foundry, scripts/train/benchmarking/README.md, column of parameters, for sequences of 2048 tokens"
	nemotron15   = "Parmar et al. 2024, Nemotron-4 15B Technical Report (arXiv 2402.16819), table 1 and section 2"
	nemotron340  = "NVIDIA 2024, Nemotron-4 340B Technical Report (arXiv 2406.11704), table 1 and section 2.2"
	mixtralFrom  = "Jiang et al. 2024, Mixtral of Experts (arXiv 2401.04088), table 1; config.json of mistralai/Mixtral-%s-v0.1 on Hugging Face"
	mixtralCount = "model.safetensors.index.json of the same checkpoint: total_size over two bytes a parameter"
	grokFrom     = "xAI 2024, github.com/xai-org/grok-1, run.py and README"
	deepseek2    = "DeepSeek-AI 2024, DeepSeek-V2 (arXiv 2405.04434), section 3.1.2; config.json of deepseek-ai/DeepSeek-V2 on Hugging Face"
	deepseek3    = "DeepSeek-AI 2024, DeepSeek-V3 Technical Report (arXiv 2412.19437), section 4.2; config.json of deepseek-ai/DeepSeek-V3 on Hugging Face"
)

func bloomModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title           string
		layers, hidden, heads int64
		params                int64
	}{
		{"bloom-560m", "BLOOM 560M", 24, 1024, 16, 559_214_592},
		{"bloom-1b1", "BLOOM 1.1B", 24, 1536, 16, 1_065_314_304},
		{"bloom-1b7", "BLOOM 1.7B", 24, 2048, 16, 1_722_408_960},
		{"bloom-3b", "BLOOM 3B", 30, 2560, 32, 3_002_557_440},
		{"bloom-7b1", "BLOOM 7.1B", 30, 4096, 32, 7_069_016_064},
		{"bloom", "BLOOM 176B", 70, 14336, 112, 176_247_271_424},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 250880, Context: 2048}.filled()
		m := Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: BLOOM(d), Source: named(bloomFrom, x.name),
			Published: x.params, PublishedSource: named(bloomCount, x.name), Note: "positions are slopes of attention and have no tensor",
		}
		if x.name == "bloom" {
			m.Name = "bloom-176b"
		}
		list = append(list, m)
	}
	return list
}

// optModels have counts of checkpoints where there are some; 175B was never put on Hugging Face.
func optModels() []Model {
	var list []Model
	for _, x := range []struct {
		name                         string
		layers, hidden, heads, words int64
		params                       int64
		rounded                      float64
	}{
		{"opt-125m", 12, 768, 12, 768, 125_239_296, 0},
		{"opt-350m", 24, 1024, 16, 512, 331_196_416, 0},
		{"opt-1.3b", 24, 2048, 32, 2048, 1_315_758_080, 0},
		{"opt-2.7b", 32, 2560, 32, 2560, 2_651_596_800, 0},
		{"opt-6.7b", 32, 4096, 32, 4096, 6_658_473_984, 0},
		{"opt-13b", 40, 5120, 40, 5120, 13_000_000_000, rounding(13, 1)},
		{"opt-30b", 48, 7168, 56, 7168, 30_000_000_000, rounding(30, 1)},
		{"opt-66b", 64, 9216, 72, 9216, 66_000_000_000, rounding(66, 1)},
		{"opt-175b", 96, 12288, 96, 12288, 175_000_000_000, rounding(175, 1)},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 50272, Context: 2048}.filled()
		m := Model{
			Name: x.name, Title: "OPT " + x.name[4:], Dims: d, Seq: d.Context, Blocks: OPT(d, x.words), Source: named(optPaper, x.name),
			Published: x.params, Rounded: x.rounded, PublishedSource: named(optCount, x.name),
		}
		if x.rounded > 0 {
			m.PublishedSource = optNominal
		}
		if x.words != x.hidden {
			m.Note = "words are 512 wide, with a product before and after the layers; the paper's name counts them as wide as the layers"
		}
		list = append(list, m)
	}
	return list
}

// megatronModels are the ten of the weak-scaling study, whose counts have one digit after the
// point.
func megatronModels() []Model {
	var list []Model
	for _, x := range []struct {
		billions              float64
		layers, hidden, heads int64
	}{
		{1.7, 24, 2304, 24},
		{3.6, 30, 3072, 32},
		{7.5, 36, 4096, 32},
		{18.4, 40, 6144, 48},
		{39.1, 48, 8192, 64},
		{76.1, 60, 10240, 80},
		{145.6, 80, 12288, 96},
		{310.1, 96, 16384, 128},
		{529.6, 105, 20480, 128},
		{1008.0, 128, 25600, 160},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 51200, Context: 2048}.filled()
		name := fmt.Sprintf("%gb", x.billions)
		if x.billions > 1000 {
			name = "1t"
		}
		list = append(list, Model{
			Name: "megatron-" + name, Title: "Megatron-LM " + name, Dims: d, Seq: d.Context, Blocks: GPT2(d), Source: megatronFrom,
			Published: int64(x.billions*10+0.5) * 100_000_000, Rounded: 0.05 / x.billions, PublishedSource: megatronFrom,
		})
	}
	return list
}

func mptModels() []Model {
	var list []Model
	for _, x := range []struct {
		name                  string
		layers, hidden, heads int64
		params                int64
	}{
		{"mpt-125m", 12, 768, 12, 125_311_488},
		{"mpt-350m", 24, 1024, 16, 355_985_408},
		{"mpt-760m", 24, 1536, 12, 760_470_528},
		{"mpt-1b", 24, 2048, 16, 1_315_950_592},
		{"mpt-3b", 32, 2560, 20, 2_651_837_440},
		{"mpt-7b", 32, 4096, 32, 6_658_859_008},
		{"mpt-13b", 40, 5120, 40, 12_853_954_560},
		{"mpt-30b", 48, 7168, 56, 29_975_214_080},
		{"mpt-70b", 80, 8192, 64, 64_862_437_376},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 50368, Context: 2048}.filled()
		list = append(list, Model{
			Name: x.name, Title: "MPT " + x.name[4:], Dims: d, Seq: d.Context, Blocks: GPT2(d), Source: mptFrom, Published: x.params, PublishedSource: mptCount,
			Note: "as llm-foundry trains it, with biases and learned positions; the released weights have neither",
		})
	}
	return list
}

func nemotronModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title, from     string
		layers, hidden, heads int64
		params                int64 // embeddings and others, each stated to 0.1 billion
	}{
		{"nemotron4-15b", "Nemotron-4 15B", nemotron15, 32, 6144, 48, 3_200_000_000 + 12_500_000_000},
		{"nemotron4-340b", "Nemotron-4 340B", nemotron340, 96, 18432, 96, 9_400_000_000 + 331_600_000_000},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, KVHeads: 8, Vocab: 256000, Context: 4096}.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: Nemotron(d), Source: x.from,
			Published: x.params, Rounded: rounding(x.params, 200_000_000), PublishedSource: x.from + ": parameters of embeddings and others, each in round figures",
		})
	}
	return list
}

func mixtureModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, size string
		d          Dims
		params     int64
	}{
		{"mixtral-8x7b", "8x7B", Dims{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocab: 32000, Context: 32768, Experts: 8, TopK: 2}, 46_702_792_704},
		{"mixtral-8x22b", "8x22B", Dims{Layers: 56, Hidden: 6144, Heads: 48, KVHeads: 8, FFN: 16384, Vocab: 32000, Context: 65536, Experts: 8, TopK: 2}, 140_620_634_112},
	} {
		d := x.d.filled()
		list = append(list, Model{
			Name: x.name, Title: "Mixtral " + x.size, Dims: d, Seq: 4096, Blocks: Mixtral(d), Source: named(mixtralFrom, x.size),
			Published: x.params, PublishedSource: mixtralCount, Note: "positions are rotary and have no tensor",
		})
	}
	g := Dims{Layers: 64, Hidden: 6144, Heads: 48, KVHeads: 8, FFN: 32768, Vocab: 131072, Context: 8192, Experts: 8, TopK: 2}.filled()
	v2 := Dims{Layers: 60, Hidden: 5120, Heads: 128, FFN: 12288, Vocab: 102400, Context: 4096, Experts: 160, TopK: 6, Shared: 2, ExpertFFN: 1536, Dense: 1}.filled()
	v3 := Dims{Layers: 61, Hidden: 7168, Heads: 128, FFN: 18432, Vocab: 129280, Context: 4096, Experts: 256, TopK: 8, Shared: 1, ExpertFFN: 2048, Dense: 3}.filled()
	latent := Latent{Q: 1536, KV: 512, Plain: 128, Rotary: 64, Value: 128}
	return append(
		list,
		Model{Name: "grok-1", Title: "Grok-1", Dims: g, Seq: 8192, Blocks: Grok(g), Source: grokFrom, Published: 315_684_820_992, PublishedSource: "number of elements of the released checkpoint: 770 tensors", Note: "xAI says 314B, in round figures"},
		Model{Name: "deepseek-v2", Title: "DeepSeek-V2", Dims: v2, Seq: 4096, Blocks: DeepSeek(v2, latent, false), Source: deepseek2, Published: 235_741_434_880, PublishedSource: "number of elements of the checkpoint deepseek-ai/DeepSeek-V2 on Hugging Face; the paper says 236B"},
		Model{
			Name: "deepseek-v3", Title: "DeepSeek-V3", Dims: v3, Seq: 4096, Blocks: DeepSeek(v3, latent, true), Source: deepseek3,
			Published: 671_026_419_200, PublishedSource: "number of elements of the checkpoint deepseek-ai/DeepSeek-V3 on Hugging Face, without scales of FP8; the paper says 671B", Note: "without the module that predicts a further token, which is left out in use",
		},
	)
}
