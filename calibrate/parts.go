package calibrate

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// MeasuredStep is a training step that was measured on one GPU: as a whole, and by its parts under a profiler.
type MeasuredStep struct {
	Predicted
	job   *workload.Job
	parts step.Parts // those that are 0 were not seen
}

func (s *MeasuredStep) took() unit.Span { return unit.Span(s.Micros * 1e-6) }

// PartsFit are training steps of reference models that were measured on one GPU, and the figures that their parts pin
// down.
type PartsFit struct {
	Software string         `json:"software"`
	Steps    []MeasuredStep `json:"steps"`
	Moved    []Moved        `json:"figures"`
	MeanErrors
}

// partNoise is how far each part of a step of an unseen model may be off right figures, in the order of step.Parts;
// partShare is the same of every part as a share of the whole step, so that a part that hardly counts says hardly
// anything.
var partNoise = [...]float64{0.04, 0.1, 0.1, 0.08, 0.05, 0.1}

const partShare = 0.015

func parts(p *step.Parts) [len(partNoise)]unit.Span {
	return [...]unit.Span{p.Products, p.Forward, p.Backward, p.Streams, p.Update, p.Idle}
}

// fewestSteps is how many steps there must be, so that one can be left out and the others still tell models apart.
const fewestSteps = 3

// Parts fits the figures of steps to the parts of measured ones, from those in use so far. A figure without which the
// parts of steps that are left out are predicted better keeps its value: of parts, since errors of parts may cancel in
// the sum of one model and not in that of another.
func Parts(m hardware.GPUModel, list []MeasuredStep, start *step.Figures) (*PartsFit, error) {
	if len(list) < fewestSteps {
		return nil, fmt.Errorf("%d steps of %s were measured; expected at least %d", len(list), m.Title, fewestSteps)
	}
	p, err := newPartsProblem(m, list)
	if err != nil {
		return nil, err
	}
	x := &PartsFit{Steps: slices.Clone(list), Moved: []Moved{}}
	var held [len(step.Figures{})]bool
	_, least, err := p.leftOut(start, &held, nil)
	if err != nil {
		return nil, err
	}
	for i := range held { // one after the other: what is held changes what the others can do
		if !p.moves(i) {
			continue
		}
		held[i] = true
		_, off, err := p.leftOut(start, &held, nil)
		if err != nil {
			return nil, err
		}
		if held[i] = off < least; held[i] {
			least = off
		}
	}
	f, err := p.solve(-1, start, &held)
	if err != nil {
		return nil, err
	}
	for i := range f {
		if f[i] = round(f[i]); math.Abs(f[i]/start[i]-1) <= moved || held[i] || !p.moves(i) {
			f[i] = start[i]
			continue
		}
		unit, _, _ := step.Range(i)
		low, high := bounds(p.points(-1), f, i)
		x.Moved = append(x.Moved, Moved{cluster.StepFigure + step.Name(i), unit, start[i], f[i], round(low), round(high)})
	}
	if _, _, err = p.leftOut(start, &held, x.Steps); err != nil {
		return nil, err
	}
	for i := range x.Steps {
		s := &x.Steps[i].Predicted
		before, _, err := p.whole(i, start)
		if err != nil {
			return nil, err
		}
		after, _, err := p.whole(i, f)
		if err != nil {
			return nil, err
		}
		s.Before, s.After = float64(before)*1e6, float64(after)*1e6
		x.addErrors(s, len(list))
	}
	return x, nil
}

// partsProblem are measured steps made ready to be priced by many figures.
type partsProblem struct {
	m     hardware.GPUModel
	list  []MeasuredStep
	ready []*step.Prepared
}

func newPartsProblem(m hardware.GPUModel, list []MeasuredStep) (*partsProblem, error) {
	p := &partsProblem{m: m, list: list}
	c, err := hardware.Preset(m.Name, 1)
	if err != nil {
		return nil, err
	}
	l, err := nccl.Block(c, 1, 1)
	if err != nil {
		return nil, err
	}
	for i := range list {
		j := list[i].job
		p.ready = append(p.ready, step.Prepare(j, step.NewFabric(c, l, j.Split, nccl.Newest)))
	}
	return p, nil
}

func (p *partsProblem) moves(i int) bool { return step.Steps(i) && step.Touches(i, p.m) }

// whole is the predicted time of a step, and by how much of the measured one its parts are off together.
func (p *partsProblem) whole(i int, f *step.Figures) (took unit.Span, off float64, err error) {
	g, err := step.NewGPU(p.m, f)
	if err != nil {
		return 0, 0, err
	}
	x, err := p.ready[i].Parts(g)
	if err != nil {
		return 0, 0, err
	}
	have, want := parts(&x), parts(&p.list[i].parts)
	for k := range have {
		took += have[k]
		off += math.Abs(float64((have[k] - want[k]) / p.list[i].took()))
	}
	return took, off, nil
}

// points are the parts of all steps but one.
func (p *partsProblem) points(without int) (list []point) {
	for i := range p.list {
		if i == without {
			continue
		}
		for k, have := range parts(&p.list[i].parts) {
			if have <= 0 {
				continue
			}
			list = append(list, point{
				have, math.Hypot(partNoise[k], partShare*float64(p.list[i].took()/have)),
				func(f *step.Figures) (unit.Span, error) {
					g, err := step.NewGPU(p.m, f)
					if err != nil {
						return 0, err
					}
					x, err := p.ready[i].Parts(g)
					return max(parts(&x)[k], 1e-6), err
				},
			})
		}
	}
	return list
}

func (p *partsProblem) solve(without int, start *step.Figures, held *[len(step.Figures{})]bool) (*step.Figures, error) {
	return solve(p.points(without), start, func(i int) bool { return p.moves(i) && !held[i] })
}

// leftOut is the mean error of steps, each predicted by figures that were fitted to the other steps, and that of their
// parts; into gets the predictions.
func (p *partsProblem) leftOut(start *step.Figures, held *[len(step.Figures{})]bool,
	into []MeasuredStep,
) (mean, byPart float64, err error) {
	n := float64(len(p.list))
	for i := range p.list {
		f, err := p.solve(i, start, held)
		if err != nil {
			return 0, 0, err
		}
		t, off, err := p.whole(i, f)
		if err != nil {
			return 0, 0, err
		}
		if into != nil {
			into[i].LeftOut = float64(t) * 1e6
		}
		mean += math.Abs(float64(t/p.list[i].took())-1) / n
		byPart += off / n
	}
	return mean, byPart, nil
}
