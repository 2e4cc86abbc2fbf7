package workload

import "fmt"

// PartKind is what a part computes.
type PartKind uint8

// Kinds of parts.
const (
	Matmul    PartKind = iota // Out features of every In: a linear layer, or a convolution over patches
	Lookup                    // a row of Out numbers out of In rows: an embedding
	Norm                      // Out numbers scaled, and shifted with Bias
	Attention                 // scores and weighted sums between tokens; has no tensors
	Added                     // a tensor that is added to others: positions, a class token, a bias
	Scan                      // the recurrence of a state-space layer (Mamba-2); has no tensors
	Pointwise                 // operations on Out numbers each, as often as Passes says; has no tensors
)

// Cut is how tensor parallelism divides a part's matrix among ranks (Megatron-LM, Shoeybi et
// al. 2019, section 3).
type Cut uint8

// Cuts.
const (
	Whole Cut = iota // every rank has all of it
	ByOut            // each rank computes some of the output features: a column-parallel layer
	ByIn             // each rank has some of the input features, and results are summed: row-parallel
)

// Part is one operation of a block.
type Part struct {
	Name    string
	Kind    PartKind
	In, Out int64
	Bias    bool
	Cut     Cut
	// Turned says that the matrix is stored as In × Out, as GPT-2's are; else Out × In.
	Turned bool
	// Tied says that the matrix is another part's: it is used here and has no tensor of its own.
	Tied bool
	// Single says that the nonlinearity after it is one operation of PyTorch, its own GELU or a ReLU, and not a formula of
	// many.
	Single bool
	// Shape is that of the weight where it is not a plain matrix or vector.
	Shape []int64
	// Heads, KVHeads and HeadDim are those of Attention; Causal says that tokens see earlier
	// ones only.
	Heads, KVHeads, HeadDim int64
	Causal                  bool
	// Window is how many tokens before it a token sees; 0 is all.
	Window int64
	// State is the width of a head's state in a Scan, whose heads of HeadDim share KVHeads inputs and outputs of it.
	State int64
	// Suffix names the weight where a framework does not call it "weight": "" is that, "-" is
	// the part's own name.
	Suffix string
	// Rows is at how many places of a sample a convolution is computed; 0 is every token.
	Rows int64
	// Once says that a part runs once a sequence and not for every token: a pooler, a classifier.
	Once bool
	// Of a Pointwise part, forward and backward: Passes is how often its numbers are read or written, Least how often in
	// fused kernels, 0 where none are known, and Starts its kernels. Kept is how many numbers of each stay for the
	// backward pass.
	Passes, Least, Starts [2]float64
	Kept                  float64
	// Experts is how many matrices of this shape there are, of which a token passes TopK; 0 is
	// one that all tokens pass. The name has %d where the expert's number goes.
	Experts, TopK int64
}

// Tensor is one parameter tensor.
type Tensor struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	Cut   Cut     `json:"-"`
}

// Count is the number of elements.
func (t Tensor) Count() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

func (t Tensor) String() string { return fmt.Sprintf("%s%v", t.Name, t.Shape) }

// Tensors are the part's own, in the order in which a framework registers them.
func (p Part) Tensors() []Tensor {
	var list []Tensor
	weight := p.Name + ".weight"
	switch p.Suffix {
	case "":
	case "-":
		weight = p.Name
	default:
		weight = p.Name + p.Suffix
	}
	shape := p.Shape
	if shape == nil {
		switch {
		case p.Kind == Norm || p.Kind == Added:
			shape = []int64{p.Out}
		case p.Turned || p.Kind == Lookup:
			shape = []int64{p.In, p.Out}
		default:
			shape = []int64{p.Out, p.In}
		}
	}
	if p.hasTensors() && !p.Tied {
		list = append(list, Tensor{weight, shape, p.Cut})
	}
	if p.Bias {
		cut := p.Cut
		if cut == ByIn {
			cut = Whole // added once, after the sum
		}
		bias := p.Name + ".bias"
		if p.Suffix == "_weight" {
			bias = p.Name + "_bias"
		}
		list = append(list, Tensor{bias, []int64{p.Out}, cut})
	}
	return list
}

// hasTensors says whether parts of this kind have any.
func (p *Part) hasTensors() bool {
	return p.Kind != Attention && p.Kind != Scan && p.Kind != Pointwise
}

// Forward is the floating-point operations of a forward pass over sequences of seq tokens,
// each. Products count twice their multiplications; what is not a product counts nothing, and
// the half of the scores that a causal mask throws away is counted, as is usual (PaLM, Chowdhery
// et al. 2022, appendix B).
func (p Part) Forward(seq int64) float64 {
	tokens := float64(seq)
	if p.Once {
		tokens = 1
	}
	if p.Rows > 0 {
		tokens *= float64(p.Rows)
	}
	switch p.Kind {
	case Matmul:
		if p.Experts > 0 {
			tokens *= float64(p.TopK)
		}
		return 2 * tokens * float64(p.In) * float64(p.Out)
	case Attention:
		return 4 * tokens * p.seen(float64(seq)) * float64(p.Heads) * float64(p.HeadDim)
	case Scan:
		return tokens * p.scanned()
	}
	return 0
}

// seen is how many tokens the scores of a token are counted over: all, or those of its window, of which a causal mask
// throws nothing away.
func (p *Part) seen(seq float64) float64 {
	if w := float64(p.Window); w > 0 && 2*w < seq {
		return 2 * w
	}
	return seq
}

// scanChunk is how many tokens a scan multiplies at once (Mamba-2's kernels: chunk_size).
const scanChunk = 128

// scanned is the floating-point operations of a token in a scan: products inside a chunk, and of its states (Dao and Gu
// 2024, Transformers are SSMs, section 6).
func (p *Part) scanned() float64 {
	h, d, n, g := float64(p.Heads), float64(p.HeadDim), float64(p.State), float64(p.KVHeads)
	return 2*scanChunk*(n*g+d*h) + 4*n*d*h
}
