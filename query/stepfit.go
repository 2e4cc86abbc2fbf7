package query

import (
	"fmt"
	"slices"

	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// StepFitting is the fastest form of a job that does not fit, of those that were tried and do.
type StepFitting struct {
	Settings string     `json:"settings"` // flags of busbar step
	Step     unit.Span  `json:"step_s"`
	Low      unit.Span  `json:"low_s"` // the error bar
	High     unit.Span  `json:"high_s"`
	Memory   unit.Bytes `json:"memory_bytes"` // of a GPU
}

// mostFitting is the number of ranks up to which forms that fit are priced: each is as much work as the job itself.
const mostFitting = 1 << 12

// fitting is the fastest form of a job that fits: other degrees, sharding and recomputation, with the same global and micro-batch, and for
// frameworks that shard no parameters FSDP. nil where none of them fits. The search of busbar plan looks at far more of them.
func (t *training) fitting(s shape, p *pricedStep) *StepFitting {
	layout, name, err := s.ranks(t.cluster)
	if err != nil || p.Ranks > mostFitting {
		return nil
	}
	own := *t
	own.job.GlobalBatch, own.job.MicroBatch = p.job.GlobalBatch, p.job.MicroBatch
	flags := ""
	if t.job.Kernels != "" {
		flags = " --kernels " + string(t.job.Kernels)
	}
	fit := own.fittingBy(flags, layout, name)
	if fit == nil && t.framework == nil && t.job.Kernels == "" { // other degrees bring other kernels
		own.job.Kernels = p.job.Kernels
		fit = own.fittingBy(" --kernels "+string(p.job.Kernels), layout, name)
	}
	if fit != nil || t.framework == nil || slices.Contains(t.framework.ZeRO, 3) {
		return fit
	}
	fsdp, err := workload.ParseFramework("fsdp")
	if err != nil {
		return nil // the name is of the table: a test has read it
	}
	own.framework, own.job.Precision, own.job.Kernels = fsdp, readPrecision("", fsdp), ""
	return own.fittingBy(" --framework fsdp", layout, name)
}

// fittingBy is the fastest form that fits by one framework, and what else its command says.
func (t *training) fittingBy(flags string, layout nccl.Layout, name string) *StepFitting {
	var best *StepFitting
	for tp := 1; tp <= ranksOfFirst(layout); tp *= 2 {
		for pp := 1; tp*pp <= len(layout) && int64(pp) <= max(1, t.job.Model.Dims.Layers); pp *= 2 {
			x := t.lightest(tp, pp, layout, name)
			if x == nil {
				continue
			}
			p, err := x.priceOn(t.cluster, layout, name)
			if err != nil || best != nil && p.Step >= best.Step {
				continue
			}
			margin := unit.Span(step.Margin(p.job, p.model))
			best = &StepFitting{
				Settings: fmt.Sprintf("--parallel %s --recompute %s --global-batch %d --micro-batch %d", x.parallel, p.job.Recompute, p.job.GlobalBatch, p.job.MicroBatch) + flags,
				Step:     p.Step, Low: p.Step / margin, High: p.Step * margin, Memory: p.Memory.Total().Bytes(),
			}
		}
	}
	return best
}

// lightest is the job by two degrees with the least sharding and recomputation that fits; nil where none does.
func (t *training) lightest(tp, pp int, layout nccl.Layout, name string) *training {
	for _, recompute := range []workload.Recompute{workload.None, workload.Selective, workload.Full} {
		for zero := range 4 {
			x := *t
			x.parallel = fmt.Sprintf("tp=%d,pp=%d,zero=%d", tp, pp, zero)
			for _, d := range []struct {
				key string
				n   int
			}{{"cp", t.job.Split.CP}, {"ep", t.job.Split.EP}} {
				if d.n > 1 {
					x.parallel += fmt.Sprintf(",%s=%d", d.key, d.n)
				}
			}
			var err error
			if x.job.Split, err = workload.ParseSplit(x.parallel); err != nil {
				continue
			}
			x.job.Split.Order, x.job.Recompute = t.job.Split.Order, recompute
			j, model, err := x.jobOn(t.cluster, layout, name)
			if err == nil && j.Memory().Total() <= step.Room(model.Memory, step.Reserve) {
				return &x
			}
		}
	}
	return nil
}
