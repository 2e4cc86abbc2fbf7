package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/words"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// planned is the answer on one site.
type planned struct {
	*training
	jobSite
	framework  *workload.Framework
	chosen     string // why that framework, where nobody named it
	query      *plan.Query
	goal       planGoal
	hostMemory string     // where the size of a node's own memory comes from
	order      *hostOrder // of hosts that were given
	mixed      string     // what is taken where GPUs differ
	nearby     bool       // ranks follow the network and not the cluster's order of hosts
	answer     *plan.Answer
	quick      plan.Plan       // the best of all by the objective alone
	run        *plan.Published // of the job's kind, which is one of the plans
	runSplit   workload.Split
	steps      []*pricedStep
	help       []step.Change
	tuned      *plan.Tuned // the first under a tuner plugin
	others     []planOther // frameworks whose best plan is better
}

// plan plans on the cluster, and explains the plans.
func (t *training) plan(ctx context.Context) (*planned, error) {
	at := t.jobSite
	var order *hostOrder
	var err error
	if at.ranks, at.layout, order, err = t.hostLayout(t.cluster); err != nil {
		return nil, err
	}
	nearby := false
	if order == nil {
		if at.ranks, at.layout, err = t.without(t.cluster, at.ranks, at.layout); err != nil {
			return nil, err
		}
		near := plan.NetworkOrder(t.cluster, at.ranks)
		nearby, at.ranks = !slices.Equal(near, at.ranks), near
	}
	x, err := t.search(ctx, at, order)
	if err != nil {
		return nil, err
	}
	x.nearby = nearby
	for i := range x.answer.Plans {
		x.steps = append(x.steps, x.step(i))
	}
	return x, x.explain(ctx)
}

// leastArranged is how many plans are arranged, however few are shown: the one to take may not be the fastest.
const leastArranged = 10

// search finds the best plans on a site, in the order in which they should be taken: by the framework that was named,
// or the one that suits.
func (t *training) search(ctx context.Context, at jobSite, order *hostOrder) (*planned, error) {
	x, err := t.prepare(at, order)
	if err != nil {
		return nil, err
	}
	x.query.Watch = t.watch()
	if x, err = x.chooseFramework(ctx); err == nil && x.answer == nil {
		err = x.find(ctx)
	}
	t.env.progress("")
	switch {
	case errors.Is(err, plan.ErrNone):
		return nil, x.none()
	case err != nil && ctx.Err() != nil:
		t.env.note(fmt.Sprintf("%s: the search was ended before its first plan was priced; --framework, --parallel or "+
			"--recompute make it shorter", t.model.Name))
		return nil, err
	case err != nil:
		return nil, err
	}
	plans := x.answer.Plans[:min(len(x.answer.Plans), t.Top)]
	if n := len(plans); n > 1 && !slices.ContainsFunc(plans, func(p plan.Plan) bool { return p.Value == x.quick.Value }) {
		plans[n-1] = x.quick // it is tight, or less sure
	}
	x.answer.Plans = plans
	return x, nil
}

// find searches, and puts first what should be taken.
func (x *planned) find(ctx context.Context) (err error) {
	x.answer, err = plan.Search(ctx, x.query)
	if err == nil && x.order != nil {
		x.answer, err = x.arrange(ctx)
	}
	if err != nil {
		return err
	}
	if err := x.arrangePlans(ctx); err != nil {
		return err
	}
	err = x.query.PreferDefaults(x.answer.Plans)
	x.quick = slices.MinFunc(x.answer.Plans, func(a, b plan.Plan) int { return cmp.Compare(a.Value, b.Value) })
	return err
}

// step is a plan as a step.
func (x *planned) step(i int) *pricedStep {
	best, at, q := &x.answer.Plans[i], x.jobSite, x.query
	at.ranks = q.Layout
	if ranks := best.Job.Split.Ranks(); ranks < len(q.Layout) {
		at.ranks = q.Layout[:ranks]
		each := ranksOfFirst(q.Layout)
		if trays, gpus := perHost(at.cluster); trays > 1 {
			each = min(each, gpus)
		}
		at.layout = fmt.Sprintf("%dx%d", ranks/each, each)
	}
	return &pricedStep{
		jobSite: at, Result: best.Result, nodes: hostsOf(at.ranks), job: &best.Job, model: q.GPU.Model, gpu: q.GPU,
		tasks: step.Prepare(&best.Job, q.Fabric(&best.Job)), chosen: x.chosen,
	}
}

