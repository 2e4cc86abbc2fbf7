package workload

import "fmt"

// Predicting is the model with so many layers behind it that each predict one more token (DeepSeek-AI 2024,
// DeepSeek-V3, section 2.2): the embedding of the next token and what the layer before gave, normed and brought to one
// width, a layer like the last, and the model's own head with a loss of its own.
func (m *Model) Predicting(n int64) *Model {
	last := -1
	for i := range m.Blocks {
		if m.Blocks[i].Kind == Layer {
			last = i
		}
	}
	if n < 1 || last < 0 || m.Blocks[len(m.Blocks)-1].Kind != Exit {
		return m
	}
	c, h := *m, m.Dims.Hidden
	c.Blocks = append([]Block(nil), m.Blocks[:last+1]...)
	for i := range n {
		parts := []Part{
			{Name: "enorm", Kind: Norm, Out: h},
			{Name: "hnorm", Kind: Norm, Out: h},
			{Name: "eh_proj", In: 2 * h, Out: h, Cut: ByOut},
		}
		c.Blocks = append(c.Blocks, Block{
			Name: fmt.Sprintf("mtp.layers.%d", i), Kind: Layer, Parts: append(parts, m.Blocks[last].Parts...),
		})
	}
	c.Blocks = append(c.Blocks, m.Blocks[last+1:]...)
	exit := m.Blocks[len(m.Blocks)-1]
	exit.Parts = append([]Part(nil), exit.Parts...)
	for i := range exit.Parts {
		if p := &exit.Parts[i]; p.Kind == Matmul {
			p.Tied, p.Bias = true, false
		}
	}
	for i := range n {
		exit.Name = fmt.Sprintf("mtp.heads.%d", i)
		c.Blocks = append(c.Blocks, exit)
	}
	return &c
}
