package step

import "busbar/workload"

// aspect is what the tasks of a rank's blocks depend on: many splits have the same.
type aspect struct {
	tp, cp, ep int
	sequence   bool
	zero3      bool // its gradients are narrower
	splits     bool // gradients of weights are passes of their own
	unfused    bool
	seq, micro int64
	masked     float64
	precision  workload.Precision
	recompute  workload.Recompute
	framework  workload.Framework
}

// aspectOf is that of a job.
func aspectOf(j *workload.Job) aspect {
	s := &j.Split
	return aspect{
		tp: max(s.TP, 1), cp: max(s.CP, 1), ep: max(s.EP, 1), sequence: s.SeqParallel, zero3: s.ZeRO == 3, splits: j.Schedule.Splits(), unfused: j.Unfused,
		seq: j.Seq, micro: j.MicroBatch, masked: j.Masked, precision: j.Precision, recompute: j.Recompute, framework: j.Framework,
	}
}

// laid is the tasks of a block.
type laid struct {
	pass   workload.Pass
	weight []workload.Task // of the backward pass, gradients of weights, where they have passes of their own
}

// layouts are the tasks of one model's kinds of blocks, by aspect.
type layouts struct {
	model *workload.Model
	o     *workload.Outline
	by    map[aspect][]laid
}

// laid is the model's outline and the tasks of its kinds of blocks. What was laid out of another
// model is forgotten: searches ask about one.
func (k *known) laid(j *workload.Job) (*workload.Outline, []laid) {
	l := &k.tasks
	if l.model != j.Model {
		*l = layouts{j.Model, j.Model.Outline(), map[aspect][]laid{}}
	}
	key := aspectOf(j)
	if list := l.by[key]; list != nil {
		return l.o, list
	}
	list := make([]laid, len(l.o.Kinds))
	for i := range l.o.Kinds {
		list[i].pass = j.Pass(l.o.Kinds[i].Block)
		if key.splits {
			list[i].weight = weights(list[i].pass.Backward)
		}
	}
	l.by[key] = list
	return l.o, list
}

// weights are the tasks that compute gradients of weights.
func weights(list []workload.Task) []workload.Task {
	only := []workload.Task{}
	for _, t := range list {
		if t.Weight {
			only = append(only, t)
		}
	}
	return only
}
