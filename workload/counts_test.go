package workload_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbar.dev/internal/test/corpus"
	"busbar.dev/workload"
)

// counts are numbers of parameters that somebody publishes exactly, written down apart from the
// catalogue, so that neither can be changed alone.
var counts = map[string]int64{
	// KerasHub's presets of GPT-2 and Hugging Face's GPT2LMHeadModel (openai-community/…).
	"gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200,
	// Metadata of google-bert/bert-base-uncased and bert-large-uncased on Hugging Face (safetensors, F32).
	"bert-base": 110_106_428, "bert-large": 336_226_108,
	// torchvision's documentation of the weights, num_params.
	"vit-b16": 86_567_656, "vit-l16": 304_326_632, "vit-h14": 632_045_800,
	"resnet50": 25_557_032, "resnet101": 44_549_160, "resnet152": 60_192_808, "vgg16": 138_357_544,
	// facebookresearch/DiT's train.py prints it.
	"dit-xl-2": 675_129_632,
	// model.safetensors.index.json of meta-llama/Llama-2-…-hf: total_size / 2.
	"llama2-7b": 13_476_831_232 / 2, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
	// model.safetensors.index.json of meta-llama/Llama-3.1-…: total_size / 2.
	"llama3-8b": 8_030_261_248, "llama3-70b": 141_107_412_992 / 2, "llama3-405b": 811_706_777_600 / 2,
	// Hugging Face's documentation of safetensors' headers, and the checkpoints bigscience/….
	"bloom-560m": 559_214_592, "bloom-1b1": 1_065_314_304, "bloom-1b7": 1_722_408_960, "bloom-3b": 3_002_557_440,
	"bloom-7b1": 7_069_016_064, "bloom-176b": 176_247_271_424,
	// Hugging Face's OPTForCausalLM as PEFT and others count facebook/opt-…: all parameters less LoRA's.
	"opt-125m": 125_239_296, "opt-350m": 331_196_416, "opt-1.3b": 1_315_758_080, "opt-2.7b": 2_651_596_800,
	"opt-6.7b": 6_666_862_592 - 8_388_608,
	// model.safetensors.index.json of mistralai/Mixtral-…: total_size / 2.
	"mixtral-8x7b": 93_405_585_408 / 2, "mixtral-8x22b": 281_241_268_224 / 2,
	// Elements of the released checkpoints.
	"grok-1": 315_684_820_992, "deepseek-v2": 235_741_434_880, "deepseek-v3": 671_026_419_200,
	// MosaicML's llm-foundry, scripts/train/benchmarking/README.md, sequences of 2048 tokens.
	"mpt-125m": 125_311_488, "mpt-350m": 355_985_408, "mpt-760m": 760_470_528, "mpt-1b": 1_315_950_592,
	"mpt-3b": 2_651_837_440,
	"mpt-7b": 6_658_859_008, "mpt-13b": 12_853_954_560, "mpt-30b": 29_975_214_080, "mpt-70b": 64_862_437_376,
}

// rounded are those that are stated in round figures only, as they are printed: billions, and the digits
// after the point.
var rounded = map[string]struct {
	billions float64
	digits   int
}{
	// Brown et al. 2020, table D.1.
	"gpt3-125m": {0.125, 3}, "gpt3-350m": {0.356, 3}, "gpt3-760m": {0.760, 3}, "gpt3-1.3b": {1.32, 2},
	"gpt3-2.7b": {2.65, 2}, "gpt3-6.7b": {6.66, 2}, "gpt3-13b": {12.85, 2}, "gpt3-175b": {174.6, 1},
	// Zhang et al. 2022, table 1, by name.
	"opt-13b": {13, 0}, "opt-30b": {30, 0}, "opt-66b": {66, 0}, "opt-175b": {175, 0},
	// Narayanan et al. 2021, table 1.
	"megatron-1.7b": {1.7, 1}, "megatron-3.6b": {3.6, 1}, "megatron-7.5b": {7.5, 1}, "megatron-18.4b": {18.4, 1},
	"megatron-39.1b": {39.1, 1}, "megatron-76.1b": {76.1, 1},
	"megatron-145.6b": {145.6, 1}, "megatron-310.1b": {310.1, 1}, "megatron-529.6b": {529.6, 1},
	"megatron-1t": {1008.0, 1},
}

// TestCounts holds every model of the catalogue to a published count: exactly, or to the digits printed.
func TestCounts(t *testing.T) {
	for _, m := range workload.Models() {
		got := m.Params()
		if want, ok := counts[m.Name]; ok {
			if got != want || m.Rounded != 0 {
				t.Errorf("%s: %d parameters, margin %g; published are %d exactly", m.Name, got, m.Rounded, want)
			}
			continue
		}
		if want, ok := rounded[m.Name]; ok {
			p := math.Pow10(want.digits)
			if r := math.Round(float64(got)/1e9*p) / p; r != want.billions {
				t.Errorf("%s: %d parameters are %g billion; published are %g", m.Name, got, r, want.billions)
			}
			continue
		}
		switch m.Name {
		case "nemotron4-15b", "nemotron4-340b": // the next test
		default:
			t.Errorf("%s: nobody's count is written down here", m.Name)
		}
	}
}

