package step

import "busbar.dev/workload"

// aspect is a job without what the tasks of a rank's blocks do not depend on: many splits have the
// same. What is added to jobs is part of it unless it is left out here.
type aspect struct {
	job       workload.Job
	splits    bool // gradients of weights are passes of their own
	autocasts bool // which follows from degrees that are left out of the job
}

// aspectOf is that of a job.
func aspectOf(j *workload.Job) aspect {
	a := aspect{*j, j.Schedule.Splits(), j.Autocasts()}
	x := &a.job
	x.GlobalBatch, x.Bucket, x.Sync = 0, 0, false
	x.Schedule, x.Offload, x.Compress, x.Context = "", "", "", ""
	s := &x.Split
	s.DP, s.PP, s.Chunks, s.Shard, s.Order = 0, 0, 0, 0, ""
	s.TP, s.CP, s.EP = max(s.TP, 1), max(s.CP, 1), max(s.EP, 1)
	if s.ZeRO < 3 { // whose gradients are narrower
		s.ZeRO = 0
	}
	return a
}

// blockTasks is the tasks of a block.
type blockTasks struct {
	pass   workload.Pass
	weight []workload.Task // of the backward pass, gradients of weights, where they have passes of their own
}

// taskCache are the tasks of one model's kinds of blocks, by aspect.
type taskCache struct {
	model *workload.Model
	o     *workload.Outline
	by    map[aspect][]blockTasks
}

// tasksOf is the model's outline and the tasks of its kinds of blocks. What was worked out of another
// model is forgotten: searches ask about one.
func (k *cache) tasksOf(j *workload.Job) (*workload.Outline, []blockTasks) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := &k.tasks
	if l.model != j.Model {
		*l = taskCache{j.Model, j.Model.Outline(), map[aspect][]blockTasks{}}
	}
	key := aspectOf(j)
	if list := l.by[key]; list != nil {
		return l.o, list
	}
	list := make([]blockTasks, len(l.o.Kinds))
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
