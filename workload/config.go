package workload

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

// MaxConfig bounds a config.json, in bytes; those of models with many labels have tens of
// thousands.
const MaxConfig = 4 << 20

// ReadConfig is the model that a config.json of Hugging Face describes, by its model_type. The
// name is the file's, for errors.
func ReadConfig(name string, data []byte) (*Model, error) {
	if len(data) > MaxConfig {
		return nil, fmt.Errorf("%s: more than %d bytes; expected a config.json of Hugging Face", name, MaxConfig)
	}
	c := &config{name: name}
	var wrong *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &c.fields); {
	case errors.As(err, &wrong):
		return nil, fmt.Errorf("%s: found a JSON %s; expected a config.json of Hugging Face, which is an object", name,
			wrong.Value)
	case err != nil:
		return nil, fmt.Errorf("%s: %v; expected a config.json of Hugging Face", name, err)
	case c.fields == nil:
		return nil, fmt.Errorf("%s: found a JSON null; expected a config.json of Hugging Face, which is an object", name)
	}
	outer := c.fields
	kind, build := c.kind()
	if build == nil {
		return nil, fmt.Errorf("%s: model_type is %q; expected one of %s", name, kind, strings.Join(kinds(), ", "))
	}
	c.contradictions(outer, kind)
	c.fillFields(kind)
	m := build(c)
	c.further()
	windows := c.windows(kind, m.Dims.Layers)
	if c.err == nil {
		c.err = m.Dims.Check()
	}
	if c.err == nil {
		m.Dims = m.Dims.filled()
		m.Blocks = m.make()
		setWindows(m.Blocks, windows)
		c.err = m.sound()
	}
	if c.err != nil {
		return nil, fmt.Errorf("%s: %w", name, c.err)
	}
	m.Name, m.Title, m.Source = name, kind+" of "+name, name
	m.Seq, m.Notes = m.seq(), c.notes
	m.Details = c.details(kind)
	if c.err != nil {
		return nil, fmt.Errorf("%s: %w", name, c.err)
	}
	m.Config, _ = json.Marshal(c.fields) // which were read from JSON
	return &m.Model, nil
}

// kind is the model's, and what makes it. Models of several senses describe the part that writes
// apart.
func (c *config) kind() (string, func(*config) shaped) {
	kind := c.text("model_type")
	if build := configs[kind]; build != nil {
		return kind, build
	}
	if of := mixers[kind]; of != nil {
		return kind, func(c *config) shaped { return c.decoder(of) }
	}
	if of := traits[kind]; of != nil {
		return kind, func(c *config) shaped { return c.decoder(of) }
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(c.fields["text_config"], &inner) == nil && inner != nil {
		c.fields = inner
		if c.text("model_type") != "" {
			return c.kind()
		}
	}
	return kind, nil
}

// kinds are all that are known, in order.
func kinds() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for k := range configs {
			if !yield(k) {
				return
			}
		}
		for _, list := range []map[string]func(*config, *Dims) Traits{traits, mixers} {
			for k := range list {
				if !yield(k) {
					return
				}
			}
		}
	})
}

// shaped is a model whose blocks are made when its dimensions are known to be sound.
type shaped struct {
	Model
	make func() []Block
}

