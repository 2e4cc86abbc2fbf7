package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/words"
	"busbar.dev/plan"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// planVariant is a cluster to plan for.
type planVariant struct {
	set     string // what was set; "" for the cluster as it is
	cluster *cluster.Cluster
}

// variants are the cluster as it is, and one for every Set.
func (p *planning) variants() ([]planVariant, error) {
	list := []planVariant{{"", p.cluster}}
	for _, text := range p.Set {
		cl, err := step.Vary(p.cluster, text)
		if err != nil {
			return nil, fmt.Errorf("--set %s: %w", text, err)
		}
		list = append(list, planVariant{text, cl})
	}
	return list, nil
}

// planned is the answer for one cluster.
type planned struct {
	*planning
	planVariant
	query      *plan.Query
	goal       planGoal
	hostMemory string     // where the size of a node's own memory comes from
	order      *hostOrder // of hosts that were given
	mixed      string     // what is taken where GPUs differ
	nearby     bool       // ranks follow the network and not the cluster's order of hosts
	answer     *plan.Answer
	took       time.Duration
	steps      []*pricedStep
	help       []step.Change
	holds      string      // whether the order depends on the network's figures
	tuned      *plan.Tuned // the first under a tuner plugin
	others     []planOther // frameworks whose best plan is better
}

// search searches on one cluster, by one framework.
func (p *planning) search(ctx context.Context, v planVariant) (*planned, error) {
	x, name, err := p.prepare(v)
	if err != nil {
		return nil, err
	}
	x.query.Watch = p.watch()
	at := p.env.now()
	x.answer, err = plan.Search(ctx, x.query)
	if err == nil && x.order != nil {
		x.answer, err = x.arrange(ctx)
	}
	x.took = p.env.now().Sub(at)
	p.env.progress("")
	switch {
	case errors.Is(err, plan.ErrNone):
		return x, err
	case err != nil && ctx.Err() != nil:
		p.env.note(fmt.Sprintf("%s: the search was ended before its first plan was priced; --framework, --parallel or "+
			"--recompute make it shorter", p.model.Name))
		return nil, err
	case err != nil:
		return nil, err
	}
	if y, err := x.simpler(ctx); y != nil || err != nil {
		return y, err
	}
	if err := x.arrangePlans(ctx); err != nil {
		return nil, err
	}
	return x, x.explain(ctx, name)
}

// prepare is the search on one cluster, and the name of its layout.
func (p *planning) prepare(v planVariant) (*planned, string, error) {
	x := &planned{planning: p, planVariant: v}
	layout, name, order, err := p.layout(v.cluster)
	if err != nil {
		return nil, "", err
	}
	if order == nil {
		if layout, name, err = p.without(v.cluster, layout, name); err != nil {
			return nil, "", err
		}
		near := plan.NetworkOrder(v.cluster, layout)
		x.nearby, layout = !slices.Equal(near, layout), near
	}
	var model hardware.GPUModel
	if model, x.mixed, err = step.SlowestGPU(v.cluster, layout); err != nil {
		return nil, "", err
	}
	g, err := gpuOn(v.cluster, model)
	if err != nil {
		return nil, "", err
	}
	if x.goal, err = p.goal(model, ranksOfFirst(layout)); err != nil {
		return nil, "", err
	}
	x.order = order
	x.query = &plan.Query{
		Cluster: v.cluster, Layout: layout, Version: p.version, GPU: g, Top: p.Top, Reserve: p.reserve,
		Objective: x.goal.objective, Tuned: p.Tuner,
	}
	if x.query.Spaces, err = p.spaces(x.query, order != nil); err != nil {
		return nil, "", err
	}
	if x.query.MaxStep, err = p.maxStep(); err != nil {
		return nil, "", err
	}
	if err := p.checkHosts(order, hostsOf(layout)); err != nil {
		return nil, "", err
	}
	x.query.HostMemory, x.hostMemory, err = p.memoryOfHost(v.cluster.TypeOf(layout[0].Host))
	return x, name, err
}

