package query

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// jobOptions are settings that only some jobs have a use for: another value of each, and why a job may have none.
var jobOptions = map[string]struct {
	other func(p *pricedStep)
	why   string
}{
	"graphs": {func(p *pricedStep) { p.job.Graphs = false }, "the host is nowhere what limits the step"},
	"unfused": {
		func(p *pricedStep) { p.job.Unfused = false }, "the model has no attention, or recomputes it",
	},
	"padded": {
		func(p *pricedStep) { p.job.Padded = false },
		"the vocabulary is padded already, by its size or by the kernels",
	},
	"sync": {
		func(p *pricedStep) { p.job.Sync = false }, "no gradients are reduced while the job computes",
	},
	"channels-first": {
		func(p *pricedStep) { p.job.ChannelsFirst = false }, "the model is not trained on pictures",
	},
	"packed":   {func(p *pricedStep) { p.job.Packed = 0 }, "a document is as long as a sequence"},
	"schedule": {otherSchedule, "the job has no pipeline (pp=1)"},
	"order":    {otherOrder, "ranks have one order: the job has no pipeline, or one replica"},
	"context":  {otherContext, "no sequence is divided (cp=1)"},
	"bucket":   {func(p *pricedStep) { p.job.Bucket = 1 << 40 }, "no gradients are reduced in buckets"},
	"compress": {
		func(p *pricedStep) { p.job.Compress = workload.Uncompressed }, "no gradients cross a network",
	},
	"tuner": {func(p *pricedStep) { p.tuned = false }, "NCCL's own choices are the fastest here"},
}

func otherSchedule(p *pricedStep) {
	p.job.Schedule = another(p.job.Schedule, pipeline.GPipe, pipeline.Alternate)
}

func otherOrder(p *pricedStep) {
	p.job.Split.Order = another(p.job.Split.Order, workload.TensorPipelineData, workload.TensorDataPipeline)
}

func otherContext(p *pricedStep) {
	p.job.Context = another(p.job.Context, workload.Gather, workload.Ring)
}

// another is the first of two values, or the second where it is the first already.
func another[T comparable](is, first, second T) T {
	if is == first {
		return second
	}
	return first
}

// unused refuses a setting of a question about a job that changes nothing of the answer: with another value all steps
// would be the same.
func unused(question any, steps ...*pricedStep) error {
	v := reflect.Indirect(reflect.ValueOf(question))
	for _, p := range Params(question) {
		x, ok := jobOptions[p.Name]
		f := v.FieldByIndex(p.index)
		if !ok || f.IsZero() || fmt.Sprint(f.Interface()) == string(workload.Uncompressed) {
			continue
		}
		changes := func(s *pricedStep) bool {
			was, err := s.price(s.job)
			if err != nil {
				return true
			}
			varied, job := *s, *s.job
			varied.job = &job
			x.other(&varied)
			is, err := varied.price(varied.job)
			return err != nil || is.Step != was.Step || is.Memory != was.Memory
		}
		if !slices.ContainsFunc(steps, changes) {
			return failure.In(p.Name, fmt.Errorf("--%s has no effect on this job: %s; leave it out", p.Name, x.why))
		}
	}
	return nil
}

// unread refuses fields that a question does not read, by their names.
func unread(question any, names, why string) error {
	v := reflect.Indirect(reflect.ValueOf(question))
	for _, p := range Params(question) {
		f := v.FieldByIndex(p.index)
		if f.IsZero() || !slices.Contains(strings.Fields(names), p.Name) ||
			fmt.Sprint(reflect.Indirect(f).Interface()) == p.Default {
			continue
		}
		return failure.In(p.Name, fmt.Errorf("--%s has no effect: %s; leave it out", p.Name, why))
	}
	return nil
}

// fewOps is how long a schedule may be to be held against another.
const fewOps = 1 << 14

// unread refuses a parameter that the schedule which was made has no use for: with another value it would be the same.
func (q *Sched) unread(made *Sched, s *schedule.Schedule, op coll.Op) error {
	if q.Cluster == "" {
		if err := unread(q, "gpu nic nccl devices set", "there is no cluster; -c gives one"); err != nil {
			return err
		}
	}
	if !op.Kind.Rooted() {
		if err := unread(q, "root", op.Kind.String()+" has no root"); err != nil {
			return err
		}
	}
	if q.native() || s.MoreOps(fewOps) {
		return nil
	}
	for name, other := range map[string]func(*Sched){
		"pieces": func(o *Sched) { *o.Pieces++ },
		"groups": func(o *Sched) { o.Groups = "" },
		"inner":  func(o *Sched) { o.Inner = another(o.Inner, "direct", "ring") },
		"outer":  func(o *Sched) { o.Outer = another(o.Outer, "tree", "ring") },
	} {
		again, pieces := *made, *made.Pieces
		again.Pieces = &pieces
		other(&again)
		x, err := again.build()
		if err == nil && reflect.DeepEqual(sim.Rounds(x, op), sim.Rounds(s, op)) {
			if err := unread(q, name, fmt.Sprintf("%s of %s has no use for it", q.Algo, q.Op)); err != nil {
				return err
			}
		}
	}
	return nil
}