// prepare is the search on a site, but for what may vary.
func (t *training) prepare(at jobSite, order *hostOrder) (*planned, error) {
	x := &planned{training: t, jobSite: at, order: order}
	model, mixed, err := step.SlowestGPU(at.cluster, at.ranks)
	if err != nil {
		return nil, err
	}
	x.mixed = mixed
	g, err := gpuOn(at.cluster, model)
	if err != nil {
		return nil, err
	}
	if x.goal, err = t.goal(ranksOfFirst(at.ranks)); err != nil {
		return nil, err
	}
	x.query = &plan.Query{
		Cluster: at.cluster, Layout: at.ranks, Version: at.version, GPU: g, Top: max(t.Top, leastArranged),
		Reserve:   t.reserve,
		Objective: x.goal.objective, Tuned: at.tuned, Env: at.setting,
	}
	if t.MaxStep != "" {
		if x.query.MaxStep, err = unit.ParseSpan(t.MaxStep); err != nil || x.query.MaxStep <= 0 {
			return nil, fmt.Errorf("--max-step %q; expected a time, such as 30s", t.MaxStep)
		}
	}
	if err := t.checkHosts(order, hostsOf(at.ranks)); err != nil {
		return nil, err
	}
	x.query.HostMemory, x.hostMemory, err = t.memoryOfHost(at.cluster.TypeOf(at.ranks[0].Host))
	return x, err
}

// checkHosts refuses real names that are no names for so many nodes, whether files are written or not, and notes more
// nodes than there are.
func (p *training) checkHosts(order *hostOrder, nodes int) error {
	if p.MaxNodes > nodes {
		p.env.note(fmt.Sprintf("--max-nodes %d: there are %s", p.MaxNodes, words.Plural(nodes, "node")))
	}
	if order != nil || p.Hosts == "" {
		return nil
	}
	hosts, err := parseHosts(p.Hosts)
	switch {
	case err != nil:
		return err
	case len(hosts) < nodes && p.MaxNodes == 0 && p.Objective == "time":
		return fmt.Errorf("--hosts names %s; the job takes %d", words.Plural(len(hosts), "host"), nodes)
	}
	return nil
}

// memoryOfHost is what a node has of its own, and who says so.
func (q *Plan) memoryOfHost(t *cluster.NodeType) (unit.Bytes, string, error) {
	if q.Host != "" {
		size, err := unit.ParseBytes(q.Host)
		if err != nil || size < 1<<30 {
			return 0, "", fmt.Errorf("--host-memory %q; expected a size of at least 1GiB, such as 2TB", q.Host)
		}
		return size, "--host-memory", nil
	}
	if size := hardware.HostMemorySize(t); size.Value > 0 {
		return size.Value, size.Source, nil
	}
	return hardware.AssumedHostMemory, "assumed; --host-memory says another", nil
}

// watch tells how far a search is.
func (p *training) watch() func(plan.Progress) {
	if p.env.Progress == nil && p.env.Steps == nil {
		return nil
	}
	return func(x plan.Progress) {
		if p.env.Steps != nil {
			p.env.Steps(x.Done, x.Considered)
		}
		text := fmt.Sprintf("%s of %s settings looked at one by one", words.Thousands(x.Done), words.Thousands(x.Considered))
		if x.Best > 0 {
			text += fmt.Sprintf(", %s priced, best %s", words.Thousands(x.Priced), x.Best.Short())
		}
		p.env.progress(text)
	}
}

// explain works out what is said about the plans.
func (x *planned) explain(ctx context.Context) error {
	q := x.query
	// Who ends the search wants the plans, and no more of it.
	for _, work := range []func() error{
		func() error { return x.findHelp(ctx) },
		func() (err error) { x.others, err = x.compare(ctx); return err },
		func() (err error) { x.tuned, err = q.Tune(&x.answer.Plans[0]); return err },
	} {
		if ctx.Err() != nil {
			return nil
		}
		if err := work(); err != nil {
			return err
		}
	}
	return nil
}

// Bounds of what is said to help.
const (
	mostHelp  = 3
	LeastHelp = 0.005 // more tokens per second
)

// findHelp finds what would help the first plan most: settings and networks tried one by one, and the best plan with
// twice the memory.
func (x *planned) findHelp(ctx context.Context) error {
	q, first := x.query, x.steps[0]
	gpu := *q.GPU
	gpu.Model.Memory = unit.Bytes(q.Room()) // what does not leave the reserve free is no help
	list, err := first.tasks.ChangesOver(&gpu, first.Result, true, LeastHelp)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(c step.Change) bool { return c.Setting == step.Padding }) // busbar step has it
	roomy, err := q.WithMemory(ctx, 2)
	if err != nil && ctx.Err() == nil {
		return err
	}
	if roomy != nil {
		gain := roomy.Result.TokensPerSecond()/first.TokensPerSecond() - 1
		if roomy.Result.Ranks == first.Ranks && gain >= LeastHelp && settings(&roomy.Job) != settings(first.job) {
			list = append(list, step.Change{
				Text: settings(&roomy.Job) + " would fit", Setting: "GPUs with twice the memory", Gain: gain, Buy: true,
			})
		}
	}
	slices.SortStableFunc(list, func(a, b step.Change) int { return cmp.Compare(b.Gain, a.Gain) })
	x.help = list[:min(len(list), mostHelp)]
	return nil
}

