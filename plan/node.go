package plan

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// family is settings that share what a rank computes and what its layers exchange.
type family struct {
	*step.Family // none before it is looked at
	familyKey
	space      int
	settings   int64
	hasTraffic bool // traffic is in its bounds
}

// familyKey is what tells a family's jobs from those of others. There are many, of which few are looked
// at.
type familyKey struct {
	dp, tp, pp, cp, ep, etp int32
	sequence                bool
	micro                   int64
	order                   workload.Order
	context                 workload.Context
	recompute               workload.Recompute
}

func familyKeyOf(j *workload.Job) familyKey {
	s := &j.Split
	return familyKey{
		int32(s.DP), int32(s.TP), int32(s.PP), int32(s.CP), int32(s.EP), int32(s.ETP), s.SeqParallel, j.MicroBatch, s.Order,
		j.Context, j.Recompute,
	}
}

// job is the key's job.
func (x *familyKey) job(base workload.Job) *workload.Job {
	base.Split = workload.Split{
		DP: int(x.dp), TP: int(x.tp), PP: int(x.pp), CP: int(x.cp), EP: int(x.ep), ETP: int(x.etp), Chunks: 1,
		SeqParallel: x.sequence, Order: x.order,
	}
	base.MicroBatch, base.Context, base.Recompute = x.micro, x.context, x.recompute
	return &base
}

// slot is that of a family's jobs with some part of ZeRO.
func (x *familyKey) slot(zero int) slot {
	return slot{int(x.dp), int(x.tp), int(x.pp), int(x.cp), int(x.ep), int(x.etp), zero}
}

// node is something with a bound: a space, a family, a setting of it, or a setting that is priced but
// for the play of its pipeline.
type node struct {
	value  float64
	index  int64 // of those with equal values, the first is taken
	space  int
	family *family
	leaf   *leaf
	begun  *step.Pricing
}

// leaf is what a setting has beside its family.
type leaf struct {
	zero, shard, chunks int
	schedule            pipeline.Schedule
	offload             workload.Offload
	compress            workload.Wire
}

// leafOf is that of a job.
func leafOf(j *workload.Job) *leaf {
	s := &j.Split
	return &leaf{s.ZeRO, s.Shard, s.Chunks, j.Schedule, j.Offload, j.Compress}
}

// job is the setting on its family.
func (l *leaf) job(t *family) *workload.Job {
	j := *t.Job()
	s := &j.Split
	s.ZeRO, s.Shard, s.Chunks = l.zero, l.shard, l.chunks
	j.Schedule, j.Offload, j.Compress = l.schedule, l.offload, l.compress
	return &j
}

// before is the order in which nodes are taken.
func (n *node) before(o *node) bool {
	return n.value < o.value || n.value == o.value && n.index < o.index
}

// stage is how far a node is from its price.
func (n *node) stage() int {
	switch {
	case n.begun != nil:
		return 3
	case n.leaf != nil:
		return 2
	case n.family != nil && n.family.hasTraffic:
		return 1
	}
	return 0
}

// frontier is all nodes that wait, by their stages.
type frontier struct {
	queues [4]queue
	made   int64
}

// next numbers nodes.
func (f *frontier) next() int64 { f.made++; return f.made }

func (f *frontier) push(n *node) { heap.Push(&f.queues[n.stage()], n) }

// pop takes the node with the least bound of a stage.
func (f *frontier) pop(stage int) *node { return heap.Pop(&f.queues[stage]).(*node) }

// first is the stage of the node with the least bound; -1 where none is left.
func (f *frontier) first() int {
	at := -1
	for i, q := range f.queues {
		if len(q) > 0 && (at < 0 || q[0].before(f.queues[at][0])) {
			at = i
		}
	}
	return at
}

// clear drops all.
func (f *frontier) clear() { f.queues = [4]queue{} }

// queue has the node with the least bound first, as container/heap keeps it.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(n any)        { *q = append(*q, n.(*node)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	n := (*q)[last]
	(*q)[last] = nil // which nobody else may hold
	*q = (*q)[:last]
	return n
}

