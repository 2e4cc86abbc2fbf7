package plan

import (
	"slices"

	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Space is what plans may differ in: every list has the values to try, what is usual first.
type Space struct {
	// Base is what all plans share: the model, sequences, the global batch, precision and
	// framework.
	Base workload.Job
	// Ranks is the number of GPUs, Node how many of them a node has, Leaf how many hang on a leaf
	// switch; 0 where that is not known or differs.
	Ranks, Node, Leaf int

	// DP is what fits the others where it is empty.
	DP, TP, PP, CP, EP, Chunks, ZeRO []int
	// ETP is how many ranks share an expert's matrices where several have experts: 1, or 0 for as many as TP.
	ETP []int
	// All that follow are tried where the degrees give them a meaning.
	SeqParallel []bool
	// a number of replicas; 0 is all of them, workload.ShardNode those of a node, ShardLeaf those of a leaf switch
	Shard     []int
	Order     []workload.Order
	Schedule  []pipeline.Schedule
	Micro     []int64
	Recompute []workload.Recompute
	Context   []workload.Context
	Offload   []workload.Offload
	Compress  []workload.Wire
	Bucket    []unit.Bytes // 0 is what is usual
}

// ShardLeaf divides among the replicas that hang on one leaf switch.
const ShardLeaf = -2

// mostMicro is the largest micro-batch that is tried, of sequences and of pictures.
const (
	mostMicro    = 64
	mostPictures = 512
)

// mostChunks is the most stages that a rank is given.
const mostChunks = 32

// mostTensor is the largest tensor-parallel degree that is tried beyond a node: products become
// too thin for more.
const mostTensor = 64

// leastShared is the fewest tokens of a sequence that a rank is given where several share it.
const leastShared = 1024

// NewSpace is all that makes sense for a job on so many ranks, of nodes with so many each.
func NewSpace(base workload.Job, ranks, node int) *Space {
	d := base.Model.Dims
	s := &Space{Base: base, Ranks: ranks, Node: node, CP: []int{1}, EP: []int{1}, ETP: []int{0}, ZeRO: []int{0, 1, 2, 3}}
	if base.Model.Replicated() {
		d.Heads, d.Layers = 1, 1
	}
	for _, n := range divisors(ranks) {
		if int64(n) <= d.Heads && d.Heads%int64(n) == 0 && n <= max(node, mostTensor) {
			s.TP = append(s.TP, n)
		}
		if int64(n) <= d.Layers {
			s.PP = append(s.PP, n)
		}
		if n > 1 && n <= 64 && base.Seq%int64(n) == 0 && base.Seq/int64(n) >= leastShared {
			s.CP = append(s.CP, n)
		}
		if n > 1 && d.Experts > 0 && d.Experts%int64(n) == 0 {
			s.EP = append(s.EP, n)
		}
	}
	for n := 1; n <= mostChunks && int64(n) <= d.Layers; n++ {
		// The embedding and the loss may stand for a layer each; where neither goes stages are uneven.
		if d.Layers%int64(n) == 0 || (d.Layers+workload.Slots)%int64(n) == 0 || n&(n-1) == 0 {
			s.Chunks = append(s.Chunks, n)
		}
	}
	s.SeqParallel = []bool{false, true}
	s.Shard = []int{0, workload.ShardNode, ShardLeaf}
	s.Order = []workload.Order{workload.TensorDataPipeline, workload.TensorPipelineData}
	s.Schedule = pipeline.Schedules()
	most := int64(mostMicro)
	if base.Seq == 1 {
		most = mostPictures
	}
	for b := int64(1); b <= most; b++ {
		if base.GlobalBatch%b == 0 {
			s.Micro = append(s.Micro, b)
		}
	}
	s.Recompute = []workload.Recompute{workload.None, workload.Selective, workload.Full}
	s.Context = []workload.Context{"", workload.Gather, workload.Ulysses}
	s.Offload = []workload.Offload{"", workload.OffloadOptimizer, workload.OffloadParams}
	s.Compress = []workload.Wire{""}
	s.Bucket = step.Buckets()
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

// splits lists the ways to divide the ranks that the space has.
func (s *Space) splits() []workload.Split {
	var list []workload.Split
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
					list = s.fold(list, workload.Split{DP: dp, TP: tp, PP: pp, CP: cp, EP: ep, Chunks: 1})
				}
			}
		}
	}
	return list
}

// fold adds the ways to share experts that some degrees allow: among replicas, each cut as other layers are, or whole
// among tensor-parallel ranks too.
func (s *Space) fold(list []workload.Split, d workload.Split) []workload.Split {
	if d.EP == 1 {
		if s.Base.Model.Dims.Experts > 0 {
			d.ETP = d.TP
		}
		return append(list, d)
	}
	for i, etp := range s.ETP {
		if d.ETP = etp; etp == 0 {
			d.ETP = d.TP
		}
		if i > 0 && d.TP == 1 || d.DP*d.CP*d.TP%(d.EP*d.ETP) != 0 {
			continue
		}
		list = append(list, d)
	}
	return list
}