// misfit is the error of a job that fits the GPUs in no form that it may have.
type misfit struct {
	error
	step    *pricedStep // the form that needs least, without a price
	fitting *stepFitting
}

func (m *misfit) Unwrap() error { return failure.ErrWrong }

// none says why there is no plan: settings that exclude each other, or by how much the leanest does not fit and what
// would make it fit.
func (x *planned) none() error {
	q, answer := x.query, x.answer
	space := q.Spaces[0]
	base := &space.Base
	if answer.Considered == 0 {
		return fmt.Errorf("no setting is possible on %s: %s", words.Plural(space.Ranks, "GPU"), x.clash(space))
	}
	if answer.Late > 0 {
		return failure.Wrong(fmt.Errorf("no setting of %s has a step within --max-step %s on %s: the shortest takes %s at "+
			"least", base.Model.Name, x.MaxStep, words.Plural(space.Ranks, "GPU"), answer.Late.Short()))
	}
	have := q.Room()
	text := fmt.Sprintf("does not fit: %s on %s of %.1f GiB by %s", base.Model.Name, words.Plural(space.Ranks, "GPU"),
		unit.Volume(q.GPU.Model.Memory).GiB(), x.framework.Title)
	lean := answer.Leanest
	if lean == nil {
		return failure.Wrong(errors.New(text))
	}
	m := lean.Memory
	if need := m.Total(); need > have {
		text += fmt.Sprintf("; the smallest of %s settings, %s, needs %.1f GiB per GPU, %.1f GiB more than available with "+
			"%.3g%% left free (in GiB: parameters %.1f, gradients %.1f, optimizer %.1f, activations %.1f, other %.1f, driver "+
			"%.1f)",
			words.Thousands(answer.Considered), settings(&lean.Job), need.GiB(), (need - have).GiB(), 100*q.Reserve,
			m.Params.GiB(),
			m.Grads.GiB(), m.Optimizer.GiB(), m.Activations.GiB(), m.Other.GiB(), m.Driver.GiB())
	} else {
		text += fmt.Sprintf("; the smallest, %s, needs %.1f GB of host memory per node, which has %.1f GB",
			settings(&lean.Job), (m.Host * unit.Volume(space.Node)).GB(), unit.Volume(q.HostMemory).GB())
	}
	fitting, remedy := x.remedy()
	at := x.jobSite
	return &misfit{fmt.Errorf("%s; %s", text, remedy), &pricedStep{
		jobSite: at, Result: &step.Result{Ranks: len(at.ranks), Memory: m}, job: &lean.Job, model: q.GPU.Model,
		chosen: x.chosen,
	}, fitting}
}

// Bounds of a remedy.
const (
	mostTimes = 1 << 10
	mostGPUs  = 1 << 17
)

// stepFitting is the smallest change by which a job fits that does not.
type stepFitting struct {
	Settings string     `json:"settings"` // flags of busbar step
	GPUs     int        `json:"gpus"`
	Memory   unit.Bytes `json:"memory_bytes"` // of a GPU
}

// remedy is the smallest change by which the job fits, and that in words: 4 bits for what adapters leave frozen, one of
// the fixed settings left out, all of them, another framework, or so many times the GPUs. Nil where none was found.
func (x *planned) remedy() (*stepFitting, string) {
	free := func(change func(q *Plan)) *training {
		y, question := *x.training, *x.Plan
		change(&question)
		y.Plan = &question
		return &y
	}
	narrow := *x.training
	if narrow.job.LoRA.Frozen() {
		narrow.job.LoRA.Bits = 4
	}
	ways := []*training{
		&narrow, free(func(q *Plan) { q.Micro = 0 }), free(func(q *Plan) { q.Recompute = "" }),
		free(func(q *Plan) { q.Offload = nil }),
		free(func(q *Plan) { q.Parallel = "" }),
		free(func(q *Plan) { q.Parallel, q.Micro, q.Recompute, q.Offload, q.Schedule = "", 0, "", nil, nil }),
	}
	all, ranks := ways[len(ways)-1], len(x.ranks)
	for _, w := range ways {
		if fit := x.fitting(w, x.framework, ranks); fit != nil {
			return fit, fmt.Sprintf("%s would fit: %.1f GiB", fit.Settings, unit.Volume(fit.Memory).GiB())
		}
	}
	for times := 1; times <= mostTimes && ranks*times <= mostGPUs; times *= 2 {
		for _, name := range x.candidates() {
			f, err := workload.ParseFramework(name)
			if err != nil || all.misses(f) != nil {
				continue
			}
			if fit := x.fitting(all, f, ranks*times); fit != nil {
				return fit, fmt.Sprintf("on %s %s would fit: %.1f GiB", words.Plural(fit.GPUs, "GPU"), fit.Settings,
					unit.Volume(fit.Memory).GiB())
			}
		}
	}
	return nil, "more or larger GPUs, shorter sequences, or a smaller model would help"
}