// config is a file's fields; the first error stays.
type config struct {
	name   string
	fields map[string]json.RawMessage
	notes  []string // what of the file is left out, or contradicts the rest
	err    error
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// find is the first field of those names that says something.
func (c *config) find(names []string) (string, json.RawMessage) {
	for _, n := range names {
		if v, ok := c.fields[n]; ok && string(v) != "null" {
			return n, v
		}
	}
	return names[0], nil
}

func (c *config) has(name string) bool {
	_, v := c.find([]string{name})
	return v != nil
}

// number is a size that must be there.
func (c *config) number(names ...string) int64 {
	n, v := c.find(names)
	if v == nil {
		c.refuse("no %s; expected a whole number, at least 1", n)
	}
	return c.size(0, n)
}

// size is a whole number of at least 1, or else where the file does not say: a size of nothing is no size left open.
func (c *config) size(other int64, names ...string) int64 {
	n, v := c.find(names)
	x := c.number0(other, n)
	if v != nil && x < 1 {
		c.refuse("%s is %d; expected at least 1", n, x)
	}
	return x
}

// number0 is a whole number that may be nothing, or else.
func (c *config) number0(other int64, names ...string) int64 {
	n, v := c.find(names)
	if v == nil {
		return other
	}
	var x float64
	if err := json.Unmarshal(v, &x); err != nil || x != math.Trunc(x) || x < 0 || x > 1<<24 {
		c.refuse("%s is %.40s; expected a whole number up to %d", n, v, 1<<24)
		return other
	}
	return int64(x)
}

func (c *config) text(name string) string {
	var s string
	_ = json.Unmarshal(c.fields[name], &s) // what is no text is no kind that is known
	return s
}

// yes is a flag.
func (c *config) yes(name string, other bool) bool {
	_, v := c.find([]string{name})
	if v == nil {
		return other
	}
	x := other
	if json.Unmarshal(v, &x) != nil {
		c.refuse("%s is %.40s; expected true or false", name, v)
	}
	return x
}

// fourfold are the kinds of models whose MLP is four times as wide as the rest where the file does not say.
var fourfold = []string{"gpt2", "gptj", "gpt_neo", "gpt_bigcode", "bloom", "mpt", "falcon"}

// usual are the dimensions by the names that most kinds use.
func (c *config) usual() Dims {
	ffn := c.size(0, "intermediate_size", "n_inner", "ffn_dim", "block_ff_dim")
	d := Dims{
		Layers:  c.number("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
		Hidden:  c.number("hidden_size", "n_embd", "n_embed", "d_model"),
		Heads:   c.number("num_attention_heads", "n_head", "num_heads", "n_heads"),
		KVHeads: c.size(0, "num_key_value_heads"), FFN: ffn, HeadDim: c.size(0, "head_dim"),
		Vocab:   c.number("vocab_size"),
		Context: c.size(2048, "max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
	}
	if ffn == 0 && !slices.Contains(fourfold, c.text("model_type")) {
		c.refuse("no intermediate_size; expected a whole number, at least 1")
	}
	return d
}

//go:embed data/configs.csv
var configsCSV string

// configDefaults are what transformers takes for the fields that a kind of config.json leaves out.
type configDefaults struct {
	Type   string   `csv:"type"`
	Fields []string `csv:"fields"` // NAME=NUMBER
	Source string   `csv:"source"`
}

var defaultsOfConfigs = sync.OnceValue(func() []configDefaults {
	return csvtable.Must[configDefaults]("workload/data/configs.csv", configsCSV)
})

// fillFields gives fields that are left out the values of transformers, and notes them.
func (c *config) fillFields(kind string) {
	for _, d := range defaultsOfConfigs() {
		if d.Type != kind {
			continue
		}
		var taken []string
		for _, f := range d.Fields {
			name, value, _ := strings.Cut(f, "=")
			if _, said := c.fields[name]; said || name == "rope_theta" && c.fields["rope_parameters"] != nil {
				continue
			}
			c.fields[name] = json.RawMessage(value)
			taken = append(taken, name+" "+value)
		}
		if len(taken) > 0 {
			c.note("left to the defaults of transformers: %s (%s)", strings.Join(taken, ", "), d.Source)
		}
	}
}

// further notes what a file says and a model read from it has not.
func (c *config) further() {
	if n := c.number0(0, "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers"); n > 0 {
		c.note("the %d layers that predict further tokens (num_nextn_predict_layers) are left out; --mtp %d counts them", n,
			n)
	}
}

// seq is how many tokens a sequence has when nobody says: as the catalogue has it for a model of these dimensions, else
// at most configSeq.
func (m *Model) seq() int64 {
	for i := range rows() {
		d := rows()[i].filled()
		if d.Context = m.Dims.Context; d == m.Dims {
			return min(rows()[i].Seq, m.Dims.Context)
		}
	}
	return min(m.Dims.Context, configSeq)
}

// configSeq is the longest sequence that is taken for a config.json, whose context is often far beyond what models are
// trained with.
const configSeq = 4096

// mamba2 has state-space layers alone.
func mamba2(c *config) shaped {
	d := Dims{
		Layers: c.number("num_hidden_layers"), Hidden: c.number("hidden_size"), Heads: max(1, c.number("num_heads")),
		HeadDim: max(1, c.number("head_dim")), Vocab: c.number("vocab_size"),
		Context: c.number0(configSeq, "max_position_embeddings"),
	}
	x := Mixers{
		Scans: d.Layers, Heads: d.Heads, HeadDim: d.HeadDim, State: c.number("state_size"), Groups: c.number("n_groups"),
	}
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.State * x.Groups)
	return plain(d, func() []Block { return tiedHead(Hybrid(d, x), c.tied(false)) })
}

// tiedHead makes the head the embedding's where it is.
func tiedHead(blocks []Block, tied bool) []Block {
	exit := blocks[len(blocks)-1].Parts
	exit[len(exit)-1].Tied = tied
	return blocks
}

// configs are the kinds of models that a config.json may name, as Hugging Face's transformers
// build them.
var configs = map[string]func(*config) shaped{
	"gpt2": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return GPT2(d) })
	},
	"llama": func(c *config) shaped {
		d, biased, tied := c.usual(), c.yes("attention_bias", false), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block {
			blocks := llama(d, biased, tied)
			if biased { // here the product after attention has one too
				for i := range blocks {
					for k := range blocks[i].Parts {
						if p := &blocks[i].Parts[k]; p.Name == "self_attn.o_proj" {
							p.Bias = true
						}
					}
				}
			}
			return blocks
		})
	},
	"mistral": func(c *config) shaped {
		d, tied := c.usual(), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block { return llama(d, false, tied) })
	},
	"qwen2": func(c *config) shaped {
		d, tied := c.usual(), c.yes("tie_word_embeddings", false)
		return plain(d, func() []Block { return llama(d, true, tied) })
	},
	"mixtral": func(c *config) shaped {
		d := c.usual()
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return plain(d, func() []Block { return Mixtral(d) })
	},
	"deepseek_v2": func(c *config) shaped { return deepseek(c, false) },
	"deepseek_v3": func(c *config) shaped { return deepseek(c, true) },
	"kimi_k2":     func(c *config) shaped { return deepseek(c, true) },
	"nemotron": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return Nemotron(d) })
	},
	"gpt_neox": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return NeoX(d) })
	},
	"bloom": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return BLOOM(d) })
	},
	"opt": func(c *config) shaped {
		d := c.usual()
		words := c.size(d.Hidden, "word_embed_proj_dim")
		return plain(d, func() []Block { return OPT(d, words) })
	},
	"bert": func(c *config) shaped {
		d := c.usual()
		return plain(d, func() []Block { return BERT(d) })
	},
	"roberta":     roberta,
	"xlm-roberta": roberta,
	"camembert":   roberta,
	"distilbert": func(c *config) shaped {
		d := Dims{
			Layers: c.number("n_layers"), Hidden: c.number("dim"), Heads: c.number("n_heads"), FFN: c.size(0, "hidden_dim"),
			Vocab: c.number("vocab_size"), Context: c.size(512, "max_position_embeddings"),
		}
		return plain(d, func() []Block { return RoBERTa(d, 0) })
	},
	"vit":        vitConfig,
	"nemotron_h": nemotronH,
	"mamba2":     mamba2,
}

