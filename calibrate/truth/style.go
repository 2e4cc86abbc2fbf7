package truth

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// stack is what ran a job, as far as its price depends on it: the kernels of a framework as they were in a year.
type stack struct {
	kernels workload.Kernels
	sharded bool // the optimizer's state is divided among replicas unless somebody says otherwise
	sync    int  // until and with this year gradients travel after the backward pass
	unfused int  // until and with this year attention writes its scores to memory
	again   workload.Recompute
	sp      int   // from this year on tensor-parallel ranks divide what lies between products too
	graphs  int   // from this year on kernels are started as graphs
	bucket  int64 // millions of parameters that travel at once at least, and one more for every replica
	folded  int   // from this year on experts are spread over tensor-parallel ranks too, each whole
}

// stacks are frameworks by a word that their names have, in the order in which names are looked through: Megatron-DeepSpeed
// is not DeepSpeed. Years are those of docs/frameworks.md and of the frameworks' own release notes.
var stacks = []struct {
	word string
	stack
}{
	{"megatron-deepspeed", stack{kernels: workload.Fused, sync: 2022, unfused: 2022, bucket: 40}},
	{"mlperf reference", stack{kernels: workload.Eager, unfused: 2022}},
	{"megatron-swift", stack{kernels: workload.Fused, bucket: 40, sharded: true, sp: 2023, folded: 2025}},
	{"ms-swift", stack{kernels: workload.Eager, unfused: 2022}},
	{"mlperf", stack{kernels: workload.Fused, bucket: 40, sharded: true, sync: 2021, unfused: 2022, sp: 2022, graphs: 2024, folded: 2025}},
	{"megatron-bridge", stack{kernels: workload.Fused, bucket: 40, sharded: true, sp: 2022, graphs: 2026, folded: 2025}},
	{"nemo", stack{kernels: workload.Fused, bucket: 40, sharded: true, sync: 2021, unfused: 2022, sp: 2023, folded: 2025}},
	{"primus", stack{kernels: workload.Fused, bucket: 40, sharded: true, sp: 2023, folded: 2025}},
	{"megatron", stack{kernels: workload.Fused, bucket: 40, sharded: true, sync: 2022, unfused: 2022, sp: 2023, folded: 2025}},
	{"colossal", stack{kernels: workload.Fused, sync: 2022, unfused: 2022}},
	{"paddle", stack{kernels: workload.Fused, sync: 2023, unfused: 2022}},
	{"torchtitan", stack{kernels: workload.Compiled, sharded: true, sp: 2024}},
	{"torchtune", stack{kernels: workload.Eager}},
	{"maxtext", stack{kernels: workload.Compiled, graphs: 2020}},
	{"paxml", stack{kernels: workload.Compiled, again: workload.PerOp, graphs: 2020}},
	{"jax", stack{kernels: workload.Compiled, graphs: 2020}},
	{"llm-foundry", stack{kernels: workload.Compiled}},
	{"internevo", stack{kernels: workload.Fused, bucket: 40, sharded: true}},
	{"oneflow", stack{kernels: workload.Fused, sync: 2022, unfused: 2022}},
	{"deepspeed", stack{kernels: workload.Eager, unfused: 2022}},
	{"fsdp", stack{kernels: workload.Eager, unfused: 2022}},
	{"unsloth", stack{kernels: workload.Compiled}},
	{"hugging", stack{kernels: workload.Eager, unfused: 2022}},
	{"transformers", stack{kernels: workload.Eager, unfused: 2022}},
	{"trainer", stack{kernels: workload.Eager, unfused: 2022}},
	{"accelerate", stack{kernels: workload.Eager, unfused: 2022}},
	{"llama-factory", stack{kernels: workload.Eager}},
	{"axolotl", stack{kernels: workload.Eager}},
	{"litgpt", stack{kernels: workload.Compiled}},
	{"nanotron", stack{kernels: workload.Fused, sp: 2023}},
	{"ddp", stack{kernels: workload.Eager, unfused: 2022}},
	{"deeplearningexamples", stack{kernels: workload.Fused, unfused: 2022}},
	{"pytorch", stack{kernels: workload.Eager, unfused: 2022}},
}

// stackOf is the framework of a name.
func stackOf(name string) (*stack, error) {
	lower := strings.ToLower(name)
	for i := range stacks {
		if strings.Contains(lower, stacks[i].word) {
			return &stacks[i].stack, nil
		}
	}
	var known []string
	for i := range stacks {
		known = append(known, stacks[i].word)
	}
	sort.Strings(known)
	return nil, fmt.Errorf("framework %.40q is unknown; expected eager, compiled, fused, or a name with one of %s in it", name, strings.Join(known, ", "))
}

