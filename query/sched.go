package query

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/schedule"
	"busbar.dev/sim"
	"busbar.dev/unit"
)

// Sched asks for a collective round by round: which rank sends what to which, in which phase, and how that loads the
// links of the cluster.
type Sched struct {
	Op      Op     `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, … (default all_reduce)"`
	Algo    string `default:"ring" help:"Algorithm; busbar list algorithms has all (default ring)."`
	Root    int    `help:"Root rank of broadcast, reduce, gather, scatter."`
	Cluster string `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster whose GPUs are the ranks (default: ranks of no cluster)."`
	Layout  Layout `short:"l" placeholder:"NODESxGPUS" help:"Participating nodes and GPUs per node (default: all GPUs)."`
	Size    Size   `placeholder:"SIZE" help:"Size of the call (default 1 GiB)."`
	GPU     string `name:"gpu" placeholder:"MODEL" help:"GPU model, as for predict."`
	NIC     string `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs, as for predict."`
	NCCL    string `name:"nccl" placeholder:"VERSION" help:"NCCL release (default: the newest known)."`
	Devices string `placeholder:"LIST" help:"GPUs of every node that take part, as for predict."`
	Program
	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster, as for predict. Repeatable."`
}

// Program is how a schedule is made.
type Program struct {
	Ranks    *int   `short:"n" name:"ranks" default:"8" help:"Number of ranks without -c and -l (default 8)."`
	Channels *int   `help:"Number of channels (default: as many as NCCL uses on the cluster; 1 without -c)."`
	Pieces   *int   `help:"Chunks per channel in a chain or tree (default 4)."`
	Groups   string `placeholder:"SIZE|LIST" help:"Groups of nearby ranks: 4 is groups of four, 0-3/4-7 names them (default: those of a node)."`
	Inner    string `placeholder:"ALGO" help:"hierarchical, inside a group: ring, direct, nvls."`
	Outer    string `placeholder:"ALGO" help:"hierarchical, across groups: ring, tree, halving_doubling, rabenseifner, collnet."`
}

// Run plays a schedule round by round.
func (q Sched) Run(ctx context.Context, env Env) (doc *SchedDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	asked := q
	p, name, err := q.onLayout(ctx, &env)
	if err != nil {
		return nil, err
	}
	op, err := q.call()
	if err != nil {
		return nil, err
	}
	s, row, err := q.schedule(p, op)
	if err == nil {
		err = asked.unread(&q, s, op)
	}
	switch {
	case err != nil:
		return nil, err
	case s.MoreOps(sim.MostOps):
		return nil, failure.Cannot(fmt.Errorf("more than %d ops are too many to play round by round; ask for fewer ranks, "+
			"channels or pieces", sim.MostOps))
	}
	d := &SchedDoc{Schedule: s.Head(), Cluster: q.Cluster, Layout: name, Size: op.Bytes}
	if p == nil {
		d.Rounds = sim.Rounds(s, op)
		return d, nil
	}
	for r := range min(s.Ranks, mostNamed) {
		d.Names = append(d.Names, p.Name(r))
	}
	d.Time, d.Limit = row.Time, &row.Limit
	d.Rounds, err = p.Rounds(row, s)
	return d, failure.Cannot(err)
}

// mostNamed is how many ranks are named.
const mostNamed = 1024

// onLayout takes the ranks of a cluster or a layout, and the groups that its nodes are; without a cluster there is no
// predictor.
func (q *Sched) onLayout(ctx context.Context, env *Env) (p *predict.Predictor, name string, err error) {
	place := placement{
		cluster: q.Cluster, layout: string(q.Layout), devices: q.Devices, gpu: q.GPU, nic: q.NIC, set: q.Set,
	}
	shapes, err := place.shapes()
	if err != nil || q.Cluster+string(q.Layout) == "" {
		return nil, "", err
	}
	if err := unread(q, "ranks", "the layout says how many there are"); err != nil {
		return nil, "", err
	}
	ranks, per := shapes[0].nodes*shapes[0].gpus, shapes[0].gpus
	if q.Cluster != "" {
		if p, name, err = place.predictor(ctx, env, q.NCCL); err != nil {
			return nil, "", err
		}
		ranks, per = len(p.Layout), ranksOfFirst(p.Layout)
	}
	if q.Ranks = &ranks; q.Groups == "" && per < ranks && (p == nil || !q.native()) {
		q.Groups = strconv.Itoa(per)
	}
	return p, name, nil
}

// native reports that nothing is said of how the schedule is made, so that it is NCCL's own on the cluster.
func (q *Sched) native() bool {
	return q.Groups+q.Inner+q.Outer == "" && q.Channels == nil && q.Pieces == nil
}

