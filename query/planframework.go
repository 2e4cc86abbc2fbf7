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
		return []string{"hf", "nemo"}
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
// none. try is the value of the objective by a framework, and infinite, with the reason, where none is below a bound.
func (t *training) choose(nodes int,
	try func(f *workload.Framework, below float64) (value float64, why string, err error),
) (*workload.Framework, string, error) {
	alone := nodes == 1 || t.LoRA != ""
	best := math.Inf(1)
	var values []float64
	var reasons []string
	for _, f := range t.frameworks {
		if best < math.Inf(1) && (alone || !slices.Contains(simplest, f.Name)) {
			break
		}
		v, why, err := try(f, best)
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

// bestBy is the best plan by a framework whose step is at most so long; 0 is any time. The error is plan.ErrNone where
// there is none.
func (x *planned) bestBy(ctx context.Context, f *workload.Framework, most unit.Span) (*plan.Plan, error) {
	q := *x.query
	defer func() { x.query.Spaces, x.query.MaxStep = q.Spaces, q.MaxStep }()
	var err error
	if x.query.Spaces, err = x.spaces(f, x.query, x.order != nil); err != nil {
		return nil, err
	}
	if most > 0 && (q.MaxStep == 0 || most < q.MaxStep) {
		x.query.MaxStep = most
	}
	best, err := x.query.Best(ctx)
	if err != nil && !errors.Is(err, plan.ErrNone) && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", f.Title, err)
	}
	return best, err
}

// chooseFramework takes the framework of the search.
func (x *planned) chooseFramework(ctx context.Context) (err error) {
	own := x.query.GPU
	defer func() { x.query.GPU = own }()
	x.query.GPU = own.AsPredicted() // steps that were measured by some frameworks say nothing of the others
	x.framework, x.chosen, err = x.choose(hostsOf(x.ranks), func(f *workload.Framework, below float64) (float64, string,
		error,
	) {
		if len(x.frameworks) == 1 {
			return 0, "", nil // which is searched whatever it finds
		}
		most := unit.Span(0)
		if x.goal.Name == "time" && below < math.Inf(1) {
			most = unit.Span(below)
		}
		best, err := x.bestBy(ctx, f, most)
		switch {
		case ctx.Err() != nil:
			return math.Inf(1), "was not searched", nil
		case errors.Is(err, plan.ErrNone) && most > 0:
			return math.Inf(1), "is no faster", nil
		case errors.Is(err, plan.ErrNone):
			return math.Inf(1), "does not fit", nil
		case err != nil:
			return 0, "", err
		}
		return best.Value, "", nil
	})
	if x.framework == nil { // what says why there is none
		x.framework = x.frameworks[len(x.frameworks)-1]
	}
	return err
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

// compare finds what other frameworks would gain: their best plan with memory to spare, where predictions are good
// enough to tell it from the first. What cannot be is cut by that bound, so that this takes a fraction of the search.
func (x *planned) compare(ctx context.Context) ([]planOther, error) {
	if x.order != nil || x.goal.Name != "time" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, mostCompare)
	defer cancel()
	first := &x.answer.Plans[0]
	least, own, before := first.Value, *x.query, ""
	defer func() { x.query.GPU, x.query.Reserve = own.GPU, own.Reserve }()
	x.query.Reserve = max(own.Reserve, step.Spare())
	if x.query.GPU = own.GPU.AsPredicted(); x.query.GPU != own.GPU {
		least /= own.GPU.Measured(&first.Job, float64(first.Result.Exposed/first.Result.Step))
		before = ", both without measured steps"
	}
	var list []planOther
	for _, name := range x.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil || name == x.framework.Name || name == "megatron" && x.framework.Name == "nemo" || // both Megatron-Core
			x.misses(f) != nil {
			continue
		}
		best, err := x.bestBy(ctx, f, unit.Span(least/step.TieMargin))
		if err != nil && !errors.Is(err, plan.ErrNone) && ctx.Err() == nil {
			return nil, err
		}
		if best != nil {
			j := &best.Job
			list = append(list, planOther{
				Framework: f.String(), Step: best.Result.Step, Gain: 1 - best.Value/least,
				Parallel: j.Split,
				Settings: fmt.Sprintf("%s, %s kernels and %s%s", settings(j), j.Kernels, j.Precision, before),
			})
		}
	}
	return list, nil
}
