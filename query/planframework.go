package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// simplest are the frameworks to choose from where nobody names one, the simplest first. Those of lastResorts are taken
// in turn where the job fits by none of them.
var (
	simplest    = []string{"ddp", "fsdp", "megatron"}
	lastResorts = []string{"torchtitan", "deepspeed"}
)

// candidates are the frameworks that may be chosen: for adapters those that are made for them, of which busbar writes
// files for the Trainer.
func (t *training) candidates() []string {
	switch {
	case t.LoRA != "" && t.Emit != "":
		return []string{"hf"}
	case t.LoRA != "":
		return []string{"hf", "fsdp", "nemo"}
	case t.model.Replicated(): // the others' layers are not its own
		return []string{"ddp", "fsdp", "deepspeed"}
	}
	return slices.Concat(simplest, lastResorts)
}

// readFrameworks reads the framework that was named, or those that have the model and run what is fixed.
func (t *training) readFrameworks() error {
	if t.Framework != "" {
		f, err := readFramework(t.env, t.Framework)
		if err == nil {
			err = f.RefusesModel(t.model)
		}
		if err == nil && t.LoRA != "" {
			err = f.RefusesLoRA(t.job.LoRA)
		}
		t.frameworks = []*workload.Framework{f}
		return err
	}
	var most *workload.Framework // of those that do not run it, the one that runs most: it says why
	for i, name := range t.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil {
			return err
		}
		if i < len(simplest) {
			most = f
		}
		if t.misses(f) == nil {
			t.frameworks = append(t.frameworks, f)
		}
	}
	if len(t.frameworks) == 0 {
		t.frameworks = append(t.frameworks, most)
	}
	return nil
}

// keepFramework has all layouts run by the framework of one of them.
func (t *training) keepFramework(p *pricedStep) {
	t.frameworks, t.reason = []*workload.Framework{p.job.Framework}, p.chosen
}

// choose is the framework of a job on so many nodes, and why where nobody named it: on one node, and for adapters, the
// first by which the job fits; on several the simplest whose step is within 10% of the shortest. Nil where it fits by
// none. try is the value of the objective by a framework, and infinite, with the reason, where it does not run the job.
func (t *training) choose(nodes int, try func(f *workload.Framework) (value float64, why string, err error)) (
	*workload.Framework, string, error,
) {
	alone := nodes == 1 || t.LoRA != ""
	best := math.Inf(1)
	var values []float64
	var reasons []string
	for _, f := range t.frameworks {
		if best < math.Inf(1) && (alone || !slices.Contains(simplest, f.Name)) {
			break
		}
		v, why, err := try(f)
		if err != nil {
			return nil, "", err
		}
		values, reasons = append(values, v), append(reasons, f.Name+" "+why)
		best = min(best, v)
	}
	at := slices.IndexFunc(values, func(v float64) bool { return v <= best*step.TieMargin && v < math.Inf(1) })
	switch {
	case at < 0:
		return nil, "", nil
	case len(t.frameworks) == 1:
		return t.frameworks[at], t.reason, nil
	}
	text := "the simplest of those by which it fits"
	if !alone {
		text = fmt.Sprintf("the simplest within %.0f%% of the best", 100*(step.TieMargin-1))
	}
	for i, v := range values[:at] {
		if v < math.Inf(1) {
			reasons[i] = fmt.Sprintf("%s takes %.0f%% longer", t.frameworks[i].Name, 100*(v/best-1))
		}
	}
	if at > 0 {
		text += ": " + strings.Join(reasons[:at], ", ")
	}
	return t.frameworks[at], text, nil
}

// planOther is what another framework would make of the job.
type planOther struct {
	Framework string         `json:"framework"`
	Step      unit.Span      `json:"step_s"`
	Gain      float64        `json:"gain"` // in the objective: 0.1 is a tenth less
	Parallel  workload.Split `json:"parallel"`
	Settings  string         `json:"settings"` // its kernels and precision too
}

// by is the same question to another framework.
func (x *planned) by(f *workload.Framework) (*planned, error) {
	y, q := *x, *x.query
	y.framework, y.query, y.answer, y.run = f, &q, nil, nil
	var err error
	q.Spaces, err = x.spaces(f, &q, x.order != nil)
	return &y, err
}

