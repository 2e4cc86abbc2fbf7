package workload

import (
	"fmt"
	"strings"
)

// Dims are the dimensions that a transformer is described by.
type Dims struct {
	Layers  int64 `json:"layers"`
	Hidden  int64 `json:"hidden"`
	Heads   int64 `json:"heads"`
	KVHeads int64 `json:"kv_heads"` // 0 is Heads
	FFN     int64 `json:"ffn"`      // 0 is four times Hidden
	Vocab   int64 `json:"vocab"`    // tokens, or classes of pictures
	Context int64 `json:"context"`  // the longest sequence, in tokens
}

// filled has what is usual where nothing is said.
func (d Dims) filled() Dims {
	if d.KVHeads == 0 {
		d.KVHeads = d.Heads
	}
	if d.FFN == 0 {
		d.FFN = 4 * d.Hidden
	}
	return d
}

// Check reports dimensions that no model has.
func (d Dims) Check() error {
	d = d.filled()
	const most = 1 << 24
	for _, x := range []struct {
		name string
		v    int64
	}{{"layers", d.Layers}, {"hidden", d.Hidden}, {"heads", d.Heads}, {"kv_heads", d.KVHeads}, {"ffn", d.FFN}, {"vocab", d.Vocab}, {"context", d.Context}} {
		if x.v < 1 || x.v > most {
			return fmt.Errorf("%s is %d; expected 1 to %d", x.name, x.v, most)
		}
	}
	switch {
	case d.Layers > 1<<16:
		return fmt.Errorf("%d layers; at most %d", d.Layers, 1<<16)
	case d.Hidden%d.Heads != 0:
		return fmt.Errorf("%d hidden units are not divided by %d heads", d.Hidden, d.Heads)
	case d.Heads%d.KVHeads != 0:
		return fmt.Errorf("%d heads are not divided by %d of keys and values", d.Heads, d.KVHeads)
	}
	h := float64(d.Hidden)
	if n := float64(d.Layers)*h*(4*h+3*float64(d.FFN)) + 2*h*float64(d.Vocab+d.Context); n > 1e15 {
		return fmt.Errorf("about %.3g parameters; at most 1e15", n)
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
	for _, p := range b.Parts {
		for _, t := range p.Tensors() {
			if b.Name != "" {
				t.Name = b.Name + "." + t.Name
			}
			list = append(list, t)
		}
	}
	return list
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
	var n int64
	for i := range m.Blocks {
		for _, t := range m.Blocks[i].Tensors() {
			n += t.Count()
		}
	}
	return n
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

// Find is the model of a name.
func Find(name string) (*Model, error) {
	all := Models()
	want := strings.ToLower(name)
	if want == "gpt2-small" {
		want = "gpt2"
	}
	var names []string
	for i := range all {
		if all[i].Name == want {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	return nil, fmt.Errorf("model %q is unknown; there are %s", name, strings.Join(names, ", "))
}
