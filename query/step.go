package query

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/hardware"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Step asks how long one training step takes and where the time goes: computing, waiting for the network, the pipeline's
// bubble, the optimizer; how much memory each GPU needs; what limits it and what would help. Asked about a whole run, it also
// says what slow nodes, failures and checkpoints cost.
type Step struct {
	Job
	OnHosts
	Campaign
	Feeding
	Tuner  bool `help:"Price NCCL with busbar's tuner plugin (written by plan --emit): collectives use the algorithm and protocol predicted fastest instead of NCCL's choice."`
	Advise bool `help:"Also try other networks and NCCL settings, each as expensive as the step itself (default: only up to 8 GPUs)."`
}

// StepDoc is the answer to Step: a row for every layout.
type StepDoc struct {
	Cluster string    `json:"cluster"`
	Rows    []StepRow `json:"rows"`
	Noted
}

// StepRow is the step on one layout. Parts of its time do not add up where they overlap: Step is Compute, the exposed part of
// Comm, Bubble, Optimizer, Host and Starved.
type StepRow struct {
	Layout       string                `json:"layout"`
	GPUs         int                   `json:"gpus"`
	Model        string                `json:"model"`
	Parallel     string                `json:"parallel"`
	Schedule     string                `json:"schedule,omitempty"` // of a pipeline
	GlobalBatch  int64                 `json:"global_batch"`
	MicroBatch   int64                 `json:"micro_batch"`
	Seq          int64                 `json:"seq"`
	Precision    workload.Precision    `json:"precision"`
	Step         unit.Span             `json:"step_s"`
	Compute      unit.Span             `json:"compute_s"`
	Comm         unit.Span             `json:"comm_s"`         // of all collectives
	Exposed      unit.Span             `json:"exposed_comm_s"` // of that, what nothing hides
	Bubble       unit.Span             `json:"bubble_s"`       // that a pipeline leaves ranks idle
	Optimizer    unit.Span             `json:"optimizer_s"`
	Host         unit.Span             `json:"host_s"`
	Data         unit.Span             `json:"data_s,omitempty"`           // in which the samples of a step come
	Starved      unit.Span             `json:"waits_for_data_s,omitempty"` // of the step
	MFU          float64               `json:"mfu"`
	HFU          float64               `json:"hfu"` // with what is computed again
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
	Groups       []StepGroup           `json:"groups"`
	Traffic      []StepTraffic         `json:"traffic"`
	Bottleneck   step.Limit            `json:"bottleneck"`
	Advice       []StepAdvice          `json:"advice"` // what would help, the best first
	Fitting      *StepFitting          `json:"would_fit,omitempty"`
	*CampaignDoc

	Job        *workload.Job     `json:"-"`
	Result     *step.Result      `json:"-"`
	GPU        hardware.GPUModel `json:"-"`
	Placements []step.Placement  `json:"-"` // where the groups sit
	HostMemory string            `json:"-"` // what of a node's own memory it takes, in words; "" is nothing

	priced *pricedStep
}

// StepGroup is a kind of groups of ranks that communicate.
type StepGroup struct {
	Group      string `json:"group"`
	Size       int    `json:"size"`
	Count      int    `json:"count"`
	Ranks      []int  `json:"ranks"` // of the first, 64 at most
	Nodes      int    `json:"nodes"` // that it is on
	Concurrent int    `json:"groups_on_a_node"`
}

// StepTraffic is what one kind of groups does in a step.
type StepTraffic struct {
	Group   string      `json:"group"`
	What    string      `json:"what"`
	Bytes   unit.Volume `json:"bytes_per_call"`
	Calls   float64     `json:"calls"`
	Time    unit.Span   `json:"comm_s"`
	Exposed unit.Span   `json:"exposed_s"`
	Limit   string      `json:"limit"`
}

// StepAdvice is one change that would help.
type StepAdvice struct {
	Text    string  `json:"text"`
	Setting string  `json:"setting"` // a flag of busbar step, or what to buy
	Gain    float64 `json:"gain"`    // in tokens per second: 0.1 is a tenth more
	Buy     bool    `json:"purchase,omitempty"`
}

