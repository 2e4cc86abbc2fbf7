package workload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// The table says only what the rest of the program has words for.
func TestFrameworkTable(t *testing.T) {
	words := map[string][]string{
		"schedules": {}, "context": {"ring", "gather", "ulysses"}, "experts": {"", "dp", "folded"},
		"recompute": {"none", "selective", "full", "light"},
		"offload":   {"optimizer", "parameters"}, "compress": {"fp16", "bf16", "int8"},
		"orders":  {string(workload.TensorDataPipeline), string(workload.TensorPipelineData)},
		"kernels": {"eager", "compiled", "fused", "mixed"}, "attention": {"unfused", "early", "second", "fused"},
		"weights": {"copy", "wide", "amp", "autocast", "sums"}, "loss": {"", "in-place", "chunked"},
		"stages": {"", "slots", "cost"}, "sums": {"fp32", "bf16", "fp16"},
		"overlaps": {"grads", "params", "tensor", "pipeline", "context", "experts"},
		"launch":   {"torchrun", "srun", "accelerate", "deepspeed"}, "planned": {"tp", "sp", "pp", "cp", "ep"},
	}
	for _, s := range pipeline.Schedules() {
		words["schedules"] = append(words["schedules"], string(s))
	}
	last := map[string]string{}
	for _, f := range workload.Frameworks() {
		for column, list := range map[string][]string{
			"schedules": f.Schedules, "context": f.Context, "experts": {f.Experts}, "recompute": f.Recompute,
			"offload": f.Offload, "compress": f.Compress,
			"orders": f.Orders, "kernels": {f.Kernels}, "attention": {f.Attention}, "weights": {f.Weights}, "loss": {f.Loss},
			"stages":   {f.Stages},
			"sums":     {f.Sums},
			"overlaps": slices.Concat(f.Overlaps, f.Switches), "launch": f.Launch, "planned": f.Planned,
		} {
			for _, w := range list {
				if !slices.Contains(words[column], w) {
					t.Errorf("%s: %s has %q; expected some of %v", f.ID, column, w, words[column])
				}
			}
		}
		if !strings.Contains(f.Source, "/") || len(f.Since) != 7 || f.Since[4] != '-' {
			t.Errorf("%s: source %q, since %q", f.ID, f.Source, f.Since)
		}
		for _, z := range slices.Concat(f.ZeRO, f.ZeROAsked, f.ZeROPipeline) {
			if z < 0 || z > 3 {
				t.Errorf("%s: zero=%d", f.ID, z)
			}
		}
		for _, z := range f.ZeROPipeline {
			if !slices.Contains(f.ZeRO, z) {
				t.Errorf("%s: zero=%d with pipelines and not without", f.ID, z)
			}
		}
		if len(f.Schedules) == 0 != (len(f.ZeROPipeline) == 0) {
			t.Errorf("%s: schedules %v, zero with pipelines %v", f.ID, f.Schedules, f.ZeROPipeline)
		}
		if last[f.Name] >= f.Since {
			t.Errorf("%s: since %s, after %s", f.ID, f.Since, last[f.Name])
		}
		last[f.Name] = f.Since
		g, err := workload.ParseFramework(f.ID)
		if err != nil || g.ID != f.ID {
			t.Errorf("%s parses as %v, %v", f.ID, g, err)
		}
		for _, also := range f.Also {
			if g, err := workload.ParseFramework(also); err != nil || g.Name != f.Name {
				t.Errorf("%s parses as %v, %v", also, g, err)
			}
		}
	}
}

