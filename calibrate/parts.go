package calibrate

import (
	"fmt"
	"math"
	"slices"

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
	g, err := step.NewGPU(m, start)
	if err != nil {
		return nil, err
	}
	c, err := hardware.Preset(m.Name, 1)
	if err != nil {
		return nil, err
	}
	l, err := nccl.Block(c, 1, 1)
	if err != nil {
		return nil, err
	}
	x := &PartsFit{Steps: slices.Clone(list)}
	p := newProblem(m, start, step.Steps)
	for i := range x.Steps {
		s := &x.Steps[i]
		ready := step.Prepare(s.job, step.NewFabric(c, l, s.job.Split, nccl.Newest))
		if _, err := ready.Parts(g); err != nil {
			return nil, err
		}
		p.items = append(p.items, s.item(func(f *step.Figures) [len(partNoise)]unit.Span {
			x, _ := ready.Parts(gpuBy(m, f)) // as by the figures before
			return parts(&x)
		}))
	}
	least := p.leftOut()
	for i, may := range p.moves { // one after the other: what is held changes what the others can do
		if !may {
			continue
		}
		p.moves[i] = false
		if off := p.leftOut(); off < least {
			least = off
		} else {
			p.moves[i] = true
		}
	}
	x.Moved, x.MeanErrors = p.fit()
	return x, nil
}

// item is the step with its parts that were seen; predict prices all of them.
func (s *MeasuredStep) item(predict func(*step.Figures) [len(partNoise)]unit.Span) item {
	want := parts(&s.parts)
	x := item{Predicted: &s.Predicted, whole: func(f *step.Figures) (took unit.Span, off float64) {
		for k, have := range predict(f) {
			took += have
			off += math.Abs(float64((have - want[k]) / s.Took))
		}
		return took, off
	}}
	for k, have := range want {
		if have > 0 {
			x.parts = append(x.parts, point{
				have, math.Hypot(partNoise[k], partShare*float64(s.Took/have)),
				func(f *step.Figures) unit.Span { return max(predict(f)[k], 1e-6) },
			})
		}
	}
	return x
}
