package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// planFrameworks are those that are chosen from where nobody names one, the first that runs what is fixed, and those
// that a plan is compared with.
var planFrameworks = []string{"megatron", "torchtitan", "fsdp", "deepspeed", "ddp"}

// candidates are the frameworks that a search without a named one takes in turn: for adapters those that are made for
// them, of which busbar writes files for the Trainer.
func (p *planning) candidates() []string {
	switch {
	case p.LoRA != "" && p.Emit != "":
		return []string{"hf"}
	case p.LoRA != "":
		return []string{"hf", "nemo"}
	case p.model.Replicated(): // the others' layers are not its own
		return []string{"ddp", "fsdp", "deepspeed"}
	}
	return planFrameworks
}

// planOther is what another framework would make of the job.
type planOther struct {
	Framework string         `json:"framework"`
	Step      unit.Span      `json:"step_s"`
	Gain      float64        `json:"gain"`           // in the objective: 0.1 is a tenth less
	Tied      bool           `json:"tied,omitempty"` // the gain is below what predictions are good for
	Parallel  workload.Split `json:"parallel"`
	Settings  string         `json:"settings"`
	// Difference says how much of the gain its kernels and its precision make; "" where they are the plan's own, or the
	// gain is too small to tell.
	Difference string  `json:"difference,omitempty"`
	Kernels    float64 `json:"kernels_share,omitempty"` // what they make of the gain: 1 is all of it
}

// chooseFramework takes the first that has the model and runs what is fixed, and says why it is not the first of all.
// Those that would do too come next where nothing fits. Kernels that somebody names are asked of them too.
func (p *planning) chooseFramework() {
	p.chosen = byDefault
	for _, name := range p.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil {
			continue // the names are of the table: a test has read them
		}
		reason := p.misses(f)
		switch {
		case reason != nil:
			if p.framework == nil && p.chosen == byDefault {
				p.chosen = strings.TrimSuffix(reason.Error(), ".")
			}
		case p.framework == nil:
			p.framework = f
		default:
			p.next = append(p.next, f)
		}
	}
	if p.framework == nil {
		p.chosen = ""
	}
}

// plan searches on one cluster: by the framework that was named or chosen and, where nobody named one and nothing fits,
// by the next that runs what is fixed.
func (p *planning) plan(ctx context.Context, v planVariant) (*planned, error) {
	x, err := p.search(ctx, v)
	first, other := x, *p
	for _, f := range p.next {
		if !errors.Is(err, plan.ErrNone) {
			return x, err
		}
		other.unfit = append(other.unfit, other.framework.Name)
		other.framework, other.chosen = f,
			fmt.Sprintf("nothing fits by %s: %s", strings.Join(other.unfit, ", "), first.lacks())
		next := other
		x, err = next.search(ctx, v)
	}
	if errors.Is(err, plan.ErrNone) {
		return nil, first.none(p.next)
	}
	return x, err
}

// fitting is another framework by which something fits where none does by the one that was named, and the setting; ""
// where there is none, or where all were tried.
func (x *planned) fitting() string {
	if x.framework == nil || x.Framework == "" {
		return ""
	}
	for _, name := range x.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil || name == x.framework.Name || x.misses(f) != nil {
			continue
		}
		_, s, err := x.spaceBy(f, "")
		if err != nil {
			continue
		}
		if y := x.query.Fits(s); y != nil {
			return fmt.Sprintf("with --framework %s %s would fit: %.1f GiB", name, settings(&y.Job), y.Memory.Total().GiB())
		}
	}
	return ""
}

// spaceBy is what another framework may vary on the same ranks, with kernels; "" are its own.
func (x *planned) spaceBy(f *workload.Framework, kernels workload.Kernels) (*planning, *plan.Space, error) {
	p, own := *x.planning, x.query.Spaces[0]
	p.framework, p.kernels = f, kernels
	s, err := p.space(own.Ranks, own.Ranks, own.Node, x.query.GPU.Model.SM)
	if err != nil {
		return nil, nil, err
	}
	s.Leaf = own.Leaf
	return &p, s, nil
}

