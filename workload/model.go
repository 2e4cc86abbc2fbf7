package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Dims are the dimensions that a transformer is described by.
type Dims struct {
	Layers  int64 `json:"layers,omitempty" csv:"layers,optional"`
	Hidden  int64 `json:"hidden,omitempty" csv:"hidden,optional"`
	Heads   int64 `json:"heads,omitempty" csv:"heads,optional"`
	KVHeads int64 `json:"kv_heads,omitempty" csv:"kv_heads,optional"` // 0 is Heads
	FFN     int64 `json:"ffn,omitempty" csv:"ffn,optional"`           // 0 is four times Hidden
	Vocab   int64 `json:"vocab,omitempty" csv:"vocab,optional"`       // tokens, or classes of pictures
	Context int64 `json:"context,omitempty" csv:"context,optional"`   // the longest sequence, in tokens
	// HeadDim is the width of a head; 0 is Hidden over Heads.
	HeadDim int64 `json:"head_dim,omitempty" csv:"head_dim,optional"`
	// Experts is how many a layer has, TopK how many of them a token passes, Shared how many
	// every token passes beside; 0 experts are a plain layer. ExpertFFN is the width of one; 0
	// is FFN. Dense is how many layers at the beginning have none.
	Experts   int64 `json:"experts,omitempty" csv:"experts,optional"`
	TopK      int64 `json:"top_k,omitempty" csv:"top_k,optional"`
	Shared    int64 `json:"shared_experts,omitempty" csv:"shared_experts,optional"`
	ExpertFFN int64 `json:"expert_ffn,omitempty" csv:"expert_ffn,optional"`
	Dense     int64 `json:"dense_layers,omitempty" csv:"dense_layers,optional"`
}

// byName are the dimensions by the columns of the catalogue.
func (d *Dims) byName() map[string]*int64 {
	return map[string]*int64{
		"layers": &d.Layers, "hidden": &d.Hidden, "heads": &d.Heads, "kv_heads": &d.KVHeads, "ffn": &d.FFN,
		"vocab": &d.Vocab, "context": &d.Context, "head_dim": &d.HeadDim, "experts": &d.Experts, "top_k": &d.TopK,
		"shared_experts": &d.Shared, "expert_ffn": &d.ExpertFFN, "dense_layers": &d.Dense,
	}
}

// filled has what is usual where nothing is said.
func (d Dims) filled() Dims {
	d.KVHeads = cmp.Or(d.KVHeads, d.Heads)
	d.FFN = cmp.Or(d.FFN, 4*d.Hidden)
	if d.HeadDim == 0 && d.Heads > 0 {
		d.HeadDim = d.Hidden / d.Heads
	}
	if d.ExpertFFN == 0 && d.Experts > 0 {
		d.ExpertFFN = d.FFN
	}
	return d
}

// wide is the width of all that a token passes between the two products of a layer.
func (d Dims) wide() int64 {
	if d.Experts == 0 {
		return d.FFN
	}
	return (d.TopK + d.Shared) * d.ExpertFFN
}

const maxLayers = 1 << 16

// Check reports dimensions that no model has.
func (d Dims) Check() error {
	own := d.HeadDim != 0
	d = d.filled()
	const most = 1 << 24
	for _, x := range []struct {
		name string
		v    int64
	}{
		{"layers", d.Layers},
		{"hidden", d.Hidden},
		{"heads", d.Heads},
		{"kv_heads", d.KVHeads},
		{"ffn", d.FFN},
		{"vocab", d.Vocab},
		{"context", d.Context},
	} {
		if x.v < 1 || x.v > most {
			return fmt.Errorf("%s is %d; expected 1 to %d", x.name, x.v, most)
		}
	}
	switch {
	case d.Layers > maxLayers:
		return fmt.Errorf("%d layers; at most %d", d.Layers, maxLayers)
	case d.HeadDim < 0 || d.HeadDim > most:
		return fmt.Errorf("head_dim is %d; expected 1 to %d", d.HeadDim, most)
	case !own && d.Hidden%d.Heads != 0:
		return fmt.Errorf("%d hidden units cannot be divided evenly by %d heads", d.Hidden, d.Heads)
	case d.Heads%d.KVHeads != 0:
		return fmt.Errorf("%d heads cannot be divided evenly by %d key-value heads", d.Heads, d.KVHeads)
	}
	if err := d.checkExperts(); err != nil {
		return err
	}
	h := float64(d.Hidden)
	ffn := float64(d.FFN) + float64(d.Experts+d.Shared)*float64(d.ExpertFFN)
	if n := float64(d.Layers)*(4*h*float64(d.Heads)*float64(d.HeadDim)+3*h*ffn) +
		2*h*float64(d.Vocab+d.Context); n > 1e15 {
		return fmt.Errorf("about %.3g parameters; at most 1e15", n)
	}
	return nil
}

