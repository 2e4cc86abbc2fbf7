package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/input"
	"busbar.dev/input/k8s"
	"busbar.dev/input/slurm"
	"busbar.dev/internal/natural"
	"busbar.dev/internal/words"
	"busbar.dev/launch"
	"busbar.dev/nccl"
	"busbar.dev/plan"
	"busbar.dev/predict"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Place asks which of the free nodes a job should take: sets of nodes are priced as steps of the job on the cluster's
// map, and compared with what the scheduler would take.
type Place struct {
	Job
	Free      string `placeholder:"HOSTLIST|FILE" help:"Free nodes: a hostlist, or a file with the output of sinfo, scontrol show node, kubectl get nodes,pods -A -o json, or names (default: all nodes of the cluster)."`
	Nodes     int    `least:"1" most:"1000000" placeholder:"N" help:"Nodes of the job, with all their GPUs (default: as -l says)."`
	Scheduler string `placeholder:"slurm|HOSTLIST" default:"slurm" help:"Choice to compare with: slurm (topology/block where the cluster's topology.conf or topology.yaml has blocks, else topology/tree, by the switches of topology.conf where they are known, else by the cables), or the nodes that a scheduler chose, as a hostlist or a file (default slurm)."`
	Top       int    `default:"5" least:"1" most:"96" placeholder:"N" help:"Placements to list (default: 5)."`
}

// PlaceDoc is the answer to Place.
type PlaceDoc struct {
	Cluster   string           `json:"cluster"`
	Job       workload.Summary `json:"job"`
	GPU       string           `json:"gpu"`
	Nodes     int              `json:"nodes"`
	PerNode   int              `json:"gpus_per_node"`
	Free      string           `json:"free"` // as a hostlist
	FreeNodes int              `json:"free_nodes"`
	Tried     int              `json:"tried"`
	Best      PlaceRow         `json:"best"`
	Scheduler *PlaceRow        `json:"scheduler"` // null where the job would wait
	Worst     PlaceRow         `json:"worst"`
	Rows      []PlaceRow       `json:"rows"` // the shortest steps first
	// Take is the row to take: the scheduler's where it ties with the best.
	Take PlaceRow `json:"take"`
	Text string   `json:"text"`
	Noted
}

// PlaceRow is one set of nodes.
type PlaceRow struct {
	Hosts  string      `json:"hosts"` // in the order of ranks
	Leaves []plan.Leaf `json:"leaves"`
	Why    string      `json:"why"`
	Step   unit.Span   `json:"step_s"`
	Low    unit.Span   `json:"low_s"`
	High   unit.Span   `json:"high_s"`
	// Exposed is the communication that nothing hides.
	Exposed unit.Span `json:"exposed_comm_s"`
	// Longer is how much longer the step is than the best one; the bar is the error of what the placements differ by,
	// which is communication. Errors that they share do not count.
	Longer     unit.Span `json:"longer_s"`
	LongerLow  unit.Span `json:"longer_low_s"`
	LongerHigh unit.Span `json:"longer_high_s"`
	Tied       bool      `json:"tied"` // with the best: the difference may be less than steps differ from run to run

	Level cluster.Tier `json:"level"` // of the lowest switches that hold all nodes
	// Racks are the NVLink domains of several hosts that it is in, Segment the most nodes that each has a multiple of.
	Racks   []string `json:"racks,omitempty"`
	Segment int      `json:"segment,omitempty"`
}

// placeNoise is the share of a step that two runs on one placement may differ by: a smaller difference between
// placements is of no use to anybody.
const placeNoise = 0.01

// Run finds the nodes.
func (q Place) Run(ctx context.Context, env Env) (doc *PlaceDoc, err error) {
	defer prepared(&q, &env, &doc, &err)()
	if err != nil {
		return nil, err
	}
	x, err := q.read(ctx, &env)
	if err != nil {
		return nil, err
	}
	defer env.working("pricing placements")()
	at := x.job.jobSite
	at.ranks, at.layout = slices.Concat(x.free.Ranks[:x.n]...), fmt.Sprintf("%dx%d", x.n, x.each)
	first, err := x.job.resolveOn(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := unused(&q.Job, first); err != nil {
		return nil, err
	}
	pl, err := plan.NewPlacer(&plan.Query{
		Cluster: x.job.cluster, Version: x.job.version, GPU: first.gpu, Env: x.job.setting,
	}, first.job,
		x.free.Ranks, x.flaws(), x.n)
	if err != nil {
		return nil, err
	}
	x.placer, x.margin = pl, first.gpu.Margin(first.job)
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
		Cluster: x.job.cluster.Name, Job: first.summary(), GPU: first.model.Title, Nodes: x.n,
		PerNode: x.each,
		Free:    cluster.FormatHosts(x.free.Names), FreeNodes: len(x.free.Names), Tried: all.Tried, Rows: []PlaceRow{},
	}
	x.fill(d, all, given.name, q.Top)
	return d, nil
}