// checkHosts refuses real names that are no names for so many nodes, whether files are written or not, and notes more
// nodes than there are.
func (p *planning) checkHosts(order *hostOrder, nodes int) error {
	if p.MaxNodes > nodes {
		p.env.note(fmt.Sprintf("--max-nodes %d: there are %s", p.MaxNodes, words.Plural(nodes, "node")))
	}
	if order != nil || p.Hosts == "" {
		return nil
	}
	hosts, err := cluster.ParseHosts(p.Hosts)
	switch {
	case err != nil:
		return fmt.Errorf("--hosts: %w", err)
	case len(hosts) < nodes && p.MaxNodes == 0 && p.Objective == "time":
		return fmt.Errorf("--hosts names %s; the job takes %d", words.Plural(len(hosts), "host"), nodes)
	}
	return nil
}

// maxStep is what MaxStep says; 0 is any time.
func (q *Plan) maxStep() (unit.Span, error) {
	if q.MaxStep == "" {
		return 0, nil
	}
	t, err := unit.ParseSpan(q.MaxStep)
	if err != nil || t <= 0 {
		return 0, fmt.Errorf("--max-step %q; expected a time, such as 30s", q.MaxStep)
	}
	return t, nil
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
func (p *planning) watch() func(plan.Progress) {
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
func (x *planned) explain(ctx context.Context, name string) error {
	q := x.query
	if err := q.PreferDefaults(x.answer.Plans); err != nil {
		return err
	}
	for i := range x.answer.Plans {
		best := &x.answer.Plans[i]
		text, ranks := name, best.Job.Split.Ranks()
		if ranks < len(q.Layout) {
			text = fmt.Sprintf("%dx%d", ranks/ranksOfFirst(q.Layout), ranksOfFirst(q.Layout))
		}
		x.steps = append(x.steps, &pricedStep{
			Result: best.Result, layout: text, job: &best.Job, model: q.GPU.Model, gpu: q.GPU,
			tasks: step.Prepare(&best.Job, q.Fabric(&best.Job)),
		})
	}
	// Who ends the search wants the plans, and no more of it.
	for _, work := range []func() error{
		func() error { return x.findHelp(ctx) },
		func() (err error) { x.others, err = x.compare(ctx); return err },
		func() (err error) { x.tuned, err = q.Tune(&x.answer.Plans[0]); return err },
		func() (err error) { x.holds, err = sensitivity(q, x.answer.Plans); return err },
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

// lacks says in a few words why there is no plan.
func (x *planned) lacks() string {
	q, a := x.query, x.answer
	switch {
	case a.Considered == 0:
		return "no setting is possible"
	case a.Late > 0:
		return fmt.Sprintf("the shortest step takes %s at least", a.Late.Short())
	case a.Leanest == nil:
		return "every setting needs more memory than there is"
	}
	if need := a.Leanest.Memory.Total(); need > q.Room() {
		return fmt.Sprintf("the smallest setting needs %.1f GiB per GPU, which has %.1f GiB without --reserve", need.GiB(),
			q.Room().GiB())
	}
	return fmt.Sprintf("the smallest setting needs %.1f GB of host memory per node, which has %.1f GB",
		(a.Leanest.Memory.Host * unit.Volume(q.Spaces[0].Node)).GB(), unit.Volume(q.HostMemory).GB())
}

// none says why there is no plan, nor one by other frameworks that were tried: settings that exclude each other, or by
// how much the leanest does not fit and what would make it fit.
func (x *planned) none(others []*workload.Framework) error {
	q, answer := x.query, x.answer
	space := q.Spaces[0]
	base := &space.Base
	if answer.Considered == 0 {
		return fmt.Errorf("no setting is possible on %s: %s", words.Plural(space.Ranks, "GPU"), x.clash(space))
	}
	if answer.Late > 0 {
		return fmt.Errorf("no setting of %s has a step within --max-step %s on %s: the shortest takes %s at least",
			base.Model.Name, x.MaxStep, words.Plural(space.Ranks, "GPU"), answer.Late.Short())
	}
	lean, have := answer.Leanest, q.Room()
	text := fmt.Sprintf("%s on %s of %.1f GiB: none of the %s settings that were tried fits", base.Model.Name,
		words.Plural(space.Ranks, "GPU"), unit.Volume(q.GPU.Model.Memory).GiB(), words.Thousands(answer.Considered))
	if lean == nil {
		return errors.New(text)
	}
	m := lean.Memory
	if need := m.Total(); need > have {
		text += fmt.Sprintf("; the smallest, %s, needs %.1f GiB per GPU, %.1f GiB more than available with --reserve %g "+
			"(in GiB: parameters %.1f, gradients %.1f, optimizer %.1f, activations %.1f, other %.1f)",
			settings(&lean.Job), need.GiB(), (need - have).GiB(), q.Reserve, m.Params.GiB(), m.Grads.GiB(), m.Optimizer.GiB(),
			m.Activations.GiB(), m.Other.GiB())
	} else {
		text += fmt.Sprintf("; the smallest, %s, needs %.1f GB of host memory per node, which has %.1f GB",
			settings(&lean.Job), (m.Host * unit.Volume(space.Node)).GB(), unit.Volume(q.HostMemory).GB())
	}
	for i, f := range others {
		if i == 0 {
			text += "; nor by "
		} else {
			text += ", "
		}
		text += f.Name
	}
	return fmt.Errorf("%s; %s", text, x.remedy())
}

// Bounds of a remedy.
const (
	mostTimes = 1 << 10
	mostGPUs  = 1 << 17
)

// remedy is what would make something fit: fewer settings fixed, or so many times the GPUs.
func (x *planned) remedy() string {
	own := x.query.Spaces[0]
	question := *x.Plan
	question.Parallel, question.Micro, question.Recompute, question.Offload, question.Schedule = "", 0, "", nil, nil
	free := *x.planning
	free.Plan = &question
	if s, err := free.space(own.Ranks, own.Ranks, own.Node, x.query.GPU.Model.SM); err == nil {
		if y := x.query.Fits(s); y != nil {
			return fmt.Sprintf("without what is fixed %s would fit: %.1f GiB", settings(&y.Job), y.Memory.Total().GiB())
		}
	}
	if text := x.fitting(); text != "" {
		return text
	}
	for times := 2; times <= mostTimes && own.Ranks*times <= mostGPUs; times *= 2 {
		s, err := free.space(own.Ranks*times, own.Ranks*times, own.Node, x.query.GPU.Model.SM)
		if err != nil {
			break
		}
		if y := x.query.Fits(s); y != nil {
			return fmt.Sprintf("on %d GPUs %s would fit: %.1f GiB", s.Ranks, settings(&y.Job), y.Memory.Total().GiB())
		}
	}
	return "more or larger GPUs, shorter sequences, or a smaller model would help"
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
	var fixed []string
	for _, y := range []struct{ flag, value string }{
		{"--parallel", string(x.Parallel)},
		{"--recompute", string(x.Recompute)},
		{"--schedule", commas(x.Schedule)},
		{"--context", commas(x.Context)},
		{"--offload", commas(x.Offload)},
		{"--compress", commas(x.Compress)},
		{"--framework", x.Framework},
	} {
		if y.value != "" {
			fixed = append(fixed, y.flag+" "+y.value)
		}
	}
	j := s.Base
	j.MicroBatch = max(1, x.Micro) * x.pairs()
	if x.Micro > 0 {
		fixed = append(fixed, fmt.Sprintf("--micro-batch %d", x.Micro))
	}
	why := x.contradiction(s, &j)
	if why == "" {
		why = fmt.Sprintf("%s, a global batch of %d, %s with %d layers and %d heads; degrees must divide them",
			words.Plural(s.Ranks, "GPU"), j.GlobalBatch, x.model.Name, x.model.Dims.Layers, x.model.Dims.Heads)
	}
	if len(fixed) > 0 {
		why += " (fixed are " + strings.Join(fixed, ", ") + ")"
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
	if x.framework != nil {
		if err := x.framework.Refuses(j); err != nil {
			return err.Error()
		}
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
