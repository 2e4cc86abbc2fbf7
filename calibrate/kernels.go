package calibrate

import (
	"fmt"
	"math"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Predicted is a time that was measured, and what is predicted of it: by the former figures, by the fitted ones, and by
// those that were fitted without it.
type Predicted struct {
	Name    string    `json:"name"`
	Took    unit.Span `json:"measured_s"`
	Before  unit.Span `json:"before_s"`
	After   unit.Span `json:"after_s"`
	LeftOut unit.Span `json:"left_out_s"`
}

// MeanErrors are those of what was predicted, as shares.
type MeanErrors struct {
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	LeftOut float64 `json:"left_out"`
}

// Kernel is one kernel that was measured on a GPU alone: a product, or a stream of bytes through its memory.
type Kernel struct {
	Predicted
	MHz   int     `json:"sm_mhz,omitempty"`
	Watts float64 `json:"watts,omitempty"`
	Rate  string  `json:"rate"`

	task      workload.Task
	precision workload.Precision
}

// NewProduct is a product of an m×k by a k×n matrix, of bfloat16 or f8e4m3.
func NewProduct(m, n, k int, dtype string, micros float64) Kernel {
	x := Kernel{Predicted: Predicted{Name: fmt.Sprintf("%dx%dx%d %s", m, n, k, dtype), Took: unit.Micros(micros).Span()}}
	if x.precision = workload.BF16; dtype == "f8e4m3" {
		x.precision = workload.FP8
	}
	x.task = workload.Task{Kind: workload.Product, M: float64(m), N: float64(n), K: float64(k), Count: 1, Starts: 1}
	x.task.Flops = 2 * x.task.M * x.task.N * x.task.K
	return x
}

// NewCopy is a copy of bytes within the GPU's memory.
func NewCopy(size unit.Bytes, micros float64) Kernel {
	return Kernel{
		Predicted: Predicted{Name: fmt.Sprintf("memory, copy of %v", size), Took: unit.Micros(micros).Span()},
		precision: workload.BF16,
		task:      workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * size), Starts: 1},
	}
}

// KernelFit is what was measured of GPUs, and the figures of steps that it pins down.
type KernelFit struct {
	Model   string   `json:"model"`
	GPUs    int      `json:"gpus"` // that were measured; times are their medians
	Kernels []Kernel `json:"kernels"`
	Moved   []Moved  `json:"figures"`
	// Kept says that these figures are in the calibration.
	Kept bool `json:"kept"`
	MeanErrors
}

// How far a product may be off its figures, and a stream: kernels of a framework reach less of the memory's rate than a
// copy.
const (
	productNoise = 0.04
	streamNoise  = 0.06
)

// Kernels fits the figures of steps to kernels of one GPU, from those in use so far and held to them as firmly as they
// are known.
func Kernels(m hardware.GPUModel, list []Kernel, start *step.Figures) (*KernelFit, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("no kernel of %s was measured", m.Title)
	}
	if _, err := step.NewGPU(m, start); err != nil {
		return nil, err
	}
	x := &KernelFit{Model: m.Title, Kernels: slices.Clone(list)}
	p := &problem{start: start}
	for i := range p.moves {
		p.moves[i] = step.Kernels(i) && step.Touches(i, m)
	}
	for i := range x.Kernels {
		k := &x.Kernels[i]
		if !(k.Took > 0) {
			return nil, fmt.Errorf("%s of %s took %v; expected a time above 0", k.Name, m.Title, k.Took)
		}
		noise := productNoise
		if k.task.Kind == workload.Stream {
			noise = streamNoise
		}
		p.points = append(p.points, point{&k.Predicted, noise, func(f *step.Figures) unit.Span {
			g, _ := step.NewGPU(m, f) // by which figures it is priced is no matter for that
			return g.Time(&k.task, k.precision)
		}})
	}
	x.Moved, x.MeanErrors = p.fit()
	return x, nil
}

// point is a kernel that was measured, how far it may be off right figures, and what predicts it.
type point struct {
	*Predicted
	noise   float64
	predict func(*step.Figures) unit.Span
}

// problem is what the figures of one GPU are fitted to.
type problem struct {
	points []point
	start  *step.Figures
	moves  [len(step.Figures{})]bool // the figures that may move
}

