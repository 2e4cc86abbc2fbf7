package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/evidence"
	"busbar.dev/input/trainlog"
	"busbar.dev/internal/failure"
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
	// Took is how long one step was measured to take, in words; the answer then has the cluster with that.
	Took string `kong:"-"`

	priced func(*pricedStep) // sees the step of every layout
}

// StepDoc is the answer to Step: a row for every layout.
type StepDoc struct {
	Cluster  string           `json:"cluster"`
	Job      workload.Summary `json:"job"` // on the first layout
	Rows     []StepRow        `json:"rows"`
	Skipped  []string         `json:"skipped,omitempty"`  // layouts of a comparison that cannot be priced, and why
	Timeline []step.Bar       `json:"timeline,omitempty"` // where it was asked for
	// Measured is the step that was measured, Described the cluster with it.
	Measured  *measuredStep     `json:"measured,omitempty"`
	Described *cluster.Document `json:"described,omitempty"`
	Noted
}

// measuredStep is one step of the user's own beside its prediction, and what the cluster's calibration makes of it.
type measuredStep struct {
	Step      unit.Span `json:"step_s"`
	Predicted unit.Span `json:"predicted_s"` // without calibration
	Off       float64   `json:"off"`         // so many times as long
	Kind      string    `json:"kind"`        // of jobs that are taken to be as far off
	Factor    float64   `json:"factor"`      // that predictions of a job with the same share of communication now have
	Was       float64   `json:"margin_was"`
	Margin    float64   `json:"margin"`
}

// StepRow is the step on one layout.
type StepRow struct {
	Layout   string           `json:"layout"`
	Job      workload.Summary `json:"job"`
	Schedule string           `json:"schedule,omitempty"` // of a pipeline
	step.Result
	TFLOPSPerGPU float64               `json:"tflops_per_gpu,omitzero"`
	TokensPerS   float64               `json:"tokens_per_s,omitzero"`
	PerGPU       float64               `json:"tokens_per_s_per_gpu,omitzero"`
	Margin       float64               `json:"margin,omitzero"` // the step is expected between step/margin and step×margin
	Low          unit.Span             `json:"low_s,omitzero"`
	High         unit.Span             `json:"high_s,omitzero"`
	MarginFrom   string                `json:"margin_source,omitempty"`
	Memory       map[string]unit.Bytes `json:"memory_bytes"` // of a GPU: total, params, grads, optimizer, activations, other, driver (which PyTorch does not count); of its host: host
	Has          unit.Bytes            `json:"gpu_memory_bytes"`
	Fits         bool                  `json:"fits"`
	Sure         float64               `json:"fit_probability"`
	Tight        bool                  `json:"tight"` // it fits, and less than four times of five
	Groups       []step.Placement      `json:"groups"`
	Bottleneck   step.Limit            `json:"bottleneck"`
	Advice       []step.Change         `json:"advice"` // what would help, the best first
	Branches     []stepBranch          `json:"branches,omitempty"`
	AllReduces   []predict.Row         `json:"all_reduces,omitempty"` // of all gradients in one call, by algorithm: where layouts are compared
	Fitting      *stepFitting          `json:"would_fit,omitempty"`
	*CampaignDoc
	GPU        string `json:"gpu"`
	HostMemory string `json:"host_memory,omitempty"` // what of a node's own memory it takes, in words
}

// Wrong reports that the job fits the GPUs' memory on none of the layouts.
func (d *StepDoc) Wrong() bool {
	return !slices.ContainsFunc(d.Rows, func(r StepRow) bool { return r.Fits })
}

// fewRanks are so few that other networks are tried without being asked for: that takes milliseconds.
const fewRanks = 8

// stepBranch is the step under one answer to a question that nobody answered and that decides how data moves.
type stepBranch struct {
	If   string    `json:"if"`
	Tell string    `json:"tell"` // what to run to know it
	Step unit.Span `json:"step_s"`
	Low  unit.Span `json:"low_s"`
	High unit.Span `json:"high_s"`

	AllReduces []predict.Row `json:"all_reduces,omitempty"` // of the other answer; the row has those of the one that is taken
}

