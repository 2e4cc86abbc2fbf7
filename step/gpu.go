package step

import (
	"fmt"
	"math"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/sim"
	"busbar/workload"
)

// cores is the number of streaming multiprocessors, which products are cut for.
//
// Sources: NVIDIA's architecture papers of V100 (2017), A100 (2020), H100 (2022), Blackwell
// (2024) and of the Ada and Ampere cards (2022, 2020).
var cores = map[string]float64{
	"v100-16": 80, "v100-32": 80, "v100-pcie-16": 80, "v100-pcie-32": 80, "a100-40": 108, "a100-80": 108, "a100-pcie-40": 108, "a100-pcie-80": 108,
	"h100": 132, "h100-pcie": 114, "h100-nvl": 132, "h200": 132, "gh200": 132, "h800": 132, "b200": 148, "gb200": 148, "b300": 148, "gb300": 148,
	"a10": 72, "a40": 84, "l4": 58, "l40": 142, "l40s": 142, "rtx-6000-ada": 142, "rtx-a6000": 84, "rtx-3090": 82, "rtx-4090": 128, "t4": 40,
}

// GPU prices tasks.
type GPU struct {
	Model hardware.GPUModel
	gen   sim.Gen
	cores float64
	f     *Figures
}

// NewGPU is a GPU of the catalogue.
func NewGPU(m hardware.GPUModel, f *Figures) (*GPU, error) {
	if m.Vendor != "nvidia" {
		return nil, fmt.Errorf("%s: the arithmetic of %s GPUs is not modelled", m.Title, m.Vendor)
	}
	g := &GPU{Model: m, gen: sim.GenOf(m.SM), f: f, cores: cores[m.Name]}
	if g.cores == 0 {
		g.cores = 108
	}
	if m.HBM <= 0 {
		return nil, fmt.Errorf("%s: the rate of its memory is unknown", m.Title)
	}
	return g, nil
}

// peak is the dense rate of products in a precision, in FLOP/s.
func (g *GPU) peak(p workload.Precision) float64 {
	want := []cluster.Dtype{cluster.BF16, cluster.FP16, cluster.FP32}
	switch p {
	case workload.FP16, workload.AMPH:
		want = []cluster.Dtype{cluster.FP16, cluster.FP32}
	case workload.TF32:
		want = []cluster.Dtype{cluster.TF32, cluster.FP32}
	case workload.FP32:
		want = []cluster.Dtype{cluster.FP32}
	case workload.FP8:
		want = []cluster.Dtype{cluster.FP8, cluster.BF16, cluster.FP16, cluster.FP32}
	}
	for _, d := range want {
		if v := g.Model.Peak[d]; v > 0 {
			return float64(v)
		}
	}
	return 1e12
}

// bandwidth is that of memory, in bytes/s, as streams reach it.
func (g *GPU) bandwidth() float64 { return float64(g.Model.HBM) * g.f.gen(g.gen, MemShare) }

// plainCeiling is what products in float32 reach of the peak without tensor cores.
const plainCeiling = 0.9

// tiles are the pieces that libraries cut products into, and the share of the rate that
// each reaches: small ones read their inputs more often.
var tiles = []struct{ m, n, share float64 }{{128, 256, 1}, {256, 128, 1}, {128, 128, 0.95}, {128, 64, 0.8}, {64, 64, 0.6}}

// Seconds is the time of a task on the GPU in a precision, without its start.
func (g *GPU) Seconds(t *workload.Task, p workload.Precision) float64 {
	switch t.Kind {
	case workload.Product:
		return g.product(t, p)
	case workload.Score:
		share := ScoreRate
		if t.Back {
			share = ScoreBack
		}
		if p == workload.FP8 {
			p = workload.BF16
		}
		rate := g.peak(p) * g.f.gen(g.gen, share)
		// Few heads leave cores idle, short sequences and heads the tensor cores.
		blocks := t.Count * math.Ceil(t.M/128)
		rate *= waves(blocks, g.cores) * t.K / (t.K + 16) * t.N / (t.N + 256)
		return t.Flops/rate + g.gap(t)
	}
	return t.Bytes/g.bandwidth() + g.gap(t)
}

// product is the time of matrix products: the best cut of those that libraries have, in
// waves over the cores, or what their bytes take.
func (g *GPU) product(t *workload.Task, p workload.Precision) float64 {
	ceiling := g.f.gen(g.gen, Ceiling)
	width := p.Width()
	if p == workload.FP8 {
		ceiling *= g.f[Fp8Share]
		width = 1
	}
	if p == workload.FP32 { // by the plain cores, which no power limit slows
		ceiling = plainCeiling
	}
	best := math.Inf(1)
	for _, x := range tiles {
		n := t.Count * math.Ceil(t.M/x.m) * math.Ceil(t.N/x.n)
		work := 2 * n * x.m * x.n * t.K // the edges are computed too
		best = min(best, work/(x.share*waves(n, g.cores)))
	}
	rate := g.peak(p) * ceiling * t.K / (t.K + g.f[Prologue])
	bytes := t.Count * (t.M*t.K + t.K*t.N + t.M*t.N) * width
	return max(best/rate, bytes/g.bandwidth()) + g.gap(t)
}

// waves is the share of the cores that pieces keep busy: the last wave is not full. Pieces
// of different speed and split depths soften it.
func waves(pieces, cores float64) float64 {
	w := pieces / cores
	if w <= 0 {
		return 1
	}
	full := w / math.Ceil(w)
	if w > 1 {
		full = (full + 2) / 3
	}
	return full
}

func (g *GPU) gap(t *workload.Task) float64 { return t.Starts * g.f[Gap] * 1e-6 }

// Run is the time of tasks one after the other: that of the GPU, or that of the host which
// starts them where it is slower.
func (g *GPU) Run(list []workload.Task, j *workload.Job) float64 {
	gpu, starts := 0.0, 0.0
	for i := range list {
		t := g.Seconds(&list[i], j.Precision)
		if j.Framework != workload.Fused {
			switch list[i].Kind {
			case workload.Stream:
				t *= g.f[Loose]
			case workload.Score:
				t *= g.f[LooseScore]
			}
		}
		gpu += t
		starts += list[i].Starts
	}
	each := g.f[FusedStart]
	if j.Framework == workload.Eager {
		each = g.f[EagerStart]
	}
	return max(gpu, starts*each*1e-6)
}
