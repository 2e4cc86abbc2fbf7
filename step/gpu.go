package step

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// assumedCores is the number of streaming multiprocessors of a GPU of which it is not known: an A100's.
const assumedCores = 108

// GPU prices tasks.
type GPU struct {
	Model    hardware.GPUModel
	gen      sim.Gen
	cores    float64 // streaming multiprocessors, which products are cut for
	power    float64 // how many times the ceilings of its generation its power allows
	f        *Figures
	measured map[string]*measuredKind // by kind of jobs
}

// NewGPU is a GPU of the catalogue.
func NewGPU(m hardware.GPUModel, f *Figures) (*GPU, error) {
	if m.Vendor != "nvidia" && m.Vendor != "amd" {
		return nil, fmt.Errorf("%s: the arithmetic of %s GPUs is not modelled", m.Title, m.Vendor)
	}
	g := &GPU{Model: m, gen: genOf(m), f: f, cores: float64(cmp.Or(m.Multiprocessors, assumedCores))}
	if m.HBM <= 0 {
		return nil, fmt.Errorf("%s: the rate of its memory is unknown", m.Title)
	}
	g.power = powered(m, g.gen)
	return g, nil
}

// Peak is the dense rate of products in a precision as the data sheet has it.
func (g *GPU) Peak(p workload.Precision) unit.FLOPS {
	want := []cluster.Dtype{cluster.BF16, cluster.FP16, cluster.FP32}
	switch p {
	case workload.FP16, workload.AMPH:
		want = []cluster.Dtype{cluster.FP16, cluster.FP32}
	case workload.TF32:
		want = []cluster.Dtype{cluster.TF32, cluster.FP32}
	case workload.FP32:
		want = []cluster.Dtype{cluster.FP32}
	case workload.NVFP4:
		want = []cluster.Dtype{cluster.FP4, cluster.FP8, cluster.BF16, cluster.FP16, cluster.FP32}
	case workload.FP8, workload.FP8Current, workload.FP8Block, workload.MXFP8:
		want = []cluster.Dtype{cluster.FP8, cluster.BF16, cluster.FP16, cluster.FP32}
	}
	for _, d := range want {
		if v := g.Model.Peak[d]; v > 0 {
			return v
		}
	}
	return unit.TFLOPS
}

// bandwidth is that of memory, as streams reach it.
func (g *GPU) bandwidth() unit.Rate { return g.Model.HBM * unit.Rate(g.f.gen(g.gen, memShare)) }

// plainCeiling is what products in float32 reach of the peak without tensor cores.
const plainCeiling = 0.9

// tiles are the pieces that libraries cut products into, and the share of the rate that
// each reaches: small ones read their inputs more often.
var tiles = []struct{ m, n, share float64 }{
	{128, 256, 1}, {256, 128, 1}, {128, 128, 0.95}, {128, 64, 0.8}, {64, 64, 0.6},
}

// Time is that of a task on the GPU in a precision, without its start.
func (g *GPU) Time(t *workload.Task, p workload.Precision) unit.Span {
	switch t.Kind {
	case workload.Product:
		return g.product(t, p)
	case workload.Score:
		return g.score(t, p)
	case workload.Chunks:
		peak := min(scanPeak, float64(g.Peak(workload.BF16)))
		return unit.Span(t.Flops/(peak*g.f.common(scanRate))) + t.Bytes.At(g.bandwidth()) + g.gap(t)
	}
	return t.Bytes.At(g.bandwidth()) + g.gap(t)
}

// scanPeak is the peak of H100: of what Blackwell has beyond it kernels in Triton, as Mamba's are, take nothing for
// their small products (hybrids on Blackwell were predicted to take 0.65 to 0.9 of what they do).
const scanPeak = 989.4e12

// exponents is the size of a head at which the exponentials of attention take as long as its products: the tensor
// cores' peak over four operations an element and over what the special function units give (16 a core and clock, of
// about 1.75 GHz; NVIDIA's architecture papers): 16 units on V100, 32 on A100, 64 on H100, 128 on B200. Shah et al.
// 2024 (FlashAttention-3) name the same limit. On Blackwell kernels compute about half of them by polynomials elsewhere
// (Zadouri et al. 2026, FlashAttention-4), and Blackwell Ultra has twice the special function units (NVIDIA 2025,
// Inside NVIDIA Blackwell Ultra).
func (g *GPU) exponents() float64 {
	n := float64(g.Peak(workload.BF16)) / (4 * 16 * 1.75e9 * g.cores)
	if g.gen == sim.Blackwell {
		n /= 2
	}
	if g.Model.SM == 103 {
		n /= 2
	}
	return n
}

