package query

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/plan/campaign"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Campaign is what may be asked about a whole run of steps: slow nodes, failures and checkpoints, money and energy.
type Campaign struct {
	Slow []string `aliases:"stragglers" placeholder:"NODE=20%" sep:"," help:"Slow node: node3=20% has GPUs 20% slower, node3:nic=50% NICs. 2x20% is two nodes at the worst places. Repeatable."`
	// What belongs to a whole run are flags of goodput alone.
	Failures `kong:"-"`
	Tokens   string `kong:"-" help:"Tokens of the whole run: 300B, 15.6T."`
	Prices   `kong:"-"`
}

// Failures is how GPUs fail and state is saved.
type Failures struct {
	Goodput  bool   `kong:"-" help:"Goodput: the share of time spent in useful steps when GPUs fail, with published figures for what is not given."`
	MTBF     string `name:"mtbf" placeholder:"TIME[/gpu|/node|/job]" help:"Mean time between interruptions, per GPU unless stated: 5y, 2y/node, 3h/job; goodput also takes fleet, the fleet's own history (default: Llama 3's, 419 in 54 days on 16,384 GPUs)."`
	Save     string `name:"checkpoint-time" placeholder:"TIME" help:"How long a checkpoint stops training (default: its size over --storage)."`
	Interval string `name:"checkpoint-interval" placeholder:"TIME" help:"Time between checkpoints (default: the best)."`
	Restart  string `name:"restart-time" placeholder:"TIME" help:"Time from an interruption until training continues (default: 10 minutes plus reading a checkpoint)."`
	Storage  string `placeholder:"RATE" help:"Write rate of the storage for all GPUs together: 500GB/s (default: 0.122 GB/s per GPU, as for Llama 3)."`
	Async    bool   `name:"async-checkpoint" help:"Asynchronous checkpoints: training stops only to copy its state to host memory, and continues while it is written."`
	Spares   *int   `placeholder:"N" help:"Spare nodes that replace failed ones. Without a spare the job waits for a repair (default: a replacement is always there)."`
	Elastic  bool   `help:"Without a spare the job continues with fewer replicas until a node is repaired."`
	Repair   string `name:"repair-time" placeholder:"TIME" help:"With --spares or --elastic: how long a failed node is away (default: 1 day)."`
	Losing   string `name:"node-loss" placeholder:"SHARE" help:"With --spares or --elastic: share of interruptions after which the node is away: 0.5, 50% (default: 78%, as for Llama 3)."`
}

// Prices is what a run pays for.
type Prices struct {
	Price string `placeholder:"AMOUNT/gpu-hour" help:"Price: 2.50/gpu-hour, EUR 20/node-hour."`
}

// running is a campaign as it was asked for.
type running struct {
	slow   []step.Slow
	tokens float64
	failing
	rent *campaign.Price // for an hour of a GPU or node; nil where none was given
}

// read parses the fields.
func (q *Campaign) read() (*running, error) {
	r := &running{}
	var err error
	if r.failing, err = q.Failures.read(); err != nil {
		return nil, err
	}
	r.asked = r.asked || q.Tokens != ""
	for _, text := range q.Slow {
		s, err := step.ParseSlow(text)
		if err != nil {
			return nil, fmt.Errorf("--slow %w", err)
		}
		r.slow = append(r.slow, s)
	}
	if q.Tokens != "" {
		var ok bool
		if r.tokens, ok = workload.ParseCount(q.Tokens, 1, 1e18); !ok {
			return nil, fmt.Errorf("--tokens %.40q; expected a number such as 300B", q.Tokens)
		}
	}
	r.rent, err = q.Prices.read()
	return r, err
}

// failing is how a job fails and is saved, as far as it was given.
type failing struct {
	asked    bool
	mtbf     unit.Span
	per      string // of what the mtbf is: gpu, node, job
	save     unit.Span
	saves    bool // the time of a checkpoint was given
	interval unit.Span
	restart  unit.Span
	restarts bool // the time of a restart was given
	storage  unit.Rate
	async    bool
	spares   int
	pooled   bool // spares, repairs or elasticity were asked about
	elastic  bool
	repair   unit.Span
	repairs  bool // the time of a repair was given
	losing   float64
	loses    bool // the share of interruptions that lose a node was given
	fleet    bool // the mtbf is that of the fleet's history
	history  *campaign.History
}

