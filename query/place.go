package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/input/slurm"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// Place asks which of the free nodes a job should take: sets of nodes are priced as steps of the job on the cluster's map, and
// compared with what the scheduler would take.
type Place struct {
	Job
	Free      string `placeholder:"HOSTLIST|FILE" help:"Free nodes: a hostlist, or a file with the output of sinfo, scontrol show node, kubectl get nodes,pods -A -o json, or names (default: all nodes of the cluster)."`
	Nodes     int    `least:"1" most:"1000000" placeholder:"N" help:"Nodes of the job, with all their GPUs (default: as -l says)."`
	Scheduler string `placeholder:"slurm|HOSTLIST" default:"slurm" help:"Choice to compare with: slurm (topology/block where the cluster's topology.conf or topology.yaml has blocks, else topology/tree, by the switches of topology.conf where they are known, else by the cables), or the nodes that a scheduler chose, as a hostlist or a file (default slurm)."`
	Top       int    `default:"5" least:"1" most:"96" placeholder:"N" help:"Placements to list (default: 5)."`
}

// PlaceDoc is the answer to Place.
type PlaceDoc struct {
	Cluster   string     `json:"cluster"`
	Model     string     `json:"model"`
	Parallel  string     `json:"parallel"`
	Nodes     int        `json:"nodes"`
	PerNode   int        `json:"gpus_per_node"`
	Free      string     `json:"free"` // as a hostlist
	FreeNodes int        `json:"free_nodes"`
	Tried     int        `json:"tried"`
	Best      PlaceRow   `json:"best"`
	Scheduler *PlaceRow  `json:"scheduler"` // null where the job would wait
	Worst     PlaceRow   `json:"worst"`
	Rows      []PlaceRow `json:"rows"` // the shortest steps first
	// Take is the row to take: the scheduler's where it ties with the best.
	Take PlaceRow `json:"take"`
	Text string   `json:"text"`
	Noted
}

// PlaceRow is one set of nodes.
type PlaceRow struct {
	Hosts  string      `json:"hosts"` // in the order of ranks
	Leaves []PlaceLeaf `json:"leaves"`
	Why    string      `json:"why"`
	Step   unit.Span   `json:"step_s"`
	Low    unit.Span   `json:"low_s"`
	High   unit.Span   `json:"high_s"`
	// Exposed is the communication that nothing hides.
	Exposed unit.Span `json:"exposed_comm_s"`
	// Longer is how much longer the step is than the best one; the bar is the error of what the placements differ by, which
	// is communication. Errors that they share do not count.
	Longer     unit.Span `json:"longer_s"`
	LongerLow  unit.Span `json:"longer_low_s"`
	LongerHigh unit.Span `json:"longer_high_s"`
	Tied       bool      `json:"tied"` // with the best: the difference may be less than steps differ from run to run

	Level cluster.Tier `json:"level"` // of the lowest switches that hold all nodes
	// Racks are the NVLink domains of several hosts that it is in, Segment the most nodes that each has a multiple of.
	Racks   []string `json:"racks,omitempty"`
	Segment int      `json:"segment,omitempty"`

	names []string // of Hosts
}

// PlaceLeaf is a leaf switch and how many of the nodes it has; "" where no source says.
type PlaceLeaf struct {
	Leaf  string `json:"leaf"`
	Nodes int    `json:"nodes"`
	Rails int    `json:"rails,omitempty"` // leaves that each node is on, of which Leaf is the first
}

// placeNoise is the share of a step that two runs on one placement may differ by: a smaller difference between placements is
// of no use to anybody.
const placeNoise = 0.01

// Run finds the nodes.
func (q Place) Run(ctx context.Context, env Env) (doc *PlaceDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if err := prepare(&q); err != nil {
		return nil, err
	}
	x, err := q.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	defer env.working("pricing placements")()
	first, err := x.job.priceOn(x.job.cluster, x.layoutOf(plainNumbers(x.n)), fmt.Sprintf("%dx%d", x.n, x.each))
	if err != nil {
		return nil, err
	}
	pl, err := plan.NewPlacer(&plan.Query{Cluster: x.job.cluster, Version: x.job.version, GPU: first.gpu}, first.job, x.free.ranks, x.flaws(), x.n)
	if err != nil {
		return nil, err
	}
	x.placer, x.margin = pl, step.Margin(first.job, first.model)
	given, err := x.scheduler(ctx, &env, q.Scheduler)
	if err != nil {
		return nil, err
	}
	if given.nodes != nil {
		if err := pl.Try(given.nodes, given.name); err != nil {
			return nil, err
		}
	}
	all, err := pl.Search(ctx)
	if err != nil && (ctx.Err() == nil || len(all.List) == 0) {
		return nil, err
	}
	d := &PlaceDoc{
		Cluster: x.job.cluster.Name, Model: first.job.Model.Name, Parallel: first.job.Split.String(), Nodes: x.n, PerNode: x.each,
		Free: cluster.FormatHosts(x.free.names), FreeNodes: len(x.free.names), Tried: all.Tried, Rows: []PlaceRow{},
	}
	x.fill(d, all, given.name, q.Top)
	if short := first.memoryShortfall(); short != "" {
		d.Text = "The job " + short + ". " + d.Text
	}
	return d, nil
}

// placing is a question as read.
type placing struct {
	job     *training
	free    *jobNodes
	n, each int
	placer  *plan.Placer
	margin  float64             // of a step
	found   map[string][]string // what an audit finds on a node, by name
	// blocks are those of Slurm's topology/block, and blockOf the block of each node by name; none means topology/tree.
	blocks  []string
	blockOf map[string]int
}