// score is the time of attention in one kernel: its arithmetic, and the reading and writing
// at its beginning and end. Heads are padded to 32.
func (g *GPU) score(t *workload.Task, p workload.Precision) unit.Span {
	share, moved := g.f.gen(g.gen, scoreRate), 2*t.M+2*t.N
	if t.Back { // the gradients too, and that of the queries is summed in float32
		share, moved = g.f.gen(g.gen, scoreBack), 6*t.M+6*t.N
	}
	width, emulated, exponents := p.Width(), 1.0, g.exponents()
	switch {
	case p.Low() && t.Narrow && g.gen == sim.Blackwell: // exponentials take as long; others gain nothing
		share *= g.f.common(fp8Share)
		exponents *= float64(g.Peak(workload.FP8) / g.Peak(workload.BF16))
		p = workload.FP8
	case p.Low():
		p = workload.BF16
	// by three products in TF32, in Ampere's kernels (PyTorch's memory-efficient ones)
	case width == 4 && g.gen >= sim.Ampere:
		p, emulated = workload.TF32, 3
		if g.gen >= sim.Hopper {
			emulated *= secondScore
		}
	}
	edge := 1.0
	if t.Recent && g.gen == sim.Hopper {
		share = recentScore
		if t.Back {
			share = recentBack
		}
		if t.Causal {
			edge += recentEdge / t.N
		}
	}
	switch { // before Hopper they are the last word
	case t.Early && g.gen >= sim.Hopper:
		share /= g.f.common(looseScore)
	case t.Second && g.gen == sim.Hopper:
		share /= secondScore
	}
	if math.Mod(t.K, 8) != 0 {
		share *= oddHead
	}
	k := math.Ceil(t.K/32) * 32
	rate := float64(g.Peak(p)) * min(share*g.power, max(share, mostReached)) * k / (k + exponents) * t.K / k
	rate *= waves(t.Count*math.Ceil(t.M/128), g.cores) / emulated
	return unit.Span(t.Flops*edge/rate) + unit.Volume(t.Count*moved*t.K*p.Width()).At(g.bandwidth()) + g.gap(t)
}

// What PyTorch 2.9 and later reach on Hopper, by cuBLAS 12.9 and 13, whose blocks of threads begin a tile while they
// end another, and cuDNN 9's causal attention: parts of the peak, microseconds of a tile, and tokens whose scores with
// later ones are computed too. Of steps and products alone on one H200 (testdata/h200.json; kernels of seven steps of
// 0.2 to 2.6 billion parameters, 2026-11-19): products of 37 shapes within 4% in the median. H100's of gemm_perf (see
// Guess) reach 0.77 below a TFLOP, after which power slows them: where matrices are as wide as in models of 7 billion
// parameters, little between products waits for memory, and the ceiling of all products holds.
const (
	recentProduct, recentPrologue       = 0.8, 1.0
	powerWidth                          = 4096
	recentScore, recentBack, recentEdge = 1.0, 0.9, 300.0
)

// secondScore is how much longer attention takes on Hopper in FlashAttention 2 than in kernels written for it: 1.5 to 2
// times forward, 1.5 to 1.75 backward (Shah et al. 2024, FlashAttention-3).
const secondScore = 1.6

// oddHead is what attention reaches where heads are no multiple of eight. Measured: heads of
// 100 against 96, PyTorch 2.11 on one H200, 2026-11-15 (testdata/h200.json).
const oddHead = 0.35

// misaligned is what products of 16-bit numbers reach where the rows of their matrices are a
// multiple of two or four elements, and of one: wide loads need 16 bytes. By generation.
//
// Hopper: measured on one H200 with PyTorch 2.11 and cuBLAS 13 (testdata/h200.json): 270 and
// 97 to 147 TFLOP/s against 790. Ampere: inferred from the quarter that padding its vocabulary of
// 50,257 gained GPT-2 on A100s (A. Karpathy, nanoGPT, 2023). Volta is taken as Ampere, Blackwell as Hopper.
var misaligned = [...][2]float64{{0.75, 0.5}, {0.75, 0.5}, {0.34, 0.15}, {0.34, 0.15}, {0.75, 0.5}}