// fitting is the setting that needs least on so many GPUs of the site's nodes, by a framework; nil where none fits.
func (x *planned) fitting(t *training, f *workload.Framework, ranks int) *stepFitting {
	s, err := t.space(f, ranks, ranks, x.query.Spaces[0].Node, x.query.GPU.Model)
	if err != nil {
		return nil
	}
	y := x.query.Fits(s)
	if y == nil {
		return nil
	}
	j := &y.Job
	flags := fmt.Sprintf("--framework %s --parallel %s --global-batch %d --micro-batch %d --recompute %s", f,
		j.Split,
		j.GlobalBatch/t.pairs(), j.MicroBatch/t.pairs(), j.Recompute)
	if j.Offloads() {
		flags += " --offload " + string(j.Offload)
	}
	if j.LoRA != x.job.LoRA {
		flags += " --lora " + j.LoRA.String()
	}
	return &stepFitting{flags, ranks, y.Memory.Total().Bytes()}
}

// settings is a job in a few words.
func settings(j *workload.Job) string {
	text := fmt.Sprintf("%s with a micro-batch of %d and recompute %s", j.Split, j.MicroBatch, j.Recompute)
	if j.Offloads() {
		text += fmt.Sprintf(", offload %s", j.Offload)
	}
	return text
}

// clash says which of the fixed settings exclude each other.
func (x *planned) clash(s *plan.Space) string {
	fixed := CommandLine(nil, Plan{
		Parallel: x.Parallel, Recompute: x.Recompute, Schedule: x.Schedule, Context: x.Context, Offload: x.Offload,
		Compress: x.Compress, Framework: x.Framework, Micro: x.Micro,
	})[1:]
	j := s.Base
	j.MicroBatch = max(1, x.Micro) * x.pairs()
	why := x.contradiction(s, &j)
	if why == "" {
		why = fmt.Sprintf("%s, a global batch of %d, %s with %d layers and %d heads; degrees must divide them",
			words.Plural(s.Ranks, "GPU"), j.GlobalBatch, x.model.Name, x.model.Dims.Layers, x.model.Dims.Heads)
	}
	if len(fixed) > 0 {
		why += " (fixed are " + strings.Join(fixed, " ") + ")"
	}
	return why
}

// contradiction looks at what is fixed alone; "" where that is no contradiction.
func (x *planned) contradiction(s *plan.Space, j *workload.Job) string {
	split, err := x.Parallel.split()
	if err == nil {
		split, err = split.Within(s.Node)
	}
	if err == nil {
		split, err = split.On(s.Ranks)
	}
	if err != nil {
		return err.Error()
	}
	if len(x.Schedule) > 0 && split.PP > 1 {
		j.Schedule = s.Schedule[0]
	}
	j.Split = split
	if len(x.Compress) == 1 {
		j.Compress = s.Compress[0]
	}
	if len(x.Offload) == 1 {
		j.Offload = s.Offload[0]
	}
	if err := j.Check(); err != nil {
		return err.Error()
	}
	if err := x.framework.Refuses(j); err != nil {
		return err.Error()
	}
	switch {
	case split.ZeRO > 1 && split.PP > 1:
		return fmt.Sprintf("zero=%d with pp=%d, which few frameworks have; take zero=0 or zero=1, or --framework torchtitan",
			split.ZeRO, split.PP)
	case split.ZeRO > 0 && split.DP*split.CP == 1:
		return fmt.Sprintf("zero=%d with one replica, which has no ranks to shard over", split.ZeRO)
	case strings.Contains(string(x.Parallel), "sp=1") && split.TP == 1 && len(s.TP) == 1:
		return "sp=1 with tp=1, which has no ranks to shard over"
	case split.Chunks > 1 && split.PP == 1:
		return fmt.Sprintf("vpp=%d without a pipeline; give pp", split.Chunks)
	}
	return ""
}
