package step

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Change is one thing that could be done about a step's time.
type Change struct {
	Text    string  `json:"text"`
	Setting string  `json:"setting"`            // as a flag of busbar step, or what to buy
	Gain    float64 `json:"gain"`               // of the throughput: 0.1 is a tenth more tokens per second
	Buy     bool    `json:"purchase,omitempty"` // it is bought, not set
}

// least is the gain below which a change is not worth a line.
const least = 0.02

// Changes tries, one by one, settings and purchases that could make the job faster and leave the
// reserve of the GPU's memory free, and returns those that help, the best first. Networks are
// tried where they are asked for and the step waits for them: each takes as long as the job itself.
func (p *Prepared) Changes(g *GPU, r *Result, networks bool) ([]Change, error) {
	own := *g
	own.Model.Memory = Room(g.Model.Memory, Reserve).Bytes()
	return p.ChangesOver(&own, r, networks, least)
}

// ChangesOver is the same with another share of the throughput that a change must gain, and may take all of the GPU's
// memory. Where the job itself takes more, what needs no more than it does is a change all the same.
func (p *Prepared) ChangesOver(g *GPU, r *Result, networks bool, least float64) ([]Change, error) {
	var list []Change
	have := unit.Volume(g.Model.Memory)
	if now := r.Memory.Total(); now <= have/(1-Reserve) {
		have = max(have, now)
	}
	try := func(c Change, f *Fabric, j *workload.Job) error {
		if j.Check() != nil || j.Framework != nil && !j.Framework.Runs(j) {
			return nil
		}
		x, err := Prepare(j, f).Price(g)
		if err != nil {
			return err
		}
		if x.Memory.Total() > have {
			return nil // what does not fit is no help; Limit says what would
		}
		if c.Gain = x.TokensPerSecond()/r.TokensPerSecond() - 1; c.Gain >= least {
			if p.j.Split.ZeRO == 0 && j.Split.ZeRO == 1 {
				c.Text = shardsUpdate(r, x)
			}
			c.inWords(j)
			list = append(list, c)
		}
		return nil
	}
	for _, s := range p.settings() {
		if r.Ranks > mostTried && s.job.Split.ZeRO != p.j.Split.ZeRO {
			continue
		}
		if err := try(s.Change, p.f.With(s.job.Split), &s.job); err != nil {
			return nil, err
		}
	}
	if wait, _ := p.f.NetworkWait(r); wait > unit.Span(least)*r.Step && r.Ranks <= mostTried {
		wirings := Wirings(p.f.c, p.f.layout, p.f.Env)
		if networks {
			wirings = append(wirings, p.networks()...)
		}
		for _, w := range wirings {
			j := *p.j
			if j.Rack = w.Rack; w.Rack > 0 && !j.Hooked() {
				continue
			}
			// NCCL_ALGO may leave a collective of the job without an algorithm.
			if err := try(w.Change, w.On(p.f), &j); err != nil && w.Buy {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Change) int {
		switch {
		case a.Gain > b.Gain:
			return -1
		case a.Gain < b.Gain:
			return 1
		}
		return 0
	})
	return list, nil
}

type setting struct {
	Change
	job workload.Job
}

// Padding is the setting that pads a vocabulary.
const Padding = "--padded"

// settings are jobs that differ in one thing. What changes the numbers that are computed
// (precision, the global batch) is not among them.
func (p *Prepared) settings() []setting {
	var list []setting
	add := func(flag, text string, set func(j *workload.Job)) {
		j := *p.j
		set(&j)
		list = append(list, setting{Change{Text: text, Setting: flag}, j})
	}
	j, s := p.j, p.j.Split
	if j.Kernels == workload.Eager {
		add("--kernels compiled", "torch.compile fuses the operations between matrix products",
			func(j *workload.Job) { j.Kernels = workload.Compiled })
		if v := j.Model.Dims.Vocab; v%8 != 0 && !j.Padded {
			add(Padding, fmt.Sprintf("pad the vocabulary of %d to %d: rows that are not a multiple of 16 bytes miss the "+
				"full tensor-core rate", v, (v+63)/64*64), func(j *workload.Job) { j.Padded = true })
		}
	}
	if j.Unfused {
		add("without --unfused", "fused attention (FlashAttention)", func(j *workload.Job) { j.Unfused = false })
	}
	if j.Sync {
		add("without --sync", "overlap gradient reduction with the backward pass", func(j *workload.Job) { j.Sync = false })
	}
	lighter := map[workload.Recompute][]workload.Recompute{
		workload.Full: {workload.None, workload.Selective}, workload.Selective: {workload.None},
	}
	for _, m := range lighter[j.Recompute] {
		add("--recompute "+string(m), "keep more activations: there is memory for them",
			func(j *workload.Job) { j.Recompute = m })
	}
	if j.Micros() > 1 {
		add(fmt.Sprintf("--micro-batch %d", 2*j.MicroBatch),
			"larger micro-batch: larger matrix products, fewer kernel launches", func(j *workload.Job) { j.MicroBatch *= 2 })
	}
	if j.MicroBatch%2 == 0 && s.PP > 1 {
		add(fmt.Sprintf("--micro-batch %d", j.MicroBatch/2), "smaller micro-batch: more micro-batches fill the pipeline",
			func(j *workload.Job) { j.MicroBatch /= 2 })
	}
	if s.PP > 1 && s.Chunks <= 1 && j.Schedule == "" {
		add("vpp=2 in --parallel", "two virtual stages per rank (interleaved schedule) halve the pipeline bubble",
			func(j *workload.Job) { j.Split.Chunks = 2 })
		add("--schedule zero-bubble", "weight gradients fill the pipeline bubble",
			func(j *workload.Job) { j.Schedule = pipeline.ZeroBubble })
	}
	if s.TP > 1 && !s.SeqParallel {
		add("sp=1 in --parallel", "sequence parallelism shards the operations between tensor-parallel products and "+
			"overlaps half of their traffic", func(j *workload.Job) { j.Split.SeqParallel = true })
	}
	if s.DP > 1 && s.ZeRO == 0 {
		add("zero=1 in --parallel", "", func(j *workload.Job) { j.Split.ZeRO = 1 })
	}
	if s.DP > 1 && s.ZeRO == 3 {
		add("zero=1 in --parallel", "keep parameters unsharded: there is memory for them",
			func(j *workload.Job) { j.Split.ZeRO = 1 })
	}
	if node := p.f.nodeRanks(); s.ZeRO == 3 && s.PP == 1 && s.Shard == s.DP*s.CP && node > 1 && node < s.Shard*s.TP &&
		node%s.TP == 0 && s.Shard%(node/s.TP) == 0 {
		add(shardSetting, "shard inside each node: parameters stay off the network, gradients cross it once",
			func(j *workload.Job) { j.Split.Shard = node / s.TP })
	}
	if l := p.f.leaves; s.ZeRO == 3 && s.Shard == s.Ranks() && l.oversubscribed {
		if n := l.rack(p.f.layout); n > 1 && n < s.DP {
			add(fmt.Sprintf("zero=3,shard=%d in --parallel", n),
				"shard inside each rack: parameters stay below a leaf switch, gradients go up once",
				func(j *workload.Job) { j.Split.Shard = n })
		}
	}
	if s.DP > 1 && j.GradWidth() > 2 && !j.Compresses() {
		add("--compress bf16", "reduce gradients in bfloat16", func(j *workload.Job) { j.Compress = workload.Wire("bf16") })
	}
	return list
}

// mostTried is the number of ranks up to which other networks, and collectives that the job does not
// run now, are tried: each is as much work as the job itself.
const mostTried = 1 << 16

// networks are the fabric with one setting of NCCL, or with one of its layers twice as fast.
func (p *Prepared) networks() []Wiring {
	var list []Wiring
	add := func(c Change, cl *cluster.Cluster, env map[string]string) {
		list = append(list, Wiring{c, cl, p.f.layout, env, 0})
	}
	for _, x := range append(p.algorithms(),
		ncclSetting{"NCCL_NET_GDR_LEVEL", "SYS", "GPUDirect RDMA across sockets too, where the platform allows it"}) {
		if env := p.f.with(x); env != nil {
			add(Change{Text: x.text, Setting: x.String()}, p.f.c, env)
		}
	}
	for _, t := range Tiers() {
		if c, ok := Faster(p.f.c, 2, t); ok {
			add(Change{Text: t.String() + " twice as fast", Setting: t.String() + " × 2", Buy: true}, c, p.f.Env)
		}
	}
	if c, ok := hardware.WithGPUDirect(p.f.c, cluster.No, cluster.Yes); ok {
		add(Change{Text: "NICs with GPUDirect RDMA", Setting: "GPUDirect RDMA", Buy: true}, c, p.f.Env)
	}
	if c, ok := WithRoCE(p.f.c); ok {
		add(Change{Text: "RoCE on NICs and switches that have it", Setting: "RDMA instead of kernel sockets", Buy: true}, c,
			p.f.Env)
	}
	return list
}