// aligned is what the rows of a product leave of the rate.
func (g *GPU) aligned(t *workload.Task, p workload.Precision) float64 {
	m := misaligned[min(int(g.gen), len(misaligned)-1)]
	switch {
	case t.Rows == 0 || t.Rows >= 8 || p.Width() > 2:
		return 1
	case t.Rows >= 2:
		return m[0]
	}
	return m[1]
}

// product is the time of matrix products: the best cut of those that libraries have, in
// waves over the cores, or what their bytes take.
func (g *GPU) product(t *workload.Task, p workload.Precision) unit.Span {
	share, begun := g.f.gen(g.gen, ceiling), g.f.common(prologue)
	if t.Recent && g.gen == sim.Hopper {
		begun = recentPrologue
		if min(t.M, t.N, t.K) < powerWidth || t.Rows < 8 {
			share = recentProduct
		}
	}
	if t.Plain && p.Low() {
		p = workload.BF16
	}
	width, out := p.Operand(), max(p.Width(), t.Wide)
	switch {
	case p == workload.NVFP4:
		share *= g.f.common(fp4Share)
	case p == workload.FP8Block && g.gen == sim.Hopper:
		share *= g.f.common(fp8Share) * promoted
	case p.Low():
		share *= g.f.common(fp8Share)
	}
	// Blackwell Ultra has half more of them and hardly more power
	if p == workload.NVFP4 && g.Model.Peak[cluster.FP8] > 0 {
		share *= min(1, math.Sqrt(2*float64(g.Model.Peak[cluster.FP8]/g.Model.Peak[cluster.FP4])))
	}
	share = min(share*g.power, max(share, mostReached))
	if p == workload.FP32 { // by the plain cores, which no power limit slows
		share = plainCeiling
	}
	best := math.Inf(1)
	for _, x := range tiles {
		n := t.Count * math.Ceil(t.M/x.m) * math.Ceil(t.N/x.n)
		work := 2 * n * x.m * x.n * t.K // the edges are computed too
		best = min(best, work/(x.share*waves(n, g.cores)))
	}
	rate := float64(g.Peak(p)) * share * g.aligned(t, p)
	// The beginning and end of a tile take a time that no core computes in, counted as depth.
	depth := begun * 1e-6 * rate / g.cores / (2 * tiles[0].m * tiles[0].n)
	rate *= t.K / (t.K + depth)
	bytes := unit.Volume(t.Count * ((t.M*t.K/max(t.Taps, 1)+t.K*t.N)*width + t.M*t.N*out))
	return max(unit.Span(best/rate), bytes.At(g.bandwidth())) + g.gap(t)
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

func (g *GPU) gap(t *workload.Task) unit.Span { return unit.Span(t.Starts * g.f.common(gap) * 1e-6) }

// within is the time of a task in a job: frameworks differ in what they do between products.
func (g *GPU) within(t *workload.Task, j *workload.Job) unit.Span {
	took := g.Time(t, j.Precision)
	switch {
	case t.Kind != workload.Stream:
	case j.Kernels == workload.Compiled:
		took *= unit.Span(g.f.common(loose))
	case j.Kernels == workload.Eager:
		longer := g.f.common(eagerBetween)
		if t.Pieces {
			longer *= g.f.common(eagerPieces)
		}
		took += (took - g.gap(t)) * unit.Span(longer-1)
	}
	return took
}

// Run is the time of tasks one after the other: that of the GPU, or that of the host which
// starts them where it is slower.
func (g *GPU) Run(list []workload.Task, j *workload.Job) unit.Span {
	took, _ := g.runWith(list, j, 0, 0)
	return took
}

// runWith is Run with collectives between the tasks, which take so long in all and cost the host so many starts, and by
// how much the host is behind.
func (g *GPU) runWith(list []workload.Task, j *workload.Job, starts float64,
	traffic unit.Span,
) (took, behind unit.Span) {
	gpu, host := g.both(list, j, starts)
	gpu += traffic
	return max(gpu, host), max(0, host-gpu)
}

// both is what tasks take of the GPU, and of the host that starts them.
func (g *GPU) both(list []workload.Task, j *workload.Job, starts float64) (gpu, host unit.Span) {
	waits, routed := 0.0, 0.0
	for i := range list {
		gpu += g.within(&list[i], j)
		starts += list[i].Starts + list[i].Host
		waits += list[i].Waits
		if list[i].Routed {
			routed += list[i].Starts + list[i].Host*0.75
		}
	}
	each := g.f.common(fusedStart)
	if j.Kernels == workload.Eager || j.Kernels == workload.Mixed {
		each = g.f.common(eagerStart)
	}
	if j.Graphs {
		if routed == 0 || j.Recipe.Graphs == workload.GraphWhole {
			return gpu, 0
		}
		starts = g.ungraphed(j, starts, routed)
	}
	return gpu + unit.Span(waits*idle*each*1e-6), unit.Span(starts * each * 1e-6)
}

// collectiveStarts is how many kernels' starts of the host a collective costs that a function of autograd's makes,
// what it puts out allocated: nanotron's layers of 16 and of 32 take 4.4 ms of it for ten of them and all else
// (Ultra-Scale Playbook's runs with micro-batches of one sequence). tensorStarts is the same of Megatron's, whose
// layers take 3.3 ms of the host without tensor parallelism and 3.5 with six sums (vTrain, one node).
const (
	collectiveStarts = 12
	tensorStarts     = 3
)

// idle is how many starts of kernels the GPU has nothing to do after the host waited for it: to learn of it, and to
// start the next.
const idle = 3

// ungraphed is the share of the host's work in a layer with experts that graphs do not lift: what depends on how many
// tokens an expert gets is started one by one. Recipes for Grace's GPUs have attention, the router and what prepares
// tokens in graphs, most of those for others only the router (Megatron-Bridge v0.3.0 scripts/performance/configs,
// cuda_graph_scope).
func (g *GPU) ungraphed(j *workload.Job, starts, routed float64) float64 {
	scope := j.Recipe.Graphs
	if scope == workload.GraphAttention || scope != workload.GraphRouter && g.onGrace() {
		return routed
	}
	return 0.85 * starts
}

func (g *GPU) onGrace() bool {
	return g.gen == sim.Blackwell && strings.HasSuffix(g.Model.Form, "chip")
}

// promoted is what products scaled by tiles of 128 reach on Hopper, whose tensor cores do not scale: sums are brought
// to other registers every 128 (DeepSeek-AI 2024, DeepSeek-V3, section 3.3.2).
const promoted = 0.85

// GPUOf is the GPU of the catalogue that the first rank of a layout runs on, with as much memory as programs get.
func GPUOf(c *cluster.Cluster, l nccl.Layout) (hardware.GPUModel, error) {
	d := &c.TypeOf(l[0].Host).Devices[l[0].GPU]
	name := strings.TrimSpace(d.Model.Value)
	if name == "" {
		return hardware.GPUModel{}, fmt.Errorf("%s does not say which GPUs it has; name them with --gpu", c.Name)
	}
	m, ok := hardware.GPUByName(name)
	if !ok {
		return m, fmt.Errorf("GPU %q is not in the catalogue (busbar list hardware lists it); name its like with --gpu", name)
	}
	if d.GPU != nil && d.GPU.Memory.Source == predict.AsGiven {
		m.Memory = d.GPU.Memory.Value
	}
	if d.GPU != nil && d.GPU.Limit.Known() {
		m.TDP, m.TDPSource = d.GPU.Limit.Value, d.GPU.Limit.Source
	}
	m.Memory = unit.Bytes(shown * float64(m.Memory))
	return m, nil
}

// SlowestGPU is the GPU that a job on a layout is priced by: where the layout has several models, that with the slowest
// products and the least memory of any, since every rank waits for all. note says so then.
func SlowestGPU(c *cluster.Cluster, l nccl.Layout) (slow hardware.GPUModel, note string, err error) {
	if slow, err = GPUOf(c, l); err != nil {
		return slow, "", err
	}
	seen := map[[2]int]bool{}
	names := []string{slow.Title}
	memory := slow.Memory
	for i, r := range l {
		key := [2]int{c.Hosts[r.Host].Type, r.GPU}
		if seen[key] {
			continue
		}
		seen[key] = true
		m, err := GPUOf(c, l[i:])
		if err != nil {
			return slow, "", err
		}
		memory = min(memory, m.Memory)
		if !slices.Contains(names, m.Title) {
			names = append(names, m.Title)
		}
		if m.Peak[cluster.BF16] < slow.Peak[cluster.BF16] ||
			m.Peak[cluster.BF16] == slow.Peak[cluster.BF16] && m.HBM < slow.HBM {
			slow = m
		}
	}
	if len(names) == 1 {
		return slow, "", nil
	}
	slow.Memory = memory
	return slow, fmt.Sprintf("GPUs differ (%s): all are taken for %s with %.0f GB, since every rank waits for the "+
		"slowest", strings.Join(names, ", "), slow.Title, float64(memory)/1e9), nil
}
