package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/step"
	"busbar.dev/unit"
)

// part is a share of a step's time.
type part struct {
	Name string
	Time unit.Span
}

// parts of a step add up to its time.
func parts(r *step.Result) []part {
	list := []part{
		{"computing", r.Compute},
		{"the pipeline bubble", r.Step - r.Compute - r.Exposed - r.Optimizer - r.Host},
		{"the update", r.Optimizer + r.Host},
	}
	for _, t := range r.Traffic {
		list = append(list, part{fmt.Sprintf("%s among %s ranks", t.What, t.Group), t.Exposed})
	}
	return list
}

// Compare says why a plan is not the best. Worse is the word for more of the objective. Where every GPU counts and the
// plans have different numbers of them, times are what they would be on as many GPUs.
func (q *Query) Compare(best, other Plan, worse string) string {
	if other.Value-best.Value < 1e-6*best.Value {
		return "no " + worse
	}
	scale := unit.Span(1)
	if q.Objective == Cheapest {
		scale = unit.Span(other.Result.Ranks) / unit.Span(best.Result.Ranks)
	}
	text := fmt.Sprintf("%.1f%% %s", 100*(other.Value/best.Value-1), worse)
	if why := differences(best.Result, other.Result, scale); why != "" {
		text += ": " + why
	}
	return text
}

// Differences says what a step has more and less of than another, for as many tokens of a GPU.
func Differences(was, is *step.Result) string {
	work := func(r *step.Result) float64 { return r.Tokens / float64(r.Ranks) }
	return differences(was, is, unit.Span(work(was)/work(is)))
}

// differences are the parts of a step, times a scale, that are longer than another's by most, and what is shorter.
func differences(was, is *step.Result, scale unit.Span) string {
	have := map[string]unit.Span{}
	for _, p := range parts(was) {
		have[p.Name] -= p.Time
	}
	for _, p := range parts(is) {
		have[p.Name] += p.Time * scale
	}
	var list []part
	for name, d := range have {
		list = append(list, part{name, d})
	}
	slices.SortFunc(list, func(a, b part) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
	// What is a tenth of the largest difference or less does not decide.
	worth := 0.1 * max(list[0].Time, -list[len(list)-1].Time)
	var why []string
	for i, p := range list[:min(2, len(list))] {
		if p.Time > 0 && (i == 0 || p.Time > worth) {
			why = append(why, fmt.Sprintf("%v more for %s", p.Time.Time(), p.Name))
		}
	}
	if p := list[len(list)-1]; p.Time < 0 && -p.Time > worth {
		why = append(why, fmt.Sprintf("%v less for %s", (-p.Time).Time(), p.Name))
	}
	return strings.Join(why, ", ")
}

// worthSaying is the share of a plan's value that a setting other than the usual one must gain.
const worthSaying = 0.001

// PreferDefaults gives plans the usual size of buckets back where another gains less than a thousandth, which
// no prediction is good for. Plans keep their order.
func (q *Query) PreferDefaults(plans []Plan) error {
	for i := range plans {
		p := &plans[i]
		usual := q.Spaces[0].Bucket[0]
		if p.Job.Bucket == usual {
			continue
		}
		j := p.Job
		j.Bucket = usual
		r, err := step.Step(&j, q.GPU, q.Fabric(&j))
		if err != nil {
			return err
		}
		if v := q.Objective.Value(r); v <= p.Value*(1+worthSaying) {
			*p = Plan{j, r, v}
		}
	}
	return nil
}

// Tuned is a plan under a tuner plugin.
type Tuned struct {
	Step    unit.Span     `json:"step_s"`
	Choices []step.Choice `json:"choices"`
}

// Tune prices a plan as it would be under a tuner plugin that makes NCCL take the fastest algorithm
// and protocol for each of its collectives.
func (q *Query) Tune(p *Plan) (*Tuned, error) {
	f := q.Fabric(&p.Job).Tuned()
	r, err := step.Step(&p.Job, q.GPU, f)
	if err != nil {
		return nil, err
	}
	return &Tuned{r.Step, f.Choices()}, nil
}
