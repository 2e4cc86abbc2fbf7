package step

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/sim"
	"busbar.dev/unit"
	"busbar.dev/workload"
	"busbar.dev/workload/pipeline"
)

// Group is a kind of groups of ranks that communicate.
type Group uint8

// Groups.
const (
	Tensor      Group = iota // share a layer
	Context                  // share sequences
	Data                     // hold the same parameters
	Shards                   // of those, the ones that divide them
	Copies                   // of those, the ones that hold the same share
	Next                     // neighbours in the pipeline
	Experts                  // share the experts
	SameExperts              // hold the same ones
	ToHost                   // no group: a GPU and its host
	nGroups
)

var groupNames = [...]string{
	"tensor", "context", "data", "shard", "replica", "pipeline", "expert", "expert replica", "host",
}

func (g Group) String() string { return groupNames[g] }

// MarshalText writes the name.
func (g Group) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText reads the name.
func (g *Group) UnmarshalText(text []byte) error {
	i := slices.Index(groupNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("group %.40q; expected one of %v", text, groupNames)
	}
	*g = Group(i)
	return nil
}

// Fabric prices the collectives of a split's groups as they are placed on a cluster. Ranks are
// numbered as Megatron-LM does: tensor, context, data, pipeline, the first fastest, or as the
// split's order says.
type Fabric struct {
	// Env are settings of NCCL, as in the job's environment.
	Env map[string]string

	c       *cluster.Cluster
	layout  nccl.Layout
	split   workload.Split
	version nccl.Version
	cache   *cache
	leaves  *leaves
	kinds   *hostKinds
	recent  [nGroups]struct {
		call
		cost
	} // the last answer of a group: buckets are mostly of one size
}

// cache is what was asked for on a layout, by where groups are placed and not by what they are for:
// splits have many groups in common. Several goroutines may ask at once.
type cache struct {
	found      *nccl.Planner
	mu         sync.Mutex // of all below
	predictors map[pattern]*groupPredictor
	times      map[call]cost
	exchanges  map[exchangeKey]cost
	plans      map[pipeline.Shape][]*pipeline.Steady // that nobody plays now
	host       *hostSide
	tasks      taskCache
	pairs      map[[2]int]int  // first rank of the slowest pair of neighbours, by stages and stride
	tuned      map[call]Choice // that a tuner makes; nil is without one
}

// groupPredictor is the predictor of a pattern, which answers one at a time.
type groupPredictor struct {
	mu sync.Mutex
	p  *predict.Predictor
}

// pattern is which ranks form the groups of a kind. Member i of the group that rank 0 begins is the
// i × step-th of those that hold the same parameters, or of a plain row: every wrap of them are
// near apart, and the next ones far. The group that is priced begins at rank from. Of all other
// things that groups are made of, a layout has one.
type pattern struct{ size, step, near, wrap, far, from int }

// strided is a pattern without wrapping.
func strided(size, stride int) pattern { return pattern{size, 1, stride, 1 << 30, 0, 0} }

// rank is that of member i of the group that rank 0 begins.
func (s pattern) rank(i int) int { return i*s.step%s.wrap*s.near + i*s.step/s.wrap*s.far }

// begins reports whether a rank is the first of its group.
func (s pattern) begins(rank int) bool {
	k := rank / s.near
	if s.far > 0 {
		k = rank/s.near%s.wrap + rank/s.far*s.wrap
	}
	return k/s.step%s.size == 0
}

type call struct {
	pattern
	kind  coll.Kind
	bytes unit.Bytes
}

type cost struct {
	time  unit.Span
	limit string
}

// NewFabric puts a split on a layout.
func NewFabric(c *cluster.Cluster, l nccl.Layout, s workload.Split, v nccl.Version) *Fabric {
	return &Fabric{
		c: c, layout: l, split: s, version: v, cache: newCache(&nccl.Planner{}), leaves: leavesOf(c), kinds: &hostKinds{c: c},
	}
}

func newCache(found *nccl.Planner) *cache {
	return &cache{
		found: found, predictors: map[pattern]*groupPredictor{}, times: map[call]cost{}, exchanges: map[exchangeKey]cost{},
		plans: map[pipeline.Shape][]*pipeline.Steady{}, pairs: map[[2]int]int{},
	}
}