// bestIn is the best plan of a space by a framework whose step is at most so long; nil where there is none, or the time
// is up.
func (x *planned) bestIn(ctx context.Context, s *plan.Space, f *workload.Framework,
	most unit.Span,
) (*plan.Plan, error) {
	q := *x.query
	q.Spaces, q.MaxStep = []*plan.Space{s}, most
	best, err := q.Best(ctx)
	if err != nil && !errors.Is(err, plan.ErrNone) && ctx.Err() == nil {
		return nil, fmt.Errorf("%s: %w", f.Title, err)
	}
	return best, nil
}

// simplest are frameworks that need least to be installed and told, the simplest first.
var simplest = []string{"ddp", "fsdp", "torchtitan"}

// simpler is the plan by the simplest framework whose best cannot be told from the first, where nobody named one; nil
// where that is the framework at hand.
func (x *planned) simpler(ctx context.Context) (*planned, error) {
	if x.Framework != "" || x.LoRA != "" || x.chosen != byDefault || x.order != nil || len(x.query.Spaces) != 1 ||
		x.goal.Name != "time" {
		return nil, nil
	}
	for _, name := range simplest {
		f, err := workload.ParseFramework(name)
		if err != nil || x.misses(f) != nil {
			continue
		}
		if f.Name == x.framework.Name {
			return nil, nil
		}
		p, s, err := x.spaceBy(f, x.kernels)
		if err != nil {
			return nil, err
		}
		best, err := x.bestIn(ctx, s, f, x.answer.Plans[0].Result.Step*step.TieMargin)
		if err != nil {
			return nil, err
		}
		if best == nil {
			continue
		}
		p.next = nil
		p.chosen = fmt.Sprintf("the simplest within %.0f%% of %s", 100*(step.TieMargin-1), x.framework.Title)
		y, err := p.search(ctx, x.planVariant)
		if ctx.Err() != nil {
			return nil, nil // who ends the search gets the plans that there are, of the search that was whole
		}
		return y, err
	}
	return nil, nil
}

// byDefault is why a framework was chosen where nothing speaks against the first.
const byDefault = "the default"

// misses is what of the fixed settings a framework does not run; nil where it runs them all.
func (p *planning) misses(f *workload.Framework) error {
	split, err := p.Parallel.split()
	if err != nil {
		return nil // which is said where it is read
	}
	if split.Shard == workload.ShardNode {
		split.Shard = 2
	}
	// Replicas enough that all that is fixed has a meaning.
	split.DP = max(split.DP, 1) * max(split.Shard, 2) * max(split.EP, 1)
	j := workload.Job{
		Model: p.model, Seq: p.Seq, Split: split, Precision: readPrecision(string(p.Precision), f), Kernels: p.kernels,
		Recompute: workload.Recompute(p.Recompute),
	}
	j.Seq = cmp.Or(j.Seq, p.model.Seq)
	if p.LoRA != "" {
		if j.LoRA, err = workload.ParseLoRA(p.LoRA); err != nil {
			return nil // which is said where it is read
		}
	}
	if !strings.Contains(string(p.Parallel), "zero=") {
		j.Split.ZeRO = f.DefaultZeRO(split)
	}
	j.MicroBatch, j.GlobalBatch = 1, int64(split.Ranks())
	if split.PP > 1 {
		j.GlobalBatch *= int64(split.PP)
	}
	for _, word := range p.Schedule {
		if j.Schedule = pipeline.Schedule(word); j.Split.PP < 2 {
			j.Split.PP, j.Split.ZeRO = 2, min(j.Split.ZeRO, 1)
		}
	}
	for _, word := range p.Offload {
		j.Offload = workload.Offload(word)
	}
	for _, word := range p.Compress {
		j.Compress = workload.Wire(word)
	}
	for _, word := range p.Context {
		j.Context, j.Split.CP = workload.Context(word), max(j.Split.CP, 2)
	}
	if strings.Contains(string(p.Parallel), "zero=") && !slices.Contains(f.ZeRO, j.Split.ZeRO) && p.Framework == "" {
		return fmt.Errorf("%s has zero=%d by another mode, where it is named", f.Title, j.Split.ZeRO)
	}
	return f.Refuses(&j)
}