func TestParseFramework(t *testing.T) {
	for _, x := range []struct{ text, id, release, err string }{
		{"megatron", "megatron@0.19", "0.19", ""},
		{"Megatron-LM@core_v0.12.1", "megatron@0.12", "0.12.1", ""},
		{"megatron@0.9", "megatron@0.7", "0.9", ""},
		{"megatron@23.06", "megatron@23.04", "23.06", ""},
		{"megatron@3.0", "megatron@2.6", "3.0", ""},
		{"megatron@0.25", "megatron@0.19", "0.19", ""},
		{"megatron@2023", "megatron@0.4", "0.4", ""},
		{"megatron@0.1", "", "", "known are 2.6, 23.04"},
		{"bridge", "nemo@26.08", "26.08", ""},
		{"nemo@25.10", "nemo@25.09", "25.10", ""},
		{"nemo@2025-12", "nemo@25.11", "25.11", ""},
		{"NeMo / Megatron-Core (MLPerf)@2024", "mlperf@4.0", "4.0", ""},
		{"DeepSpeed with Megatron-LM@2021", "megatron-deepspeed@0.3", "0.3", ""},
		{"ms-swift (DeepSpeed ZeRO-2, HF Transformers)", "hf@5.0", "5.0", ""},
		{"megatron@0.12@3", "", "", "release"},
		{"torchtitan@1e9", "", "", "release"},
		{"Megatron-SWIFT (Megatron-Core)@2025-07", "megatron@0.13", "0.13", ""},
		{"torchtitan@v0.2.2", "torchtitan@0.2", "0.2.2", ""},
		{"torchtitan@main", "torchtitan@0.2", "0.2", ""},
		{"accelerate", "fsdp@2.9", "2.9", ""},
		{"jax", "maxtext@2024", "2024", ""},
		{"fused", "", "", "there are megatron, nemo, torchtitan, fsdp, ddp, deepspeed, hf"},
		{"megatron@new", "", "", "known are 2.6, 23.04"},
		{"", "", "", "unknown"},
	} {
		f, err := workload.ParseFramework(x.text)
		switch {
		case x.err != "":
			if err == nil || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%q: %v, %v; expected %q", x.text, f, err, x.err)
			}
		case err != nil || f.ID != x.id || f.Release != x.release:
			t.Errorf("%q is %v, %v; expected %s as %s", x.text, f, err, x.id, x.release)
		}
	}
}

func FuzzParseFramework(f *testing.F) {
	for _, x := range []string{"megatron@0.12", "nemo@25.11", "hf", "megatron@", "@", "fsdp@2.6.0.0.1", "ddp@9999999"} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, text string) {
		x, err := workload.ParseFramework(text)
		if (x == nil) == (err == nil) {
			t.Fatalf("%q: %v, %v", text, x, err)
		}
		if err == nil {
			if y, err := workload.ParseFramework(x.String()); err != nil || y.ID != x.ID {
				t.Fatalf("%q is %s, which is %v, %v", text, x, y, err)
			}
		}
	})
}