// placing is a question as read.
type placing struct {
	job     *training
	free    *plan.Nodes
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
	if err := unread(q, "devices", "a job takes the first GPUs of its nodes"); err != nil {
		return nil, err
	}
	if (q.Layout == "") == (q.Nodes == 0) {
		return nil, errors.New("how many nodes does the job take? Expected one of -l NODESxGPUS and --nodes N")
	}
	var found map[string][]string
	env.loaded = func(cl *cluster.Cluster) { found = audit.OnHosts(cl) }
	t, err := q.Job.read(ctx, env, 0)
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
	t.cluster = t.cluster.ByRack(plan.NVLinkDomains(t.cluster))
	gpus := 0
	if q.Layout != "" {
		x.n, gpus = t.shapes[0].nodes, t.shapes[0].gpus
	}
	all := plan.NodesFor(t.cluster, gpus)
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
	if x.n > len(x.free.Names) {
		return nil, fmt.Errorf("the job takes %s and %d are free (%.200s)", words.Plural(x.n, "node"), len(x.free.Names),
			cluster.FormatHosts(x.free.Names))
	}
	x.each = len(x.free.Ranks[0])
	if x.n*x.each > predict.MaxRanks {
		return nil, fmt.Errorf("%d GPUs; at most %d", x.n*x.each, predict.MaxRanks)
	}
	return x, nil
}