// nemotronH is a hybrid whose layers a pattern lists.
func nemotronH(c *config) shaped {
	d := c.usual()
	x, err := PatternMixers(c.text("hybrid_override_pattern"))
	if err == nil && (x.Pattern == "" || x.Layers() != d.Layers) {
		err = fmt.Errorf("hybrid_override_pattern has %d layers and num_hidden_layers is %d", x.Layers(), d.Layers)
	}
	if err != nil {
		c.refuse("%w", err)
	}
	x.Heads, x.HeadDim, x.State, x.Groups = c.number("mamba_num_heads"), c.size(64, "mamba_head_dim"),
		c.size(128, "ssm_state_size"), c.size(8, "n_groups")
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.State * x.Groups)
	if x.Experts > 0 {
		d.Experts, d.TopK, d.ExpertFFN = c.number("n_routed_experts"), c.number("num_experts_per_tok"),
			c.number("moe_intermediate_size")
		x.SharedFFN = c.number0(0, "moe_shared_expert_intermediate_size") * c.number0(1, "n_shared_experts")
		x.Latent = c.number0(0, "moe_latent_size")
	}
	return plain(d, func() []Block { return Hybrid(d, x) })
}

func roberta(c *config) shaped {
	d, types := c.usual(), c.number0(1, "type_vocab_size")
	return plain(d, func() []Block { return RoBERTa(d, types) })
}