// On is the fabric over other ranks of the same cluster. The two share what does not depend on how
// many there are.
func (f *Fabric) On(l nccl.Layout) *Fabric {
	o := &Fabric{
		Env: f.Env, c: f.c, layout: l, version: f.version, cache: newCache(f.cache.found), leaves: f.leaves, kinds: f.kinds,
	}
	if f.cache.tuned != nil {
		o.cache.tuned = map[call]Choice{}
	}
	return o
}

// With is the fabric of another split over the same ranks. The two share what either has asked
// for; Env must be the same. A fabric is for one goroutine at a time, those that share are not.
func (f *Fabric) With(s workload.Split) *Fabric {
	return &Fabric{
		Env: f.Env, c: f.c, layout: f.layout, split: s, version: f.version, cache: f.cache, leaves: f.leaves, kinds: f.kinds,
	}
}

// pattern is which ranks form the groups of a kind.
func (f *Fabric) pattern(g Group) pattern {
	s := f.split
	tp, cp, dp, pp := s.Strides()
	switch g {
	case Tensor:
		return strided(s.TP, tp)
	case Context:
		return strided(s.CP, cp)
	case Next:
		at := strided(min(s.PP, 2), pp)
		at.from = f.waitedFor(s.PP, pp)
		return at
	case ToHost:
		return strided(1, 1)
	}
	size, step := f.size(g), 1
	if (g == Experts || g == SameExperts) && s.ExpertTensor() < s.TP { // over tensor-parallel ranks too, which are nearest
		switch n := s.EP * s.ExpertTensor(); {
		case s.Order == workload.TensorPipelineData && s.EP > s.TP*s.CP:
		case g == Experts:
			return strided(size, 1)
		default:
			return strided(size, n)
		}
	}
	switch g {
	case Copies:
		step = s.Shard
	case SameExperts:
		step = s.EP
	}
	switch {
	case s.CP == 1:
		return strided(size, step*dp)
	case cp*s.CP == dp:
		return strided(size, step*cp)
	}
	return pattern{size, step, cp, s.CP, dp, 0}
}

// waitedFor is the first rank of the pair of neighbours in the pipeline that the others wait for.
func (f *Fabric) waitedFor(stages, stride int) int {
	if stages < 2 {
		return 0
	}
	f.cache.mu.Lock()
	from, ok := f.cache.pairs[[2]int{stages, stride}]
	f.cache.mu.Unlock()
	if ok {
		return from
	}
	if from = f.leaving(stages, stride); f.kinds.differ(f.layout) && from+stride < len(f.layout) {
		from = f.slowestPair(stages, stride, from)
	}
	f.cache.mu.Lock()
	f.cache.pairs[[2]int{stages, stride}] = from
	f.cache.mu.Unlock()
	return from
}

// leaving is the first rank whose successor in the pipeline is on another host, which is the
// pair that the others wait for, or on another leaf of a tight network; 0 where all stages share one.
func (f *Fabric) leaving(stages, stride int) int {
	at := -1
	for r := 0; r+stride < len(f.layout) && r < (stages-1)*stride; r += stride {
		a, b := f.layout[r].Host, f.layout[r+stride].Host
		if a == b {
			continue
		}
		if !f.leaves.oversubscribed || f.leaves.differ(a, b) {
			return r
		}
		if at < 0 {
			at = r
		}
	}
	return max(at, 0)
}

// size is the number of ranks of a group.
func (f *Fabric) size(g Group) int {
	s := f.split
	switch g {
	case Tensor:
		return s.TP
	case Context:
		return s.CP
	case Data:
		return s.DP * s.CP
	case Shards:
		return s.Shard
	case Copies:
		return s.DP * s.CP / s.Shard
	case Experts:
		return s.EP
	case SameExperts:
		return s.SameExperts()
	case ToHost:
		return 1
	}
	return min(s.PP, 2)
}

// ranks are those of the group that a rank begins, counted from the one that is priced.
func (f *Fabric) ranks(g Group, first int) nccl.Layout {
	at := f.pattern(g)
	l := make(nccl.Layout, 0, at.size)
	for i := range at.size {
		if r := at.from + first + at.rank(i); r < len(f.layout) {
			l = append(l, f.layout[r])
		}
	}
	return l
}

// begins reports whether a rank, counted from the group that is priced, is the first of its group.
func (f *Fabric) begins(at pattern, rank int) bool {
	return at.begins(rank) && at.from+rank+at.rank(at.size-1) < len(f.layout)
}

