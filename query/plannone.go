package query

import (
	"errors"
	"fmt"
	"strings"

	"busbar.dev/internal/words"
	"busbar.dev/plan"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// lacks says in a few words why there is no plan.
func (x *planned) lacks() string {
	q, a := x.query, x.answer
	switch {
	case a.Considered == 0:
		return "no setting is possible"
	case a.Late > 0:
		return fmt.Sprintf("the shortest step takes %s at least", a.Late.Short())
	case a.Leanest == nil:
		return "every setting needs more memory than there is"
	}
	if need := a.Leanest.Memory.Total(); need > q.Room() {
		return fmt.Sprintf("the smallest setting needs %.1f GiB per GPU, which has %.1f GiB without --reserve", need.GiB(), q.Room().GiB())
	}
	return fmt.Sprintf("the smallest setting needs %.1f GB of host memory per node, which has %.1f GB", (a.Leanest.Memory.Host * unit.Volume(q.Spaces[0].Node)).GB(), unit.Volume(q.HostMemory).GB())
}

// none says why there is no plan, nor one by other frameworks that were tried: settings that exclude each other, or by how much
// the leanest does not fit and what would make it fit.
func (x *planned) none(others []*workload.Framework) error {
	q, answer := x.query, x.answer
	space := q.Spaces[0]
	base := &space.Base
	if answer.Considered == 0 {
		return fmt.Errorf("no setting is possible on %s: %s", words.Plural(space.Ranks, "GPU"), x.clash(space))
	}
	if answer.Late > 0 {
		return fmt.Errorf("no setting of %s has a step within --max-step %s on %s: the shortest takes %s at least", base.Model.Name, x.MaxStep, words.Plural(space.Ranks, "GPU"), answer.Late.Short())
	}
	lean, have := answer.Leanest, q.Room()
	text := fmt.Sprintf("%s on %s of %.1f GiB: none of the %s settings that were tried fits", base.Model.Name, words.Plural(space.Ranks, "GPU"), unit.Volume(q.GPU.Model.Memory).GiB(), words.Thousands(answer.Considered))
	if lean == nil {
		return errors.New(text)
	}
	m := lean.Memory
	if need := m.Total(); need > have {
		text += fmt.Sprintf("; the smallest, %s, needs %.1f GiB per GPU, %.1f GiB more than available with --reserve %g (in GiB: parameters %.1f, gradients %.1f, optimizer %.1f, activations %.1f, other %.1f)",
			settings(&lean.Job), need.GiB(), (need - have).GiB(), q.Reserve, m.Params.GiB(), m.Grads.GiB(), m.Optimizer.GiB(), m.Activations.GiB(), m.Other.GiB())
	} else {
		text += fmt.Sprintf("; the smallest, %s, needs %.1f GB of host memory per node, which has %.1f GB", settings(&lean.Job), (m.Host * unit.Volume(space.Node)).GB(), unit.Volume(q.HostMemory).GB())
	}
	for i, f := range others {
		if i == 0 {
			text += "; nor by "
		} else {
			text += ", "
		}
		text += f.Name
	}
	return fmt.Errorf("%s; %s", text, x.remedy())
}

// Bounds of a remedy.
const (
	mostTimes = 1 << 10
	mostGPUs  = 1 << 17
)

// remedy is what would make something fit: fewer settings fixed, or so many times the GPUs.
func (x *planned) remedy() string {
	own := x.query.Spaces[0]
	question := *x.Plan
	question.Parallel, question.Micro, question.Recompute, question.Offload, question.Schedule = "", 0, "", nil, nil
	free := *x.planning
	free.Plan = &question
	if s, err := free.space(own.Ranks, own.Ranks, own.Node, x.query.GPU.Model.SM); err == nil {
		if y := x.query.Fits(s); y != nil {
			return fmt.Sprintf("without what is fixed %s would fit: %.1f GiB", settings(&y.Job), y.Memory.Total().GiB())
		}
	}
	if text := x.fitting(); text != "" {
		return text
	}
	for times := 2; times <= mostTimes && own.Ranks*times <= mostGPUs; times *= 2 {
		s, err := free.space(own.Ranks*times, own.Ranks*times, own.Node, x.query.GPU.Model.SM)
		if err != nil {
			break
		}
		if y := x.query.Fits(s); y != nil {
			return fmt.Sprintf("on %d GPUs %s would fit: %.1f GiB", s.Ranks, settings(&y.Job), y.Memory.Total().GiB())
		}
	}
	return "more or larger GPUs, shorter sequences, or a smaller model would help"
}

// settings is a job in a few words.
func settings(j *workload.Job) string {
	text := fmt.Sprintf("%s with a micro-batch of %d and recompute %s", j.Split, j.MicroBatch, j.Recompute)
	if j.Offloads() {
		text += fmt.Sprintf(", offload %s", j.Offload)
	}
	return text
}

// clash says which of the fixed settings exclude each other.
func (x *planned) clash(s *plan.Space) string {
	var fixed []string
	for _, y := range []struct{ flag, value string }{
		{"--parallel", string(x.Parallel)},
		{"--recompute", string(x.Recompute)},
		{"--schedule", commas(x.Schedule)},
		{"--context", commas(x.Context)},
		{"--offload", commas(x.Offload)},
		{"--compress", commas(x.Compress)},
		{"--framework", x.Framework},
	} {
		if y.value != "" {
			fixed = append(fixed, y.flag+" "+y.value)
		}
	}
	j := s.Base
	j.MicroBatch = max(1, x.Micro) * x.pairs()
	if x.Micro > 0 {
		fixed = append(fixed, fmt.Sprintf("--micro-batch %d", x.Micro))
	}
	why := x.contradiction(s, &j)
	if why == "" {
		why = fmt.Sprintf("%s, a global batch of %d, %s with %d layers and %d heads; degrees must divide them", words.Plural(s.Ranks, "GPU"), j.GlobalBatch, x.model.Name, x.model.Dims.Layers, x.model.Dims.Heads)
	}
	if len(fixed) > 0 {
		why += " (fixed are " + strings.Join(fixed, ", ") + ")"
	}
	return why
}

// contradiction looks at what is fixed alone; "" where that is no contradiction.
func (x *planned) contradiction(s *plan.Space, j *workload.Job) string {
	split, err := x.Parallel.split()
	if err == nil {
		split, err = split.Within(s.Node)
	}
	if err == nil {
		split, err = split.On(s.Ranks)
	}
	if err != nil {
		return err.Error()
	}
	if len(x.Schedule) > 0 && split.PP > 1 {
		j.Schedule = s.Schedule[0]
	}
	j.Split = split
	if len(x.Compress) == 1 {
		j.Compress = s.Compress[0]
	}
	if len(x.Offload) == 1 {
		j.Offload = s.Offload[0]
	}
	if err := j.Check(); err != nil {
		return err.Error()
	}
	if x.framework != nil {
		if err := x.framework.Refuses(j); err != nil {
			return err.Error()
		}
	}
	switch {
	case split.ZeRO > 1 && split.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d, which few frameworks have; take zero=0 or zero=1, or --framework torchtitan", split.ZeRO, split.PP)
	case split.ZeRO > 0 && split.DP*split.CP == 1:
		return fmt.Sprintf("zero=%d with one replica, which has no ranks to shard over", split.ZeRO)
	case strings.Contains(string(x.Parallel), "sp=1") && split.TP == 1 && len(s.TP) == 1:
		return "sp=1 with tp=1, which has no ranks to shard over"
	case split.Chunks > 1 && split.PP == 1:
		return fmt.Sprintf("vpp=%d without a pipeline; give pp", split.Chunks)
	}
	return ""
}