func plain(d Dims, blocks func() []Block) shaped { return shaped{Model{Dims: d}, blocks} }

// deepseek has latent attention; its plain widths of heads are not used.
func deepseek(c *config, corrected bool) shaped {
	d := c.usual()
	d.KVHeads, d.HeadDim = 0, 0
	d.Experts, d.TopK, d.Shared = c.number("n_routed_experts"), c.number("num_experts_per_tok"),
		c.number0(0, "n_shared_experts")
	d.ExpertFFN, d.Dense = c.number("moe_intermediate_size"), c.number0(0, "first_k_dense_replace")
	a := Latent{
		Q: c.size(0, "q_lora_rank"), KV: c.number("kv_lora_rank"), Plain: c.number("qk_nope_head_dim"),
		Rotary: c.number("qk_rope_head_dim"), Value: c.number("v_head_dim"),
	}
	every := c.size(1, "moe_layer_freq")
	return plain(d, func() []Block { return deepSeek(d, a, corrected, every) })
}

// vitConfig is a vision transformer with as many classes as it has labels.
func vitConfig(c *config) shaped {
	patch, size := c.number("patch_size"), c.number("image_size")
	var labels map[string]json.RawMessage
	_ = json.Unmarshal(c.fields["id2label"], &labels) // without labels there are those of ImageNet
	classes := cmp.Or(int64(len(labels)), 1000)
	side := int64(0)
	if patch > 0 && patch <= 1<<12 && size <= 1<<16 {
		side = size / patch
	}
	if c.number0(3, "num_channels") != 3 {
		c.refuse("num_channels is not 3; only pictures of three colours are known")
	}
	d := Dims{
		Layers: c.number("num_hidden_layers"), Hidden: c.number("hidden_size"), Heads: c.number("num_attention_heads"),
		FFN:   c.number("intermediate_size"),
		Vocab: classes, Context: side*side + 1,
	}
	if side == 0 {
		c.refuse("image_size and patch_size leave no patches")
	}
	return plain(d, func() []Block { return ViT(d, patch) })
}

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

