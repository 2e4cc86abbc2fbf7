package workload

import "strings"

// Sources of dimensions and counts.
const (
	gpt2Paper  = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2; config.json of openai-community/%s on Hugging Face"
	gpt2Count  = "number of elements of the checkpoint openai-community/%s (model.safetensors) on Hugging Face, without the causal masks it also holds"
	gpt3Paper  = "Brown et al. 2020, Language Models are Few-Shot Learners (arXiv 2005.14165), table 2.1"
	gpt3Count  = "Brown et al. 2020 (arXiv 2005.14165), table D.1, in millions"
	bertPaper  = "Devlin et al. 2019, BERT (arXiv 1810.04805), section 3; config.json of google-bert/bert-%s-uncased on Hugging Face"
	bertCount  = "number of elements of the checkpoint google-bert/bert-%s-uncased (model.safetensors) on Hugging Face; the paper says 110M and 340M, without the heads"
	vitPaper   = "Dosovitskiy et al. 2020, An Image is Worth 16x16 Words (arXiv 2010.11929), table 1"
	vitCount   = "torchvision's documentation of ViT_%s, num_params"
	llama2From = "Touvron et al. 2023, Llama 2 (arXiv 2307.09288); config.json of meta-llama/Llama-2-%s-hf on Hugging Face"
	llama3From = "Grattafiori et al. 2024, The Llama 3 Herd of Models (arXiv 2407.21783), table 3; config.json of meta-llama/Llama-3.1-%s on Hugging Face"
	llamaCount = "model.safetensors.index.json of the same checkpoint: total_size over two bytes a parameter"
)

// families are the models that are known by name, each family made when it is asked for.
func families() []func() []Model {
	return []func() []Model{
		gpt2Models, gpt3Models, bertModels, vitModels, llamaModels, bloomModels, optModels, megatronModels, mptModels, nemotronModels, mixtureModels, convolutionModels, xlModels,
	}
}

// Models are the models that are known by name, families together, small ones first.
func Models() []Model {
	var all []Model
	for _, f := range families() {
		all = append(all, f()...)
	}
	return all
}

func gpt2Models() []Model {
	var list []Model
	for _, x := range []struct {
		name, title           string
		layers, hidden, heads int64
		params                int64
	}{
		{"gpt2", "GPT-2 small", 12, 768, 12, 124_439_808},
		{"gpt2-medium", "GPT-2 medium", 24, 1024, 16, 354_823_168},
		{"gpt2-large", "GPT-2 large", 36, 1280, 20, 774_030_080},
		{"gpt2-xl", "GPT-2 XL", 48, 1600, 25, 1_557_611_200},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 50257, Context: 1024}.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: GPT2(d), Source: named(gpt2Paper, x.name),
			Published: x.params, PublishedSource: named(gpt2Count, x.name),
		})
	}
	return list
}

// gpt3Models have the counts of table D.1. Of two sizes table 2.1 disagrees with them and with
// itself; the note says what was taken.
func gpt3Models() []Model {
	var list []Model
	for _, x := range []struct {
		name, title           string
		layers, hidden, heads int64
		millions, digit       int64 // stated, and to what multiple
		note                  string
	}{
		{"gpt3-125m", "GPT-3 Small", 12, 768, 12, 125, 1, ""},
		{"gpt3-350m", "GPT-3 Medium", 24, 1024, 16, 356, 1, ""},
		{"gpt3-760m", "GPT-3 Large", 24, 1536, 16, 760, 1, ""},
		{"gpt3-1.3b", "GPT-3 XL", 24, 2048, 16, 1320, 10, "table 2.1 has 24 heads of 128, which are more than the 2048 units; 16 of 128 are"},
		{"gpt3-2.7b", "GPT-3 2.7B", 32, 2560, 32, 2650, 10, ""},
		{"gpt3-6.7b", "GPT-3 6.7B", 32, 4096, 32, 6660, 10, ""},
		{"gpt3-13b", "GPT-3 13B", 40, 5120, 40, 12850, 10, "table 2.1 has 5140 units; 40 heads of 128 are 5120, and so is the count of table D.1"},
		{"gpt3-175b", "GPT-3 175B", 96, 12288, 96, 174_600, 10, ""},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 50257, Context: 2048}.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: GPT2(d), Source: gpt3Paper,
			Published: x.millions * 1_000_000, Rounded: rounding(x.millions, x.digit), PublishedSource: gpt3Count, Note: x.note,
		})
	}
	return list
}

func bertModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title, size     string
		layers, hidden, heads int64
		params                int64
	}{
		{"bert-base", "BERT base", "base", 12, 768, 12, 110_106_428},
		{"bert-large", "BERT large", "large", 24, 1024, 16, 336_226_108},
	} {
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 30522, Context: 512}.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: BERT(d), Source: named(bertPaper, x.size),
			Published: x.params, PublishedSource: named(bertCount, x.size), Note: "with both heads of pretraining, the head of words tied to the embedding",
		})
	}
	return list
}

func vitModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title, size     string
		layers, hidden, heads int64
		patch                 int64
		params                int64
	}{
		{"vit-b16", "ViT-B/16", "B_16_Weights.IMAGENET1K_V1", 12, 768, 12, 16, 86_567_656},
		{"vit-l16", "ViT-L/16", "L_16_Weights.IMAGENET1K_V1", 24, 1024, 16, 16, 304_326_632},
		{"vit-h14", "ViT-H/14", "H_14_Weights.IMAGENET1K_SWAG_LINEAR_V1", 32, 1280, 16, 14, 632_045_800},
	} {
		// 224 × 224 points are 14 × 14 patches of 16, or 16 × 16 of 14, and the class token.
		side := 224 / x.patch
		d := Dims{Layers: x.layers, Hidden: x.hidden, Heads: x.heads, Vocab: 1000, Context: side*side + 1}.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: d.Context, Blocks: ViT(d, x.patch), Source: vitPaper,
			Published: x.params, PublishedSource: named(vitCount, x.size), Note: "pictures of 224 × 224 points, 1000 classes",
		})
	}
	return list
}

func llamaModels() []Model {
	var list []Model
	for _, x := range []struct {
		name, title, from, size string
		d                       Dims
		seq                     int64
		params                  int64
	}{
		{"llama2-7b", "Llama 2 7B", llama2From, "7b", Dims{Layers: 32, Hidden: 4096, Heads: 32, FFN: 11008, Vocab: 32000, Context: 4096}, 4096, 6_738_415_616},
		{"llama2-13b", "Llama 2 13B", llama2From, "13b", Dims{Layers: 40, Hidden: 5120, Heads: 40, FFN: 13824, Vocab: 32000, Context: 4096}, 4096, 13_015_864_320},
		{"llama2-70b", "Llama 2 70B", llama2From, "70b", Dims{Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, FFN: 28672, Vocab: 32000, Context: 4096}, 4096, 68_976_648_192},
		{"llama3-8b", "Llama 3 8B", llama3From, "8B", Dims{Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, FFN: 14336, Vocab: 128256, Context: 8192}, 8192, 8_030_261_248},
		{"llama3-70b", "Llama 3 70B", llama3From, "70B", Dims{Layers: 80, Hidden: 8192, Heads: 64, KVHeads: 8, FFN: 28672, Vocab: 128256, Context: 8192}, 8192, 70_553_706_496},
		{"llama3-405b", "Llama 3 405B", llama3From, "405B", Dims{Layers: 126, Hidden: 16384, Heads: 128, KVHeads: 8, FFN: 53248, Vocab: 128256, Context: 8192}, 8192, 405_853_388_800},
	} {
		d := x.d.filled()
		list = append(list, Model{
			Name: x.name, Title: x.title, Dims: d, Seq: x.seq, Blocks: Llama(d), Source: named(x.from, x.size),
			Published: x.params, PublishedSource: llamaCount, Note: "positions are rotary and have no tensor",
		})
	}
	return list
}

// named puts a word into a source's text.
func named(text, word string) string { return strings.Replace(text, "%s", word, 1) }
