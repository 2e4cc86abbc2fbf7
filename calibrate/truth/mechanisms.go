package truth

import (
	"busbar.dev/hardware"
	"busbar.dev/step"
	"busbar.dev/workload"
)

// Mechanism is a part of how runs are read and priced that can be left out, to see what it is worth.
type Mechanism struct {
	Name, Meaning string
	// job takes it out of a run that was read, figures out of what the run is priced by, gpu out of what is known of its GPU.
	job     func(t *Training, j *workload.Job)
	figures func(f *step.Figures)
	gpu     func(m *hardware.GPUModel)
}

// Mechanisms are all that can be left out.
func Mechanisms() []Mechanism {
	return []Mechanism{
		{Name: "software", Meaning: "kernels, overlap and sharding by framework and year; without: as Megatron-LM of 2020", job: oldSoftware},
		{Name: "precision", Meaning: "kinds of 8 and 4 bits; without: fp8 for all of them", job: func(_ *Training, j *workload.Job) {
			if j.Precision.Low() {
				j.Precision = workload.FP8
			}
		}},
		{Name: "frozen", Meaning: "frozen weights of LoRA; without: all are trained", job: func(_ *Training, j *workload.Job) { j.LoRA = workload.LoRA{} }},
		{Name: "host", Meaning: "what the host takes to start kernels; without: nothing", job: func(_ *Training, j *workload.Job) { j.Graphs = true }},
		{Name: "graphs", Meaning: "kernels started as graphs; without: one by one", job: func(_ *Training, j *workload.Job) { j.Graphs = false }},
		{Name: "dispatch", Meaning: "tokens by kernels that send one once to a node; without: all-to-all, once to each expert", job: func(_ *Training, j *workload.Job) { j.Flex = false }},
		{Name: "hidden", Meaning: "tokens travel beside other micro-batches' computing; without: products wait", job: func(_ *Training, j *workload.Job) { j.HideExperts = false }},
		{Name: "capacity", Meaning: "experts with a fixed number of tokens; without: the host waits for their numbers", job: func(_ *Training, j *workload.Job) { j.Capacity = false }},
		{Name: "power", Meaning: "clocks by the power of a GPU; without: as the usual one of its generation", gpu: func(m *hardware.GPUModel) { m.TDP = 0 }},
		{Name: "attention", Meaning: "kernels of attention by year; without: the newest", job: func(_ *Training, j *workload.Job) { j.Early, j.Second, j.Unfused = false, false, false }},
		{Name: "sums", Meaning: "gradients summed as wide as the framework does; without: as wide as they are", job: func(_ *Training, j *workload.Job) { j.WideSums = false }},
		{Name: "buckets", Meaning: "buckets of gradients by framework; without: 25 MiB", job: func(_ *Training, j *workload.Job) { j.Bucket = 0 }},
		{Name: "late-gather", Meaning: "parameters gathered after the update where the framework does; without: beside the next step", job: func(_ *Training, j *workload.Job) { j.LateGather = false }},
		{Name: "fitting", Meaning: "recomputation where a run does not fit; without: none that is not stated", job: func(t *Training, j *workload.Job) {
			if t.Parallel.Recompute == "" {
				j.Recompute = workload.None
			}
		}},
		{Name: "folding", Meaning: "experts over tensor-parallel ranks; without: each cut among them", job: func(_ *Training, j *workload.Job) {
			if s := j.Split; (s.DP*s.CP)%max(s.EP, 1) == 0 {
				j.Split.ETP = s.TP
			}
		}},
		{Name: "scans", Meaning: "state-space layers; without: attention in their place", job: func(_ *Training, j *workload.Job) { j.Model = withoutScans(j.Model) }},
		{Name: "windows", Meaning: "windows of attention; without: all tokens before", job: func(_ *Training, j *workload.Job) { j.Model = withoutWindows(j.Model) }},
		{Name: "shapes", Meaning: "what tiles of products lose at their beginning and end; without: nothing", figures: step.WithoutTiles},
	}
}

// oldSoftware is how a run was priced whose software nobody knew.
func oldSoftware(t *Training, j *workload.Job) {
	j.Kernels, j.Unfused, j.Sync, j.Graphs = workload.Fused, true, true, false
	if t.Parallel.SeqParallel == nil {
		j.Split.SeqParallel = false
	}
	if t.Parallel.ZeRO == nil && t.Parallel.FSDP == nil {
		j.Split.ZeRO = 0
	}
}

func withoutScans(m *workload.Model) *workload.Model {
	return changed(m, func(p *workload.Part, m *workload.Model) {
		if p.Kind == workload.Scan {
			d := m.Dims
			*p = workload.Part{Name: p.Name, Kind: workload.Attention, Heads: d.Heads, KVHeads: d.KVHeads, HeadDim: max(d.HeadDim, 64), Causal: true, Cut: workload.ByOut}
		}
	})
}

func withoutWindows(m *workload.Model) *workload.Model {
	return changed(m, func(p *workload.Part, _ *workload.Model) { p.Window = 0 })
}

// changed is a model with parts changed, of its own.
func changed(m *workload.Model, change func(*workload.Part, *workload.Model)) *workload.Model {
	c := *m
	c.Blocks = make([]workload.Block, len(m.Blocks))
	for i := range m.Blocks {
		c.Blocks[i] = m.Blocks[i]
		c.Blocks[i].Parts = append([]workload.Part(nil), m.Blocks[i].Parts...)
		for k := range c.Blocks[i].Parts {
			change(&c.Blocks[i].Parts[k], m)
		}
	}
	return &c
}

// Without are runs that are read without a mechanism.
func Without(runs []*Training, m *Mechanism) []*Training {
	list := make([]*Training, len(runs))
	for i, t := range runs {
		c := *t
		c.without, c.Assumed = m, nil
		list[i] = &c
	}
	return list
}

// leaveOut takes the mechanism out of a job, where one is left out.
func (t *Training) leaveOut(j *workload.Job) {
	if t.without != nil && t.without.job != nil {
		t.without.job(t, j)
	}
}

// priced are the figures without the mechanism.
func (t *Training) priced(f *step.Figures) *step.Figures {
	if t.without == nil || t.without.figures == nil {
		return f
	}
	c := *f
	t.without.figures(&c)
	return &c
}
