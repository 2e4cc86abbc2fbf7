package predict

import (
	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Times prices many calls without explaining them: what fitting asks a hundred
// thousand times. to is filled and returned.
func (p *Predictor) Times(to []unit.Time, ops []coll.Op, settings []Setting, f *sim.Figures) ([]unit.Time, error) {
	type key struct {
		kind        coll.Kind
		algo, proto string
		channels    int
	}
	models := map[key]*sim.Model{}
	to = to[:0]
	for i, op := range ops {
		s := settings[i]
		o := p.outline(op, s)
		if o.err != nil {
			return nil, o.err
		}
		k := key{op.Kind, s.Algo, s.Proto, s.Channels}
		m := models[k]
		if m == nil {
			m = p.model(f, op, s)
			models[k] = m
		}
		to = append(to, o.Time(op, m))
	}
	return to, nil
}

// model is what a call by a setting costs beside line rates.
func (p *Predictor) model(f *sim.Figures, op coll.Op, s Setting) *sim.Model {
	how := sim.Setup{
		Gen: p.Gen, Card: p.Card, Kind: op.Kind, Algo: s.Algo, Proto: s.Proto, Nodes: len(p.Plan.Nodes), Rack: p.rack,
		Serial: p.Serial, Alone: p.Alone, Queue: p.Queue, Graph: p.Graph, Early: p.early(), OldEFA: p.oldEFA(),
		Without: p.Without,
	}
	if r := p.Plan.RCCL; r != nil {
		how.Arch = r.Arch
	}
	m := f.NCCLModel(how)
	if s.Algo == "direct" {
		m.Wire.Spread = float64(p.Plan.P2PChannels) / float64(max(s.Channels, 1))
	}
	return m
}
