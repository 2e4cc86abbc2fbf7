package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Step asks how long one training step takes and where the time goes: computing, waiting for the network, the
// pipeline's bubble, the optimizer; how much memory each GPU needs; what limits it and what would help. Asked about a
// whole run, it also says what slow nodes, failures and checkpoints cost.
type Step struct {
	Job
	Hosts string `placeholder:"HOSTLIST" help:"Participating hosts of the cluster in rank order, as a hostlist: gpu[03,07] (default: the cluster's hosts in their order)."`
	Campaign
	Loader float64 `name:"loader" least:"1e-9" placeholder:"N" help:"Samples per second that the data loaders of one node deliver (default: data is never late)."`
	Sample string  `name:"sample-size" placeholder:"SIZE" help:"With --read-rate: what is read from storage for a sample: 110KB for an ImageNet picture, 16KiB for 4,096 tokens of 4 bytes."`
	Read   string  `name:"read-rate" placeholder:"RATE" help:"With --sample-size: read rate of the storage for all nodes together: 10GB/s."`
	Tuner  bool    `help:"Price NCCL with busbar's tuner plugin (written by plan --emit): collectives use the algorithm and protocol predicted fastest instead of NCCL's choice."`
	Advise bool    `help:"Also try other networks and NCCL settings, each as expensive as the step itself (default: only up to 8 GPUs)."`

	// Drawn asks for the timeline of the step too, on one layout.
	Drawn bool `kong:"-"`
}

// StepDoc is the answer to Step: a row for every layout.
type StepDoc struct {
	Cluster  string     `json:"cluster"`
	Rows     []StepRow  `json:"rows"`
	Timeline []step.Bar `json:"timeline,omitempty"` // where it was asked for
	Noted
}

// StepRow is the step on one layout.
type StepRow struct {
	Layout   string           `json:"layout"`
	Job      workload.Summary `json:"job"`
	Schedule string           `json:"schedule,omitempty"` // of a pipeline
	step.Result
	TFLOPSPerGPU float64               `json:"tflops_per_gpu"`
	TokensPerS   float64               `json:"tokens_per_s"`
	PerGPU       float64               `json:"tokens_per_s_per_gpu"`
	Margin       float64               `json:"margin"` // the step is expected between step/margin and step×margin
	Low          unit.Span             `json:"low_s"`
	High         unit.Span             `json:"high_s"`
	MarginFrom   string                `json:"margin_source"`
	Memory       map[string]unit.Bytes `json:"memory_bytes"` // of a GPU: total, params, grads, optimizer, activations, other; of its host: host
	Has          unit.Bytes            `json:"gpu_memory_bytes"`
	Fits         bool                  `json:"fits"`
	Groups       []step.Placement      `json:"groups"`
	Bottleneck   step.Limit            `json:"bottleneck"`
	Advice       []step.Change         `json:"advice"` // what would help, the best first
	Fitting      *stepFitting          `json:"would_fit,omitempty"`
	*CampaignDoc
	GPU        string `json:"gpu"`
	HostMemory string `json:"host_memory,omitempty"` // what of a node's own memory it takes, in words
}

// Wrong reports that the job fits the GPUs' memory on none of the layouts: its times are then those of GPUs with enough
// of it.
func (d *StepDoc) Wrong() bool {
	return !slices.ContainsFunc(d.Rows, func(r StepRow) bool { return r.Fits })
}

// fewRanks are so few that other networks are tried without being asked for: that takes milliseconds.
const fewRanks = 8

