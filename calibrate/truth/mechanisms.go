package truth

import (
	"busbar.dev/hardware"
	"busbar.dev/workload"
)

// Mechanism is a part of how runs are read and priced that can be left out, to see what it is worth.
type Mechanism struct {
	Name, Meaning string
	// job takes it out of a run that was read, gpu out of what is known of its GPU.
	job func(t *Training, j *workload.Job)
	gpu func(m *hardware.GPUModel)
}

// Mechanisms are all that can be left out. Others had switches that moved no error of left-out clusters by more than half a point (docs/accuracy.md): they are
// facts of frameworks and models which other tests hold.
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
		{Name: "buckets", Meaning: "buckets of gradients by framework; without: 25 MiB", job: func(_ *Training, j *workload.Job) { j.Bucket = 0 }},
		{Name: "fitting", Meaning: "recomputation where a run does not fit; without: none that is not stated", job: func(t *Training, j *workload.Job) {
			if t.Parallel.Recompute == "" {
				j.Recompute = workload.None
			}
		}},
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
