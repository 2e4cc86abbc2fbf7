package plan

import (
	"cmp"
	"slices"

	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Restrict leaves of the space what a framework runs and busbar's files for it can say, and gives the jobs its style on
// GPUs of a name and a compute capability (×10; 0 where it is not known). What depends on several settings at once is
// asked of the framework job by job.
func (s *Space) Restrict(f *workload.Framework, gpu string, sm int) {
	f.Adopt(&s.Base, gpu, sm)
	s.ZeRO = slices.DeleteFunc(s.ZeRO, func(z int) bool { return !slices.Contains(f.ZeRO, z) && z != 0 })
	planned := func(degree string) bool { return slices.Contains(f.Planned, degree) }
	if !f.Tensor || !planned("tp") {
		s.TP = []int{1}
	}
	if !f.Sequence || !planned("sp") {
		s.SeqParallel = []bool{false}
	}
	s.Schedule = slices.DeleteFunc(s.Schedule, func(x pipeline.Schedule) bool {
		// All forward passes first is never faster than one of each in turn, and holds more. Backward passes in two parts are
		// for who names them.
		return x == pipeline.GPipe || x.Splits() || !slices.Contains(f.Schedules, string(x))
	})
	if len(s.Schedule) == 0 || !planned("pp") {
		s.Schedule, s.PP = []pipeline.Schedule{pipeline.Alternate}, []int{1}
	}
	if len(f.Context) == 0 || !planned("cp") {
		s.CP = []int{1}
	} else {
		s.Context = slices.DeleteFunc(s.Context, func(c workload.Context) bool {
			return c == "" && !slices.Contains(f.Context, string(workload.Ring)) ||
				c != "" && !slices.Contains(f.Context, string(c))
		})
	}
	switch {
	case f.Experts == "" || !planned("ep"):
		s.EP = []int{1}
	case f.Experts == "folded":
		s.ETP = []int{1, 0}
	}
	if !f.Hybrid {
		s.Shard = []int{0}
	}
	s.Order = slices.DeleteFunc(s.Order, func(o workload.Order) bool { return !slices.Contains(f.Orders, string(o)) })
	if slices.Contains(f.Recompute, string(workload.Light)) && s.Base.Model.Dims.Experts > 0 {
		// scores stay nowhere in fused attention
		s.Recompute = []workload.Recompute{workload.None, workload.Light, workload.Full}
	}
	s.Recompute = slices.DeleteFunc(s.Recompute,
		func(r workload.Recompute) bool { return !slices.Contains(f.Recompute, string(r)) })
	s.Offload = slices.DeleteFunc(s.Offload,
		func(o workload.Offload) bool { return o != "" && !slices.Contains(f.Offload, string(o)) })
	// block by block, or a size of its own
	if f.Weights == "wide" || f.Weights == "autocast" || f.Bucket > workload.DefaultBucket {
		s.Bucket = []unit.Bytes{cmp.Or(f.Bucket, workload.DefaultBucket)}
	}
}

// runs reports whether the framework of the space runs a job; without one any job is taken.
func (s *Space) runs(j *workload.Job) bool {
	return s.Base.Framework == nil || s.Base.Framework.Runs(j)
}

// shardsPipelines reports whether the framework divides more than the optimizer's state in pipelines.
func (s *Space) shardsPipelines() bool {
	f := s.Base.Framework
	return f != nil && slices.Contains(f.ZeROPipeline, 3)
}
