package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"busbar.dev/plan"
	"busbar.dev/step"
)

type planCmd struct {
	common
	emitFlags
	Cluster   string   `short:"c" placeholder:"CLUSTER" help:"A preset (dgx-h100:4), a cluster file, or any file that map reads."`
	Layout    string   `short:"l" placeholder:"NODESxGPUS" help:"Who takes part. None: all GPUs, or --gpus."`
	GPUs      int      `name:"gpus" placeholder:"N" help:"How many GPUs, on whole nodes; a preset without a number gets as many nodes as that takes."`
	Model     string   `short:"m" placeholder:"MODEL" help:"A name (busbar models), a config.json of Hugging Face, or a size: params=20B,layers=48."`
	Global    int64    `name:"global-batch" placeholder:"N" help:"Sequences of a step. Without it: about four million tokens."`
	Seq       int64    `placeholder:"N" help:"Tokens of a sequence; the model's own without it."`
	Precision string   `enum:"fp32,tf32,fp16,bf16,fp8,amp-bf16,amp-fp16" default:"bf16" help:"bf16, fp16, fp32, tf32, fp8, amp-bf16 or amp-fp16."`
	Framework string   `enum:"eager,compiled,fused" default:"fused" help:"eager, compiled, or fused as Megatron-LM's kernels."`
	Parallel  string   `placeholder:"tp=8,…" help:"What is fixed: dp, tp, pp, cp, ep, vpp, zero, shard, sp, as for step."`
	Micro     int64    `name:"micro-batch" placeholder:"N" help:"A fixed micro-batch."`
	Recompute string   `enum:",none,selective,full" default:"" placeholder:"MODE" help:"A fixed mode of recomputation: none, selective, full."`
	Schedule  []string `placeholder:"NAME,…" help:"Schedules of the pipeline that the framework has: gpipe, 1f1b, interleaved, zero-bubble, zb-h2, zb-v. Without it: 1f1b and interleaved, which all have."`
	Bucket    []string `placeholder:"SIZE,…" help:"Sizes of gradients that travel at once; without it 25, 50, 100, 200 and 400 MiB are tried."`
	Context   []string `placeholder:"NAME,…" help:"How cp ranks exchange: ring, gather, ulysses; all are tried without it."`
	Offload   []string `placeholder:"WHAT,…" help:"What the host's memory may keep: none, optimizer, parameters; all are tried without it."`
	Compress  []string `placeholder:"WIRE,…" help:"How gradients may travel: none, fp16, bf16, int8; none and bf16 are tried without it, the latter where gradients are wider."`
	Top       int      `default:"10" help:"How many plans to show; they differ in degrees or in what replicas divide."`
	Reserve   float64  `default:"0.05" help:"The share of a GPU's memory to leave free."`
	Host      string   `name:"host-memory" placeholder:"SIZE" help:"What a node's own memory has for offload: 2TB. Without it: what the cluster says, or 1TB."`
	MaxNodes  int      `name:"max-nodes" placeholder:"N" help:"Also try fewer nodes, from one to N. Without it: all nodes; with --objective cost or energy any number of them."`
	MaxStep   string   `name:"max-step" placeholder:"TIME" help:"The longest that a step may take: 30s."`
	Avoid     string   `placeholder:"HOSTLIST" help:"Hosts to leave out: gpu[03,17]."`
	Tuner     bool     `help:"Plan for NCCL under busbar's tuner plugin (--emit writes it): collectives run by the algorithm and protocol that is predicted fastest, not by NCCL's own choice."`
	goalFlags
	Set  []string `placeholder:"KEY=VALUE" sep:"none" help:"Also plan for another cluster, side by side: network.gbps=400 (every NIC and cable), nics_per_node=4; several of one cluster with a comma. Repeatable."`
	NCCL string   `name:"nccl" placeholder:"VERSION" help:"The release of NCCL; the newest known without it."`
	GPU  string   `name:"gpu" placeholder:"MODEL" help:"The GPUs' model where the cluster's source does not name it."`
	NIC  string   `name:"nic" placeholder:"[COUNTx]SPEED" help:"The NICs where the source does not say: 4x200Gb/s."`
}

