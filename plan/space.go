package plan

import (
	"slices"

	"busbar/pipeline"
	"busbar/workload"
)

// Space is what plans may differ in: every list has the values to try.
type Space struct {
	// Base is what all plans share: the model, sequences, the global batch, precision and
	// framework.
	Base workload.Job
	// Ranks is the number of GPUs, Node how many of them a node has.
	Ranks, Node int

	// DP is what fits the others where it is empty.
	DP, TP, PP, CP, EP, Chunks, ZeRO []int
	// SeqParallel, Shard, Order and Schedule are tried where the degrees give them a meaning.
	SeqParallel []bool
	Shard       []int // 0 is all replicas, workload.ShardNode those of a node
	Order       []workload.Order
	Schedule    []pipeline.Schedule
	Micro       []int64
	Recompute   []workload.Recompute
}

// mostMicro is the largest micro-batch that is tried.
const mostMicro = 64

// mostTensor is the largest tensor-parallel degree that is tried beyond a node: products become
// too thin for more.
const mostTensor = 64

// NewSpace is all that makes sense for a job on so many ranks, of nodes with so many each.
func NewSpace(base workload.Job, ranks, node int) *Space {
	d := base.Model.Dims
	s := &Space{Base: base, Ranks: ranks, Node: node, CP: []int{1}, EP: []int{1}, ZeRO: []int{0, 1, 2, 3}}
	for _, n := range divisors(ranks) {
		if int64(n) <= d.Heads && d.Heads%int64(n) == 0 && n <= max(node, mostTensor) {
			s.TP = append(s.TP, n)
		}
		if int64(n) <= d.Layers {
			s.PP = append(s.PP, n)
		}
		if n > 1 && n <= 64 && base.Seq%int64(n) == 0 && base.Seq/int64(n) >= 2048 {
			s.CP = append(s.CP, n)
		}
		if n > 1 && d.Experts > 0 && d.Experts%int64(n) == 0 {
			s.EP = append(s.EP, n)
		}
	}
	for _, n := range divisors(int(min(d.Layers, 1<<16))) {
		if n <= 32 {
			s.Chunks = append(s.Chunks, n)
		}
	}
	s.SeqParallel = []bool{false, true}
	s.Shard = []int{0, workload.ShardNode}
	s.Order = []workload.Order{workload.TensorDataPipeline, workload.TensorPipelineData}
	s.Schedule = pipeline.Schedules()
	for b := int64(1); b <= mostMicro; b++ {
		if base.GlobalBatch%b == 0 {
			s.Micro = append(s.Micro, b)
		}
	}
	s.Recompute = []workload.Recompute{workload.None, workload.Selective, workload.Full}
	return s
}

// divisors of a number, the least first.
func divisors(n int) []int {
	var list []int
	for i := 1; i*i <= n; i++ {
		if n%i == 0 {
			list = append(list, i)
			if i*i != n {
				list = append(list, n/i)
			}
		}
	}
	slices.Sort(list)
	return list
}

// degrees are a way to divide ranks.
type degrees struct{ tp, cp, ep, pp, dp int }

// splits lists the ways to divide the ranks that the space has.
func (s *Space) splits() []degrees {
	var list []degrees
	for _, tp := range s.TP {
		for _, cp := range s.CP {
			for _, pp := range s.PP {
				each := tp * cp * pp
				if each > s.Ranks || s.Ranks%each != 0 {
					continue
				}
				dp := s.Ranks / each
				if s.Base.GlobalBatch%int64(dp) != 0 || len(s.DP) > 0 && !slices.Contains(s.DP, dp) {
					continue
				}
				for _, ep := range s.EP {
					if ep == 1 || dp*cp%ep == 0 {
						list = append(list, degrees{tp, cp, ep, pp, dp})
					}
				}
			}
		}
	}
	return list
}

// each visits every job of a way to divide, until visit returns false. The job is reused.
func (s *Space) each(d degrees, visit func(j *workload.Job) bool) bool {
	j := s.Base
	j.Split = workload.Split{DP: d.dp, TP: d.tp, PP: d.pp, CP: d.cp, EP: d.ep}
	for _, micro := range s.Micro {
		if s.Base.GlobalBatch/int64(d.dp)%micro != 0 {
			continue
		}
		j.MicroBatch = micro
		for _, j.Recompute = range s.Recompute {
			for _, sp := range s.SeqParallel {
				if sp && d.tp == 1 {
					continue
				}
				j.Split.SeqParallel = sp
				if !s.states(&j, visit) {
					return false
				}
			}
		}
	}
	return true
}

// states varies what replicas divide.
func (s *Space) states(j *workload.Job, visit func(j *workload.Job) bool) bool {
	replicas := j.Split.DP * j.Split.CP
	for _, zero := range s.ZeRO {
		// Pipelines keep gradients of several micro-batches, and no framework divides those: Megatron-LM's
		// distributed optimizer is ZeRO 1, and DeepSpeed's pipeline refuses 2 and 3.
		if zero > 0 && replicas == 1 || zero > 1 && j.Split.PP > 1 {
			continue
		}
		j.Split.ZeRO = zero
		for _, order := range s.Order {
			if order != s.Order[0] && (j.Split.PP == 1 || replicas == 1) {
				continue
			}
			j.Split.Order = order
			for _, shard := range s.Shard {
				if zero == 0 && shard != 0 && len(s.Shard) > 1 {
					continue
				}
				if j.Split.Shard = shard; shard == 0 {
					j.Split.Shard = replicas
				}
				if shard == workload.ShardNode {
					x, err := j.Split.Within(s.Node)
					if err != nil || x.Shard < 2 || x.Shard >= replicas || replicas%x.Shard != 0 {
						continue
					}
					j.Split.Shard = x.Shard
				}
				if !s.pipelines(j, visit) {
					return false
				}
			}
		}
	}
	return true
}

// pipelines varies schedules and chunks.
func (s *Space) pipelines(j *workload.Job, visit func(j *workload.Job) bool) bool {
	if j.Split.PP == 1 {
		j.Schedule, j.Split.Chunks = "", 1
		return j.Check() != nil || visit(j)
	}
	for _, schedule := range s.Schedule {
		for _, chunks := range s.Chunks {
			if (schedule == pipeline.Interleaved) != (chunks > 1) && (schedule != pipeline.ZeroBubbleV || chunks != 2) {
				continue
			}
			j.Schedule, j.Split.Chunks = schedule, chunks
			if j.Check() == nil && !visit(j) {
				return false
			}
		}
	}
	return true
}

// Each visits every job of the space. The job is reused.
func (s *Space) Each(visit func(j *workload.Job)) {
	for _, d := range s.splits() {
		s.each(d, func(j *workload.Job) bool { visit(j); return true })
	}
}
