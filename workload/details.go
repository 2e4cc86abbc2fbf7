package workload

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
)

//go:embed data/details.csv
var detailsCSV string

// Details are what a framework must be told of a model that its tensors do not show.
type Details struct {
	Models      string  `json:"-" csv:"models"`
	Type        string  `json:"model_type,omitempty" csv:"type"` // Hugging Face's model_type
	Activation  string  `json:"activation,omitempty" csv:"activation"`
	Eps         float64 `json:"norm_eps,omitempty" csv:"eps"`
	RotaryBase  float64 `json:"rotary_base,omitempty" csv:"rotary_base,optional"`
	RotaryShare float64 `json:"rotary_share,omitempty" csv:"rotary_share,optional"` // 0 is all of a head
	Scaling     string  `json:"rope_scaling,omitempty" csv:"scaling,optional"`      // KIND:FACTOR:ORIGINAL
	Score       string  `json:"router_score,omitempty" csv:"score,optional"`
	Groups      int64   `json:"router_groups,omitempty" csv:"groups,optional"`
	GroupTopK   int64   `json:"router_group_topk,omitempty" csv:"group_topk,optional"`
	RouteScale  float64 `json:"router_scale,omitempty" csv:"route_scale,optional"`
	RouteNorm   bool    `json:"router_norm,omitempty" csv:"route_norm,optional"`
	Aux         float64 `json:"router_aux,omitempty" csv:"aux,optional"`
	// Beyond is what the model computes that neither its tensors nor the fields above show; "" for nothing. A program
	// built from those alone would train another model.
	Beyond string `json:"beyond,omitempty" csv:"beyond,optional"`
	// Init is the standard deviation of new weights; 0 is the usual 0.02.
	Init   float64 `json:"init_std,omitempty" csv:"init,optional"`
	Source string  `json:"source,omitempty" csv:"source"`
}

var details = sync.OnceValue(func() []Details {
	return csvtable.Must[Details]("workload/data/details.csv",
		detailsCSV)
})

// Detailed are the model's own details, where a config.json gave some, else those of the table for its name, else those
// of its kind of architecture.
func (m *Model) Detailed() Details {
	if m.Details.Type != "" {
		return m.Details
	}
	name, best := strings.ToLower(m.Name), Details{}
	for _, d := range details() {
		if strings.HasPrefix(name, d.Models) && len(d.Models) > len(best.Models) {
			best = d
		}
	}
	if best.Type != "" {
		return best
	}
	a := m.Architecture()
	best = Details{Activation: "silu", Eps: 1e-5, RotaryBase: 10000, Source: usualSource}
	switch {
	case !a.Gated:
		best.Type, best.Activation = "gpt2", "gelu"
	case m.Dims.Experts > 0:
		best.Type, best.Score, best.RouteNorm, best.Aux = "mixtral", "softmax", true, 0.02
	default:
		best.Type = "llama"
	}
	return best
}

// usualSource is the source of details that nobody stated.
const usualSource = "the usual values of its kind of layers"

// Usual says that nobody stated the details: they are the usual ones of such layers.
func (d *Details) Usual() bool { return d.Source == usualSource }

// beyond is what a config.json says that dimensions do not show.
func (c *config) beyond(kind string) string {
	var list []string
	for _, name := range []string{
		"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling", "logit_scale",
	} {
		if x := c.real(name); x != 0 && x != 1 {
			list = append(list, name)
		}
	}
	for _, name := range []string{"attn_logit_softcapping", "final_logit_softcapping", "no_rope_layer_interval"} {
		if c.real(name) != 0 {
			list = append(list, name)
		}
	}
	if c.real("sliding_window") != 0 && c.yes("use_sliding_window", true) {
		list = append(list, "sliding_window")
	}
	if v := c.fields["no_rope_layers"]; len(v) > 2 && string(v) != "null" {
		list = append(list, "no_rope_layers")
	}
	if what := ownWays[kind]; what != "" {
		list = append(list, what)
	}
	return strings.Join(list, ", ")
}

// ownWays are what the code of a kind does otherwise than its tensors suggest.
var ownWays = map[string]string{
	"olmo2": "norms after attention and MLP", "olmo3": "norms after attention and MLP",
	"glm4": "rotary positions of neighbouring pairs", "gemma": "scaled embeddings",
	"cohere":  "attention and MLP side by side",
	"smollm3": "layers without rotary positions", "gpt_neox": "attention and MLP side by side",
	"phi": "attention and MLP side by side", "falcon": "attention and MLP side by side",
}

// details are those of a config.json.
func (c *config) details(kind string) Details {
	d := Details{
		Type:        kind,
		Activation:  cmp.Or(c.text("hidden_act"), c.text("activation_function"), c.text("hidden_activation"), "silu"),
		Eps:         c.within(0, 1, "rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_epsilon"),
		RotaryBase:  c.within(1, 1e15, "rope_theta", "rotary_emb_base"),
		RotaryShare: c.within(0, 1, "partial_rotary_factor", "rotary_pct"), Init: c.within(0, 10, "initializer_range"),
		Score: c.text("scoring_func"), Groups: c.number0(0, "n_group"), GroupTopK: c.number0(0, "topk_group"),
		RouteScale: c.real("routed_scaling_factor"),
		RouteNorm:  c.yes("norm_topk_prob", false), Aux: c.real("router_aux_loss_coef", "aux_loss_alpha"), Source: c.name,
		Beyond: c.beyond(kind),
	}
	if strings.HasPrefix(d.Activation, "gelu") {
		d.Activation = "gelu"
	}
	d.Eps = cmp.Or(d.Eps, 1e-5)
	var scaling struct {
		Kind     string  `json:"rope_type"`
		Type     string  `json:"type"`
		Theta    float64 `json:"rope_theta"`
		Factor   float64 `json:"factor"`
		Original int64   `json:"original_max_position_embeddings"`
	}
	for _, field := range []string{"rope_scaling", "rope_parameters"} {
		if json.Unmarshal(c.fields[field], &scaling) != nil {
			continue
		}
		kind := cmp.Or(scaling.Kind, scaling.Type)
		if kind != "default" && ropeKind.MatchString(kind) && scaling.Factor > 1 {
			d.Scaling = fmt.Sprintf("%s:%g:%d", kind, scaling.Factor, scaling.Original)
		}
		d.RotaryBase = cmp.Or(d.RotaryBase, scaling.Theta)
	}
	d.RotaryBase = cmp.Or(d.RotaryBase, 10000) // that of transformers' classes
	return d
}

// real is a number, or 0.
func (c *config) real(names ...string) float64 {
	n, v := c.find(names)
	var x float64
	if v == nil {
		return 0
	}
	if err := json.Unmarshal(v, &x); err != nil && c.err == nil {
		c.err = fmt.Errorf("%s is %.40s; expected a number", n, v)
	}
	return x
}

// within is a number in a range, or 0 where there is none.
func (c *config) within(least, most float64, names ...string) float64 {
	x := c.real(names...)
	if n, v := c.find(names); v != nil && !(x >= least && x <= most) && c.err == nil {
		c.err = fmt.Errorf("%s is %.40s; expected a number from %g to %g", n, v, least, most)
	}
	return x
}

// ropeKind is what a way to scale positions may be called: it is written into programs.
var ropeKind = lazyre.New(`^\w+$`)