// branches are the step as it was priced and under the other answer to the question that changes it most, where that
// is more than facts which are not known may leave unsaid.
func (p *pricedStep) branches(chosen bool) ([]stepBranch, error) {
	q, err := predict.New(p.cluster, p.ranks, p.version, p.setting, nil)
	if err != nil {
		return nil, err
	}
	q.Chosen = chosen
	most, list := predict.WidestFork, []stepBranch(nil)
	margin := unit.Span(p.gpu.Margin(p.job))
	for _, f := range q.Forks() {
		at := p.jobSite
		at.cluster, at.ranks, at.setting = f.Cluster, f.Layout, f.Env
		other, err := at.price(p.job)
		if err != nil {
			continue // the job does not run so
		}
		if factor := float64(max(other.Step, p.Step) / min(other.Step, p.Step)); factor > most {
			sums, err := other.allReduces()
			if err != nil {
				return nil, err
			}
			most = factor
			list = []stepBranch{
				{f.Taken, f.Tell, p.Step, p.Step / margin, p.Step * margin, nil},
				{f.Other, f.Tell, other.Step, other.Step / margin, other.Step * margin, sums},
			}
		}
	}
	return list, nil
}

// noteDoubts says of an answer with one step, which has no place for two, what it depends on that nobody said.
func (p *pricedStep) noteDoubts(env *Env, chosen bool) error {
	if sure := step.Fits(p.Memory, p.model.Memory); sure < step.Sure {
		env.note(fmt.Sprintf("memory is tight: %s fits with a probability of %.0f%%", settings(p.job), 100*sure))
	}
	list, err := p.branches(chosen)
	if err != nil || len(list) == 0 {
		return err
	}
	x, other := list[0], list[1]
	env.note(fmt.Sprintf("the answer depends on what nobody said: with %s as assumed a step takes %s, with %s %s; %s "+
		"tells",
		x.If, x.Step.Short(), other.If, other.Step.Short(), x.Tell))
	return nil
}

// allReduces is what summing all gradients at once takes by each algorithm that NCCL could choose, the fastest first;
// none where ranks do not sum them, or each only its share, and where no layouts are compared.
func (p *pricedStep) allReduces() ([]predict.Row, error) {
	i := slices.IndexFunc(p.Traffic, func(x step.Traffic) bool { return x.Group == step.Data })
	if i < 0 || p.job.Split.ZeRO > 0 || !p.beside {
		return nil, nil
	}
	x := p.Traffic[i]
	q, err := p.tasks.Fabric().Predictor(step.Data)
	if err != nil {
		return nil, err
	}
	a, err := q.Ask(predict.Query{
		Kind: coll.AllReduce, Sizes: []unit.Bytes{(x.Bytes * unit.Volume(x.Calls)).Bytes()}, Algos: []string{predict.Each},
	})
	if err != nil {
		return nil, err
	}
	for i := range a.Rows {
		a.Rows[i].Layout = p.layout
	}
	slices.SortStableFunc(a.Rows, func(a, b predict.Row) int { return cmp.Compare(a.Time, b.Time) })
	return a.Rows, nil
}