// read parses the fields.
func (q *Failures) read() (failing, error) {
	f := failing{
		per: "gpu", saves: q.Save != "", restarts: q.Restart != "", async: q.Async, elastic: q.Elastic,
		repairs: q.Repair != "", loses: q.Losing != "",
		pooled: q.Spares != nil || q.Elastic || q.Repair+q.Losing != "",
	}
	f.asked = q.Goodput || f.async || f.pooled || q.MTBF+q.Save+q.Interval+q.Restart+q.Storage != ""
	if err := f.times(q); err != nil {
		return f, err
	}
	if q.Spares != nil {
		if f.spares = *q.Spares; f.spares < 0 || f.spares > 1<<16 {
			return f, fmt.Errorf("--spares %d; expected 0 to %d nodes", f.spares, 1<<16)
		}
	}
	if f.loses {
		var err error
		text, percent := strings.CutSuffix(q.Losing, "%")
		if f.losing, err = strconv.ParseFloat(text, 64); percent {
			f.losing /= 100
		}
		if err != nil || !(f.losing >= 0 && f.losing <= 1) {
			return f, fmt.Errorf("--node-loss %.20q; expected a share from 0 to 1, such as 0.5 or 50%%", q.Losing)
		}
	}
	if q.Storage != "" {
		if f.saves && f.restarts && !f.async {
			return f, errors.New("--storage has no effect: how long a checkpoint and a restart take is given; leave it out")
		}
		var err error
		if f.storage, err = unit.ParseRate(q.Storage); err != nil {
			return f, fmt.Errorf("--storage: %w; expected a rate such as 500GB/s", err)
		}
		if f.storage <= 0 {
			return f, fmt.Errorf("--storage %s: expected more than 0, such as 500GB/s", q.Storage)
		}
	}
	return f, nil
}

func (f *failing) times(q *Failures) error {
	mtbf := q.MTBF
	if f.fleet = mtbf == ofFleet; f.fleet {
		mtbf = ""
	}
	if text, per, ok := strings.Cut(q.MTBF, "/"); ok {
		mtbf, f.per = text, strings.ToLower(per)
		if f.per != "gpu" && f.per != "node" && f.per != "job" {
			return fmt.Errorf("--mtbf %s: of a %q; expected /gpu, /node or /job", q.MTBF, per)
		}
	}
	for _, x := range []struct {
		flag, text string
		to         *unit.Span
		zero       bool
	}{
		{"--mtbf", mtbf, &f.mtbf, false},
		{"--checkpoint-time", q.Save, &f.save, true},
		{"--checkpoint-interval", q.Interval, &f.interval, false},
		{"--restart-time", q.Restart, &f.restart, true},
		{"--repair-time", q.Repair, &f.repair, true},
	} {
		if x.text == "" {
			continue
		}
		var err error
		if *x.to, err = unit.ParseSpan(x.text); err != nil {
			return fmt.Errorf("%s: %w", x.flag, err)
		}
		if *x.to == 0 && !x.zero {
			return fmt.Errorf("%s %s: expected more than 0", x.flag, x.text)
		}
	}
	return nil
}

// read parses the price; nil where none is given.
func (q *Prices) read() (*campaign.Price, error) {
	if q.Price == "" {
		return nil, nil
	}
	p, err := campaign.ParsePrice(q.Price, "gpu-hour", "node-hour")
	if err != nil {
		return nil, fmt.Errorf("--price: %w", err)
	}
	return &p, nil
}

// perGPU is the price of a GPU's hour, on nodes of so many.
func perGPU(p *campaign.Price, node float64) float64 {
	if p.Per == "node-hour" {
		return p.Amount / node
	}
	return p.Amount
}

// CampaignDoc is what a whole run of steps takes, as far as it was asked for.
type CampaignDoc struct {
	Straggler *straggler        `json:"straggler,omitempty"`
	Goodput   *campaign.Account `json:"goodput,omitempty"`
	Cost      *campaign.Cost    `json:"cost,omitempty"`
	Run       *campaignRun      `json:"run,omitempty"`
}

// slowNode is a node that has lost a share of its speed.
type slowNode struct {
	Node string  `json:"node"`
	What string  `json:"what"` // compute, nic
	Loss float64 `json:"loss"`
}

// straggler is what slow nodes cost the whole job.
type straggler struct {
	Slow  []slowNode `json:"slow"` // the first of them
	Nodes int        `json:"nodes"`
	Step  unit.Span  `json:"step_s"`
	Extra unit.Span  `json:"extra_s"`
	Share float64    `json:"extra_share"` // of the step without
	Lost  unit.Span  `json:"lost_gpu_s"`  // that others wait for in a step, all GPUs together
	Why   string     `json:"why"`
	Text  string     `json:"text"`
}

// campaignRun is a run of so many tokens.
type campaignRun struct {
	Tokens   float64 `json:"tokens"`
	Days     float64 `json:"days"`
	GPUHours float64 `json:"gpu_hours"`
	campaign.Bill
}