// chooseFramework is the question to the framework of the search, with its answer where that was found.
func (x *planned) chooseFramework(ctx context.Context) (*planned, error) {
	if len(x.frameworks) == 1 { // which is searched whatever it finds
		y, err := x.by(x.frameworks[0])
		y.chosen = x.training.reason
		return y, err
	}
	gpu := x.query.GPU.AsPredicted() // steps that were measured by some frameworks say nothing of the others
	found := map[*workload.Framework]*planned{}
	f, why, err := x.choose(hostsOf(x.ranks), func(f *workload.Framework) (float64, string, error) {
		y, err := x.by(f)
		if err != nil {
			return 0, "", err
		}
		y.query.GPU, y.order = gpu, nil
		switch err = y.find(ctx); {
		case err != nil && ctx.Err() != nil:
			return math.Inf(1), "was not searched", nil
		case errors.Is(err, plan.ErrNone):
			return math.Inf(1), "does not fit", nil
		case err != nil:
			return 0, "", fmt.Errorf("%s: %w", f.Title, err)
		}
		found[f] = y
		return y.answer.Plans[0].Value, "", nil
	})
	if err != nil {
		return nil, err
	}
	y := found[f]
	if y == nil || x.order != nil || gpu != x.query.GPU {
		y, err = x.by(cmp.Or(f, x.frameworks[len(x.frameworks)-1])) // the last says why there is none
	}
	if y.chosen = why; gpu != x.query.GPU && strings.Contains(why, "%") {
		y.chosen += "; all as predicted without measured steps"
	}
	return y, err
}

// misses is what of the fixed settings a framework does not run; nil where it runs them all.
func (t *training) misses(f *workload.Framework) error {
	split, err := t.Parallel.split()
	if err != nil {
		return err
	}
	if split.Shard == workload.ShardNode {
		split.Shard = 2
	}
	// Replicas enough that all that is fixed has a meaning.
	split.DP = max(split.DP, 1) * max(split.Shard, 2) * max(split.EP, 1)
	zero := strings.Contains(string(t.Parallel), "zero=")
	if !zero {
		split.ZeRO = f.DefaultZeRO(split)
	}
	j := t.job
	j.Split, j.Precision, j.Recompute = split, cmp.Or(j.Precision, f.DefaultPrecision()), t.Recompute
	j.MicroBatch, j.GlobalBatch = 1, int64(split.Ranks())
	if split.PP > 1 {
		j.GlobalBatch *= int64(split.PP)
	}
	for _, word := range t.Schedule {
		if j.Schedule = word; j.Split.PP < 2 {
			j.Split.PP, j.Split.ZeRO = 2, min(j.Split.ZeRO, 1)
		}
	}
	for _, word := range t.Offload {
		j.Offload = word
	}
	for _, word := range t.Compress {
		j.Compress = word
	}
	for _, word := range t.Context {
		j.Context, j.Split.CP = word, max(j.Split.CP, 2)
	}
	if err := f.Refuses(&j); err != nil || t.Framework != "" {
		return err
	}
	for degree, n := range map[string]int{"tp": split.TP, "pp": split.PP, "cp": split.CP, "ep": split.EP} {
		if n > 1 && !slices.Contains(f.Planned, degree) {
			return fmt.Errorf("%s has %s=%d where it is named alone", f.Title, degree, n)
		}
	}
	if zero && !slices.Contains(f.ZeRO, split.ZeRO) {
		return fmt.Errorf("%s has zero=%d by another mode, where it is named", f.Title, split.ZeRO)
	}
	return nil
}

// mostCompare is what the comparison with other frameworks may take, which nobody asked for.
const mostCompare = 20 * time.Second

// compare finds what other frameworks would gain: the first of their own plans, where predictions are good enough to
// tell it from the first here. What has no such plan with memory to spare is cut by that bound, so that this takes a
// fraction of the search.
func (x *planned) compare(ctx context.Context) ([]planOther, error) {
	if x.order != nil || x.goal.Name != "time" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostCompare)
	defer cancel()
	first := &x.answer.Plans[0]
	var list []planOther
	for _, name := range x.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil || name == x.framework.Name || name == "megatron" && x.framework.Name == "nemo" || // both Megatron-Core
			x.misses(f) != nil {
			continue
		}
		y, err := x.by(f)
		if err != nil {
			return nil, err
		}
		q := *y.query
		q.Reserve, q.MaxStep = max(q.Reserve, step.Spare()), unit.Span(first.Value/step.TieMargin)
		best, err := q.Best(ctx)
		if best != nil {
			y.query.Watch = nil
			err = y.find(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return list, nil
		case errors.Is(err, plan.ErrNone):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", f.Title, err)
		}
		if p := &y.answer.Plans[0]; p.Value*step.TieMargin < first.Value {
			list = append(list, x.other(f, p))
		}
	}
	return list, nil
}

// other is a plan of another framework against the first.
func (x *planned) other(f *workload.Framework, p *plan.Plan) planOther {
	j, first := &p.Job, &x.answer.Plans[0]
	text := fmt.Sprintf("%s, %s kernels and %s", settings(j), j.Kernels, j.Precision)
	from := map[bool]string{true: "by measured steps", false: "as predicted"}
	if own := x.query.GPU.HasMeasured(&first.Job); own != x.query.GPU.HasMeasured(j) {
		text += fmt.Sprintf(", %s; %s's %s is %s", from[!own], x.framework.Name, first.Result.Step, from[own])
	}
	return planOther{f.String(), p.Result.Step, 1 - p.Value/first.Value, j.Split, text}
}