// Run prices the step on every layout.
func (q Step) Run(ctx context.Context, env Env) (doc *StepDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
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
	t, err := q.Job.read(ctx, &env, 0)
	if err != nil {
		return nil, err
	}
	if (q.Took != "" || q.Drawn) && len(t.shapes) != 1 {
		return nil, errors.New("a measured step, or a timeline, is of one layout; choose one with -l")
	}
	if err := onHosts(q.Hosts, t.shapes); err != nil {
		return nil, err
	}
	if err := checkTuner(q.Tuner, t.version); err != nil {
		return nil, err
	}
	t.tuned, t.beside = q.Tuner, q.Compare != ""
	defer env.working("pricing the step")()
	d := &StepDoc{Cluster: t.cluster.Name, Rows: []StepRow{}}
	if len(t.shapes) > 1 {
		widest := slices.Clone(t.shapes) // one framework for all: that of the most nodes which can be priced
		slices.SortStableFunc(widest, func(a, b shape) int { return b.nodes - a.nodes })
		for _, s := range widest {
			if p, err := t.resolve(ctx, s); err == nil {
				t.keepFramework(p)
				break
			}
		}
	}
	var priced []*pricedStep
	for _, s := range t.shapes {
		p, err := t.resolve(ctx, s)
		none := (*misfit)(nil)
		switch {
		case errors.As(err, &none):
			d.Rows = append(d.Rows, none.row())
			continue
		case err != nil && q.Compare != "" && ctx.Err() == nil: // the others can still be compared
			d.Skipped = append(d.Skipped, sideError(s, err))
			continue
		case err != nil:
			return nil, err
		}
		priced = append(priced, p)
		if q.priced != nil {
			q.priced(p)
		}
		row, err := q.row(p, campaign)
		if err != nil {
			return nil, fmt.Errorf("layout %s: %w", p.layout, err)
		}
		env.note(row.mfuNote()...)
		p.noteCalibrated(&env)
		if q.Took != "" {
			took, err := tookStep(ctx, &env, p, q.Took)
			if err != nil {
				return nil, err
			}
			if err := d.keep(&env, p, took, q.Took); err != nil {
				return nil, err
			}
		}
		d.Rows = append(d.Rows, row)
		if q.Drawn {
			if d.Timeline, err = p.tasks.Timeline(p.gpu); err != nil {
				return nil, err
			}
		}
	}
	if err := unused(&q, priced...); err != nil && len(priced) > 0 {
		return nil, err
	}
	if len(d.Rows) == 0 {
		return nil, fmt.Errorf("none of the layouts can be priced: %s", strings.Join(d.Skipped, "; "))
	}
	d.Job = d.Rows[0].Job
	list := slices.DeleteFunc(assumedRates(t.cluster, len(t.cluster.Hosts) == 1 || t.shapes[0].nodes == 1),
		func(s string) bool { // predict.Assume notes those
			return strings.Contains(s, predict.AsGiven) || strings.HasPrefix(s, step.Trunks.String())
		})
	if len(list) > 0 {
		env.note("assumed, since no source says it: " + strings.Join(list, "; "))
	}
	return d, nil
}

// row is a step with what would help, and what a whole run of it takes.
func (q *Step) row(p *pricedStep, campaign *running) (row StepRow, err error) {
	if q.Advise && p.Ranks <= fewRanks {
		return row, failure.In("advise", fmt.Errorf("--advise has no effect: up to %d GPUs other networks and settings are "+
			"tried anyway; leave it out", fewRanks))
	}
	changes, err := p.tasks.Changes(p.gpu, p.Result, q.Advise || p.Ranks <= fewRanks)
	if err != nil {
		return row, err
	}
	data, feed, err := q.feed(p.job.GlobalBatch, p.nodes)
	if err != nil {
		return row, err
	}
	p.Feed(data)
	row = p.row(changes)
	if row.Branches, err = p.branches(q.Devices != ""); err != nil {
		return row, err
	}
	if row.AllReduces, err = p.allReduces(); err != nil {
		return row, err
	}
	if row.Starved > 0.1*row.Step {
		row.Bottleneck = step.Limit{
			Kind: "data", Text: fmt.Sprintf("%.0f%% of the step waits for data: %s", 100*float64(row.Starved/row.Step), feed),
		}
	}
	row.CampaignDoc, err = campaign.of(p)
	return row, err
}

