package predict

import (
	"busbar/coll"
	"busbar/sim"
	"busbar/unit"
)

// Times prices many calls without explaining them: what fitting asks a hundred
// thousand times. to is filled and returned.
func (p *Predictor) Times(to []unit.Time, ops []coll.Op, settings []Setting, f *sim.Figures) ([]unit.Time, error) {
	type key struct {
		kind        coll.Kind
		algo, proto string
	}
	models := map[key]*sim.Model{}
	to = to[:0]
	for i, op := range ops {
		s := settings[i]
		o := p.outline(op, s)
		if o.err != nil {
			return nil, o.err
		}
		k := key{op.Kind, s.Algo, s.Proto}
		m := models[k]
		if m == nil {
			m = f.NCCLModel(p.Gen, p.Card, op.Kind, s.Algo, s.Proto)
			models[k] = m
		}
		to = append(to, o.Time(op, m))
	}
	return to, nil
}
