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

// fitting is the fastest form of a job that fits: other degrees, sharding, recomputation and smaller micro-batches, with the same global
// batch, for adapters also frozen weights of 4 bits, for frameworks that shard no parameters FSDP, and where none of these fits, offload. nil where none of them fits. The
// search of busbar plan looks at far more of them.
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
		own.job.Kernels = ""
	}
	if fit == nil && t.framework != nil && !slices.Contains(t.framework.ZeRO, 3) {
		fsdp, err := workload.ParseFramework("fsdp")
		if err != nil {
			return nil // the name is of the table: a test has read it
		}
		own.framework, own.job.Precision, own.job.Kernels = fsdp, readPrecision("", fsdp), ""
		flags = " --framework fsdp"
		fit = own.fittingBy(flags, layout, name)
	}
	for _, o := range []workload.Offload{workload.OffloadOptimizer, workload.OffloadParams} { // slowest, so last
		if own.job.Offload = o; fit == nil && !t.job.Offloads() {
			fit = own.fittingBy(" --offload "+string(o)+flags, layout, name)
		}
	}
	return fit
}

// fittingBy is the fastest form that fits by one framework, and what else its command says.
func (t *training) fittingBy(flags string, layout nccl.Layout, name string) *StepFitting {
	var best *StepFitting
	for tp := 1; tp <= ranksOfFirst(layout); tp *= 2 {
		for pp := 1; tp*pp <= len(layout) && int64(pp) <= max(1, t.job.Model.Dims.Layers); pp *= 2 {
			for _, x := range t.lighter(tp, pp, layout, name) {
				p, err := x.priceOn(t.cluster, layout, name)
				if err != nil || best != nil && p.Step >= best.Step {
					continue
				}
				margin := unit.Span(step.Margin(p.job, p.model))
				best = &StepFitting{
					Settings: x.fittingFlags(p.job, t.job.LoRA) + flags,
					Step:     p.Step, Low: p.Step / margin, High: p.Step * margin, Memory: p.Memory.Total().Bytes(),
				}
			}
		}
	}
	return best
}

// fittingFlags are the flags of busbar step for a form of a job; asked are the adapters that the job was asked with.
func (t *training) fittingFlags(j *workload.Job, asked workload.LoRA) string {
	text := fmt.Sprintf("--parallel %s --recompute %s --global-batch %d --micro-batch %d", t.parallel, j.Recompute, j.GlobalBatch/t.pairs, j.MicroBatch/t.pairs)
	if j.LoRA != asked {
		text += " --lora " + j.LoRA.String()
	}
	return text
}

// lighter are the forms of a job by two degrees that fit. What takes more sharding, recomputation and smaller micro-batches than a form that
// fits is left out where it can only be slower: where nothing is sharded yet, and less of the others does.
func (t *training) lighter(tp, pp int, layout nccl.Layout, name string) []*training {
	var list []*training
	for _, lora := range t.adapters() {
		for micro := t.job.MicroBatch; micro >= t.pairs; micro /= 2 {
			for _, recompute := range []workload.Recompute{workload.None, workload.Selective, workload.Full} {
				for zero := range 4 {
					x := *t
					x.job.LoRA, x.job.MicroBatch, x.job.Recompute = lora, micro, recompute
					if !x.divide(tp, pp, zero) {
						continue
					}
					j, model, err := x.jobOn(t.cluster, layout, name)
					if err != nil || j.Memory().Total() > step.Room(model.Memory, step.Reserve) {
						continue
					}
					if list = append(list, &x); zero == 0 && recompute == workload.None {
						return list
					}
				}
			}
		}
	}
	return list
}

// adapters are the adapters of a job as asked for and, where that is less, with frozen weights of 4 bits.
func (t *training) adapters() []workload.LoRA {
	list := []workload.LoRA{t.job.LoRA}
	if l := t.job.LoRA; l.Frozen() && l.Bits != 4 {
		l.Bits = 4
		list = append(list, l)
	}
	return list
}

// divide gives a job degrees and sharding; those of context and experts stay. False where no job has them.
func (t *training) divide(tp, pp, zero int) bool {
	was := t.job.Split
	t.parallel = fmt.Sprintf("tp=%d,pp=%d,zero=%d", tp, pp, zero)
	for _, d := range []struct {
		key string
		n   int
	}{{"cp", was.CP}, {"ep", was.EP}} {
		if d.n > 1 {
			t.parallel += fmt.Sprintf(",%s=%d", d.key, d.n)
		}
	}
	var err error
	t.job.Split, err = workload.ParseSplit(t.parallel)
	t.job.Split.Order = was.Order
	return err == nil
}