// Nemotron-4's reports state parameters of embeddings and others apart, to 0.1 billion.
func TestNemotron(t *testing.T) {
	for name, want := range map[string][2]float64{"nemotron4-15b": {3.2, 12.5}, "nemotron4-340b": {9.4, 331.6}} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		words := 0.0
		for _, x := range m.Tensors() {
			if x.Name == "model.embed_tokens.weight" || x.Name == "lm_head.weight" {
				words += float64(x.Count()) / 1e9
			}
		}
		// 3.2 is printed where 3.146 are counted.
		if rest := float64(m.Params())/1e9 - words; math.Abs(words-want[0]) > 0.06 || math.Abs(rest-want[1]) > 0.05 {
			t.Errorf("%s: %.3f and %.3f billion; the report says %g and %g", name, words, rest, want[0], want[1])
		}
	}
}

// BERT without the heads of pretraining is Hugging Face's BertModel.
func TestBareBERT(t *testing.T) {
	for name, want := range map[string]int64{"bert-base": 109_482_240, "bert-large": 335_141_888} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(0)
		for _, x := range m.Tensors() {
			if strings.HasPrefix(x.Name, "bert.") {
				n += x.Count()
			}
		}
		if n != want {
			t.Errorf("%s: %d without heads; expected %d", name, n, want)
		}
	}
}

// The operations of convolutions are torchvision's GFLOPS, which count multiplications.
func TestConvolutions(t *testing.T) {
	for name, want := range map[string]float64{"resnet50": 4.09, "resnet101": 7.80, "resnet152": 11.51, "vgg16": 15.47} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Forward(1) / 2e9; math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %.3f G multiplications; expected %g", name, got, want)
		}
		j := &workload.Job{Model: m, Seq: 1, MicroBatch: 1, GlobalBatch: 1}
		if err := j.Check(); err != nil {
			t.Errorf("a step of %s: %v", name, err)
		}
		j.Split = workload.Split{TP: 2}
		if err := j.Check(); err == nil || !strings.Contains(err.Error(), "replicas of the whole model") {
			t.Errorf("a step of %s with tp=2: %v", name, err)
		}
	}
	m, _ := workload.Find("resnet50")
	all := m.Tensors()
	if len(all) != 161 || all[0].String() != "conv1.weight[64 3 7 7]" || all[3].Name != "layer1.0.conv1.weight" ||
		all[12].String() != "layer1.0.downsample.0.weight[256 64 1 1]" || all[160].Name != "fc.bias" {
		t.Errorf("%d tensors: %v … %v", len(all), all[:14], all[len(all)-2:])
	}
}

// Dimensions of published runs, collected apart from the catalogue, are the catalogue's.
func TestDimensionsOfRuns(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(corpus.Dir(t), "truth", "training.jsonl"))
	if err != nil {
		t.Skip(err)
	}
	names := map[string]string{
		"Llama-2 7B": "llama2-7b", "Llama-2 13B": "llama2-13b", "Llama-2 70B": "llama2-70b", "Llama-3 8B": "llama3-8b",
		"Llama-3.1 70B": "llama3-70b", "Llama-3.1 405B": "llama3-405b",
		"Nemotron4 15B": "nemotron4-15b", "Nemotron4 340B": "nemotron4-340b", "BERT-Large": "bert-large",
		"BERT-base pretraining": "bert-base", "GPT-3 175B": "gpt3-175b",
		"MPT-125m": "mpt-125m", "MPT-350m": "mpt-350m", "MPT-760m": "mpt-760m", "MPT-1b": "mpt-1b", "MPT-3b": "mpt-3b",
		"MPT-7b": "mpt-7b", "MPT-13b": "mpt-13b", "MPT-30b": "mpt-30b", "MPT-70b": "mpt-70b",
		"GPT 1.7": "megatron-1.7b", "GPT 3.6": "megatron-3.6b", "GPT 7.5": "megatron-7.5b", "GPT 18.4": "megatron-18.4b",
		"GPT 39.1": "megatron-39.1b", "GPT 76.1": "megatron-76.1b",
		"GPT 145.6": "megatron-145.6b", "GPT 310.1": "megatron-310.1b", "GPT 529.6": "megatron-529.6b",
		"GPT 1008": "megatron-1t",
	}
	seen := map[string]bool{}
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		var r struct {
			Model struct {
				Name                                string
				Params                              float64
				Layers, Hidden, Heads, FFN, KVHeads int64
			}
		}
		if json.Unmarshal(sc.Bytes(), &r) != nil || r.Model.Layers == 0 {
			continue
		}
		key := r.Model.Name
		if key == "GPT" {
			key += " " + strings.TrimSuffix(jsonNumber(r.Model.Params/1e9), ".0")
		}
		name, ok := names[key]
		if !ok {
			continue
		}
		seen[name] = true
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		d := m.Dims
		if d.Layers != r.Model.Layers || d.Hidden != r.Model.Hidden || d.Heads != r.Model.Heads || d.FFN != r.Model.FFN {
			t.Errorf("%s: the catalogue has %+v, the run %+v", name, d, r.Model)
		}
	}
	if len(seen) != len(names) {
		t.Errorf("%d of %d models were met: %v", len(seen), len(names), seen)
	}
}

func jsonNumber(x float64) string {
	b, _ := json.Marshal(x)
	return string(b)
}

// The operations of a diffusion transformer are Peebles and Xie's Gflops (table 4), which count multiplications, on 256
// × 256 points.
func TestDiffusionOperations(t *testing.T) {
	m, err := workload.Find("dit-xl-2")
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Forward(m.Seq) / 2e9; math.Abs(got/118.64-1) > 0.005 {
		t.Errorf("%.2f G multiplications; published are 118.64", got)
	}
}