// call is the operation that is played.
func (q *Sched) call() (op coll.Op, err error) {
	op = coll.Op{Type: coll.Float, Root: q.Root, Bytes: comparedSize}
	if op.Kind, err = q.Op.kind(); err != nil {
		return op, err
	}
	if q.Size != "" {
		op.Bytes, err = q.Size.bytes()
	}
	return op, err
}

// schedule is the one that is asked for, with its row where the cluster's library makes it.
func (q *Sched) schedule(p *predict.Predictor, op coll.Op) (*schedule.Schedule, *predict.Row, error) {
	if p == nil {
		s, err := q.build()
		return s, nil, err
	}
	a, err := p.Ask(predict.Query{
		Kind: op.Kind, Type: op.Type, Root: op.Root, Sizes: []unit.Bytes{op.Bytes}, Algos: []string{q.Algo},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("--algo %s: %w", q.Algo, err)
	}
	row := &a.Rows[0]
	if !q.native() {
		s, err := q.build()
		return s, row, err
	}
	s, err := p.Schedule(op, row.Setting())
	return s, row, err
}

// build makes the schedule that the question describes.
func (q *Sched) build() (*schedule.Schedule, error) {
	q.Channels, q.Pieces = cmp.Or(q.Channels, new(1)), cmp.Or(q.Pieces, new(4))
	kind, err := q.Op.kind()
	if err != nil {
		return nil, err
	}
	b, err := schedule.Find(q.Algo)
	if err != nil {
		return nil, fmt.Errorf("--algo: %w", err)
	}
	switch { // 0 would be the builder's own number
	case *q.Channels < 1:
		return nil, fmt.Errorf("--channels %d; expected at least 1", *q.Channels)
	case *q.Pieces < 1:
		return nil, fmt.Errorf("--pieces %d; expected at least 1", *q.Pieces)
	}
	p := schedule.Params{
		Ranks: *q.Ranks, Root: q.Root, Channels: *q.Channels, Pieces: *q.Pieces, Inner: q.Inner, Outer: q.Outer,
	}
	if p.Groups, err = parseGroups(q.Groups, *q.Ranks); err != nil {
		return nil, err
	}
	if p.Groups == nil && b.Needs == "groups" {
		return nil, fmt.Errorf("%s needs --groups: 4 for groups of four ranks, 0-3/4-7 to name them", b.Name)
	}
	return b.Build(kind, p)
}

// parseGroups reads 4, or 0-3/4-7, or 0,2/1,3; none of an empty text.
func parseGroups(text string, ranks int) (groups [][]int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("--groups %s: %w", text, err)
		}
	}()
	if text == "" {
		return nil, nil
	}
	if size, err := strconv.Atoi(text); err == nil {
		return equalGroups(size, ranks)
	}
	for _, part := range strings.Split(text, "/") {
		var g []int
		for _, span := range strings.Split(part, ",") {
			first, last, ok := strings.Cut(span, "-")
			if !ok {
				last = first
			}
			from, err1 := strconv.Atoi(first)
			to, err2 := strconv.Atoi(last)
			if err1 != nil || err2 != nil || from < 0 || to < from || to >= ranks {
				return nil, fmt.Errorf("%q; expected ranks from 0 to %d, as 0-3/4-7", span, ranks-1)
			}
			for r := from; r <= to; r++ {
				g = append(g, r)
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func equalGroups(size, ranks int) ([][]int, error) {
	const most = 1 << 24
	switch {
	case ranks < 1 || ranks > most:
		return nil, fmt.Errorf("%d ranks to put into groups; 1 to %d are possible", ranks, most)
	case size < 1 || size > ranks:
		return nil, fmt.Errorf("groups of %d ranks; expected 1 to %d, as many as there are", size, ranks)
	case ranks%size != 0:
		return nil, fmt.Errorf("%d ranks are not a whole number of groups of %d; name uneven groups: 0-%d/%d-%d", ranks, size,
			size-1, size, ranks-1)
	}
	groups := make([][]int, ranks/size)
	for r := range ranks {
		groups[r/size] = append(groups[r/size], r)
	}
	return groups, nil
}

// SchedDoc is the answer to Sched: a schedule with its rounds.
type SchedDoc struct {
	Schedule *schedule.Head `json:"schedule,omitempty"`
	Cluster  string         `json:"cluster,omitempty"`
	Layout   string         `json:"layout,omitempty"`
	Size     unit.Bytes     `json:"size_bytes,omitempty"`
	Names    []string       `json:"names,omitempty"`  // of the ranks on a cluster, in their order
	Time     unit.Time      `json:"time_s,omitempty"` // of the call on a cluster, as predict has it
	Limit    *result.Limit  `json:"bottleneck,omitempty"`
	Rounds   []result.Round `json:"rounds,omitempty"`
	Noted
}