// checkExperts reports a mixture of experts that no model is.
func (d Dims) checkExperts() error {
	switch {
	case d.Experts < 0 || d.Experts > 4096 || d.Shared < 0 || d.Shared > 4096:
		return fmt.Errorf("%d experts and %d shared ones; expected 0 to 4096", d.Experts, d.Shared)
	case d.Experts == 0 && (d.TopK != 0 || d.Shared != 0 || d.Dense != 0):
		return fmt.Errorf("top_k, shared experts or dense layers without experts")
	case d.Experts > 0 && (d.TopK < 1 || d.TopK > d.Experts):
		return fmt.Errorf("top_k is %d; expected 1 to the %d experts", d.TopK, d.Experts)
	case d.Experts > 0 && (d.ExpertFFN < 1 || d.ExpertFFN > 1<<24):
		return fmt.Errorf("expert_ffn is %d; expected 1 to %d", d.ExpertFFN, 1<<24)
	case d.Dense < 0 || d.Dense > d.Layers:
		return fmt.Errorf("%d dense layers of %d", d.Dense, d.Layers)
	case d.Layers*(d.Experts+1) > 1<<18:
		return fmt.Errorf("%d layers of %d experts; at most %d matrices", d.Layers, d.Experts, 1<<18)
	}
	return nil
}

// BlockKind is where in a model a block stands.
type BlockKind uint8

// Kinds of blocks.
const (
	Entry BlockKind = iota // embeddings
	Layer                  // one of the layers, which are all alike
	Exit                   // what comes after the last layer
)

// Block is a part of a model that is computed as one.
type Block struct {
	Name  string // before the names of its tensors: transformer.h.3
	Kind  BlockKind
	Parts []Part
}

// Tensors are the block's, with their whole names.
func (b *Block) Tensors() []Tensor {
	var list []Tensor
	add := func(p Part) {
		for _, t := range p.Tensors() {
			if b.Name != "" {
				t.Name = b.Name + "." + t.Name
			}
			list = append(list, t)
		}
	}
	for i := 0; i < len(b.Parts); i++ {
		if b.Parts[i].Experts == 0 {
			add(b.Parts[i])
			continue
		}
		// All of an expert, then the next one.
		end := i
		for end < len(b.Parts) && b.Parts[end].Experts > 0 {
			end++
		}
		for k := range b.Parts[i].Experts {
			for _, p := range b.Parts[i:end] {
				p.Name = strings.Replace(p.Name, "%d", strconv.FormatInt(k, 10), 1)
				add(p)
			}
		}
		i = end - 1
	}
	return list
}

// Experts is how many the block has, 0 where all tokens pass all of it.
func (b *Block) Experts() (experts, topK int64) {
	for i := range b.Parts {
		if b.Parts[i].Experts > 0 {
			return b.Parts[i].Experts, b.Parts[i].TopK
		}
	}
	return 0, 0
}

// Forward is the floating-point operations of a forward pass over one sequence of seq tokens.
func (b *Block) Forward(seq int64) float64 {
	var sum float64
	for _, p := range b.Parts {
		sum += p.Forward(seq)
	}
	return sum
}

// Model is a network: its blocks in the order of the forward pass.
type Model struct {
	Name  string
	Title string
	Dims  Dims
	// Seq is how many tokens a sequence has when nobody says.
	Seq    int64
	Blocks []Block
	// Source is who says what the dimensions are.
	Source string
	// Published is the number of parameters that somebody states, with who does. Rounded is
	// how far a statement in round figures may be off, 0 where it is exact.
	Published       int64
	Rounded         float64
	PublishedSource string
	// Note is what a reader of the published figures must know.
	Note string
	// Unpriced is why only its tensors and operations are known and its steps are not priced; ""
	// where they are.
	Unpriced string
	// Notes are what of a config.json is left out, taken from defaults, or contradicts the rest of it.
	Notes []string
	// Details are what a config.json says beside dimensions; Detailed has others.
	Details Details
	// Config is the config.json that the model was read from, of the part that writes; none where it was not.
	Config []byte
}

// Replicated says that only replicas of the whole model train it: its parts say what lies between products, and nobody
// divides them.
func (m *Model) Replicated() bool { return len(m.Blocks) > 0 && m.Blocks[0].has(Pointwise) }

// Pictures says that a sample is a picture and no sequence of tokens: rates count samples.
func (m *Model) Pictures() bool { return m.Replicated() && m.Seq == 1 }

// attends says that some part is attention.
func (m *Model) attends() bool {
	return slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.has(Attention) })
}

// Tensors are all parameter tensors, in the order in which a framework registers them.
func (m *Model) Tensors() []Tensor {
	var list []Tensor
	for i := range m.Blocks {
		list = append(list, m.Blocks[i].Tensors()...)
	}
	return list
}

// Params is the number of parameters.
func (m *Model) Params() int64 {
	all, _ := m.counts()
	return all
}

// Active is the number of parameters that a token passes: all but the experts that it is not
// sent to.
func (m *Model) Active() int64 {
	_, active := m.counts()
	return active
}

func (m *Model) counts() (all, active int64) {
	for i := range m.Blocks {
		for _, p := range m.Blocks[i].Parts {
			n := int64(0)
			for _, t := range p.Tensors() {
				n += t.Count()
			}
			if p.Experts > 0 {
				all, active = all+n*p.Experts, active+n*p.TopK
				continue
			}
			all, active = all+n, active+n
		}
	}
	return all, active
}

// Forward is the floating-point operations of a forward pass over one sequence of seq tokens.
// A backward pass has twice as many.
func (m *Model) Forward(seq int64) float64 {
	var sum float64
	for i := range m.Blocks {
		sum += m.Blocks[i].Forward(seq)
	}
	return sum
}