// framework is one that is known.
func framework(t *testing.T, text string) *workload.Framework {
	t.Helper()
	f, err := workload.ParseFramework(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// What frameworks refuse, by rule, with a source.
func TestRefuses(t *testing.T) {
	m, err := workload.Find("llama3-70b")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		framework, split, want string
		change                 func(j *workload.Job)
	}{
		{"megatron", "dp=4,tp=8,pp=4,zero=1,sp=1", "", nil},
		{"megatron", "dp=4,tp=8,pp=4,zero=2", "with pipelines it has zero=0, zero=1", nil},
		{"megatron", "dp=128,zero=3", "", nil}, // Megatron-FSDP
		{"megatron@0.13", "dp=128,zero=3", "zero=3: it has zero=0, zero=1", nil},
		{"megatron@0.13", "dp=16,tp=8,zero=1,shard=4", "shard=4 of 16 replicas", nil},
		{
			"megatron", "dp=4,tp=8,pp=4", "schedule zero-bubble: it has 1f1b, interleaved",
			func(j *workload.Job) { j.Schedule = pipeline.ZeroBubble },
		},
		{"megatron@0.12", "dp=16,tp=1,pp=3", "80 layers in 3 stages", nil},
		{"megatron@0.12", "dp=2,tp=2,cp=4", "2 × cp must divide", func(j *workload.Job) { j.Seq = 4100 }},
		{"megatron", "dp=2,tp=8,cp=4,pp=2", "", nil},
		{
			"megatron@0.9", "dp=2,tp=8,cp=4", "context ulysses: it has ring",
			func(j *workload.Job) { j.Context = workload.Ulysses },
		},
		{"megatron@0.9", "dp=16,tp=8,zero=1", "precision mxfp8", func(j *workload.Job) { j.Precision = "mxfp8" }},
		{"megatron", "dp=16,tp=8,zero=1", "", func(j *workload.Job) { j.Precision = "mxfp8" }},
		{"torchtitan", "dp=16,tp=8,zero=3,sp=1", "", nil},
		{"torchtitan", "dp=16,tp=8", "replicas without sharding", nil},
		{"torchtitan", "dp=128,zero=2", "zero=2: it has zero=0, zero=3", nil},
		{"fsdp", "dp=16,pp=8", "it has no pipelines", nil},
		{"fsdp", "dp=128", "zero=0: it has zero=2, zero=3", nil},
		{"fsdp", "dp=128,zero=3,shard=8", "", nil},
		{"ddp", "dp=64,tp=2", "it has no tensor parallelism", nil},
		{"ddp", "dp=128", "", func(j *workload.Job) { j.Precision = workload.AMP }},
		{"ddp", "dp=128", "kernels fused", func(j *workload.Job) { j.Kernels = workload.Fused }},
		{"deepspeed", "dp=128,zero=3", "", nil},
		{"deepspeed", "dp=32,pp=4,zero=2", "with pipelines it has zero=0, zero=1", nil},
		{"deepspeed", "dp=64,tp=2,zero=3", "AutoTP goes with ZeRO 0 to 2", nil},
		{"hf", "dp=128,zero=3", "", nil},
		{"hf", "dp=64,tp=2", "no tensor parallelism", nil},
	} {
		s, err := workload.ParseSplit(x.split)
		if err != nil {
			t.Fatal(err)
		}
		f := framework(t, x.framework)
		j := &workload.Job{
			Model: m, Split: s, Seq: 4096, MicroBatch: 1, GlobalBatch: 2048, Precision: workload.BF16, Recompute: workload.None,
		}
		if x.change != nil {
			x.change(j)
		}
		err = f.Refuses(j)
		if (err == nil) != f.Runs(j) {
			t.Errorf("%s, %s: Refuses says %v, Runs %v", x.framework, x.split, err, f.Runs(j))
		}
		var r *workload.Refusal
		switch {
		case x.want == "" && err != nil, x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s, %s: %v; expected %q", x.framework, x.split, err, x.want)
		case err != nil && (!errors.As(err, &r) || r.Source == ""):
			t.Errorf("%s, %s: %v has no source", x.framework, x.split, err)
		}
	}
}

// Models that a framework has no layers for are refused.
func TestRefusesModel(t *testing.T) {
	for _, x := range []struct{ framework, model, want string }{
		{"megatron", "gpt3-175b", ""},
		{"megatron", "deepseek-v3", ""},
		{"megatron", "mixtral-8x7b", ""},
		{"megatron", "nemotron4-15b", ""},
		{"megatron", "grok-1", "four norms a layer"},
		{"megatron", "bert-large", "no decoder"},
		{"megatron", "resnet50", "no decoder"},
		{"megatron", "bloom-176b", "a norm of the embedding"},
		{"torchtitan", "llama3-70b", ""},
		{"torchtitan", "mixtral-8x7b", ""},
		{"torchtitan", "deepseek-v3", ""},
		{"torchtitan", "gpt3-175b", "rotary positions"},
		{"fsdp", "gpt3-175b", ""},
		{"ddp", "resnet50", ""},
	} {
		m, err := workload.Find(x.model)
		if err != nil {
			t.Fatal(err)
		}
		err = framework(t, x.framework).RefusesModel(m)
		if (x.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s, %s: %v; expected %q", x.framework, x.model, err, x.want)
		}
	}
}

// Style is what was usual at a release, and explicit settings win.
func TestStyle(t *testing.T) {
	old, now := framework(t, "megatron@2021").Style(80), framework(t, "megatron").Style(90)
	if !old.Unfused || !old.Sync || !old.LateGather || old.SeqParallel || old.ZeRO != 0 {
		t.Errorf("Megatron-LM of 2021: %+v", old)
	}
	if now.Unfused || now.Early || now.Sync || now.LateGather || !now.SeqParallel || now.ZeRO != 1 ||
		now.Kernels != workload.Fused {
		t.Errorf("Megatron-LM of now: %+v", now)
	}
	if s := framework(t, "torchtitan").Style(90); s.Kernels != workload.Compiled || s.Keeps != workload.KeepWide ||
		!s.WideSums || s.ZeRO != 3 {
		t.Errorf("torchtitan: %+v", s)
	}
	if framework(t, "megatron@2021").Style(90).Unfused {
		t.Error("attention is not fused on Hopper")
	}
	m, err := workload.Find("llama3-8b")
	if err != nil {
		t.Fatal(err)
	}
	j := workload.Job{Model: m, Kernels: workload.Eager, Sync: true}
	framework(t, "fsdp").Adopt(&j, "h100", 90)
	if j.Kernels != workload.Eager || !j.Sync || j.Precision != workload.BF16 || j.Keeps != workload.KeepWide {
		t.Errorf("%+v", j)
	}
}

// TestRecipes: what a release turns on for experts goes by its month, the GPU and the model; who says something wins.
func TestRecipes(t *testing.T) {
	for _, x := range []struct {
		framework, model, gpu string
		sm                    int
		want                  workload.Recipe
	}{
		{
			"nemo@26.04", "deepseek-v3", "gb200", 100,
			workload.Recipe{Dispatcher: workload.HybridEP, Graphs: workload.GraphAttention},
		},
		{
			"nemo@26.06", "deepseek-v3", "gb200", 100,
			workload.Recipe{Dispatcher: workload.HybridEP, Overlap: true, Graphs: workload.GraphWhole},
		},
		{"nemo@25.11", "deepseek-v3", "b200", 100, workload.Recipe{Dispatcher: workload.AllToAll}},
		{"nemo@2026-02", "qwen3-235b-a22b", "h100", 90, workload.Recipe{Dispatcher: workload.DeepEP, Overlap: true}},
		{"nemo", "mixtral-8x7b", "h100", 90, workload.Recipe{Dispatcher: workload.AllToAll}},
		{"automodel", "qwen3-30b-a3b", "h100", 90, workload.Recipe{Dispatcher: workload.DeepEP, Kernels: workload.Fused}},
		{"megatron", "deepseek-v3", "gb200", 100, workload.Recipe{Dispatcher: workload.AllToAll}},
	} {
		m, err := workload.Find(x.model)
		if err != nil {
			t.Fatal(err)
		}
		x.want.Known = x.framework != "megatron"
		if got := framework(t, x.framework).Recipe(m, x.gpu, x.sm); got != x.want {
			t.Errorf("%s, %s on %s: %+v; expected %+v", x.framework, x.model, x.gpu, got, x.want)
		}
		j := workload.Job{Model: m}
		j.Dispatcher, j.Overlap = workload.AllGather, "no"
		framework(t, x.framework).Adopt(&j, x.gpu, x.sm)
		if j.Recipe.Dispatcher != workload.AllGather || j.Recipe.Overlap {
			t.Errorf("%s: %+v is not what was said", x.framework, j.Recipe)
		}
	}
}

// Architectures are read off the parts of models.
func TestArchitecture(t *testing.T) {
	for name, want := range map[string]workload.Architecture{
		"gpt2": {
			Kind: workload.DecoderOnly, Positions: workload.LearnedPositions, Tied: true, QKVBias: true, OutBias: true,
			MLPBias: true,
		},
		"llama3-70b": {Kind: workload.DecoderOnly, Positions: workload.RotaryPositions, Gated: true, RMSNorm: true},
	} {
		m, err := workload.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		got := m.Architecture()
		if len(got.Odd) > 0 || got.Latent != nil {
			t.Errorf("%s: %+v", name, got)
		}
		got.Odd = nil
		if got.Kind != want.Kind || got.Positions != want.Positions || got.Gated != want.Gated ||
			got.RMSNorm != want.RMSNorm || got.Tied != want.Tied || got.QKVBias != want.QKVBias || got.OutBias != want.OutBias ||
			got.MLPBias != want.MLPBias {
			t.Errorf("%s: %+v; expected %+v", name, got, want)
		}
	}
	m, err := workload.Find("deepseek-v3")
	if err != nil {
		t.Fatal(err)
	}
	if a := m.Architecture(); a.Latent == nil ||
		*a.Latent != (workload.Latent{Q: 1536, KV: 512, Plain: 128, Rotary: 64, Value: 128}) || !a.Corrected ||
		a.SharedFFN != 2048 || !a.Gated {
		t.Errorf("deepseek-v3: %+v", a)
	}
}
