package workload

import "slices"

// Outline is a model's blocks without repetition: layers that are alike stand for each other.
// What is counted over thousands of settings goes by it.
type Outline struct {
	Kinds []BlockOutline
	Order []int // of the model's blocks, which kind each is
}

// BlockOutline is a kind of blocks.
type BlockOutline struct {
	*Block
	Count   float64
	Experts int64 // of a mixture
	TopK    int64
}

// Outline is the model's. Layers are alike when their parts have the same sizes: a mixture may begin with layers that
// have no experts, a hybrid alternates attention and scans, a window is seen by every second layer.
func (m *Model) Outline() *Outline {
	o := &Outline{Order: make([]int, 0, len(m.Blocks))}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		experts, topK := b.Experts()
		k := len(o.Kinds)
		if b.Kind == Layer {
			for n := range o.Kinds {
				if o.Kinds[n].Kind == Layer && alikeParts(o.Kinds[n].Parts, b.Parts) {
					k = n
				}
			}
		}
		if k == len(o.Kinds) {
			o.Kinds = append(o.Kinds, BlockOutline{Block: b, Experts: experts, TopK: topK})
		}
		o.Kinds[k].Count++
		o.Order = append(o.Order, k)
	}
	return o
}

// Layers is how many layers the model has.
func (o *Outline) Layers() int {
	n := 0.0
	for i := range o.Kinds {
		if o.Kinds[i].Kind == Layer {
			n += o.Kinds[i].Count
		}
	}
	return int(n)
}

// alikeParts compares parts by all but their names.
func alikeParts(a, b []Part) bool {
	return slices.EqualFunc(a, b, func(x, y Part) bool {
		return x.Kind == y.Kind && x.In == y.In && x.Out == y.Out && x.Cut == y.Cut && x.Experts == y.Experts &&
			x.TopK == y.TopK && x.Bias == y.Bias &&
			x.Heads == y.Heads && x.HeadDim == y.HeadDim && x.KVHeads == y.KVHeads && x.Window == y.Window &&
			x.State == y.State && x.Rows == y.Rows && x.Passes == y.Passes && slices.Equal(x.Shape, y.Shape)
	})
}