// families visits what the jobs of a way to divide are grouped by: all that says what a rank computes
// and what its layers exchange. The job is reused.
func (s *Space) families(d workload.Split, visit func(j *workload.Job)) {
	j := s.Base
	j.Split = d
	replicas := d.DP * d.CP
	for _, micro := range s.Micro {
		if s.Base.GlobalBatch/int64(d.DP)%micro != 0 {
			continue
		}
		j.MicroBatch = micro
		for i, order := range s.Order {
			if i > 0 && (d.PP == 1 || replicas == 1) {
				continue
			}
			j.Split.Order = order
			for i, context := range s.Context {
				if i > 0 && d.CP == 1 {
					continue
				}
				if j.Context = context; d.CP == 1 {
					j.Context = ""
				}
				for _, j.Recompute = range s.Recompute {
					for _, j.Split.SeqParallel = range s.SeqParallel {
						if j.Split.SeqParallel && d.TP == 1 {
							continue
						}
						visit(&j)
					}
				}
			}
		}
	}
}

// branches visits the jobs of a family but for their buckets, until visit returns false. The job is
// reused.
func (s *Space) branches(family *workload.Job, visit func(j *workload.Job) bool) {
	j := *family
	s.states(&j, func() bool { return s.pipelines(&j, visit) })
}

// states varies what replicas and the host keep, and how gradients travel.
func (s *Space) states(j *workload.Job, visit func() bool) {
	replicas := j.Split.DP * j.Split.CP
	for _, zero := range s.ZeRO {
		// Pipelines keep gradients of several micro-batches. Few frameworks divide those: Megatron-LM's
		// distributed optimizer is ZeRO 1, and DeepSpeed's pipeline refuses 2 and 3.
		if zero > 0 && replicas == 1 || zero > 1 && j.Split.PP > 1 && !s.shardsPipelines() {
			continue
		}
		j.Split.ZeRO = zero
		var tried []int
		for _, shard := range s.Shard {
			if zero == 0 && shard != 0 {
				continue
			}
			n, ok := s.shard(j, shard)
			if !ok || slices.Contains(tried, n) {
				continue
			}
			tried = append(tried, n)
			j.Split.Shard = n
			for _, j.Offload = range s.Offload {
				// What Check refuses most often, without its words.
				if j.Offloads() && (zero == 0 && replicas > 1 ||
					j.Offload == workload.OffloadParams && (j.Split.PP > 1 || zero < 3 && replicas > 1)) {
					continue
				}
				for _, j.Compress = range s.Compress {
					if j.Compresses() && (replicas == 1 || j.WireWidth() >= j.GradWidth()) {
						continue
					}
					if !visit() {
						return
					}
				}
			}
		}
	}
}

// shard is how many replicas divide what one of the words says.
func (s *Space) shard(j *workload.Job, word int) (int, bool) {
	replicas := j.Split.DP * j.Split.CP
	among := 0
	switch word {
	case 0:
		return replicas, true
	case workload.ShardNode:
		among = s.Node
	case ShardLeaf:
		among = s.Leaf
	default:
		return word, word <= replicas && replicas%word == 0
	}
	x := j.Split
	x.Shard = workload.ShardNode
	x, err := x.Within(among)
	ok := err == nil && x.Shard >= 2 && x.Shard < replicas && replicas%x.Shard == 0
	return x.Shard, ok
}

// pipelines varies schedules and chunks.
func (s *Space) pipelines(j *workload.Job, visit func(j *workload.Job) bool) bool {
	if j.Split.PP == 1 {
		j.Schedule, j.Split.Chunks = "", 1
		return !slices.Contains(s.Chunks, 1) || j.Check() != nil || !s.runs(j) || visit(j)
	}
	for _, schedule := range s.Schedule {
		for _, chunks := range s.Chunks {
			if (schedule == pipeline.Interleaved) != (chunks > 1) && (schedule != pipeline.ZeroBubbleV || chunks != 2) {
				continue
			}
			layers, places := j.Model.Dims.Layers, int64(chunks*j.Split.PP)
			if places > layers && (chunks == 1 || places != layers+workload.Slots) ||
				schedule == pipeline.Interleaved && j.Micros()%int64(j.Split.PP) != 0 {
				continue
			}
			j.Schedule, j.Split.Chunks = schedule, chunks
			if j.Check() == nil && s.runs(j) && !visit(j) {
				return false
			}
		}
	}
	return true
}

// buckets are the sizes to try with a job: there are none where replicas do not sum gradients by
// bucket.
func (s *Space) buckets(j *workload.Job) []unit.Bytes {
	if j.Split.DP*j.Split.CP == 1 || j.Split.ZeRO == 3 || j.Offload == workload.OffloadParams {
		return s.Bucket[:1]
	}
	return s.Bucket
}