// Help ends with examples.
func (planCmd) Help() string {
	return "Searches the best way to run a model on a cluster: data, tensor, pipeline, context and expert parallel degrees, what replicas divide (ZeRO, FSDP) and among how many, micro-batches, " +
		"the pipeline's schedule, recomputation, sequence parallelism, the order of ranks, gradient buckets and compression, and what the host keeps. Settings are bounded from below, in groups and one by one, " +
		"and priced as by busbar step where they could be among the best, so that nothing in the space is better than what is shown. Ctrl-C gives the best so far, and how much better the rest could be.\n\n" +
		"Examples:\n" +
		"  busbar plan -c dgx-a100 --gpus 64 -m gpt3-13b --global-batch 512\n" +
		"  busbar plan -c dgx-h100:8 -m llama3-70b --global-batch 512 --parallel zero=1 --schedule 1f1b,interleaved,zero-bubble\n" +
		"  busbar plan -c dgx-h100:8 -m llama2-70b --global-batch 512 --set network.gbps=200 --set nics_per_node=4 --top 3 --json\n" +
		"  busbar plan -c dgx-h100:16 -m llama2-13b --global-batch 512 --objective cost --price 2.50/gpu-hour\n" +
		"  busbar plan -c cluster.yaml -m llama2-7b --global-batch 512 --emit run1 --hosts gpu[01-08]"
}

// usualTokens is what a step takes when nobody says: of the order of GPT-3's 3.2 million (Brown
// et al. 2020, table 2.1) and Llama 3's 4 to 16 million (Grattafiori et al. 2024, section 3.4.1).
const usualTokens = 4 << 20

// planned is the answer for one cluster.
type planned struct {
	asked  *planCmd
	name   string // what was set; "" for the cluster as it is
	query  *plan.Query
	goal   goal
	host   string     // where the size of a node's own memory comes from
	order  *rankOrder // of hosts that were given
	mixed  string     // what is taken where GPUs differ
	nearby bool       // ranks follow the network and not the cluster's order of hosts
	answer *plan.Answer
	took   time.Duration
	rows   []pricedStep // as busbar step has them
	holds  string       // whether the order depends on the network's figures
	tuned  *plan.Tuned  // the first under a tuner plugin
}

// Run plans on the cluster, and on what --set makes of it.
func (c *planCmd) Run(e *env) error {
	if c.Top < 1 || c.Top > 1000 {
		return fmt.Errorf("--top %d; expected 1 to 1000", c.Top)
	}
	if c.MaxNodes < 0 {
		return fmt.Errorf("--max-nodes %d; expected at least 1", c.MaxNodes)
	}
	if !(c.Reserve >= 0 && c.Reserve < 1) {
		return fmt.Errorf("--reserve %g; expected a share from 0 to below 1", c.Reserve)
	}
	if err := c.emitFlags.check(e); err != nil {
		return err
	}
	a, err := c.ask(e)
	if err != nil {
		return err
	}
	clusters, err := c.variants(a)
	if err != nil {
		return err
	}
	var list []*planned
	for _, v := range clusters {
		p, err := c.plan(e, a, v)
		if p != nil {
			list = append(list, p)
		}
		if err != nil && (p == nil || e.ctx.Err() == nil) {
			return err
		}
	}
	var out *emittedDoc
	if c.Emit != "" {
		if out, err = c.emit(e, list[0]); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		doc := planDocument(list)
		doc.Emitted = out
		err = writeIndented(e.stdout, doc)
	default:
		if err = printPlans(e.stdout, list); err == nil && out != nil {
			out.print(e.stdout)
		}
	}
	return errors.Join(err, e.ctx.Err())
}