// find resolves names of nodes. Those that only a scheduler knows are noted: it has other nodes too.
func (x *placing) find(ctx context.Context, env *Env, all *plan.Nodes, flag, word string) (*plan.Nodes, error) {
	names, err := env.freeNames(env.budget(ctx), flag, word)
	if err != nil {
		return nil, err
	}
	found, strange := all.Named(names)
	switch {
	case len(strange) == 0:
	case len(found.Names) > 0 && (word == "-" || env.exists(word)):
		env.note(fmt.Sprintf("%s %s: left out %.200s, which the cluster's map has too few GPUs for, or none", flag, word,
			cluster.FormatHosts(strange)))
	default:
		return nil, fmt.Errorf("%s: %.200s: not among the nodes of %s with enough GPUs, which are %.200s (HOSTLIST=PRESET "+
			"gives a preset's nodes their names)",
			flag, cluster.FormatHosts(strange), x.job.cluster.Name, cluster.FormatHosts(all.Names))
	}
	return found, nil
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
	for _, name := range x.free.Names {
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
	for _, name := range x.free.Names {
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
	if len(found.Names) != x.n {
		return choice{}, fmt.Errorf("--scheduler %s: %s; the job takes %d", word, words.Plural(len(found.Names), "node"), x.n)
	}
	c := choice{name: "the scheduler's choice"}
	for _, n := range found.Names {
		c.nodes = append(c.nodes, slices.Index(x.free.Names, n))
	}
	return c, nil
}

// fill makes rows of placements and says which to take.
func (x *placing) fill(d *PlaceDoc, all plan.Placements, scheduler string, top int) {
	x.prefer(all.List, scheduler)
	best := &all.List[0]
	for i := range all.List {
		row := x.row(&all.List[i], best)
		if i == 0 {
			d.Best = row
		}
		if row.Why == scheduler {
			d.Scheduler = &row
		}
		if i < top {
			d.Rows = append(d.Rows, row)
		}
		d.Worst = row
	}
	d.Take = d.Best
	s := d.Scheduler
	switch {
	case s == nil:
		d.Text = fmt.Sprintf("Take %s. %s is to wait: of the blocks that could hold %s, none has as many free ones "+
			"(--segment lets a job take several blocks).",
			hostText(&d.Best), scheduler, words.Plural(d.Nodes, "node"))
	case s.Hosts == d.Best.Hosts:
		d.Text = fmt.Sprintf("Take %s: %s is the best of %s.", hostText(s), scheduler, words.Plural(d.Tried, "placement"))
	case s.Tied && s.Longer <= 0:
		d.Text = fmt.Sprintf("Take %s: as fast as %s, and on nodes with fewer findings.", hostText(&d.Best), scheduler)
	case s.Tied:
		d.Text = fmt.Sprintf("A tie: %s takes %s longer than the best of %d placements (%s to %s), which is within the "+
			"noise of a step. Take the shorter: %s.",
			scheduler, s.Longer.Short(), d.Tried, s.LongerLow.Short(), s.LongerHigh.Short(), hostText(&d.Best))
	default:
		d.Text = fmt.Sprintf("Take %s: %s per step less than %s (%s to %s), which is %.0f%% of its step.", hostText(&d.Best),
			s.Longer.Short(), scheduler, s.LongerLow.Short(), s.LongerHigh.Short(), 100*s.Longer.Seconds()/s.Step.Seconds())
	}
	if d.Worst.Tied && slices.Max(x.flaws()) == 0 {
		d.Text += " All placements tie: this network does not care where the job runs."
	}
	d.Text += x.findings(&d.Take)
}

func (x *placing) row(p, best *plan.Placement) PlaceRow {
	m := unit.Span(x.margin)
	r := PlaceRow{
		Why: p.Why, Step: p.Result.Step, Low: p.Result.Step / m, High: p.Result.Step * m, Exposed: p.Result.Exposed,
		Longer: p.Result.Step - best.Result.Step, Level: x.placer.Level(p.Nodes), Leaves: x.placer.Leaves(p.Nodes),
	}
	bar := unit.Span(max(p.Margin, best.Margin, 1))
	r.LongerLow, r.LongerHigh = r.Longer/bar, r.Longer*bar
	r.Tied = r.LongerLow < placeNoise*best.Result.Step
	inRack := map[string]int{}
	var names []string
	for _, i := range p.Nodes {
		names = append(names, x.free.Names[i])
		if rack := x.free.Racks[i]; rack != "" {
			if inRack[rack]++; inRack[rack] == 1 {
				r.Racks = append(r.Racks, rack)
			}
		}
	}
	for _, n := range inRack {
		r.Segment = gcd(n, r.Segment)
	}
	r.Hosts = cluster.FormatHosts(names)
	return r
}

// Names are the hosts by their names, in the order of ranks; none where Hosts is no hostlist.
func (r *PlaceRow) Names() []string {
	names, _ := cluster.ParseHosts(r.Hosts)
	return names
}

// Request is the nodes to take, for a scheduler.
func (d *PlaceDoc) Request() *launch.Request {
	r := &d.Take
	return &launch.Request{
		Hosts: r.Names(), GPUs: d.PerNode, Leaves: len(r.Leaves), Level: r.Level, Racks: len(r.Racks), Segment: r.Segment,
		Require: !d.Worst.Tied,
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// noteFindings notes what is wrong with hosts that were given.
func (e *Env) noteFindings(found map[string][]string, names []string) {
	const most = 8
	n := 0
	for _, name := range names {
		if len(found[name]) == 0 {
			continue
		}
		if n++; n <= most {
			e.note(fmt.Sprintf("%s has a finding: %s (busbar map --audit)", name, found[name][0]))
		}
	}
	if n > most {
		e.note(fmt.Sprintf("%d more hosts have findings (busbar map --audit)", n-most))
	}
}

// flaws is how many findings each free node has.
func (x *placing) flaws() []int {
	list := make([]int, len(x.free.Names))
	for i, n := range x.free.Names {
		list[i] = len(x.found[n])
	}
	return list
}

// samePlacement is the share of a step by which two placements may differ and still be equally good.
const samePlacement = 0.001

// prefer puts placements that are equally good in the order in which they should be taken: on nodes without findings,
// then as the scheduler does.
func (x *placing) prefer(list []plan.Placement, scheduler string) {
	equal := list[0].Result.Step * (1 + samePlacement)
	n := slices.IndexFunc(list, func(p plan.Placement) bool { return p.Result.Step > equal })
	if n < 0 {
		n = len(list)
	}
	rank := func(p *plan.Placement) int {
		if p.Why == scheduler {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list[:n], func(a, b plan.Placement) int {
		return cmp.Or(x.placer.Flaws(a.Nodes)-x.placer.Flaws(b.Nodes), rank(&a)-rank(&b))
	})
}

// findings says which nodes are left out for what an audit finds on them, and which are taken in spite of it.
func (x *placing) findings(take *PlaceRow) string {
	const most = 3
	text, more := "", 0
	for _, n := range natural.Sort(slices.Clone(x.free.Names)) {
		if len(x.found[n]) == 0 {
			continue
		}
		if more++; more > most {
			continue
		}
		word := "is left out"
		if slices.Contains(take.Names(), n) {
			word = "is taken in spite of a finding"
		}
		text += fmt.Sprintf(" %s %s: %s.", n, word, x.found[n][0])
	}
	if more > most {
		text += fmt.Sprintf(" %d more nodes have findings (busbar map --audit).", more-most)
	}
	return text
}

// hostText is a placement's hosts sorted, with the order of ranks where that is another one.
func hostText(r *PlaceRow) string {
	sorted := natural.Sort(slices.Clone(r.Names()))
	if slices.Equal(sorted, r.Names()) {
		return r.Hosts
	}
	return fmt.Sprintf("%s, ranks in the order %s", cluster.FormatHosts(sorted), r.Hosts)
}

// freeNames are the names of nodes that word stands for: a hostlist, or a file (- is standard input) with what a
// scheduler says is free, or with names.
func (e *Env) freeNames(b *cluster.Budget, flag, word string) ([]string, error) {
	text, err := e.freeText(word)
	if err != nil {
		return nil, err
	}
	var names []string
	var known bool
	switch {
	case text == "":
		if names, err = b.ParseHosts(word); err != nil {
			err = fmt.Errorf("expected a hostlist or a file: %w", err)
		}
		known = true
	case k8s.Match([]byte(text)):
		names, err = k8s.FreeNodes(text)
		known = true
	default:
		if names, known, err = slurm.FreeNodes(b, text); err == nil && !known {
			names, err = e.namesIn(b, word, text)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %.80s: %w", flag, word, err)
	case len(names) == 0:
		return nil, fmt.Errorf("%s %.80s: no node in it is free; expected idle ones in sinfo or scontrol show node, or "+
			"ready ones with free GPUs in kubectl get nodes,pods -A -o json", flag, word)
	}
	return names, nil
}

// freeText is what a file holds; none where the word names no file.
func (e *Env) freeText(word string) (string, error) {
	if _, err := fs.Stat(e.files(), word); err != nil && word != "-" {
		return "", nil
	}
	data, err := e.readWhole(word, "a list of nodes")
	if err == nil && len(strings.TrimSpace(string(data))) == 0 {
		err = fmt.Errorf("%s: empty; expected a list of nodes", word)
	}
	return string(data), err
}

// namesIn are the hosts of any source that map reads, such as a cloud's list of instances, or the names in a plain
// list.
func (e *Env) namesIn(b *cluster.Budget, word, text string) ([]string, error) {
	var names []string
	if frags, err := input.ReadWithin(b, word, strings.NewReader(text)); err == nil {
		for _, f := range frags {
			for i := range f.Hosts {
				names = append(names, f.Hosts[i].Name)
			}
		}
		return slices.DeleteFunc(names, func(n string) bool { return n == "" }), nil
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, w := range strings.Fields(line) {
			list, err := b.ParseHosts(w)
			if err != nil {
				return nil, fmt.Errorf("neither what a scheduler prints nor a list of hosts: %w", err)
			}
			names = append(names, list...)
		}
	}
	return names, nil
}

// outOfService are the hosts that a scheduler gave no jobs when its nodes were listed, with their states, by name.
func outOfService(cl *cluster.Cluster) map[string]string {
	out := map[string]string{}
	for i := range cl.Hosts {
		if o := cl.Hosts[i].Out; o != nil {
			out[cl.Hosts[i].Name] = o.State
		}
	}
	return out
}

// noteOutOfService notes hosts of a layout that a scheduler gave no jobs.
func (e *Env) noteOutOfService(cl *cluster.Cluster, l nccl.Layout) {
	var list []string
	for i, r := range l {
		if o := cl.Hosts[r.Host].Out; o != nil && (i == 0 || l[i-1].Host != r.Host) {
			list = append(list, fmt.Sprintf("%s (%s)", cl.Hosts[r.Host].Name, o.State))
		}
	}
	if len(list) > 0 {
		e.note(fmt.Sprintf("%.200s takes part and got no jobs when Slurm's nodes were listed", strings.Join(list, ", ")))
	}
}

// inService are the nodes without those that a scheduler gives no jobs, which are noted.
func (e *Env) inService(all *plan.Nodes, out map[string]string) *plan.Nodes {
	return e.without(all, "Slurm gives no jobs to them; --free names the nodes to choose from",
		func(i int) string { return out[all.Names[i]] })
}

// without are the nodes of which nothing is said; those that something is said of are noted with it, and why that
// leaves them out.
func (e *Env) without(all *plan.Nodes, why string, say func(i int) string) *plan.Nodes {
	var names, left []string
	for i, n := range all.Names {
		if text := say(i); text != "" {
			left = append(left, fmt.Sprintf("%s (%s)", n, text))
		} else {
			names = append(names, n)
		}
	}
	if len(left) == 0 {
		return all
	}
	e.note(fmt.Sprintf("left out %.200s: %s", strings.Join(left, ", "), why))
	kept, _ := all.Named(names)
	return kept
}

// alike are the nodes with as many GPUs as most have, the more where two numbers are as common. The others are noted.
func (e *Env) alike(all *plan.Nodes) *plan.Nodes {
	count, most := map[int]int{}, 0
	for _, l := range all.Ranks {
		count[len(l)]++
	}
	for n, nodes := range count {
		if nodes > count[most] || nodes == count[most] && n > most {
			most = n
		}
	}
	why := fmt.Sprintf("most free nodes have %s; -l NODESxGPUS says how many take part", words.Plural(most, "GPU"))
	return e.without(all, why, func(i int) string {
		if n := len(all.Ranks[i]); n != most {
			return words.Plural(n, "GPU")
		}
		return ""
	})
}
