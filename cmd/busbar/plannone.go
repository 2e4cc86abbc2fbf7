package main

import (
	"fmt"
	"strings"

	"busbar.dev/plan"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// none says why there is no plan: settings that exclude each other, or by how much the leanest does
// not fit and what would make it fit.
func (c *planCmd) none(a *asked, q *plan.Query, answer *plan.Answer) error {
	space := q.Spaces[0]
	base := &space.Base
	if answer.Considered == 0 {
		return fmt.Errorf("no setting is possible on %s: %s", counted(space.Ranks, "GPU"), c.clash(a, space))
	}
	if answer.Late > 0 {
		return fmt.Errorf("no setting of %s has a step within --max-step %s on %s: the shortest takes %s at least", base.Model.Name, c.MaxStep, counted(space.Ranks, "GPU"), seconds(answer.Late))
	}
	lean := answer.Leanest
	have := unit.Volume(q.GPU.Model.Memory) * unit.Volume(1-q.Reserve)
	text := fmt.Sprintf("%s on %s of %.1f GB: none of the %s settings that were tried fits", base.Model.Name, counted(space.Ranks, "GPU"), unit.Volume(q.GPU.Model.Memory).GB(), thousands(answer.Considered))
	if lean == nil {
		return fmt.Errorf("%s", text)
	}
	m := lean.Memory
	if need := m.Total(); need > have {
		text += fmt.Sprintf("; the leanest, %s, needs %.1f GB of a GPU, %.1f GB more than there are with --reserve %g (parameters %.1f, gradients %.1f, optimizer %.1f, activations %.1f, other %.1f)",
			settingWords(&lean.Job), need.GB(), (need - have).GB(), q.Reserve, m.Params.GB(), m.Grads.GB(), m.Optimizer.GB(), m.Activations.GB(), m.Other.GB())
	} else {
		text += fmt.Sprintf("; the leanest, %s, needs %.1f GB of a node's own memory, which has %.1f GB", settingWords(&lean.Job), (m.Host * unit.Volume(space.Node)).GB(), unit.Volume(q.HostMemory).GB())
	}
	return fmt.Errorf("%s; %s", text, c.remedy(a, q, lean))
}

// remedy is what would make something fit: fewer settings fixed, or so many times the GPUs.
func (c *planCmd) remedy(a *asked, q *plan.Query, lean *plan.Lean) string {
	own := q.Spaces[0]
	free := *c
	free.Parallel, free.Micro, free.Recompute, free.Offload, free.Schedule = "", 0, "", nil, nil
	if s, err := free.space(a, own.Ranks, own.Ranks, own.Node); err == nil {
		if x := q.Fits(s); x != nil {
			return fmt.Sprintf("without what is fixed %s would fit: %.1f GB", settingWords(&x.Job), x.Memory.Total().GB())
		}
	}
	for times := 2; times <= mostTimes && own.Ranks*times <= mostGPUs; times *= 2 {
		s, err := free.space(a, own.Ranks*times, own.Ranks*times, own.Node)
		if err != nil {
			break
		}
		if x := q.Fits(s); x != nil {
			return fmt.Sprintf("on %d GPUs %s would fit: %.1f GB", s.Ranks, settingWords(&x.Job), x.Memory.Total().GB())
		}
	}
	return "more or larger GPUs, shorter sequences, or a smaller model would help"
}

// Bounds of a remedy.
const (
	mostTimes = 1 << 10
	mostGPUs  = 1 << 17
)

// settingWords is a job in a few words.
func settingWords(j *workload.Job) string {
	text := fmt.Sprintf("%s with a micro-batch of %d and recompute %s", j.Split, j.MicroBatch, j.Recompute)
	if j.Offloads() {
		text += fmt.Sprintf(", offload %s", j.Offload)
	}
	return text
}

// clash says which of the fixed settings exclude each other.
func (c *planCmd) clash(a *asked, s *plan.Space) string {
	var fixed []string
	for _, x := range []struct{ flag, value string }{
		{"--parallel", c.Parallel},
		{"--recompute", c.Recompute},
		{"--schedule", strings.Join(c.Schedule, ",")},
		{"--context", strings.Join(c.Context, ",")},
		{"--offload", strings.Join(c.Offload, ",")},
		{"--compress", strings.Join(c.Compress, ",")},
	} {
		if x.value != "" {
			fixed = append(fixed, x.flag+" "+x.value)
		}
	}
	j := s.Base
	j.MicroBatch = max(1, c.Micro)
	if c.Micro > 0 {
		fixed = append(fixed, fmt.Sprintf("--micro-batch %d", c.Micro))
	}
	why := c.contradiction(a, s, &j)
	if why == "" {
		why = fmt.Sprintf("%s, a global batch of %d, %s with %d layers and %d heads; degrees must divide them", counted(s.Ranks, "GPU"), j.GlobalBatch, a.model.Name, a.model.Dims.Layers, a.model.Dims.Heads)
	}
	if len(fixed) > 0 {
		why += " (fixed are " + strings.Join(fixed, ", ") + ")"
	}
	return why
}

// contradiction looks at what is fixed alone; "" where that is no contradiction.
func (c *planCmd) contradiction(a *asked, s *plan.Space, j *workload.Job) string {
	split, err := workload.ParseSplit(c.Parallel)
	if err == nil {
		split, err = split.Within(s.Node)
	}
	if err == nil {
		split, err = split.On(s.Ranks)
	}
	if err != nil {
		return err.Error()
	}
	if len(c.Schedule) > 0 && split.PP > 1 {
		j.Schedule = s.Schedule[0]
	}
	j.Split = split
	if len(c.Compress) == 1 {
		j.Compress = s.Compress[0]
	}
	if len(c.Offload) == 1 {
		j.Offload = s.Offload[0]
	}
	if err := j.Check(); err != nil {
		return err.Error()
	}
	switch {
	case split.ZeRO > 1 && split.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d, which no framework has; take zero=0 or zero=1", split.ZeRO, split.PP)
	case split.ZeRO > 0 && split.DP*split.CP == 1:
		return fmt.Sprintf("zero=%d with one replica, which has nobody to divide with", split.ZeRO)
	case strings.Contains(c.Parallel, "sp=1") && split.TP == 1 && len(s.TP) == 1:
		return "sp=1 with tp=1, which has nothing to divide"
	case split.Chunks > 1 && split.PP == 1:
		return fmt.Sprintf("vpp=%d without a pipeline; give pp", split.Chunks)
	}
	return ""
}
