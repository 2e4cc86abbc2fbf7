package workload

import "strings"

// Architecture is what a framework must be told of a transformer beside its dimensions.
type Architecture struct {
	Kind      ArchitectureKind `json:"kind"`
	Positions Positions        `json:"positions"`
	Gated     bool             `json:"gated,omitempty"`    // the MLP multiplies two products
	RMSNorm   bool             `json:"rms_norm,omitempty"` // norms scale and do not shift
	Tied      bool             `json:"tied,omitempty"`     // the head is the embedding
	// QKVBias, OutBias and MLPBias say which products have biases.
	QKVBias bool  `json:"qkv_bias,omitempty"`
	OutBias bool  `json:"out_bias,omitempty"`
	MLPBias bool  `json:"mlp_bias,omitempty"`
	QKNorm  Norms `json:"qk_norm,omitempty"` // 1 a head at a time, 2 across heads
	// Latent is that of multi-head latent attention; none where heads have keys and values.
	Latent *Latent `json:"latent,omitempty"`
	// SharedFFN is the width of the MLP beside experts that every token passes, with a gate of its
	// own where SharedGate says so; Corrected says that the router has a bias that balances experts.
	SharedFFN  int64 `json:"shared_ffn,omitempty"`
	SharedGate bool  `json:"shared_gate,omitempty"`
	Corrected  bool  `json:"router_bias,omitempty"`
	// Odd is what few frameworks have: more norms than two, sinks, biases of experts, layers that are not attention.
	Odd []string `json:"odd,omitempty"`
}

// ArchitectureKind is what a model reads and writes.
type ArchitectureKind string

// Kinds of models.
const (
	DecoderOnly ArchitectureKind = "decoder"
	EncoderOnly ArchitectureKind = "encoder"
	Vision      ArchitectureKind = "vision"
)

// Positions is how a model knows the order of tokens.
type Positions string

// Ways to know it.
const (
	RotaryPositions  Positions = "rotary"
	LearnedPositions Positions = "learned"
	LinearPositions  Positions = "alibi"
)

// Norms is how queries and keys are normed.
type Norms uint8

// Ways to norm queries and keys.
const (
	NoNorm     Norms = iota
	HeadNorm         // a head at a time, with the same numbers for all
	AcrossNorm       // all heads together
)

// Latent are the widths of multi-head latent attention: queries, and keys and values, go through
// narrow vectors; a head's key has a part without positions and one with them.
type Latent struct {
	Q      int64 `json:"q_lora_rank" csv:"q_lora_rank,optional"`
	KV     int64 `json:"kv_lora_rank" csv:"kv_lora_rank,optional"`
	Plain  int64 `json:"qk_nope_head_dim" csv:"qk_nope_head_dim,optional"`
	Rotary int64 `json:"qk_rope_head_dim" csv:"qk_rope_head_dim,optional"`
	Value  int64 `json:"v_head_dim" csv:"v_head_dim,optional"`
}

// Architecture is read off the model's parts.
func (m *Model) Architecture() Architecture {
	a := Architecture{Kind: Vision, Positions: RotaryPositions, RMSNorm: true}
	for i := range m.Blocks {
		for k := range m.Blocks[i].Parts {
			a.look(m, &m.Blocks[i], &m.Blocks[i].Parts[k])
		}
	}
	if l := a.Latent; l != nil {
		l.Rotary -= l.KV // they are one product
		l.Plain -= l.Value
	}
	if m.Dims.Layers == 0 || len(m.Blocks) == 0 {
		a.Odd = append(a.Odd, "convolutions")
	}
	return a
}

// look takes what a part says.
func (a *Architecture) look(m *Model, b *Block, p *Part) {
	name := p.Name[strings.LastIndexByte(p.Name, '.')+1:]
	switch p.Kind {
	case Attention:
		if a.Kind = DecoderOnly; !p.Causal {
			a.Kind = EncoderOnly
		}
	case Lookup:
		if p.In != m.Dims.Vocab {
			a.Positions = LearnedPositions
		}
	case Added:
		a.added(name)
	case Norm:
		a.norm(m, b, p, name)
	case Matmul:
		a.product(m, b, p, name)
	}
	switch {
	case p.Name == "linear_attn.scan":
		a.odd("linear attention")
	case p.Kind == Scan:
		a.odd("state-space layers")
	case p.Name == "conv.conv":
		a.odd("convolutions")
	}
	if name == "q_proj" && a.Latent == nil && m.Dims.Heads > 0 && p.Out == 2*m.Dims.Heads*m.Dims.filled().HeadDim {
		a.odd("a gate on attention")
	}
	if p.Shape != nil && p.Kind == Matmul {
		a.odd("convolutions")
	}
}

func (a *Architecture) added(name string) {
	switch name {
	case "e_score_correction_bias":
		a.Corrected = true
	case "sinks":
		a.odd("attention sinks")
	case "class_token":
		a.odd("pictures")
	}
}

func (a *Architecture) norm(m *Model, b *Block, p *Part, name string) {
	if p.Bias {
		a.RMSNorm = false
	}
	switch {
	case name == "q_norm" && p.Out == m.Dims.filled().HeadDim:
		a.QKNorm = HeadNorm
	case name == "q_norm":
		a.QKNorm = AcrossNorm
	case name == "word_embeddings_layernorm":
		a.Positions = LinearPositions // BLOOM's
		a.odd("a norm of the embedding")
	case strings.HasPrefix(name, "pre_moe") || name == "norm_3":
		a.odd("four norms a layer")
	}
}

// product takes what a matrix says.
func (a *Architecture) product(m *Model, b *Block, p *Part, name string) {
	heads := max(1, m.Dims.Heads)
	switch name {
	case "gate_proj", "gate_up_proj", "w1":
		a.Gated = true
	case "q_a_proj":
		a.latent().Q = p.Out
	case "kv_a_proj_with_mqa":
		a.latent().Rotary = p.Out
	case "kv_b_proj":
		a.latent().KV, a.Latent.Plain = p.In, p.Out/heads
	case "o_proj":
		if a.Latent != nil {
			a.Latent.Value = p.In / heads
		}
	case "shared_expert_gate":
		a.SharedGate = true
	}
	if b.Kind == Exit {
		if strings.HasPrefix(name, "lm_head") || name == "decoder" || name == "embed_out" {
			a.Tied = p.Tied
		}
		return
	}
	if strings.Contains(p.Name, "shared_expert") && name == "down_proj" {
		a.SharedFFN = p.In
	}
	if p.Bias {
		a.bias(p, name)
	}
}

// bias takes which product has one.
func (a *Architecture) bias(p *Part, name string) {
	switch {
	case p.Experts > 0:
		a.odd("biases of experts")
	case strings.Contains(p.Name, "mlp") || strings.HasPrefix(name, "fc") || strings.Contains(p.Name, "intermediate"):
		a.MLPBias = true
	case p.Cut == ByIn:
		a.OutBias = true
	default:
		a.QKVBias = true
	}
}

func (a *Architecture) latent() *Latent {
	if a.Latent == nil {
		a.Latent = &Latent{}
	}
	return a.Latent
}

func (a *Architecture) odd(what string) {
	for _, known := range a.Odd {
		if known == what {
			return
		}
	}
	a.Odd = append(a.Odd, what)
}