// plan searches on one cluster.
func (c *planCmd) plan(e *env, a *asked, v planVariant) (*planned, error) {
	layout, name, order, err := c.seated(v.cluster, a.shapes[0])
	if err != nil {
		return nil, err
	}
	nearby := false
	if order == nil {
		if layout, name, err = c.without(v.cluster, layout, name); err != nil {
			return nil, err
		}
		near := plan.Near(v.cluster, layout)
		nearby, layout = !slices.Equal(near, layout), near
	}
	model, mixed, err := slowestGPU(v.cluster, layout)
	if err != nil {
		return nil, err
	}
	g, err := step.NewGPU(model, step.Default())
	if err != nil {
		return nil, err
	}
	goal, err := c.goal(model, onFirst(layout))
	if err != nil {
		return nil, err
	}
	q := &plan.Query{Cluster: v.cluster, Layout: layout, Version: a.version, GPU: g, Top: c.Top, Reserve: c.Reserve, Objective: goal.objective, Tuned: c.Tuner, Watch: e.searching(c.common)}
	if q.Spaces, err = c.spaces(a, q, order != nil); err != nil {
		return nil, err
	}
	if q.MaxStep, err = c.longest(); err != nil {
		return nil, err
	}
	p := &planned{asked: c, name: v.name, query: q, goal: goal, order: order, nearby: nearby, mixed: mixed}
	if q.HostMemory, p.host, err = c.hostMemory(v.cluster, layout); err != nil {
		return nil, err
	}
	at := time.Now()
	p.answer, err = plan.Search(e.ctx, q)
	if err == nil && p.order != nil {
		p.answer, err = c.arrange(e, q, p.order, p.answer)
	}
	p.took = time.Since(at)
	e.searched(c.common)
	switch {
	case errors.Is(err, plan.ErrNone):
		return nil, c.none(a, q, p.answer)
	case err != nil:
		return nil, err
	}
	return p, p.explain(e, name)
}

// explain works out what is said about the plans.
func (p *planned) explain(e *env, name string) error {
	q := p.query
	if err := q.Plain(p.answer.Plans); err != nil {
		return err
	}
	for i := range p.answer.Plans {
		x := &p.answer.Plans[i]
		text, ranks := name, x.Job.Split.Ranks()
		if ranks < len(q.Layout) {
			text = fmt.Sprintf("%dx%d", ranks/onFirst(q.Layout), onFirst(q.Layout))
		}
		own := q.Fabric(&x.Job)
		p.rows = append(p.rows, pricedStep{layout: text, job: &x.Job, gpu: q.GPU.Model, fabric: own, tasks: step.Prepare(&x.Job, own), chip: q.GPU, Result: x.Result})
	}
	// Who ends the search wants the plans, and no more of it.
	for _, work := range []func() error{
		func() error { return p.help(e) },
		func() (err error) { p.tuned, err = q.Tune(&p.answer.Plans[0]); return err },
		func() (err error) { p.holds, err = holding(q, p.answer.Plans); return err },
	} {
		if e.ctx.Err() != nil {
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
	leastHelp = 0.005 // more tokens a second
)

// help finds what would help the first plan most: settings and networks tried one by one, and the
// best plan with twice the memory.
func (p *planned) help(e *env) error {
	q, r := p.query, &p.rows[0]
	list, err := r.tasks.ChangesOver(q.GPU, r.Result, true, leastHelp)
	if err != nil {
		return err
	}
	roomy, err := q.Roomier(e.ctx, 2)
	if err != nil && e.ctx.Err() == nil {
		return err
	}
	if roomy != nil {
		gain := roomy.Result.TokensPerSecond()/r.TokensPerSecond() - 1
		if roomy.Result.Ranks == r.Ranks && gain >= leastHelp {
			list = append(list, step.Change{Text: "which " + settingWords(&roomy.Job) + " fits then", Setting: "GPUs with twice the memory", Gain: gain, Buy: true})
		}
	}
	slices.SortStableFunc(list, func(a, b step.Change) int { return cmp.Compare(b.Gain, a.Gain) })
	r.changes = list[:min(len(list), mostHelp)]
	return nil
}