// mixers are the kinds of config.json whose layers have state spaces or convolutions in the place of attention or
// beside it, each with an MLP behind it, as Hugging Face's transformers build them.
var mixers = map[string]func(c *config, d *Dims) Traits{
	"bamba": func(c *config, d *Dims) Traits {
		return Traits{
			Gated: true, Tied: c.tied(false), Mixer: c.unless(c.layers("attn_layer_indices"), c.mamba(d).scan(d.Hidden)),
		}
	},
	"granitemoehybrid": func(c *config, d *Dims) Traits {
		t := Traits{
			Gated: true, Tied: c.tied(false), SharedFFN: c.number0(1024, "shared_intermediate_size"),
			Mixer: c.unless(c.typed("attention"), c.mamba(d).scan(d.Hidden)),
		}
		if d.Experts = c.number0(8, "num_local_experts"); d.Experts == 0 { // what is shared is all there is
			d.FFN = t.SharedFFN
			return t
		}
		d.TopK, d.ExpertFFN = c.number0(2, "num_experts_per_tok"), d.FFN
		return t
	},
	"falcon_h1": func(c *config, d *Dims) Traits {
		x, t := c.mamba(d), Traits{Gated: true, Tied: c.tied(false)}
		own := *d
		t.Mixer = func(int64) []Part { // both read the same input
			scan, heads := x.scan(own.Hidden), (&Traits{}).attention(own.filled())
			if !c.yes("mamba_rms_norm", false) {
				scan = without(scan, "mixer.norm")
			}
			last := len(scan) - 1
			parts := append([]Part{scan[0]}, heads[:3]...)
			parts = append(append(parts, scan[1:last]...), heads[3:]...)
			return append(parts, scan[last])
		}
		return t
	},
	"jamba": func(c *config, d *Dims) Traits {
		every, first := max(1, c.size(8, "attn_layer_period")), c.number0(4, "attn_layer_offset")
		d.Experts, d.TopK = c.number0(16, "num_experts"), c.number0(2, "num_experts_per_tok")
		d.ExpertFFN = d.FFN
		inner := c.size(2, "mamba_expand") * d.Hidden
		c.narrow(inner)
		scan := mamba1(d.Hidden, inner, c.size(16, "mamba_d_state"), c.auto((d.Hidden+15)/16, "mamba_dt_rank"),
			c.size(4, "mamba_d_conv"))
		return Traits{
			Gated: true, Tied: c.tied(false), Every: max(1, c.size(2, "expert_layer_period")),
			From:  c.number0(1, "expert_layer_offset") + 1,
			Mixer: c.unless(func(i int64) bool { return i%every == first }, scan),
		}
	},
	"lfm2":     lfm2,
	"lfm2_moe": lfm2,
}

// lfm2 has short convolutions with two gates in most layers.
func lfm2(c *config, d *Dims) Traits {
	if d.FFN = c.size(d.FFN, "block_ff_dim"); c.yes("block_auto_adjust_ff_dim", c.text("model_type") == "lfm2") {
		of := max(1, c.size(256, "block_multiple_of"))
		d.FFN = (2*d.FFN/3 + of - 1) / of * of
	}
	if n := c.number0(0, "num_experts"); n > 0 {
		d.Experts, d.TopK, d.ExpertFFN, d.Dense = n, c.number0(4, "num_experts_per_tok"), c.number("moe_intermediate_size"),
			c.number0(2, "num_dense_layers")
	}
	attends := c.layers("full_attn_idxs")
	if c.has("layer_types") {
		attends = c.typed("full_attention")
	}
	h := d.Hidden
	conv := []Part{
		{Name: "conv.in_proj", In: h, Out: 3 * h, Cut: ByOut},
		{Name: "conv.conv", Kind: Norm, Out: h, Shape: []int64{h, 1, c.size(3, "conv_L_cache")}, Cut: ByOut},
		{Name: "conv.out_proj", In: h, Out: h, Cut: ByIn},
	}
	return Traits{
		Gated: true, QKNorm: HeadNorm, Tied: c.yes("tie_embedding", c.tied(true)),
		RouterCorrection: c.yes("use_expert_bias", d.Experts > 0), Mixer: c.unless(attends, conv),
	}
}

// mamba are the sizes of a Mamba-2 mixer by the names of Bamba and its kin.
func (c *config) mamba(d *Dims) Mixers {
	heads := max(1, c.size(128, "mamba_n_heads"))
	inner := c.size(c.size(2, "mamba_expand")*d.Hidden, "mamba_d_ssm")
	x := Mixers{
		Heads: heads, HeadDim: c.auto(inner/heads, "mamba_d_head"), State: c.size(256, "mamba_d_state"),
		Groups: c.size(1, "mamba_n_groups"),
	}
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.Groups * x.State)
	return x
}

