package bench

import (
	"busbar.dev/engine"
	"busbar.dev/result"
)

// Records are what is kept of a row, out of place and in place. like has what all records of a
// measurement have in common.
func (r *Row) Records(like result.Record) []*result.Record {
	var list []*result.Record
	for i, h := range []*Half{r.Out, r.In} {
		if h == nil {
			continue
		}
		k := like
		k.Op, k.Size, k.Dtype, k.Ranks, k.Algo, k.InPlace = r.Op.Kind, r.Size, r.Op.Type.String(), r.Ranks, r.Algo, i == 1
		if r.Wire != engine.Uncompressed {
			k.Compress = r.Wire.String()
		}
		if r.Op.Kind.Reduces() {
			k.Redop = r.Op.Reduce.String()
		}
		if r.Op.Kind.Rooted() {
			k.Root = r.Op.Root
		}
		micros := make([]float64, len(h.Times))
		for j, t := range h.Times {
			micros[j] = float64(t.Nanoseconds()) / 1e3
		}
		k.Sample(micros)
		slowest := h.Slowest
		k.Slowest, k.Spread = &slowest, float64(h.Spread.Nanoseconds())/1e3
		if h.Wrong >= 0 {
			wrong := h.Wrong
			k.Wrong = &wrong
		}
		list = append(list, &k)
	}
	return list
}