// Wrong reports that the job fits the GPUs' memory on none of the layouts: its times are then those of GPUs with enough of it.
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
	if err := q.put(t.shapes); err != nil {
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
			row.Bottleneck = step.Limit{Kind: "data", Text: fmt.Sprintf("%.0f%% of the step waits for data: %s", 100*float64(row.Starved/row.Step), feed)}
		}
		if row.CampaignDoc, err = campaign.of(t, s, p); err != nil {
			return nil, fmt.Errorf("layout %s: %w", p.layout, err)
		}
		env.note(row.mfuNote()...)
		list := slices.DeleteFunc(assumedRates(t.cluster, p.nodes == 1), func(s string) bool {
			return strings.Contains(s, predict.AsGiven) || strings.HasPrefix(s, step.Trunks.String()) // predict.Assume notes those
		})
		if len(list) > 0 && !assumed {
			assumed = true
			env.note("assumed, since no source says it: " + strings.Join(list, "; "))
		}
		d.Rows = append(d.Rows, row)
	}
	return d, nil
}

// highMFU is more than well-tuned training reaches: where a prediction says so, the reader asks what was counted.
const highMFU = 0.7

// mfuNote says what an MFU counts where it would astonish.
func (r *StepRow) mfuNote() []string {
	switch {
	case r.MFU > highMFU:
		return []string{fmt.Sprintf("MFU of %.0f%%: it counts attention without its causal mask (PaLM, appendix B), of which kernels skip half, and products of every precision against the peak of 16 bits", 100*r.MFU)}
	case r.Job != nil && r.Job.Precision.Low():
		return []string{"MFU counts products of every precision against the peak of 16 bits"}
	}
	return nil
}

// row is the step as a document, with what would help.
func (p *pricedStep) row(changes []step.Change) StepRow {
	m, f := p.Memory, p.tasks.Fabric()
	margin := step.Margin(p.job, p.model)
	row := StepRow{
		Layout: p.layout, GPUs: p.Ranks, Model: p.job.Model.Name, Parallel: p.job.Split.String(), GlobalBatch: p.job.GlobalBatch,
		MicroBatch: p.job.MicroBatch, Seq: p.job.Seq, Precision: p.job.Precision, Step: p.Step, Compute: p.Compute, Comm: p.Comm, Exposed: p.Exposed,
		Bubble: p.Bubble, Optimizer: p.Optimizer, Host: p.Host, Data: p.Data, Starved: p.Starved, MFU: p.MFU, HFU: p.HFU,
		TFLOPSPerGPU: p.Flops / p.Step.Seconds() / float64(p.Ranks) / 1e12, TokensPerS: p.TokensPerSecond(), PerGPU: p.TokensPerSecond() / float64(p.Ranks),
		Margin: margin, Low: p.Step / unit.Span(margin), High: p.Step * unit.Span(margin), MarginFrom: p.marginSource(),
		Memory: map[string]unit.Bytes{
			"total": m.Total().Bytes(), "params": m.Params.Bytes(), "grads": m.Grads.Bytes(), "optimizer": m.Optimizer.Bytes(),
			"activations": m.Activations.Bytes(), "other": m.Other.Bytes(), "host": m.Host.Bytes(),
		},
		Has: p.model.Memory, Fits: p.fits(), Bottleneck: p.limit(), Groups: []StepGroup{}, Traffic: []StepTraffic{}, Advice: []StepAdvice{},
		Job: p.job, Result: p.Result, GPU: p.model, Placements: f.Groups(), priced: p,
	}
	if shape := p.job.Pipeline(); shape.Ranks > 1 {
		row.Schedule = string(shape.Schedule)
	}
	for _, g := range row.Placements {
		row.Groups = append(row.Groups, StepGroup{Group: g.Group.String(), Size: g.Size, Count: g.Count, Ranks: g.Ranks, Nodes: g.Hosts, Concurrent: g.Concurrent})
	}
	for _, t := range p.Traffic {
		row.Traffic = append(row.Traffic, StepTraffic{Group: t.Group.String(), What: t.What, Bytes: t.Bytes, Calls: t.Calls, Time: t.Time, Exposed: t.Exposed, Limit: t.Limit})
	}
	for _, c := range changes {
		row.Advice = append(row.Advice, StepAdvice{Text: c.Text, Setting: c.Setting, Gain: c.Gain, Buy: c.Buy})
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

// Timeline plays the step of the one layout that was asked for.
func (d *StepDoc) Timeline() ([]step.Bar, error) {
	if len(d.Rows) != 1 {
		return nil, fmt.Errorf("a timeline is of one layout; choose one layout")
	}
	p := d.Rows[0].priced
	if p == nil {
		return nil, ErrDecoded
	}
	return p.tasks.Timeline(p.gpu)
}