// narrow refuses widths that no mixer has, so that products of them stay whole numbers.
func (c *config) narrow(width int64) {
	if width < 1 || width > 1<<24 {
		c.refuse("a mixer %d wide; expected 1 to %d", width, 1<<24)
	}
}

// mamba1 is a mixer of the first Mamba (Gu and Dao 2023): steps of time come from a narrow product, and every channel
// has a state of its own.
func mamba1(h, inner, state, rank, conv int64) []Part {
	const dim = 64 // channels that are priced as a head
	return []Part{
		{Name: "mamba.in_proj", In: h, Out: 2 * inner, Cut: ByOut},
		{Name: "mamba.conv1d", Kind: Added, Out: inner, Shape: []int64{inner, 1, conv}, Bias: true, Cut: ByOut},
		{Name: "mamba.x_proj", In: inner, Out: rank + 2*state, Cut: ByIn},
		{Name: "mamba.dt_proj", In: rank, Out: inner, Bias: true, Cut: ByOut},
		{Name: "mamba.A_log", Kind: Added, Out: inner, Shape: []int64{inner, state}, Suffix: "-", Cut: ByOut},
		{Name: "mamba.D", Kind: Added, Out: inner, Suffix: "-", Cut: ByOut},
		{
			Name: "mamba.scan", Kind: Scan, Heads: max(1, inner/dim), HeadDim: min(dim, max(inner, 1)), State: state, KVHeads: 1,
			Cut: ByOut,
		},
		{Name: "mamba.dt_layernorm", Kind: Norm, Out: rank},
		{Name: "mamba.b_layernorm", Kind: Norm, Out: state},
		{Name: "mamba.c_layernorm", Kind: Norm, Out: state},
		{Name: "mamba.out_proj", In: inner, Out: h, Cut: ByIn},
	}
}

// auto is a number that a file may leave to the others by a word.
func (c *config) auto(other int64, name string) int64 {
	if c.text(name) == "auto" {
		return other
	}
	return c.size(other, name)
}

// layers says which layers a list of numbers names.
func (c *config) layers(name string) func(int64) bool {
	var list []int64
	if _, v := c.find([]string{name}); v != nil && json.Unmarshal(v, &list) != nil {
		c.refuse("%s is %.40s; expected a list of layers' numbers", name, v)
	}
	has := map[int64]bool{}
	for _, i := range list {
		has[i] = true
	}
	return func(i int64) bool { return has[i] }
}

// typed says which layers layer_types calls so.
func (c *config) typed(kind string) func(int64) bool {
	list := c.layerTypes()
	return func(i int64) bool { return i < int64(len(list)) && list[i] == kind }
}

// unless is a mixer of all layers but those that have attention.
func (c *config) unless(attention func(int64) bool, parts []Part) func(int64) []Part {
	return func(i int64) []Part {
		if attention(i) {
			return nil
		}
		return parts
	}
}

// without are parts but for those of a name.
func without(parts []Part, name string) []Part {
	var list []Part
	for _, p := range parts {
		if p.Name != name {
			list = append(list, p)
		}
	}
	return list
}

