package step

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// mostProposed is how many ways to fit are named.
const mostProposed = 2

// Reserve is the share of a GPU's memory that plans and advice leave free without being told another: the allocator's
// fragments and what other libraries take are in no sum.
const Reserve = 0.05

// Room is what a job may take of a GPU's memory that leaves a share of it free.
func Room(memory unit.Bytes, reserve float64) unit.Volume {
	return unit.Volume(memory) * unit.Volume(1-reserve)
}

// whatFits says what would make a job fit: settings that were tried and do, those first that cost
// least; where none does, what is left.
func whatFits(j *workload.Job, have unit.Bytes) string {
	var fit []string
	room := Room(have, Reserve)
	fewer := false // a smaller micro-batch was named, the largest that fits
	for _, way := range lighterWays(j) {
		micro := way.job.MicroBatch != j.MicroBatch
		if way.two && len(fit) > 0 || micro && fewer || way.job.Check() != nil ||
			j.Framework != nil && !j.Framework.Runs(&way.job) {
			continue
		}
		need := way.job.Memory()
		if need.Total() > room {
			continue
		}
		fewer = fewer || micro
		text := fmt.Sprintf("%s%s would fit: %.1f GiB", way.setting, keptKernels(j, &way.job), need.Total().GiB())
		if need.Host > 0 {
			text += fmt.Sprintf(", and %.1f GB of the host's memory for every GPU", need.Host.GB())
		}
		if fit = append(fit, text); len(fit) == mostProposed || way.job.Offloads() {
			return strings.Join(fit, "; ")
		}
	}
	if len(fit) > 0 {
		return strings.Join(fit, "; ")
	}
	return lastResort(j, have)
}

// keptKernels says the kernels of a job where its other split alone would bring others, which need other memory.
func keptKernels(now, with *workload.Job) string {
	own := workload.DefaultKernels(with.Split)
	if with.Framework != nil || with.Kernels == own || workload.DefaultKernels(now.Split) == own {
		return ""
	}
	return " and --kernels " + string(with.Kernels)
}

type lighterWay struct {
	setting string
	job     workload.Job
	two     bool // two things at once, where one is not enough
}

// lighterWays are jobs that need less memory and compute the same. Offload is last: it is
// slowest.
func lighterWays(j *workload.Job) []lighterWay {
	var list []lighterWay
	add := func(setting string, set func(j *workload.Job)) {
		with := *j
		set(&with)
		list = append(list, lighterWay{setting, with, strings.Contains(setting, " with ")})
	}
	s := j.Split
	divided := s.DP > 1
	if divided {
		for z := s.ZeRO + 1; z <= 3; z++ {
			add(fmt.Sprintf("zero=%d in --parallel", z), func(j *workload.Job) { j.Split.ZeRO = z })
		}
	}
	if s.TP > 1 && !s.SeqParallel {
		add("sp=1 in --parallel", func(j *workload.Job) { j.Split.SeqParallel = true })
	}
	if j.Recompute == workload.None {
		add("--recompute selective", func(j *workload.Job) { j.Recompute = workload.Selective })
	}
	if j.Recompute != workload.Full {
		add("--recompute full", func(j *workload.Job) { j.Recompute = workload.Full })
	}
	smaller := smallerMicros(j)
	for _, b := range smaller {
		add(fmt.Sprintf("--micro-batch %d", b), func(j *workload.Job) { j.MicroBatch = b })
	}
	if j.Recompute != workload.Full {
		for _, b := range smaller {
			add(fmt.Sprintf("--recompute full with --micro-batch %d", b),
				func(j *workload.Job) { j.Recompute, j.MicroBatch = workload.Full, b })
		}
	}
	if divided && s.ZeRO < 3 && j.Recompute != workload.Full {
		add("zero=3 with --recompute full", func(j *workload.Job) { j.Split.ZeRO, j.Recompute = 3, workload.Full })
	}
	for _, o := range []workload.Offload{workload.OffloadOptimizer, workload.OffloadParams} {
		if o != j.Offload {
			add(fmt.Sprintf("--offload %s", o), func(j *workload.Job) { j.Offload = o })
		}
		if divided && !j.Offloads() {
			add(fmt.Sprintf("zero=3 with --recompute full and --offload %s", o),
				func(j *workload.Job) { j.Split.ZeRO, j.Recompute, j.Offload = 3, workload.Full, o })
		}
	}
	return list
}

// smallerMicros are micro-batches that a replica's share of the global batch is whole numbers of, the largest first.
func smallerMicros(j *workload.Job) []int64 {
	share := j.GlobalBatch / int64(max(1, j.Split.DP))
	var list []int64
	for b := int64(1); b*b <= share; b++ {
		if share%b != 0 {
			continue
		}
		for _, x := range []int64{b, share / b} {
			if x < j.MicroBatch && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
	return list
}

// lastResort is what is left where no setting does: another split of the same GPUs, or more of them.
func lastResort(j *workload.Job, have unit.Bytes) string {
	all := *j
	ranks := j.Split.Ranks()
	all.Split = workload.Split{DP: ranks, TP: 1, PP: 1, ZeRO: 3}
	if m := all.Memory(); m.Params+m.Grads+m.Optimizer > unit.Volume(have) {
		return fmt.Sprintf("more GPUs are needed: parameters, gradients and the optimizer's state alone are %.1f GiB for "+
			"each of %d", (m.Params + m.Grads + m.Optimizer).GiB(), ranks)
	}
	if f := j.Framework; f != nil && !f.Tensor && len(f.Schedules) == 0 && !slices.Contains(f.ZeRO, 3) {
		return f.Title + " keeps the whole model on every GPU; --framework fsdp shards it"
	}
	if j.Split.DP > 1 && !j.Model.Replicated() {
		if deeper(j, have) {
			return "raise tp or pp, with --recompute full"
		}
		return fmt.Sprintf("no tp, pp, zero, recomputation or offload makes it fit %d such GPUs; more of them are needed, "+
			"or adapters (--lora rank=16, with bits=4 for the least memory)", ranks)
	}
	if j.Model.Replicated() {
		return "GPUs with more memory are needed: only replicas of the whole model train it"
	}
	return "take more GPUs"
}

// deeper reports whether more tensor or pipeline ranks make a job fit that computes everything again.
func deeper(j *workload.Job, have unit.Bytes) bool {
	ranks := j.Split.Ranks()
	for tp := 1; tp <= ranks; tp *= 2 {
		for pp := 1; tp*pp <= ranks; pp *= 2 {
			x := *j
			x.Split.TP, x.Split.PP, x.Split.DP, x.Split.SeqParallel, x.Recompute = tp, pp, ranks/(tp*pp), tp > 1, workload.Full
			if x.Split.Ranks() == ranks && x.Check() == nil && (x.Framework == nil || x.Framework.Runs(&x)) &&
				x.Memory().Total() <= Room(have, Reserve) {
				return true
			}
		}
	}
	return false
}