// sinksFused is the year and month from which attention with a number a head beside its scores runs in one kernel: cuDNN's, as
// releases of NeMo's container carry it. Before, its scores went through memory.
const sinksFused = 202606

var release = regexp.MustCompile(`\b(2[0-9])\.(0[1-9]|1[0-2])\b`)

// month is that of the release, where its number has one; the middle of the year elsewhere.
func (t *Training) month() int {
	if m := release.FindStringSubmatch(t.Version); m != nil {
		n, _ := strconv.Atoi(m[2])
		return n
	}
	return 6
}

var yearIn = regexp.MustCompile(`\b(20[12]\d)\b|\b(2[0-9])\.(0[1-9]|1[0-2])\b`)

// year is when the run was: stated, or in the release's or the source's words, else the first in which the GPU could be had.
func (t *Training) year() int {
	if t.Year >= 2016 && t.Year < 2100 {
		return t.Year
	}
	for _, text := range []string{t.Version, t.Source} {
		if m := yearIn.FindStringSubmatch(text); m != nil {
			y, _ := strconv.Atoi(m[1] + m[2])
			if y < 100 {
				y += 2000
			}
			return y
		}
	}
	m, _ := hardware.GPUByName(t.Hardware.GPU)
	switch {
	case m.SM >= 100 || strings.HasPrefix(m.Arch, "gfx950"):
		return 2025
	case m.SM >= 89 || strings.HasPrefix(m.Arch, "gfx94"):
		return 2023
	}
	return 2021
}

// software is the name of the framework, where the row does not have one from its source.
func (t *Training) software() string {
	if t.Framework != "" {
		return t.Framework
	}
	src := strings.ToLower(t.Source + " " + t.Cluster)
	for _, word := range []string{"maxtext", "paxml", "llm-foundry", "interne", "deeplearningexamples", "dlperf"} {
		if strings.Contains(src, word) {
			if word == "interne" {
				return "internevo"
			}
			if word == "dlperf" {
				return "megatron-deepspeed"
			}
			return word
		}
	}
	if strings.Contains(t.ID, "ngc-pytorch") {
		return "deeplearningexamples"
	}
	if strings.Contains(src, "dgxc") || strings.Contains(src, "nemo") || strings.Contains(src, "megatron") {
		return "nemo"
	}
	if strings.Contains(src, "bigscience") || strings.Contains(src, "deepspeed") {
		return "megatron-deepspeed"
	}
	if t.year() >= 2023 {
		return "nemo" // what most such runs are of
	}
	return "megatron-deepspeed"
}

// style is how the run's framework computes in its year: what is usual for it and not printed.
func (t *Training) style(j *workload.Job, s *workload.Split) error {
	switch k := workload.Kernels(t.Framework); k {
	case workload.Eager, workload.Compiled, workload.Fused:
		j.Kernels = k
		return nil
	}
	name, year := t.software(), t.year()
	x, err := stackOf(name)
	if err != nil {
		return err
	}
	j.Kernels, j.Recompute = x.kernels, workload.None
	lower := strings.ToLower(name)
	if strings.Contains(lower, "compile") {
		j.Kernels = workload.Compiled
	}
	if x.again != "" {
		j.Recompute = x.again
		t.Assumed = append(t.Assumed, "what is between products is computed again, and some of them, as the framework's usual policies do")
	}
	j.Sync, j.Unfused = year <= x.sync, year <= x.unfused
	if strings.Contains(lower, "xla") && !strings.Contains(lower, "transformer engine") && !strings.Contains(lower, "cudnn") && year <= 2024 {
		j.Unfused = true // XLA's own attention
	}
	if strings.Contains(strings.ToLower(t.Model.Attention), "sink") && year*100+t.month() < sinksFused {
		j.Unfused = true
	}
	if x.bucket > 0 {
		j.Bucket = unit.Bytes(max(x.bucket, int64(s.DP*max(s.CP, 1))) * 2e6)
	}
	j.Early = year <= 2023
	j.Graphs = x.graphs > 0 && year >= x.graphs
	s.SeqParallel = x.sp > 0 && year >= x.sp && s.TP > 1
	if x.sharded && !j.Sync {
		s.ZeRO = 1
	}
	j.Flex = x.folded > 0 && year >= x.folded
	if x.folded > 0 && year >= x.folded && s.EP > 1 && s.ETP == 0 {
		s.ETP = 1
	}
	if strings.Contains(name, "deeplearningexamples") && strings.Contains(strings.ToLower(t.Model.Name), "bert") {
		j.Masked = 0.15 // Devlin et al. 2019, section 3.1
	}
	return nil
}
