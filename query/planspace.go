package query

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/plan"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// spaces are what may vary, for every number of nodes that is tried, all of them first. Hosts that a scheduler gave are all
// used.
func (p *planning) spaces(q *plan.Query, given bool) ([]*plan.Space, error) {
	node := ranksOfFirst(q.Layout)
	counts := []int{len(q.Layout)}
	if given && (p.MaxNodes > 0 || p.Avoid != "") {
		return nil, errors.New("--max-nodes and --avoid are for a cluster's own hosts; name fewer with --hosts")
	}
	if !given && (p.MaxNodes > 0 || p.Objective != "time") {
		nodes := plan.EqualNodes(q.Layout)
		if nodes == 0 && p.MaxNodes > 0 {
			return nil, errors.New("--max-nodes: nodes have different numbers of GPUs; say which take part with -l NODESxGPUS")
		}
		if p.MaxNodes > 0 {
			nodes = min(nodes, p.MaxNodes)
		}
		if nodes > 0 {
			counts = nil
		}
		for _, n := range plan.NodeCounts(nodes) {
			counts = append(counts, n*node)
		}
	}
	var list []*plan.Space
	for _, ranks := range counts {
		s, err := p.space(ranks, counts[0], min(node, ranks), q.GPU.Model.SM)
		if err != nil {
			return nil, err
		}
		s.Leaf = plan.LeafRanks(q.Cluster, q.Layout[:ranks])
		list = append(list, s)
	}
	return list, nil
}

// space is what may vary on so many ranks, of at most most, with GPUs of a compute capability: all that makes sense and the
// framework runs, but what the fields fix.
func (p *planning) space(ranks, most, node, sm int) (*plan.Space, error) {
	base := workload.Job{Model: p.model, Seq: p.Seq, GlobalBatch: p.Global, Precision: readPrecision(string(p.Precision), p.framework), Kernels: p.kernels}
	base.Seq = cmp.Or(base.Seq, p.model.Seq)
	if base.GlobalBatch == 0 {
		base.GlobalBatch = max(1, workload.DefaultGlobalBatch(base.Seq, most)/p.pairs())
	}
	if err := p.FineTuning.apply(&base); err != nil {
		return nil, err
	}
	s := plan.NewSpace(base, ranks, node)
	s.Micro = slices.DeleteFunc(s.Micro, func(n int64) bool { return n%p.pairs() != 0 })
	if p.framework != nil {
		s.Restrict(p.framework, sm)
	} else {
		s.Schedule = []pipeline.Schedule{pipeline.Alternate, pipeline.Interleaved}
	}
	if p.Micro > 0 {
		s.Micro = []int64{p.Micro * p.pairs()}
	}
	if p.Recompute != "" {
		s.Recompute = []workload.Recompute{p.framework.Recomputes(workload.Recompute(p.Recompute))}
	}
	if err := p.lists(s); err != nil {
		return nil, err
	}
	return s, p.fix(s)
}

// lists takes the fields that name several values.
func (q *Plan) lists(s *plan.Space) error {
	if err := choose("--schedule", q.Schedule, pipeline.Schedules(), &s.Schedule); err != nil {
		return err
	}
	if err := choose("--context", q.Context, []workload.Context{workload.Ring, workload.Gather, workload.Ulysses}, &s.Context); err != nil {
		return err
	}
	if err := choose("--offload", q.Offload, []workload.Offload{workload.OnGPU, workload.OffloadOptimizer, workload.OffloadParams}, &s.Offload); err != nil {
		return err
	}
	if err := choose("--compress", q.Compress, []workload.Wire{workload.Uncompressed, workload.WireFP16, workload.WireBF16, workload.WireInt8}, &s.Compress); err != nil {
		return err
	}
	if len(q.Bucket) > 0 {
		s.Bucket = nil
	}
	for _, text := range q.Bucket {
		size, err := parseBucket(text)
		if err != nil {
			return err
		}
		s.Bucket = append(s.Bucket, size)
	}
	return nil
}

// choose replaces a list by the words of a flag, each of which is among some.
func choose[T ~string](flag string, words, some []T, to *[]T) error {
	if len(words) > 0 {
		*to = nil
	}
	for _, w := range words {
		x := T(strings.TrimSpace(string(w)))
		if !slices.Contains(some, x) {
			var all []string
			for _, s := range some {
				all = append(all, string(s))
			}
			return fmt.Errorf("%s %q; expected some of %s", flag, w, strings.Join(all, ", "))
		}
		if !slices.Contains(*to, x) {
			*to = append(*to, x)
		}
	}
	return nil
}

// fix takes the degrees that Parallel names.
func (q *Plan) fix(s *plan.Space) error {
	split, err := q.Parallel.split()
	if err != nil {
		return fmt.Errorf("--parallel: %w", err)
	}
	for _, part := range strings.Split(string(q.Parallel), ",") {
		key, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		switch key {
		case "dp":
			s.DP = []int{split.DP}
		case "tp":
			s.TP = []int{split.TP}
		case "pp":
			s.PP = []int{split.PP}
		case "cp":
			s.CP = []int{split.CP}
		case "ep":
			s.EP = []int{split.EP}
		case "etp":
			s.ETP = []int{split.ETP % max(split.TP, 2)} // 0 is tp
		case "vpp":
			s.Chunks = []int{split.Chunks}
		case "zero":
			s.ZeRO = []int{split.ZeRO}
		case "shard":
			s.Shard = []int{split.Shard}
		case "sp":
			s.SeqParallel = []bool{split.SeqParallel}
		}
	}
	return nil
}
