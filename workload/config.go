package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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
		return nil, fmt.Errorf("%s: found a JSON %s; expected a config.json of Hugging Face, which is an object", name, wrong.Value)
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
	c.fill(kind)
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
		Layers: c.number("num_hidden_layers", "n_layer", "num_layers", "n_layers"), Hidden: c.number("hidden_size", "n_embd", "n_embed", "d_model"), Heads: c.number("num_attention_heads", "n_head", "num_heads", "n_heads"),
		KVHeads: c.size(0, "num_key_value_heads"), FFN: ffn, HeadDim: c.size(0, "head_dim"),
		Vocab: c.number("vocab_size"), Context: c.size(2048, "max_position_embeddings", "n_positions", "seq_length", "max_seq_len"),
	}
	if ffn == 0 && !slices.Contains(fourfold, c.text("model_type")) {
		c.refuse("no intermediate_size; expected a whole number, at least 1")
	}
	return d
}
