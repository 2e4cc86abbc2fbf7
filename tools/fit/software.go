package main

import (
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/workload"
)

var (
	monthIn = lazyre.New(`(?:^|[^\d.])(2[0-9])\.(0[1-9]|1[0-2])(?:[^\d]|$)`) // 25.11 and v25.11 of NVIDIA's containers
	dateIn  = lazyre.New(`\b(20[12]\d)-(0[1-9]|1[0-2])\b`)
	yearIn  = lazyre.New(`\b(20[12]\d)\b`)
)

// when is the time of the run, 2025 or 2025-11: stated, or in the release's or the source's words, else the year in
// which the GPU came.
func (t *training) when() string {
	for _, text := range []string{t.Version, t.Source} {
		if m := monthIn.FindStringSubmatch(text); m != nil && (t.Year == 0 || strconv.Itoa(t.Year) == "20"+m[1]) {
			return "20" + m[1] + "-" + m[2]
		}
		if m := dateIn.FindStringSubmatch(text); m != nil && (t.Year == 0 || strconv.Itoa(t.Year) == m[1]) {
			return m[1] + "-" + m[2]
		}
		if t.Year >= 2016 && t.Year < 2100 {
			continue
		}
		if m := yearIn.FindStringSubmatch(text); m != nil {
			return m[1]
		}
	}
	if t.Year >= 2016 && t.Year < 2100 {
		return strconv.Itoa(t.Year)
	}
	m, _ := gpuOf(t.Hardware.GPU)
	switch {
	case m.SM >= 100 || strings.HasPrefix(m.Arch, "gfx950"):
		return "2025"
	case m.SM >= 89 || strings.HasPrefix(m.Arch, "gfx94"):
		return "2023"
	}
	return "2021"
}

// software is the framework: the one that is named, else one that the source's words name, else what most such runs are
// of.
func (t *training) software() (*workload.Framework, error) {
	if t.Framework != "" {
		return workload.FrameworkAt(t.Framework, t.when())
	}
	for _, text := range []string{t.Source, t.Cluster, t.ID} {
		if f, err := workload.FrameworkAt(strings.ReplaceAll(text, "@", " "), t.when()); err == nil {
			return f, nil
		}
	}
	usual := "megatron-deepspeed"
	if t.when() >= "2023" {
		usual = "nemo"
	}
	t.Assumed = append(t.Assumed, usual+", as the source names no framework")
	return workload.FrameworkAt(usual, t.when())
}

// style is how the run's framework computes: what is usual for it and not printed.
func (t *training) style(j *workload.Job, s *workload.Split) error {
	switch k := workload.Kernels(t.Framework); k {
	case workload.Eager, workload.Compiled, workload.Fused:
		j.Kernels = k
		return nil
	}
	f, err := t.software()
	if err != nil {
		return err
	}
	m, _ := gpuOf(t.Hardware.GPU)
	p := &t.Parallel
	f.Fill(s, map[string]bool{"zero": t.statesSharding(), "sp": p.SeqParallel != nil, "etp": p.ETP > 0})
	j.Kernels, j.Split = "", *s
	f.Adopt(j, m.Name, m.SM)
	if j.Model.Replicated() && !strings.Contains(t.ID, "mxnet") { // in kernels of PyTorch's own, with Apex' O2 at most
		j.Kernels, j.ChannelsFirst = workload.Eager, true
	}
	if f.Name == "torchtitan" {
		j.Recompute = workload.PerOp // its configurations' own (torchtitan/models/llama3/train_configs)
	}
	if f.Name == "deeplearningexamples" && strings.Contains(strings.ToLower(t.Model.Name), "bert") {
		j.Masked = 0.15 // Devlin et al. 2019, section 3.1
	}
	return nil
}

// statesSharding reports whether the source says what replicas divide.
func (t *training) statesSharding() bool {
	p := &t.Parallel
	switch f := p.FSDP.(type) {
	case float64:
		if f > 1 {
			return true
		}
	case string:
		return f != ""
	}
	return p.ZeRO != nil || p.Sharded != nil
}