// contradictions notes what of a file is left out, or says something else than the part of it that is taken.
func (c *config) contradictions(outer map[string]json.RawMessage, kind string) {
	own := (&config{fields: outer}).text("model_type")
	for _, name := range slices.Sorted(maps.Keys(outer)) {
		var tower config
		if !strings.HasSuffix(name, "_config") || name == "quantization_config" ||
			json.Unmarshal(outer[name], &tower.fields) != nil || len(tower.fields) == 0 {
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
		// whose class is DeepSeek's
		if other := kindOfClass(word); other != "" && other != kind && !strings.HasPrefix(word, classWord(own)) &&
			kind != "kimi_k2" {
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
	for _, name := range []string{
		"num_hidden_layers", "hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim",
		"vocab_size",
	} {
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

// traits are the kinds of config.json whose models are decoders that differ in traits alone, as
// Hugging Face's transformers build them.
var traits = map[string]func(c *config, d *Dims) Traits{
	"gemma": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(true)} },
	"gemma2": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Norms: 4, Tied: c.tied(true)}
	},
	"gemma3_text": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Norms: 4, QKNorm: HeadNorm, Tied: c.tied(true)}
	},
	"smollm3": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(true)} },
	"olmo3": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)}
	},
	"seed_oss": func(c *config, d *Dims) Traits {
		return Traits{
			Gated: true, QKVBias: c.yes("attention_bias", true), OutBias: c.yes("attention_out_bias", false),
			Tied: c.tied(false),
		}
	},
	"granitemoe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return Traits{Gated: true, Tied: c.tied(false)}
	},
	"glm4_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("n_routed_experts"), c.number("num_experts_per_tok"),
			c.number("moe_intermediate_size")
		d.Dense = c.number0(0, "first_k_dense_replace")
		t := Traits{
			Gated: true, QKVBias: c.yes("attention_bias", false), SharedFFN: c.number0(0, "n_shared_experts") * d.ExpertFFN,
			Tied: c.tied(false),
		}
		if c.yes("use_qk_norm", false) {
			t.QKNorm = HeadNorm
		}
		return t
	},
	"llama4_text": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_local_experts"), c.number("num_experts_per_tok"), d.FFN
		d.FFN = c.size(d.FFN, "intermediate_size_mlp")
		return Traits{Gated: true, SharedFFN: d.ExpertFFN, Every: c.size(1, "interleave_moe_layer_step"), Tied: c.tied(false)}
	},
	"qwen3": func(c *config, d *Dims) Traits { return Traits{Gated: true, QKNorm: HeadNorm, Tied: c.tied(false)} },
	"qwen3_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"),
			c.number("moe_intermediate_size")
		return c.sparse(d, Traits{Gated: true, QKNorm: HeadNorm, Tied: c.tied(false)})
	},
	"qwen3_next": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"),
			c.number("moe_intermediate_size")
		linear := Linear{
			Values: c.number("linear_num_value_heads"), Keys: c.number("linear_num_key_heads"),
			ValueDim: c.number("linear_value_head_dim"),
			KeyDim:   c.number("linear_key_head_dim"), Conv: c.size(4, "linear_conv_kernel_dim"),
		}
		c.narrow(linear.Values * linear.ValueDim)
		c.narrow(linear.Keys * linear.KeyDim)
		every := max(1, c.size(4, "full_attention_interval"))
		attends := func(i int64) bool { return (i+1)%every == 0 }
		if c.has("layer_types") {
			attends = c.typed("full_attention")
		}
		return c.sparse(d, Traits{
			Gated: true, QKNorm: HeadNorm, OutputGate: true, SharedFFN: c.number("shared_expert_intermediate_size"),
			SharedGate: true, Tied: c.tied(false),
			Mixer: c.unless(attends, linear.parts(d.Hidden)),
		})
	},
	"qwen2_moe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK, d.ExpertFFN = c.number("num_experts"), c.number("num_experts_per_tok"),
			c.number("moe_intermediate_size")
		return c.sparse(d, Traits{
			Gated: true, QKVBias: true, SharedFFN: c.number("shared_expert_intermediate_size"), SharedGate: true,
			Tied: c.tied(false),
		})
	},
	"olmoe": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_experts"), c.number("num_experts_per_tok")
		return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)}
	},
	"gpt_oss": func(c *config, d *Dims) Traits {
		d.Experts, d.TopK = c.number("num_local_experts"), c.number("num_experts_per_tok")
		return Traits{
			Gated: true, QKVBias: true, OutBias: true, RouterBias: true, ExpertBias: true, Sinks: true, Tied: c.tied(false),
		}
	},
	"phi": func(c *config, d *Dims) Traits {
		return Traits{
			QKVBias: true, OutBias: true, MLPBias: true, Norms: 1, NormBias: true, HeadBias: true, Tied: c.tied(false),
		}
	},
	"phi3":      func(c *config, d *Dims) Traits { return Traits{Gated: true, Packed: true, Tied: c.tied(false)} },
	"olmo":      func(c *config, d *Dims) Traits { return Traits{Gated: true, NormFree: true, Tied: c.tied(false)} },
	"olmo2":     func(c *config, d *Dims) Traits { return Traits{Gated: true, QKNorm: AcrossNorm, Tied: c.tied(false)} },
	"granite":   func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(false)} },
	"internlm2": func(c *config, d *Dims) Traits { return Traits{Gated: true, Tied: c.tied(false)} },
	"cohere":    func(c *config, d *Dims) Traits { return Traits{Gated: true, Norms: 1, Tied: c.tied(true)} },
	"glm4": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, Packed: true, QKVBias: c.yes("attention_bias", false), Norms: 4, Tied: c.tied(false)}
	},
	"stablelm": func(c *config, d *Dims) Traits {
		return Traits{Gated: true, QKVBias: c.yes("use_qkv_bias", false), NormBias: true, Tied: c.tied(false)}
	},
	"starcoder2": func(c *config, d *Dims) Traits {
		b := c.yes("use_bias", true)
		return Traits{QKVBias: b, OutBias: b, MLPBias: b, NormBias: true, Tied: c.tied(true)}
	},
	"gptj": func(c *config, d *Dims) Traits {
		return Traits{MLPBias: true, Norms: 1, NormBias: true, HeadBias: true, Tied: c.tied(false)}
	},
	"gpt_neo": func(c *config, d *Dims) Traits {
		return Traits{OutBias: true, MLPBias: true, NormBias: true, Positions: d.Context, Tied: c.tied(true)}
	},
	"gpt_bigcode": func(c *config, d *Dims) Traits {
		if c.yes("multi_query", true) {
			d.KVHeads = 1
		}
		return Traits{
			Packed: true, QKVBias: true, OutBias: true, MLPBias: true, NormBias: true, Positions: d.Context, Tied: c.tied(true),
		}
	},
	"mpt": func(c *config, d *Dims) Traits {
		d.FFN = d.Hidden * c.size(4, "expansion_ratio")
		return Traits{Packed: true, Tied: true}
	},
	"falcon": falconTraits,
}