func (q *Place) read(ctx context.Context, env *Env) (*placing, error) {
	if q.Compare != "" {
		return nil, errors.New("--compare is for step and predict; place has one shape: -l NODESxGPUS or --nodes N")
	}
	if (q.Layout == "") == (q.Nodes == 0) {
		return nil, errors.New("how many nodes does the job take? Expected one of -l NODESxGPUS and --nodes N")
	}
	var found map[string][]string
	env.loaded = func(cl *cluster.Cluster) { found = hostFindings(cl) }
	t, err := q.Job.read(ctx, env)
	if err != nil {
		return nil, err
	}
	if err := q.placement().requireGPUs(t.cluster); err != nil {
		return nil, err
	}
	x := &placing{job: t, n: q.Nodes, found: found}
	if len(t.cluster.Network.BlockSizes) > 0 {
		x.blocks, x.blockOf = slurm.Blocks(t.cluster)
	}
	out := outOfService(t.cluster)
	t.cluster = t.cluster.ByRack(nvlinkDomains(t.cluster))
	gpus := 0
	if q.Layout != "" {
		x.n, gpus = t.shapes[0].nodes, t.shapes[0].gpus
	}
	all := nodesFor(t.cluster, gpus)
	x.free = all
	if q.Free != "" {
		if x.free, err = x.find(ctx, env, all, "--free", q.Free); err != nil {
			return nil, err
		}
	} else {
		x.free = env.inService(all, out)
	}
	if q.Layout == "" {
		x.free = env.alike(x.free)
	}
	if x.n > len(x.free.names) {
		return nil, fmt.Errorf("the job takes %s and %d are free (%.200s)", words.Plural(x.n, "node"), len(x.free.names), cluster.FormatHosts(x.free.names))
	}
	x.each = len(x.free.ranks[0])
	if x.n*x.each > predict.MaxRanks {
		return nil, fmt.Errorf("%d GPUs; at most %d", x.n*x.each, predict.MaxRanks)
	}
	return x, nil
}

// find resolves names of nodes. Those that only a scheduler knows are noted: it has other nodes too.
func (x *placing) find(ctx context.Context, env *Env, all *jobNodes, flag, word string) (*jobNodes, error) {
	names, err := env.freeNames(env.budget(ctx), flag, word)
	if err != nil {
		return nil, err
	}
	found, strange := all.named(names)
	switch {
	case len(strange) == 0:
	case len(found.names) > 0 && (word == "-" || env.exists(word)):
		env.note(fmt.Sprintf("%s %s: left out %.200s, which the cluster's map has too few GPUs for, or none", flag, word, cluster.FormatHosts(strange)))
	default:
		return nil, fmt.Errorf("%s: %.200s: not among the nodes of %s with enough GPUs, which are %.200s (HOSTLIST=PRESET gives a preset's nodes their names)",
			flag, cluster.FormatHosts(strange), x.job.cluster.Name, cluster.FormatHosts(all.names))
	}
	return found, nil
}

// layoutOf is the ranks of free nodes.
func (x *placing) layoutOf(nodes []int) (l nccl.Layout) {
	for _, i := range nodes {
		l = append(l, x.free.ranks[i]...)
	}
	return l
}

func plainNumbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// choice is what a scheduler takes; no nodes mean that the job waits.
type choice struct {
	name  string
	nodes []int
}

// slurm is what Slurm takes by itself: with topology/block where blocks are declared, else with topology/tree.
func (x *placing) slurm() choice {
	if len(x.blocks) == 0 {
		if tree, ok := x.schedulerTree(); ok {
			return choice{"Slurm's own choice (topology/tree by topology.conf)", x.placer.BestFitIn(tree)}
		}
		return choice{"Slurm's own choice (topology/tree)", x.placer.BestFit()}
	}
	b := plan.Blocks{N: len(x.blocks), Sizes: x.job.cluster.Network.BlockSizes}
	for _, name := range x.free.names {
		k, ok := x.blockOf[name]
		if !ok {
			k = -1
		}
		b.Of = append(b.Of, k)
	}
	c := choice{name: "Slurm's own choice (topology/block)"}
	if nodes, ok := x.placer.BlockFit(b); ok {
		c.nodes = nodes
	}
	return c
}

// schedulerTree is the tree of topology.conf where the cables are known beside it and free nodes are in it.
func (x *placing) schedulerTree() (t plan.Tree, ok bool) {
	list := x.job.cluster.Network.Scheduler
	at := map[string]int{}
	leaf := map[string]int{}
	for i, s := range list {
		at[s.Name] = i
		for _, h := range s.Hosts {
			leaf[h] = i
		}
	}
	for _, s := range list {
		up, above := at[s.Up]
		if !above || s.Up == "" {
			up = -1
		}
		t.Up = append(t.Up, up)
	}
	for _, name := range x.free.names {
		k, known := leaf[name]
		if ok = ok || known; !known {
			k = -1
		}
		t.Of = append(t.Of, k)
	}
	return t, ok
}

// scheduler is its choice: Slurm's own, or a given one.
func (x *placing) scheduler(ctx context.Context, env *Env, word string) (choice, error) {
	if word == "slurm" {
		return x.slurm(), nil
	}
	found, err := x.find(ctx, env, x.free, "--scheduler", word)
	if err != nil {
		return choice{}, err
	}
	if len(found.names) != x.n {
		return choice{}, fmt.Errorf("--scheduler %s: %s; the job takes %d", word, words.Plural(len(found.names), "node"), x.n)
	}
	c := choice{name: "the scheduler's choice"}
	for _, n := range found.names {
		c.nodes = append(c.nodes, slices.Index(x.free.names, n))
	}
	return c, nil
}