// leastGain is how much better another framework's plan must be to be spoken of.
const leastGain = 0.01

// leastCompare is what the comparison with other frameworks may take whatever the search took.
const leastCompare = 10 * time.Second

// compare finds what other frameworks would gain: their best plan, where it is better than the first by leastGain. What
// cannot be is cut by that bound, so that this takes a fraction of the search.
func (x *planned) compare(ctx context.Context) ([]planOther, error) {
	if x.framework == nil || x.order != nil || len(x.query.Spaces) != 1 || x.goal.Name != "time" {
		return nil, nil
	}
	// This may take as long as the search itself, which nobody asked for.
	ctx, cancel := context.WithTimeout(ctx, max(leastCompare, x.took))
	defer cancel()
	first := &x.answer.Plans[0]
	var list []planOther
	for _, name := range x.candidates() {
		f, err := workload.ParseFramework(name)
		if err != nil || name == x.framework.Name || name == "megatron" && x.framework.Name == "nemo" ||
			slices.Contains(x.unfit, name) {
			continue // both are Megatron-Core
		}
		own := *x.planning
		if own.kernels = ""; own.misses(f) != nil {
			continue
		}
		_, s, err := x.spaceBy(f, "")
		if err != nil {
			return nil, err
		}
		best, err := x.bestIn(ctx, s, f, first.Result.Step*(1-leastGain))
		if err != nil {
			return nil, err
		}
		if best != nil {
			o := planOther{
				Framework: f.String(), Step: best.Result.Step, Gain: 1 - best.Value/first.Value,
				Tied:     first.Value <= best.Value*step.TieMargin,
				Parallel: best.Job.Split, Settings: settings(&best.Job),
			}
			if err := o.explain(x.query, first, best); err != nil {
				return nil, err
			}
			list = append(list, o)
		}
	}
	return list, nil
}

// explain says how much of what another framework gains is its kernels and its precision: the first plan is priced with
// them, and all else as it is.
func (o *planOther) explain(q *plan.Query, first, best *plan.Plan) error {
	j := first.Job
	j.Kernels, j.Precision = best.Job.Kernels, best.Job.Precision
	if o.Tied || j.Kernels == first.Job.Kernels && j.Precision == first.Job.Precision {
		return nil
	}
	r, err := step.Step(&j, q.GPU, q.Fabric(&j))
	if err != nil {
		return err
	}
	o.Kernels = float64((first.Result.Step - r.Step) / (first.Result.Step - best.Result.Step))
	var own, other []string
	if j.Kernels != first.Job.Kernels {
		own, other = append(own, string(j.Kernels)+" kernels"), append(other, string(first.Job.Kernels))
	}
	if j.Precision != first.Job.Precision {
		own, other = append(own, string(j.Precision)), append(other, string(first.Job.Precision))
	}
	share, rest := "all of this is by", ""
	switch {
	case o.Kernels < 0.05:
		share, rest = "none of this is by", ", all of it by its other settings"
	case o.Kernels < 0.95:
		share, rest = fmt.Sprintf("%.0f%% of this is by", 100*o.Kernels), ", the rest by its other settings"
	}
	o.Difference = fmt.Sprintf("%s %s instead of %s%s", share, strings.Join(own, " and "), strings.Join(other, " and "),
		rest)
	return nil
}

// said is a split in the words of --parallel: with a framework what is left out is the framework's default, so that
// zero and sp are always said.
func (x *planned) said(s workload.Split) string {
	text := s.String()
	if x.framework == nil {
		return text
	}
	if s.ZeRO == 0 && s.DP*s.CP > 1 {
		text += ",zero=0"
	}
	if s.EP > 1 && s.TP > 1 && s.ExpertTensor() == s.TP && x.framework.Experts == "folded" {
		text += fmt.Sprintf(",etp=%d", s.TP)
	}
	if !s.SeqParallel && s.TP > 1 && x.framework.Sequence {
		text += ",sp=0"
	}
	return text
}
