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

// Predicted is a time that was measured, and what is predicted of it, in µs: by the former figures, by the fitted
// ones, and by those that were fitted without it.
type Predicted struct {
	Name    string  `json:"name"`
	Micros  float64 `json:"measured_us"`
	Before  float64 `json:"before_us"`
	After   float64 `json:"after_us"`
	LeftOut float64 `json:"left_out_us"`
}

// MeanErrors are those of what was predicted, as shares.
type MeanErrors struct {
	Before  float64 `json:"before"`
	After   float64 `json:"after"`
	LeftOut float64 `json:"left_out"`
}

// addErrors adds those of one of n predictions.
func (m *MeanErrors) addErrors(p *Predicted, n int) {
	off := func(us float64) float64 { return math.Abs(us/p.Micros-1) / float64(n) }
	m.Before, m.After, m.LeftOut = m.Before+off(p.Before), m.After+off(p.After), m.LeftOut+off(p.LeftOut)
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
	x := Kernel{Predicted: Predicted{Name: fmt.Sprintf("%dx%dx%d %s", m, n, k, dtype), Micros: micros}}
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
		Predicted: Predicted{Name: fmt.Sprintf("memory, copy of %v", size), Micros: micros}, precision: workload.BF16,
		task: workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * size), Starts: 1},
	}
}

// KernelFit is what was measured of GPUs, and the figures of steps that it pins down.
type KernelFit struct {
	Model   string   `json:"model"`
	GPUs    int      `json:"gpus"` // that were measured; times are their medians
	Kernels []Kernel `json:"kernels"`
	Moved   []Moved  `json:"figures"`
	// Kept says that these figures are in the calibration; where steps were measured, theirs are instead.
	Kept  bool      `json:"kept"`
	Steps *PartsFit `json:"steps,omitempty"`
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
	for _, k := range list {
		if !(k.Micros > 0) {
			return nil, fmt.Errorf("%s of %s took %v µs; expected a time above 0", k.Name, m.Title, k.Micros)
		}
	}
	x := &KernelFit{Model: m.Title, Kernels: slices.Clone(list), Moved: []Moved{}}
	f, err := solveKernels(m, list, start)
	if err != nil {
		return nil, err
	}
	for i := range f {
		f[i] = round(f[i])
		if math.Abs(f[i]/start[i]-1) <= moved || !step.Kernels(i) || !step.Touches(i, m) {
			f[i] = start[i]
			continue
		}
		unit, _, _ := step.Range(i)
		low, high := bounds(kernelPoints(m, list), f, i)
		x.Moved = append(x.Moved, Moved{cluster.StepFigure + step.Name(i), unit, start[i], f[i], round(low), round(high)})
	}
	for i := range x.Kernels {
		k := &x.Kernels[i]
		without, err := solveKernels(m, slices.Delete(slices.Clone(list), i, i+1), start)
		if err != nil {
			return nil, err
		}
		for by, into := range map[*step.Figures]*float64{start: &k.Before, f: &k.After, without: &k.LeftOut} {
			t, err := k.predicted(m, by)
			if err != nil {
				return nil, err
			}
			*into = float64(t) * 1e6
		}
		x.addErrors(&k.Predicted, len(list))
	}
	return x, nil
}

func (k *Kernel) predicted(m hardware.GPUModel, f *step.Figures) (unit.Span, error) {
	g, err := step.NewGPU(m, f)
	if err != nil {
		return 0, err
	}
	return g.Time(&k.task, k.precision), nil
}

func (k *Kernel) noise() float64 {
	if k.task.Kind == workload.Stream {
		return streamNoise
	}
	return productNoise
}

// point is a measured time with what predicts it, and how far it may be off right figures.
type point struct {
	measured unit.Span
	noise    float64
	predict  func(*step.Figures) (unit.Span, error)
}

// kernelPoints are those of kernels.
func kernelPoints(m hardware.GPUModel, list []Kernel) (all []point) {
	for i := range list {
		k := &list[i]
		all = append(all, point{
			unit.Span(k.Micros * 1e-6), k.noise(), func(f *step.Figures) (unit.Span, error) { return k.predicted(m, f) },
		})
	}
	return all
}

func solveKernels(m hardware.GPUModel, list []Kernel, start *step.Figures) (*step.Figures, error) {
	return solve(kernelPoints(m, list), start, func(i int) bool { return step.Kernels(i) && step.Touches(i, m) })
}

// solve is least squares in logarithms, worked out anew from where it got to: what limits a product changes as figures
// move. Figures are held to where they start as firmly as they are known; only those that may move do.
func solve(list []point, start *step.Figures, may func(i int) bool) (*step.Figures, error) {
	f := *start
	const nudge, rounds = 0.02, 6
	for range rounds {
		n := len(f)
		a, b := make([][]float64, n), make([]float64, n)
		for i := range a {
			a[i] = make([]float64, n)
			firm := 1 / (step.Doubt(i) * step.Doubt(i))
			a[i][i] = firm
			if f[i] > 0 && start[i] > 0 {
				b[i] = -firm * math.Log(f[i]/start[i])
			}
		}
		for _, k := range list {
			base, err := k.predict(&f)
			if err != nil {
				return nil, err
			}
			off, moves := math.Log(float64(base/k.measured)), make([]float64, n)
			for i := range f {
				if !may(i) || f[i] <= 0 {
					continue
				}
				g := f
				g[i] *= 1 + nudge
				t, err := k.predict(&g)
				if err != nil {
					return nil, err
				}
				moves[i] = math.Log(float64(t/base)) / math.Log(1+nudge)
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
		for i, move := range Gauss(a, b) {
			if may(i) {
				_, lo, hi := step.Range(i)
				f[i] = min(hi, max(lo, f[i]*math.Exp(min(0.5, max(-0.5, move)))))
			}
		}
	}
	return &f, nil
}

// Gauss solves a system of linear equations with a positive diagonal.
func Gauss(a [][]float64, b []float64) []float64 {
	n := len(b)
	for i := range n {
		best := i
		for r := i + 1; r < n; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[best][i]) {
				best = r
			}
		}
		a[i], a[best], b[i], b[best] = a[best], a[i], b[best], b[i]
		for r := i + 1; r < n; r++ {
			k := a[r][i] / a[i][i]
			for c := i; c < n; c++ {
				a[r][c] -= k * a[i][c]
			}
			b[r] -= k * b[i]
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = b[i]
		for c := i + 1; c < n; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

// worse is how much the mean error of what was measured grows (in logarithms) at the ends of a figure's range.
const worse = 0.005

// bounds are how far a figure may go down and up until the mean error has grown by more than a little.
func bounds(list []point, f *step.Figures, i int) (low, high float64) {
	loss := func(v float64) float64 {
		g, sum := *f, 0.0
		g[i] = v
		for _, k := range list {
			if t, err := k.predict(&g); err == nil {
				sum += math.Abs(math.Log(float64(t/k.measured))) / float64(len(list))
			}
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