// tookStep is how long a measured step took: a time, or what a training's log says of its steps.
func tookStep(ctx context.Context, env *Env, p *pricedStep, text string) (unit.Span, error) {
	took, failed := unit.ParseSpan(text)
	if failed == nil {
		if took == 0 {
			return 0, fmt.Errorf("--step %s: no step takes no time; expected one such as 5.9s", text)
		}
		return took, nil
	}
	if _, err := fs.Stat(env.files(), text); err != nil {
		return 0, fmt.Errorf("--step %s: no such file, and no time; expected the log of a training, or a time such as 5.9s",
			text)
	}
	set, err := (&Doctor{Sources: []string{text}}).read(ctx, env)
	if err != nil {
		return 0, fmt.Errorf("--step %s: %w", text, err)
	}
	t := set.Training
	if t == nil || t.Bar || t.Lines == 0 {
		return 0, fmt.Errorf("--step %s: no line says how fast a training went; expected its log, or a time such as 5.9s",
			text)
	}
	if other := p.otherThan(set); len(other) > 0 {
		return 0, fmt.Errorf("--step %s is of another job than was described: %s; expected the log of that job, or flags "+
			"that describe the log's", text, strings.Join(other, "; "))
	}
	tokens := float64(p.job.GlobalBatch) * float64(p.job.Seq)
	switch {
	case t.Step != nil:
		return unit.Span(t.Step.Median), nil
	case t.Tokens > 0:
		return unit.Span(tokens / t.Tokens), nil
	case t.PerGPU > 0:
		return unit.Span(tokens / t.PerGPU / float64(p.Ranks)), nil
	case t.Samples > 0:
		return unit.Span(float64(p.job.GlobalBatch) / t.Samples), nil
	}
	return 0, fmt.Errorf("--step %s: the log says neither how long steps take nor tokens/s or samples/s; expected "+
		"a time such as 5.9s", text)
}

// otherThan is what a log says of its job that is otherwise in the one that was priced.
func (p *pricedStep) otherThan(set *evidence.Set) []string {
	t, j, s := set.Training, p.job, p.job.Split
	job := trainlog.Facts{
		World: p.Ranks, DP: s.DP, TP: s.TP, PP: s.PP, CP: s.CP, Batch: int(j.GlobalBatch), Micro: int(j.MicroBatch),
		EP: s.EP, Experts: max(1, int(j.Model.Dims.Experts)), Params: int(j.Model.Params()), Sequence: int(j.Seq),
		Layers: int(j.Model.Dims.Layers), Hidden: int(j.Model.Dims.Hidden),
	}
	if t.World*s.PP == p.Ranks { // stages count those of their own
		job.World = t.World
	}
	other, said := t.Against(job), t.GPU
	if m, err := workload.Find(t.Model); err == nil && m.Name != j.Model.Name && m.Params() != j.Model.Params() {
		other = append(other, fmt.Sprintf("the log is of %s, the job of %s", m.Name, j.Model.Name))
	}
	if list := append(chips(set.Cluster), ""); said == "" {
		said = list[0]
	}
	if has := chips(p.cluster); said != "" && len(has) > 0 && !slices.Contains(has, truth.Chip(said)) {
		other = append(other, fmt.Sprintf("the log says %s, the cluster (-c) has %s", said, strings.Join(has, ", ")))
	}
	return other
}

// keep keeps a measured step with the cluster, in the place of an earlier one of such jobs, beside those with another
// share of exposed communication. One that is further off than any prediction, whatever was calibrated before, says
// that another job was measured than was described.
func (d *StepDoc) keep(env *Env, p *pricedStep, took unit.Span, text string) error {
	own := p.tasks.Took(p.gpu, p.Result, took, "one measured step of "+p.job.Model.Name+", layout "+p.layout)
	predicted := took / unit.Span(own.Value)
	if !(own.Value > 1.0/step.MostOff && own.Value < step.MostOff) {
		return fmt.Errorf("--step %s: %.3g times as long as predicted (%s); expected a step of the job that is described, "+
			"within %d times: check --global-batch, --parallel and --framework", text, own.Value, predicted.Short(),
			step.MostOff)
	}
	cl := *p.cluster
	cl.Calibration = withFigures(cl.Calibration, own)
	now, err := gpuOn(&cl, p.model)
	if err != nil {
		return err
	}
	d.Described, d.Measured = cl.Document(), &measuredStep{
		Step: took, Predicted: predicted, Off: own.Value, Kind: step.Kind(p.job, p.model),
		Factor: now.Measured(p.job, float64(p.Exposed/p.Step)),
		Was:    step.Margin(p.job, p.model), Margin: now.Margin(p.job),
	}
	if !now.HasMeasured(p.job) {
		env.note("measured steps of " + d.Measured.Kind + " predict each other no better than none does: they change no " +
			"prediction")
	}
	return nil
}