// of works out what was asked about a run of priced steps.
func (r *running) of(p *pricedStep) (*CampaignDoc, error) {
	d := &CampaignDoc{}
	now := p.Result
	if len(r.slow) > 0 {
		late, doc, err := r.behind(p)
		if err != nil {
			return nil, err
		}
		now, d.Straggler = late, doc
	}
	nodes := len(p.tasks.Hosts())
	run := campaign.Run{Step: now.Step, Tokens: now.Tokens, GPUs: now.Ranks}
	if r.rent != nil {
		run.Rent = perGPU(r.rent, float64(now.Ranks)/float64(nodes))
	}
	if r.asked {
		g, err := r.goodput(p, nodes, now.Step, now.TokensPerSecond())
		if err != nil {
			return nil, err
		}
		run.Goodput, d.Goodput = &g.Goodput, g
	}
	if r.rent != nil || r.tokens > 0 {
		r.bill(d, &run)
	}
	return d, nil
}

// behind prices the step with slow nodes.
func (r *running) behind(p *pricedStep) (*step.Result, *straggler, error) {
	hosts := p.tasks.Hosts()
	var slow, nics []step.Host
	doc := &straggler{}
	seen, places := map[int]bool{}, map[int]int{} // hosts, and where those with slow NICs stand
	for _, x := range r.slow {
		list, err := slowHosts(p, hosts, x)
		if err != nil {
			return nil, nil, err
		}
		kind := "compute"
		for _, h := range list {
			if x.NIC {
				// Nodes are alike, and large jobs are counted from their first nodes: the
				// slow ones stand there.
				kind = "nic"
				at, ok := places[h]
				if !ok {
					if at = hosts[len(places)]; p.cluster.Hosts[at].Type != p.cluster.Hosts[h].Type {
						at = h
					}
					places[h] = at
				}
				nics = append(nics, step.Host{Index: at, Loss: x.Loss})
			} else {
				slow = append(slow, step.Host{Index: h, Loss: x.Loss})
			}
			if len(doc.Slow) < 16 {
				doc.Slow = append(doc.Slow, slowNode{Node: p.cluster.Hosts[h].Name, What: kind, Loss: x.Loss})
			}
			seen[h] = true
		}
	}
	doc.Nodes = len(seen)
	on := p
	if len(nics) > 0 {
		cl, ok := step.SlowNICs(p.cluster, nics)
		if !ok {
			return nil, nil, fmt.Errorf("%s does not say how fast its NICs are; give --nic", p.cluster.Name)
		}
		var err error
		if on, err = p.on(cl); err != nil {
			return nil, nil, err
		}
	}
	late, err := on.tasks.PriceSlow(p.gpu, slow)
	if err != nil {
		return nil, nil, err
	}
	doc.fill(p, late, len(hosts), len(nics) > 0, len(slow) > 0)
	return late, doc, nil
}

// slowHosts are the hosts that a word of --slow means.
func slowHosts(p *pricedStep, hosts []int, x step.Slow) ([]int, error) {
	if x.Node == "" {
		if x.NIC {
			if x.Count > len(hosts) {
				return nil, fmt.Errorf("--slow: %d slow nodes, and %d take part", x.Count, len(hosts))
			}
			return hosts[:x.Count], nil
		}
		list, err := p.tasks.WorstHosts(p.gpu, x.Count, x.Loss)
		if err != nil {
			err = fmt.Errorf("--slow: %w", err)
		}
		return list, err
	}
	at := p.cluster.HostIndex(x.Node)
	if n, err := strconv.Atoi(x.Node); at < 0 && err == nil && n >= 0 && n < len(hosts) {
		at = hosts[n]
	}
	if !slices.Contains(hosts, at) {
		return nil, fmt.Errorf("--slow %s: no such node takes part; expected a name such as %s, or a number below %d", x.Node,
			p.cluster.Hosts[hosts[0]].Name, len(hosts))
	}
	return []int{at}, nil
}

// fill says what slow nodes cost.
func (d *straggler) fill(p *pricedStep, late *step.Result, nodes int, nics, slow bool) {
	d.Step, d.Extra = late.Step, late.Step-p.Step
	d.Share = float64(d.Extra / p.Step)
	d.Lost = d.Extra * unit.Span(p.Ranks) * unit.Span(nodes-d.Nodes) / unit.Span(nodes)
	var why []string
	if slow {
		why = append(why, p.tasks.StragglerReason())
	}
	if nics {
		why = append(why, "a collective goes through every node, at the rate of the slowest")
	}
	if d.Nodes == nodes {
		why = []string{"no other node is left"}
	}
	d.Why = strings.Join(why, "; ")
	names := d.Slow[0].Node
	switch x := d.Slow[0]; {
	case d.Nodes > 1:
		names = fmt.Sprintf("%d slow nodes (%s, …)", d.Nodes, names)
	case len(d.Slow) > 1:
		names += ", slow in several ways"
	case x.What == "nic":
		names += fmt.Sprintf(" with NICs at %.3g%%", 100*(1-x.Loss))
	default:
		names += fmt.Sprintf(" at %.3g%% of its speed", 100*(1-x.Loss))
	}
	if d.Share < 0.0005 {
		d.Text = fmt.Sprintf("%s: the step stays at %s; others hide it", names, d.Step.Short())
		return
	}
	d.Text = fmt.Sprintf("%s: the step takes %s instead of %s (%+.1f%%), since %s", names, d.Step.Short(), p.Step.Short(),
		100*d.Share, d.Why)
	if nodes > d.Nodes {
		d.Text += fmt.Sprintf("; to go without would cost %.3g%% of the GPUs", 100*float64(d.Nodes)/float64(nodes))
	}
}

