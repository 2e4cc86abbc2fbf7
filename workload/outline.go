package workload

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

// Outline is the model's. Layers are alike when they have as many experts: a mixture may begin
// with layers that have none.
func (m *Model) Outline() *Outline {
	o := &Outline{Order: make([]int, 0, len(m.Blocks))}
	for i := range m.Blocks {
		b := &m.Blocks[i]
		experts, topK := b.Experts()
		k := len(o.Kinds)
		if b.Kind == Layer {
			for n := range o.Kinds {
				if o.Kinds[n].Kind == Layer && o.Kinds[n].Experts == experts {
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
