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
	"strconv"
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
	kind := c.kind()
	if kind == nil {
		return nil, fmt.Errorf("%s: model_type is %q; expected one of %s", name, c.text("model_type"),
			strings.Join(kinds(), ", "))
	}
	c.contradictions(outer, kind.Type)
	c.fillFields(kind)
	x := c.design(kind)
	c.further()
	windows := c.windows(kind, x.sizes["layers"])
	m := &Model{Dims: x.dims()}
	if c.err == nil {
		c.err = m.Dims.Check()
	}
	if c.err == nil {
		x.kinds = c.layerKinds(kind, x, windows)
	}
	if c.err == nil {
		m.Dims, m.Blocks = m.Dims.filled(), x.blocks()
		c.err = m.sound()
	}
	if c.err != nil {
		return nil, fmt.Errorf("%s: %w", name, c.err)
	}
	m.Name, m.Title, m.Source = name, kind.Type+" of "+name, name
	m.Seq, m.Notes = m.seq(), c.notes
	m.Details = c.details(kind.Type)
	if c.err != nil {
		return nil, fmt.Errorf("%s: %w", name, c.err)
	}
	m.Config, _ = json.Marshal(c.fields) // which were read from JSON
	return m, nil
}

// kind is the model's. Models of several senses describe the part that writes apart.
func (c *config) kind() *configKind {
	if k := configKinds()[c.text("model_type")]; k != nil && k.family() != "-" {
		return k
	}
	var inner map[string]json.RawMessage
	if json.Unmarshal(c.fields["text_config"], &inner) == nil && (&config{fields: inner}).text("model_type") != "" {
		c.fields = inner
		return c.kind()
	}
	return nil
}