// withFigures is a calibration with figures in the place of those of their names.
func withFigures(c *cluster.Calibration, figures ...cluster.Calibrated) *cluster.Calibration {
	kept := cluster.Calibration{}
	if c != nil {
		kept = *c
	}
	kept.Figures = slices.Clone(kept.Figures)
	for _, own := range figures {
		kept.Figures = append(slices.DeleteFunc(kept.Figures,
			func(x cluster.Calibrated) bool { return x.Name == own.Name }), own)
	}
	return &kept
}

// row is a job that does not fit, without times.
func (m *misfit) row() StepRow {
	p := m.step
	return StepRow{
		Layout: p.layout, Job: p.summary(), Result: *p.Result, Memory: memoryBytes(p.Memory), Has: p.model.Memory,
		Sure:       step.Fits(p.Memory, p.model.Memory),
		Bottleneck: step.Limit{Kind: "memory", Text: m.Error()}, Fitting: m.fitting, GPU: p.model.Title,
	}
}

// memoryBytes is what a GPU and its host hold, by what it is.
func memoryBytes(m workload.Memory) map[string]unit.Bytes {
	return map[string]unit.Bytes{
		"total": m.Total().Bytes(), "params": m.Params.Bytes(), "grads": m.Grads.Bytes(), "optimizer": m.Optimizer.Bytes(),
		"activations": m.Activations.Bytes(), "other": m.Other.Bytes(), "driver": m.Driver.Bytes(), "host": m.Host.Bytes(),
	}
}

// highMFU is more than well-tuned training reaches: where a prediction says so, the reader asks what was counted.
const highMFU = 0.7

// noteCalibrated says what the step and its collectives are calibrated by.
func (p *pricedStep) noteCalibrated(env *Env) {
	for _, by := range predict.Calibrated(p.cluster) {
		env.note("collectives are " + by)
	}
	env.note(p.gpu.MeasuredBy(p.cluster, p.job, float64(p.Exposed/p.Step))...)
}

// mfuNote says what an MFU counts where it would astonish.
func (r *StepRow) mfuNote() []string {
	if r.MFU <= highMFU && !r.Job.Precision.Low() {
		return nil
	}
	return []string{fmt.Sprintf("MFU of %.0f%%: it counts attention without its causal mask (PaLM, appendix B), of which "+
		"kernels skip half, and products of every precision against the peak of 16 bits", 100*r.MFU)}
}

// row is the step as a document, with what would help.
func (p *pricedStep) row(changes []step.Change) StepRow {
	m, f := p.Memory, p.tasks.Fabric()
	margin := p.gpu.Margin(p.job)
	row := StepRow{
		Layout: p.layout, Job: p.summary(), Result: *p.Result,
		TFLOPSPerGPU: p.Flops / p.Step.Seconds() / float64(p.Ranks) / 1e12, TokensPerS: p.TokensPerSecond(),
		PerGPU: p.TokensPerSecond() / float64(p.Ranks),
		Margin: margin, Low: p.Step / unit.Span(margin), High: p.Step * unit.Span(margin), MarginFrom: p.marginSource(),
		Memory: memoryBytes(m),
		Has:    p.model.Memory, Fits: true, Bottleneck: p.limit(), Groups: orEmpty(f.Groups()), Advice: orEmpty(changes),
		GPU: p.model.Title,
	}
	row.Sure = step.Fits(m, p.model.Memory)
	row.Tight = row.Sure < step.Sure
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
	if p.gpu.HasMeasured(p.job) {
		return "a measured step of this cluster, " + step.Kind(p.job, p.model)
	}
	return "clusters left out of the fit, jobs of class " + step.Class(p.job, p.model)
}