// Predictor answers for the collectives of one group of a kind, as Time does; nil where the
// split has no such group. It is for one goroutine at a time, and not beside Time.
func (f *Fabric) Predictor(g Group) (*predict.Predictor, error) {
	if g == ToHost || f.size(g) < 2 {
		return nil, nil
	}
	o := f.cache.predictorOf(f.pattern(g))
	o.mu.Lock()
	defer o.mu.Unlock()
	return f.predictor(g, o)
}

// inOneDomain reports whether a group's ranks reach each other's memory, inside a host or over NVLink
// between hosts. Only there do products and the traffic of their inputs and sums overlap piece by piece (Transformer
// Engine's user buffers, which Megatron-LM's and NeMo's overlap of tensor parallelism is made of).
func (f *Fabric) inOneDomain(g Group) bool {
	p, err := f.Predictor(g)
	return err == nil && p != nil && p.Plan.NNodes == 1
}

func (k *cache) predictorOf(at pattern) *groupPredictor {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.predictors[at]
	if o == nil {
		o = &groupPredictor{}
		k.predictors[at] = o
	}
	return o
}

// predictor answers for one group of a kind, with the others that share its first host beside
// it. The groupPredictor is locked.
func (f *Fabric) predictor(g Group, o *groupPredictor) (*predict.Predictor, error) {
	if o.p != nil {
		return o.p, nil
	}
	p, err := f.groupAt(g, f.pricedGroup(g))
	if err == nil && g != Next && f.kinds.differ(f.layout) {
		p, err = f.slowestGroup(g, p)
	}
	if err != nil {
		return nil, err
	}
	o.p = p
	return p, nil
}

// groupAt answers for the group of a kind that a rank begins.
func (f *Fabric) groupAt(g Group, first int) (*predict.Predictor, error) {
	p, err := predict.NewWithPlanner(f.cache.found, f.c, f.ranks(g, first), f.version, f.Env, nil)
	if err != nil {
		return nil, fmt.Errorf("%s groups: %w", g, err)
	}
	return p, p.RunConcurrently(f.concurrent(g, first))
}

// Time is that of a collective of a group, and what limits it. Bytes are nccl-tests' size: what a
// rank has of an all-reduce, all ranks together of a gather.
func (f *Fabric) Time(g Group, kind coll.Kind, bytes unit.Volume) (unit.Span, string, error) {
	if f.size(g) < 2 || bytes <= 0 {
		return 0, "", nil
	}
	key := call{f.pattern(g), kind, unit.Bytes(math.Ceil(float64(bytes)))}
	if r := &f.recent[g]; r.call == key {
		return r.time, r.limit, nil
	}
	t, ok := f.cache.time(key)
	if !ok {
		o := f.cache.predictorOf(key.pattern)
		o.mu.Lock()
		defer o.mu.Unlock()
		if t, ok = f.cache.time(key); !ok { // which another may have asked meanwhile
			var err error
			if t, err = f.ask(g, o, kind, key.bytes); err != nil {
				return 0, "", err
			}
			f.cache.mu.Lock()
			f.cache.times[key] = t
			f.cache.mu.Unlock()
		}
	}
	f.recent[g].call, f.recent[g].cost = key, t
	return t.time, t.limit, nil
}

func (k *cache) time(key call) (cost, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.times[key]
	return t, ok
}

// ask prices a collective by a locked groupPredictor.
func (f *Fabric) ask(g Group, o *groupPredictor, kind coll.Kind, bytes unit.Bytes) (cost, error) {
	p, err := f.predictor(g, o)
	if err != nil {
		return cost{}, err
	}
	op := coll.Op{Kind: kind, Bytes: bytes, Type: coll.BFloat16}
	t, err := priced(p, op)
	if err != nil {
		return cost{}, fmt.Errorf("%s of %v among %s groups: %w", kind, op.Bytes, g, err)
	}
	return f.tune(g, p, op, t)
}

// priced is what a collective takes as NCCL does it.
func priced(p *predict.Predictor, op coll.Op) (cost, error) {
	set, err := p.Auto(op)
	if err != nil {
		return cost{}, err
	}
	run, err := p.Price(op, set)
	if err != nil && set.Algo != "ring" { // an algorithm that cannot be counted over so many ranks
		set.Algo, set.Proto = "ring", sim.Simple
		run, err = p.Price(op, set)
	}
	if err != nil {
		return cost{}, err
	}
	return cost{run.Time.Span(), run.Limit.Text}, nil
}