// kinds are all that are known, in order.
func kinds() (list []string) {
	for name, k := range configKinds() {
		if k.family() != "-" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
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

//go:embed data/configs.csv
var configsCSV string

// configKind is a kind of config.json, or words that several have.
type configKind struct {
	Type          string   `csv:"type"`
	Base          string   `csv:"base,optional"`
	Design        string   `csv:"design"`
	LayerTypes    []string `csv:"layer_types,optional"` // the last is attention
	AttentionList string   `csv:"attention_list,optional"`
	PlainList     string   `csv:"plain_list,optional"`
	Window        string   `csv:"window,optional"`
	Period        int64    `csv:"period,optional"`
	Fields        []string `csv:"fields,optional"` // NAME=NUMBER: what transformers takes where they are left out
	Source        string   `csv:"source,optional"`
}

// family is what the design begins with.
func (k *configKind) family() string {
	family, _, _ := strings.Cut(k.Design, " ")
	return family
}

var configKinds = sync.OnceValue(func() map[string]*configKind {
	of := map[string]*configKind{}
	for _, k := range csvtable.Must[configKind]("workload/data/configs.csv", configsCSV) {
		of[k.Type] = &k
	}
	return of
})

// fillFields gives fields that are left out the values of transformers, and notes them.
func (c *config) fillFields(kind *configKind) {
	var taken []string
	for _, f := range kind.Fields {
		name, value, _ := strings.Cut(f, "=")
		if _, said := c.fields[name]; said || name == "rope_theta" && c.fields["rope_parameters"] != nil {
			continue
		}
		c.fields[name] = json.RawMessage(value)
		taken = append(taken, name+" "+value)
	}
	if len(taken) > 0 {
		c.note("left to the defaults of transformers: %s (%s)", strings.Join(taken, ", "), kind.Source)
	}
}

// design is the model's family with the sizes that the file gives, by the words of its kind.
func (c *config) design(kind *configKind) *design {
	x := &design{family: kind.family(), sizes: sizes{}}
	var bases []string
	for k := configKinds()[kind.Base]; k != nil; k = configKinds()[k.Base] {
		bases = append([]string{k.Design}, bases...)
	}
	for _, words := range bases {
		c.takeSizes(x.sizes, words)
	}
	if adjust := adjustments[kind.Type]; adjust != nil {
		adjust(c, x)
	}
	c.takeSizes(x.sizes, kind.Design)
	for _, w := range [][2]string{
		{"ssm_heads", "ssm_heads*ssm_dim"},
		{"groups", "state*groups"},
		{"inner", "inner"},
		{"linear_values", "linear_values*linear_value_dim"},
		{"linear_keys", "linear_keys*linear_key_dim"},
	} {
		if _, has := x.sizes[w[0]]; has {
			c.narrow(x.value(w[1]))
		}
	}
	if kind.PlainList != "" {
		c.allPlain(kind, x)
	}
	return x
}

// takeSizes reads the fields of a file that words name; data/configs.csv says how.
func (c *config) takeSizes(s sizes, words string) {
	for _, word := range strings.Fields(words)[1:] {
		name, from, said := strings.Cut(word, "=")
		if sum, ok := strings.CutSuffix(name, ":"); ok {
			s[sum] = s.value(from)
			continue
		}
		if stop, ok := strings.CutSuffix(name, "?"); ok {
			if s[stop] == 0 {
				return
			}
			continue
		}
		n, err := strconv.ParseInt(from, 10, 64)
		at := strings.IndexAny(from, "+?~:")
		switch {
		case !said:
			s[name] = 1
		case err == nil:
			s[name] = n
		case at < 0:
			s[name] = c.number(strings.Split(from, "/")...)
		default:
			s[name] = c.optional(strings.Split(from[:at], "/"), from[at], s.value(from[at+1:]))
		}
	}
}

// optional is a field that a file may leave out: at least 1 (+), or 0 too (?), or the word auto (~), or a flag (:).
func (c *config) optional(names []string, how byte, other int64) int64 {
	switch how {
	case '?':
		return c.number0(other, names...)
	case ':':
		return one(c.yes(names[0], other != 0))
	case '~':
		if c.text(names[0]) == "auto" {
			return other
		}
	}
	return c.size(other, names...)
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

// adjustments are what sizes of a kind follow from otherwise than by the words of its row.
var adjustments = map[string]func(*config, *design){
	"falcon": falcon, "jamba": jamba, "lfm2": lfm2, "lfm2_moe": lfm2, "nemotron_h": nemotronH, "vit": vitConfig,
	"gpt_bigcode": func(c *config, x *design) {
		if c.yes("multi_query", true) {
			x.sizes["kv_heads"] = 1
		}
	},
	"granitemoehybrid": func(c *config, x *design) {
		x.sizes["shared_ffn"], x.sizes["experts"] = c.number0(1024, "shared_intermediate_size"),
			c.number0(8, "num_local_experts")
		if x.sizes["experts"] == 0 { // what is shared is all there is
			x.sizes["ffn"] = x.sizes["shared_ffn"]
		}
	},
}

// nemotronH is a hybrid whose layers a pattern lists.
func nemotronH(c *config, x *design) {
	pattern := c.text("hybrid_override_pattern")
	for _, r := range pattern {
		kind := strings.IndexRune(hybridLetters, r)
		if kind < 0 {
			c.refuse("hybrid_override_pattern has %q; expected M, -, E and *", r)
			return
		}
		x.kinds = append(x.kinds, hybridKinds[kind])
		x.sizes["expert_layers"] += one(r == 'E')
	}
	if n := int64(len(x.kinds)); n == 0 || n != x.sizes["layers"] {
		c.refuse("hybrid_override_pattern has %d layers and num_hidden_layers is %d", n, x.sizes["layers"])
	}
}

// vitConfig is a vision transformer with as many classes as it has labels.
func vitConfig(c *config, x *design) {
	patch, size := c.number("patch_size"), c.number("image_size")
	var labels map[string]json.RawMessage
	_ = json.Unmarshal(c.fields["id2label"], &labels) // without labels there are those of ImageNet
	side := int64(0)
	if patch > 0 && patch <= 1<<12 && size <= 1<<16 {
		side = size / patch
	}
	if c.number0(3, "num_channels") != 3 {
		c.refuse("num_channels is not 3; only pictures of three colours are known")
	}
	if side == 0 {
		c.refuse("image_size and patch_size leave no patches")
	}
	x.sizes["patch"], x.sizes["vocab"], x.sizes["context"] = patch, cmp.Or(int64(len(labels)), 1000), side*side+1
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

// windows is how many tokens before it a token of each layer sees, 0 where it sees all; none where all layers see all.
func (c *config) windows(kind *configKind, layers int64) []int64 {
	types := c.layerTypes()
	if n := int64(len(types)); types != nil && n != layers {
		c.refuse("layer_types has %d words and the model %d layers; expected one for each", n, layers)
	}
	words := kind.LayerTypes
	if words == nil {
		words = []string{"sliding_attention", "full_attention"}
	}
	for _, t := range types {
		if !slices.Contains(words, t) {
			c.refuse("layer_types has %.40q; expected %s", t, strings.Join(words, " or "))
		}
	}
	window, first := c.window(kind)
	if window == 0 || c.err != nil || layers > maxLayers {
		return nil
	}
	every := c.size(kind.Period, "sliding_window_pattern", "_sliding_window_pattern")
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
func (c *config) window(kind *configKind) (window, first int64) {
	switch {
	case kind.Window == "sliding":
		return c.size(0, "sliding_window"), 0
	case kind.Window == "asked" && c.yes("use_sliding_window", false):
		return c.size(0, "sliding_window"), c.number0(28, "max_window_layers")
	case kind.Window == "chunks" && c.has("layer_types"):
		// tokens see those of their chunk: half of it before them, as in a window of half the size
		return c.size(8192, "attention_chunk_size") / 2, 0
	}
	return 0, 0
}

// mixers are the groups of parts that a layer may have in the place of attention.
var mixers = []string{"mamba2", "mamba2_beside", "mamba1", "convolution", "linear"}

// layerKinds are those of the design with what the file says of single layers.
func (c *config) layerKinds(kind *configKind, x *design, windows []int64) []layerKind {
	list := x.layerKinds()
	mixed := slices.ContainsFunc(mixers, func(name string) bool { return x.sizes[name] > 0 })
	attends, plain := c.attends(kind, x), c.layers(kind.PlainList)
	for i := range list {
		k, at := &list[i], int64(i)
		if mixed {
			k.attends = attends(at)
			k.scans = !k.attends
		}
		k.sparse = k.sparse && !plain(at)
		if windows != nil {
			k.sees = windows[i]
		}
	}
	return list
}

// attends says which layers have attention where others have none.
func (c *config) attends(kind *configKind, x *design) func(int64) bool {
	every, at := x.sizes["attn_every"], x.sizes["attn_at"]
	switch types := c.layerTypes(); {
	case kind.LayerTypes != nil && types != nil:
		return func(i int64) bool { return types[i] == kind.LayerTypes[1] }
	case kind.AttentionList != "":
		return c.layers(kind.AttentionList)
	case every > 0:
		return func(i int64) bool { return i%every == at }
	}
	return func(int64) bool { return false }
}

// allPlain takes the experts from a Qwen whose layers have none: by decoder_sparse_step, or mlp_only_layers.
func (c *config) allPlain(kind *configKind, x *design) {
	plain := c.layers(kind.PlainList)
	for i := range min(x.sizes["layers"], maxLayers) {
		if x.hasExperts(i) && !plain(i) {
			return
		}
	}
	x.sizes["experts"], x.sizes["top_k"], x.sizes["expert_ffn"] = 0, 0, 0
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

// jamba has the first Mamba (Gu and Dao 2023): steps of time come from a narrow product, and every channel has a state
// of its own.
func jamba(c *config, x *design) {
	const dim = 64 // channels that are priced as a head
	inner := c.size(2, "mamba_expand") * x.sizes["hidden"]
	x.sizes["inner"], x.sizes["scan_heads"], x.sizes["scan_dim"] = inner, max(1, inner/dim), min(dim, max(inner, 1))
}

// lfm2 has short convolutions with two gates in most layers.
func lfm2(c *config, x *design) {
	ffn := c.size(x.sizes["ffn"], "block_ff_dim")
	if c.yes("block_auto_adjust_ff_dim", c.text("model_type") == "lfm2") {
		of := max(1, c.size(256, "block_multiple_of"))
		ffn = (2*ffn/3 + of - 1) / of * of
	}
	x.sizes["ffn"] = ffn
}

// falcon: the first release shares one key and value among all heads and has one norm a layer, the later one has two of
// each.
func falcon(c *config, x *design) {
	later := c.yes("new_decoder_architecture", false)
	single := later && c.number0(2, "num_ln_in_parallel_attn") == 1 || !later && c.yes("parallel_attn", true)
	switch {
	case later:
		x.sizes["kv_heads"] = c.size(x.sizes["heads"], "num_kv_heads")
	case c.yes("multi_query", true):
		x.sizes["kv_heads"] = 1
	}
	if single {
		x.sizes["norms"] = 1
	}
}

// narrow refuses widths that no mixer has, so that products of them stay whole numbers.
func (c *config) narrow(width int64) {
	if width < 1 || width > 1<<24 {
		c.refuse("a mixer %d wide; expected 1 to %d", width, 1<<24)
	}
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