// falconTraits: the first release shares one key and value among all heads and has one norm a
// layer, the later one has two of each.
func falconTraits(c *config, d *Dims) Traits {
	b := c.yes("bias", false)
	t := Traits{Packed: true, QKVBias: b, OutBias: b, MLPBias: b, NormBias: true, Tied: c.tied(true)}
	switch {
	case c.yes("new_decoder_architecture", false):
		d.KVHeads = c.size(d.Heads, "num_kv_heads")
		if c.number0(2, "num_ln_in_parallel_attn") == 1 {
			t.Norms = 1
		}
		return t
	case c.yes("multi_query", true):
		d.KVHeads = 1
	}
	if c.yes("parallel_attn", true) {
		t.Norms = 1
	}
	return t
}

// sparse adds which layers of a Qwen have experts: every decoder_sparse_step-th but those of mlp_only_layers.
func (c *config) sparse(d *Dims, t Traits) Traits {
	t.Every, t.Plain = max(1, c.size(1, "decoder_sparse_step")), c.layers("mlp_only_layers")
	for i := range min(d.Layers, maxLayers) {
		if t.sparse(i) {
			return t
		}
	}
	d.Experts, d.TopK, d.ExpertFFN = 0, 0, 0
	return t
}

// tied reports a head that is the embedding's.
func (c *config) tied(usual bool) bool { return c.yes("tie_word_embeddings", usual) }

// decoder is a kind that traits describe.
func (c *config) decoder(of func(c *config, d *Dims) Traits) shaped {
	d := c.usual()
	t := of(c, &d)
	return plain(d, func() []Block { return Decoder(d, t) })
}