// fit is the figures that moved, and the errors of what is predicted by the former figures, by the fitted ones, and of
// every kernel by those that were fitted without it.
func (p *problem) fit() (list []Moved, mean MeanErrors) {
	f := p.solve(-1)
	list = []Moved{}
	for i := range f {
		if f[i] = round(f[i]); math.Abs(f[i]/p.start[i]-1) <= moved || !p.moves[i] {
			f[i] = p.start[i]
			continue
		}
		unit, _, _ := step.Range(i)
		low, high := p.bounds(f, i)
		list = append(list, Moved{cluster.StepFigure + step.Name(i), unit, p.start[i], f[i], round(low), round(high)})
	}
	for i, x := range p.points {
		for _, by := range []struct {
			f    *step.Figures
			into *unit.Span
			sum  *float64
		}{{p.start, &x.Before, &mean.Before}, {f, &x.After, &mean.After}, {p.solve(i), &x.LeftOut, &mean.LeftOut}} {
			*by.into = x.predict(by.f)
			*by.sum += math.Abs(float64(*by.into/x.Took)-1) / float64(len(p.points))
		}
	}
	return list, mean
}

// solve is least squares in logarithms, without a kernel (-1: with all), worked out anew from where it got to: what limits a product
// changes as figures move. Figures are held to where they start as firmly as they are known; only those that may move
// do.
func (p *problem) solve(without int) *step.Figures {
	f := *p.start
	const nudge, rounds = 0.02, 6
	for range rounds {
		n := len(f)
		a, b := make([][]float64, n), make([]float64, n)
		for i := range a {
			a[i] = make([]float64, n)
			firm := 1 / (step.Doubt(i) * step.Doubt(i))
			a[i][i] = firm
			if f[i] > 0 && p.start[i] > 0 {
				b[i] = -firm * math.Log(f[i]/p.start[i])
			}
		}
		for i, k := range p.points {
			if i == without {
				continue
			}
			base := k.predict(&f)
			off, moves := math.Log(float64(base/k.Took)), make([]float64, n)
			for i := range f {
				if p.moves[i] && f[i] > 0 {
					g := f
					g[i] *= 1 + nudge
					moves[i] = math.Log(float64(k.predict(&g)/base)) / math.Log(1+nudge)
				}
			}
			w := 1 / (k.noise * k.noise)
			for i, mi := range moves {
				if mi == 0 {
					continue
				}
				b[i] -= w * mi * off
				for j, mj := range moves {
					a[i][j] += w * mi * mj
				}
			}
		}
		for i, move := range Solve(a, b) {
			if p.moves[i] {
				_, lo, hi := step.Range(i)
				f[i] = min(hi, max(lo, f[i]*math.Exp(min(0.5, max(-0.5, move)))))
			}
		}
	}
	return &f
}

// worse is how much the mean error of what was measured grows (in logarithms) at the ends of a figure's range.
const worse = 0.005

// bounds are how far a figure may go down and up until the mean error has grown by more than a little.
func (p *problem) bounds(f *step.Figures, i int) (low, high float64) {
	loss := func(v float64) float64 {
		g, sum := *f, 0.0
		g[i] = v
		for _, k := range p.points {
			sum += math.Abs(math.Log(float64(k.predict(&g)/k.Took))) / float64(len(p.points))
		}
		return sum
	}
	_, lo, hi := step.Range(i)
	base := loss(f[i])
	find := func(end float64) float64 {
		in, out := f[i], end
		for range 24 {
			if mid := (in + out) / 2; loss(mid)-base < worse {
				in = mid
			} else {
				out = mid
			}
		}
		return in
	}
	return find(lo), find(hi)
}

// KernelBar is the factor that a product, or a stream through memory, of a GPU nobody measured is expected within: two
// standard deviations of what is known of its figure and of kernels around it.
func KernelBar(product bool) float64 {
	figure, noise := "hopper.ceiling", productNoise
	if !product {
		figure, noise = "hopper.mem_share", streamNoise
	}
	for i := range (step.Figures{}) {
		if step.Name(i) == figure {
			return math.Exp(2 * math.Hypot(step.Doubt(i), noise))
		}
	}
	return 1.5
}