// slot are plans of which only the best is kept.
type slot struct {
	dp, tp, pp, cp, ep, etp, zero int
}

func slotOf(s *workload.Split) slot { return slot{s.DP, s.TP, s.PP, s.CP, s.EP, s.ETP, s.ZeRO} }

// SameDegrees reports whether two plans differ in neither degrees nor ZeRO.
func SameDegrees(a, b *workload.Split) bool { return slotOf(a) == slotOf(b) }

type entry struct {
	Plan
	index int64
}

// shortlist has the best plan of every slot, as many as are wanted.
type shortlist struct {
	top   int
	by    map[slot]entry
	worst float64 // of those that are kept
}

// limit is the value from which on nothing of a slot is wanted.
func (b *shortlist) limit(k slot) float64 {
	limit := math.Inf(1)
	if len(b.by) >= b.top {
		limit = b.worst
	}
	if e, ok := b.by[k]; ok {
		limit = min(limit, e.Value)
	}
	return limit
}

// limits is the value from which on nothing of a family is wanted.
func (b *shortlist) limits(t *family, space *Space) float64 {
	most := 0.0
	for _, zero := range space.ZeRO {
		if zero <= 1 || t.pp == 1 || space.shardsPipelines() {
			most = max(most, b.limit(t.slot(zero)))
		}
	}
	return most
}

// keep keeps a plan where it is among the best.
func (b *shortlist) keep(e entry) {
	k := slotOf(&e.Job.Split)
	old, known := b.by[k]
	switch {
	case known && (old.Value < e.Value || old.Value == e.Value && old.index < e.index):
		return
	case !known && len(b.by) >= b.top && e.Value >= b.worst:
		return
	}
	b.by[k] = e
	if len(b.by) > b.top {
		var last slot
		most := entry{Plan{Value: -1}, 0}
		for k, x := range b.by {
			if x.Value > most.Value || x.Value == most.Value && x.index > most.index {
				most, last = x, k
			}
		}
		delete(b.by, last)
	}
	b.worst = 0
	for _, x := range b.by {
		b.worst = max(b.worst, x.Value)
	}
}

// list is the plans that were kept, the best first.
func (b *shortlist) list() []Plan {
	var all []entry
	for _, e := range b.by {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a,
		b entry,
	) int {
		return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.index, b.index))
	})
	list := make([]Plan, len(all))
	for i := range all {
		list[i] = all[i].Plan
	}
	return list
}

// EqualNodes is how many nodes a layout has that all have as many ranks, one after the other; 0 where they differ.
func EqualNodes(l nccl.Layout) int {
	node := 0
	for _, r := range l {
		if r.Host == l[0].Host {
			node++
		}
	}
	for i, r := range l {
		if r.Host != l[i-i%node].Host || i >= node && r.Host == l[i-node].Host {
			return 0
		}
	}
	if node == 0 || len(l)%node != 0 {
		return 0
	}
	return len(l) / node
}

// NodeCounts are the numbers of nodes that are tried where fewer than there are may be better, the most first: all of
// them, and those with four binary digits before zeros (1 to 16, 18, 20, …, 32, 36, …).
func NodeCounts(most int) []int {
	var list []int
	for n := most; n > 0; n-- {
		if n == most || bits.Len(uint(n))-bits.TrailingZeros(uint(n)) <= 4 {
			list = append(list, n)
		}
	}
	return list
}

// LeafRanks is how many ranks of a layout hang on a leaf switch, one after the other; 0 where that
// is not known, differs, or where one leaf has all.
func LeafRanks(c *cluster.Cluster, l nccl.Layout) int {
	hosts := hostsOf(l)
	at := places(c, hosts)
	size, run := 0, 0
	for i, h := range hosts {
		leaf := at[i].leaf()
		if leaf < 0 {
			return 0
		}
		if i > 0 && leaf != at[i-1].leaf() {
			if size > 0 && run != size {
				return 0
			}
			size, run = run, 0
		}
		run += len(h)
	}
	if run > size { // the last leaf may have fewer of them
		return 0
	}
	return size
}
