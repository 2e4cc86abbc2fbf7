package step

import (
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Parts are a step on one GPU by what its kernels do, as a profiler shows it.
type Parts struct {
	Products unit.Span
	Forward  unit.Span // attention in one kernel
	Backward unit.Span
	Streams  unit.Span // all that lies between products
	Update   unit.Span
	Idle     unit.Span // no kernel runs: between them, and while the host is behind
}

// Parts prices a step on one GPU by parts. They add up to its time.
func (p *Prepared) Parts(g *GPU) (Parts, error) {
	r, err := p.Price(g)
	if err != nil {
		return Parts{}, err
	}
	var x Parts
	for i := range p.blocks {
		b := &p.blocks[i]
		for _, list := range [][]workload.Task{b.pass.Forward, b.pass.Backward, b.pass.Again} {
			for k := range list {
				t := &list[k]
				took := (g.within(t, p.j) - g.gap(t)) * unit.Span(b.count*float64(p.j.Micros()))
				switch {
				case t.Kind == workload.Product:
					x.Products += took
				case t.Kind == workload.Score && t.Back:
					x.Backward += took
				case t.Kind == workload.Score:
					x.Forward += took
				default:
					x.Streams += took
				}
			}
		}
	}
	x.Update = r.Optimizer
	x.Idle = r.Step - x.Products - x.Forward - x.Backward - x.Streams - x.Update
	return x, nil
}