// Run prices the step on every layout.
func (q Step) Run(ctx context.Context, env Env) (doc *StepDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	campaign, err := q.Campaign.read()
	if err != nil {
		return nil, err
	}
	if q.Layout == "" && q.Compare == "" {
		if err := q.placement().tooMany(ctx, &env, []shape{{}}); err != nil {
			return nil, err
		}
	}
	t, err := q.Job.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	if q.Drawn && len(t.shapes) != 1 {
		return nil, errors.New("a timeline is of one layout; choose one layout")
	}
	if err := onHosts(q.Hosts, t.shapes); err != nil {
		return nil, err
	}
	if err := checkTuner(q.Tuner, t.version); err != nil {
		return nil, err
	}
	t.tuner = q.Tuner
	defer env.working("pricing the step")()
	d, assumed := &StepDoc{Cluster: t.cluster.Name, Rows: []StepRow{}}, false
	for _, s := range t.shapes {
		p, err := t.price(t.cluster, s)
		if err != nil {
			return nil, err
		}
		changes, err := p.tasks.Changes(p.gpu, p.Result, q.Advise || p.Ranks <= fewRanks)
		if err != nil {
			return nil, fmt.Errorf("layout %s: %w", p.layout, err)
		}
		data, feed, err := q.feed(p.job.GlobalBatch, p.nodes)
		if err != nil {
			return nil, err
		}
		p.Feed(data)
		row := p.row(changes)
		if !row.Fits {
			row.Fitting = t.fitting(s, p)
		}
		if row.Starved > 0.1*row.Step && row.Fits {
			row.Bottleneck = step.Limit{
				Kind: "data", Text: fmt.Sprintf("%.0f%% of the step waits for data: %s", 100*float64(row.Starved/row.Step), feed),
			}
		}
		if row.CampaignDoc, err = campaign.of(t, s, p); err != nil {
			return nil, fmt.Errorf("layout %s: %w", p.layout, err)
		}
		env.note(row.mfuNote()...)
		list := slices.DeleteFunc(assumedRates(t.cluster, p.nodes == 1), func(s string) bool {
			// predict.Assume notes those
			return strings.Contains(s, predict.AsGiven) || strings.HasPrefix(s, step.Trunks.String())
		})
		if len(list) > 0 && !assumed {
			assumed = true
			env.note("assumed, since no source says it: " + strings.Join(list, "; "))
		}
		d.Rows = append(d.Rows, row)
		if q.Drawn {
			if d.Timeline, err = p.tasks.Timeline(p.gpu); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// highMFU is more than well-tuned training reaches: where a prediction says so, the reader asks what was counted.
const highMFU = 0.7

// mfuNote says what an MFU counts where it would astonish.
func (r *StepRow) mfuNote() []string {
	switch {
	case r.MFU > highMFU:
		return []string{fmt.Sprintf("MFU of %.0f%%: it counts attention without its causal mask (PaLM, appendix B), of "+
			"which kernels skip half, and products of every precision against the peak of 16 bits", 100*r.MFU)}
	case r.Job.Precision.Low():
		return []string{"MFU counts products of every precision against the peak of 16 bits"}
	}
	return nil
}

// row is the step as a document, with what would help.
func (p *pricedStep) row(changes []step.Change) StepRow {
	m, f := p.Memory, p.tasks.Fabric()
	margin := step.Margin(p.job, p.model)
	row := StepRow{
		Layout: p.layout, Job: p.job.Summary(), Result: *p.Result,
		TFLOPSPerGPU: p.Flops / p.Step.Seconds() / float64(p.Ranks) / 1e12, TokensPerS: p.TokensPerSecond(),
		PerGPU: p.TokensPerSecond() / float64(p.Ranks),
		Margin: margin, Low: p.Step / unit.Span(margin), High: p.Step * unit.Span(margin), MarginFrom: p.marginSource(),
		Memory: map[string]unit.Bytes{
			"total": m.Total().Bytes(), "params": m.Params.Bytes(), "grads": m.Grads.Bytes(), "optimizer": m.Optimizer.Bytes(),
			"activations": m.Activations.Bytes(), "other": m.Other.Bytes(), "host": m.Host.Bytes(),
		},
		Has: p.model.Memory, Fits: p.fits(), Bottleneck: p.limit(), Groups: orEmpty(f.Groups()), Advice: orEmpty(changes),
		GPU: p.model.Title,
	}
	row.Traffic = orEmpty(row.Traffic)
	if shape := p.job.Pipeline(); shape.Ranks > 1 {
		row.Schedule = string(shape.Schedule)
	}
	if m.Host > 0 {
		row.HostMemory = f.HostMemoryText(m.Host)
	}
	return row
}

// marginSource says where the error bar of a step comes from.
func (p *pricedStep) marginSource() string {
	return "clusters left out of the fit, jobs of class " + step.Class(p.job, p.model)
}

// stepFitting is the fastest form of a job that does not fit, of those that were tried and do.
type stepFitting struct {
	Settings string     `json:"settings"` // flags of busbar step
	Step     unit.Span  `json:"step_s"`
	Low      unit.Span  `json:"low_s"` // the error bar
	High     unit.Span  `json:"high_s"`
	Memory   unit.Bytes `json:"memory_bytes"` // of a GPU
}

// mostFitting is the number of ranks up to which forms that fit are priced: each is as much work as the job itself.
const mostFitting = 1 << 12

// fitting is the fastest form of a job that fits: other degrees, sharding, recomputation and smaller micro-batches,
// with the same global batch, for adapters also frozen weights of 4 bits, for frameworks that shard no parameters FSDP,
// and where none of these fits, offload. nil where none of them fits. The search of busbar plan looks at far more of
// them.
func (t *training) fitting(s shape, p *pricedStep) *stepFitting {
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
func (t *training) fittingBy(flags string, layout nccl.Layout, name string) *stepFitting {
	var best *stepFitting
	for tp := 1; tp <= ranksOfFirst(layout); tp *= 2 {
		for pp := 1; tp*pp <= len(layout) && int64(pp) <= max(1, t.job.Model.Dims.Layers); pp *= 2 {
			for _, x := range t.lighter(tp, pp, layout, name) {
				p, err := x.priceOn(t.cluster, layout, name)
				if err != nil || best != nil && p.Step >= best.Step {
					continue
				}
				margin := unit.Span(step.Margin(p.job, p.model))
				best = &stepFitting{
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
	text := fmt.Sprintf("--parallel %s --recompute %s --global-batch %d --micro-batch %d", t.parallel, j.Recompute,
		j.GlobalBatch/t.pairs, j.MicroBatch/t.pairs)
	if j.LoRA != asked {
		text += " --lora " + j.LoRA.String()
	}
	return text
}

// lighter are the forms of a job by two degrees that fit. What takes more sharding, recomputation and smaller
// micro-batches than a form that fits is left out where it can only be slower: where nothing is sharded yet, and less
// of the others does.
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