// goodput is the share of time that failures and checkpoints leave of a job at so many tokens per second. least is the
// length of a step, which an interval is at least.
func (f *failing) goodput(p *pricedStep, nodes int, least unit.Span, rate float64) (*campaign.Account, error) {
	d := &campaign.Account{Bytes: p.job.CheckpointBytes(), Sources: []string{}}
	if f.interval > 0 && f.interval < least {
		return nil, fmt.Errorf("--checkpoint-interval %v is shorter than a step of %v", f.interval, least)
	}
	x := campaign.Failures{Between: f.mtbf, Save: f.save, Interval: f.interval, Restart: f.restart}
	switch {
	case f.history != nil:
		x.Between = f.history.Between / unit.Span(nodes)
		d.Sources = append(d.Sources, f.history.String())
	case f.fleet:
		return nil, errors.New("--mtbf fleet: no server of a fleet is asked here; busbar goodput asks it")
	case f.mtbf == 0:
		x.Between = published(d, "time between interruptions", campaign.MTBF()) / unit.Span(p.Ranks)
	case f.per == "gpu":
		x.Between /= unit.Span(p.Ranks)
	case f.per == "node":
		x.Between /= unit.Span(nodes)
	}
	if !f.saves || !f.restarts || f.async {
		storage := f.storage
		if storage == 0 {
			storage = published(d, "storage", campaign.Storage()) * unit.Rate(p.Ranks)
		}
		d.Storage = storage.GBps()
		io := d.Bytes.At(storage)
		switch {
		case f.async:
			if x.Write = io; !f.saves {
				x.Save = (d.Bytes / unit.Volume(p.Ranks)).At(published(d, "copy to host memory", campaign.Copying()))
			}
		case !f.saves:
			x.Save = io
		}
		if !f.restarts {
			if p.job.LoRA.Frozen() { // frozen weights are read again too
				io += unit.Volume(float64(p.job.Model.Params()) * p.job.ParamWidth()).At(storage)
			}
			x.Restart = io + published(d, "restart, beside reading the checkpoint", campaign.Restarting())
		}
	}
	if f.pooled {
		return f.onPool(d, x, p, nodes, least, rate)
	}
	g, err := x.Goodput(least)
	fillAccount(d, g, p.Ranks, rate)
	return d, err
}

// published is a figure that nobody gave, whose source is cited.
func published[T any](d *campaign.Account, what string, f campaign.Figure[T]) T {
	d.Sources = append(d.Sources, what+": "+f.Source)
	return f.Value
}

// fillAccount says what became of the time.
func fillAccount(d *campaign.Account, g campaign.Goodput, gpus int, rate float64) {
	d.Goodput, d.Tokens, d.Each = g, g.Share*rate, g.Between*unit.Span(gpus)
	d.Text = fmt.Sprintf("%.1f%% of the time is useful: an interruption every %v; lost: %.1f%% checkpoints, %.1f%% "+
		"repeated steps, %.1f%% restarts",
		100*g.Share, g.Between, 100*g.Saving, 100*g.Redoing, 100*g.Restarts)
	if g.Restarts > 0.1 && g.Restarts > g.Saving+g.Redoing {
		d.Text += fmt.Sprintf("; shorter restarts than %v would help most", g.Restart)
	}
	if g.AtBest-g.Share > 0.0005 {
		d.Text += fmt.Sprintf("; checkpoints every %v instead of every %v would leave %.1f%%", g.Best, g.Interval,
			100*g.AtBest)
	}
}

// bill works out what a step, a million tokens and the whole run cost.
func (r *running) bill(d *CampaignDoc, run *campaign.Run) {
	d.Cost = &campaign.Cost{Currency: "USD", Step: run.One(), Million: run.Each(1e6), Priced: r.rent != nil}
	if r.rent != nil {
		d.Cost.Currency = r.rent.Currency
	}
	if r.tokens > 0 {
		all := run.Lasting(r.tokens)
		d.Run = &campaignRun{
			Tokens: r.tokens, Days: float64(all.Time / unit.Day), Bill: all,
			GPUHours: float64(all.Time/unit.Hour) * float64(run.GPUs),
		}
	}
}
