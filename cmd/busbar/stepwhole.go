package main

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/plan/campaign"
	"busbar.dev/step"
	"busbar.dev/unit"
)

// failFlags are how GPUs fail and state is saved, for step and scale.
type failFlags struct {
	Goodput  bool   `help:"How much of the time goes into steps when GPUs fail, with published figures for what is not said."`
	MTBF     string `name:"mtbf" placeholder:"TIME[/gpu|/node|/job]" help:"Mean time between interruptions, of one GPU where nothing else is said: 5y, 2y/node, 3h/job. Without it: Llama 3's (419 in 54 days on 16,384 GPUs)."`
	Save     string `name:"checkpoint-time" placeholder:"TIME" help:"How long training stands still for a checkpoint; without it: its size over --storage."`
	Interval string `name:"checkpoint-interval" placeholder:"TIME" help:"Training between checkpoints; without it: the best."`
	Restart  string `name:"restart-time" placeholder:"TIME" help:"From an interruption until training goes on; without it: 10 minutes and the reading of a checkpoint."`
	Storage  string `placeholder:"RATE" help:"What the storage takes of all GPUs together: 500GB/s. Without it: 0.122 GB/s a GPU, as Llama 3's had."`
}

// wholeFlags are what step takes about a whole run: slow nodes, failures, checkpoints, money.
type wholeFlags struct {
	Slow []string `aliases:"stragglers" placeholder:"NODE=20%" sep:"," help:"A node whose GPUs have lost 20% of their speed, or its NICs (node3:nic=50%); 2x20% is two nodes where it hurts most. Repeatable."`
	failFlags
	Tokens   string  `placeholder:"N" help:"Tokens of the whole run: 300B, 15.6T."`
	Price    string  `placeholder:"AMOUNT/gpu-hour" help:"What a GPU costs: 2.50/gpu-hour, EUR 20/node-hour."`
	Energy   string  `placeholder:"AMOUNT/kWh" help:"What energy costs: 0.12/kWh."`
	Power    string  `name:"gpu-power" placeholder:"POWER" help:"What a GPU draws at most: 700W. Without it: its data sheet's."`
	Overhead float64 `default:"1" help:"Watts of hosts, network and cooling included for each of a GPU; 1 is the GPUs alone, a whole DGX H100 is 1.8."`
}

// whole is what the flags say.
type whole struct {
	slow     []step.Slow
	failures bool
	mtbf     unit.Span
	per      string // of what the mtbf is
	save     unit.Span
	saves    bool
	interval unit.Span
	restart  unit.Span
	restarts bool
	storage  unit.Rate
	tokens   float64
	rent     campaign.Price
	energy   campaign.Price
	power    unit.Power
	overhead float64
	money    bool
}

// read parses the flags.
func (c *wholeFlags) read() (*whole, error) {
	w, err := c.failFlags.read()
	if err != nil {
		return nil, err
	}
	w.overhead = c.Overhead
	w.failures = w.failures || c.Tokens != ""
	for _, text := range c.Slow {
		s, err := step.ParseSlow(text)
		if err != nil {
			return nil, fmt.Errorf("--slow %w", err)
		}
		w.slow = append(w.slow, s)
	}
	if c.Tokens != "" {
		if w.tokens, err = parseTokens(c.Tokens); err != nil {
			return nil, err
		}
	}
	return w, w.prices(c)
}

// read parses the flags about failures.
func (c *failFlags) read() (*whole, error) {
	w := &whole{per: "gpu", failures: c.Goodput || c.MTBF+c.Save+c.Interval+c.Restart+c.Storage != ""}
	if err := w.times(c); err != nil {
		return nil, err
	}
	if c.Storage != "" {
		var err error
		if w.storage, err = unit.ParseRate(c.Storage); err != nil {
			return nil, fmt.Errorf("--storage: %w; expected a rate such as 500GB/s", err)
		}
		if w.storage <= 0 {
			return nil, fmt.Errorf("--storage %s: expected more than nothing, such as 500GB/s", c.Storage)
		}
	}
	return w, nil
}

func (w *whole) times(c *failFlags) error {
	mtbf := c.MTBF
	if text, per, ok := strings.Cut(c.MTBF, "/"); ok {
		mtbf, w.per = text, strings.ToLower(per)
		if w.per != "gpu" && w.per != "node" && w.per != "job" {
			return fmt.Errorf("--mtbf %s: of a %q; expected /gpu, /node or /job", c.MTBF, per)
		}
	}
	for _, x := range []struct {
		flag, text string
		to         *unit.Span
		zero       bool
	}{
		{"--mtbf", mtbf, &w.mtbf, false},
		{"--checkpoint-time", c.Save, &w.save, true},
		{"--checkpoint-interval", c.Interval, &w.interval, false},
		{"--restart-time", c.Restart, &w.restart, true},
	} {
		if x.text == "" {
			continue
		}
		var err error
		if *x.to, err = unit.ParseSpan(x.text); err != nil {
			return fmt.Errorf("%s: %w", x.flag, err)
		}
		if *x.to == 0 && !x.zero {
			return fmt.Errorf("%s %s: expected more than nothing", x.flag, x.text)
		}
	}
	w.saves, w.restarts = c.Save != "", c.Restart != ""
	return nil
}

// prices are the flags about money and power.
func (w *whole) prices(c *wholeFlags) (err error) {
	if c.Price != "" {
		if w.rent, err = campaign.ParsePrice(c.Price, "gpu-hour", "node-hour"); err != nil {
			return fmt.Errorf("--price: %w", err)
		}
	}
	if c.Energy != "" {
		if w.energy, err = campaign.ParsePrice(c.Energy, "kWh", "MWh"); err != nil {
			return fmt.Errorf("--energy: %w", err)
		}
		if w.energy.Per == "MWh" {
			w.energy.Amount /= 1000
		}
	}
	if a, b := w.rent.Currency, w.energy.Currency; a != "" && b != "" && a != b {
		return fmt.Errorf("--price is in %s, --energy in %s; give both in one currency", a, b)
	}
	if c.Power != "" {
		if w.power, err = unit.ParsePower(c.Power); err != nil {
			return fmt.Errorf("--gpu-power: %w", err)
		}
		if w.power == 0 {
			return fmt.Errorf("--gpu-power %s: expected more than nothing", c.Power)
		}
	}
	if !(c.Overhead >= 1 && c.Overhead <= 100) {
		return fmt.Errorf("--overhead %g; expected 1 to 100", c.Overhead)
	}
	w.money = c.Price != "" || c.Energy != ""
	return nil
}

// parseTokens reads a number of tokens: 300B, 15.6T.
func parseTokens(text string) (float64, error) {
	t, scale := strings.ToUpper(strings.TrimSpace(text)), 1.0
	for suffix, x := range map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12} {
		if rest, ok := strings.CutSuffix(t, suffix); ok {
			t, scale = rest, x
			break
		}
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || !(n*scale >= 1 && n*scale <= 1e18) {
		return 0, fmt.Errorf("--tokens %.40q; expected a number such as 300B", text)
	}
	return n * scale, nil
}

// of works out what is asked about a priced step; nil where nothing is.
func (w *whole) of(c *jobFlags, a *asked, s shape, r *pricedStep) (*wholeDoc, error) {
	d := &wholeDoc{}
	now := r.Result
	if len(w.slow) > 0 {
		late, doc, err := w.behind(c, a, s, r)
		if err != nil {
			return nil, err
		}
		now, d.Straggler = late, doc
	}
	run := campaign.Run{
		Phases: campaign.Phases{Computing: now.Compute + now.Optimizer}, Tokens: now.Tokens,
		Draw: campaign.Draw{GPUs: now.Ranks, Overhead: w.overhead}, Prices: campaign.Prices{Rent: w.rent.Amount, Energy: w.energy.Amount},
	}
	run.Waiting = now.Step - run.Computing
	nodes := len(r.tasks.Hosts())
	if w.rent.Per == "node-hour" {
		run.Rent = w.rent.Amount * float64(nodes) / float64(now.Ranks)
	}
	if w.failures {
		g, doc, err := w.fails(r, nodes, now.Step, now.TokensPerSecond())
		if err != nil {
			return nil, err
		}
		run.Goodput, d.Goodput = g, doc
	}
	if w.money || w.tokens > 0 || w.power > 0 {
		if err := w.bill(d, &run, r); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// behind prices the step with slow nodes.
func (w *whole) behind(c *jobFlags, a *asked, s shape, r *pricedStep) (*step.Result, *stragglerDoc, error) {
	hosts := r.tasks.Hosts()
	var slow, nics []step.Host
	doc := &stragglerDoc{}
	seen, places := map[int]bool{}, map[int]int{} // hosts, and where those with slow NICs stand
	for _, x := range w.slow {
		list, err := nodesOf(a.cluster, r, hosts, x)
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
					if at = hosts[len(places)]; a.cluster.Hosts[at].Type != a.cluster.Hosts[h].Type {
						at = h
					}
					places[h] = at
				}
				nics = append(nics, step.Host{Index: at, Loss: x.Loss})
			} else {
				slow = append(slow, step.Host{Index: h, Loss: x.Loss})
			}
			if len(doc.Slow) < 16 {
				doc.Slow = append(doc.Slow, slowDoc{a.cluster.Hosts[h].Name, kind, x.Loss})
			}
			seen[h] = true
		}
	}
	doc.Nodes = len(seen)
	priced := r
	if len(nics) > 0 {
		cl, ok := step.SlowNICs(a.cluster, nics)
		if !ok {
			return nil, nil, fmt.Errorf("%s does not say how fast its NICs are; give --nic", a.cluster.Name)
		}
		var err error
		if priced, err = c.price(cl, s, a); err != nil {
			return nil, nil, err
		}
	}
	late, err := priced.tasks.PriceSlow(r.chip, slow)
	if err != nil {
		return nil, nil, err
	}
	doc.fill(r, late, len(hosts), len(nics) > 0, len(slow) > 0)
	return late, doc, nil
}

// nodesOf are the hosts that a word of --slow means.
func nodesOf(c *cluster.Cluster, r *pricedStep, hosts []int, x step.Slow) ([]int, error) {
	if x.Node == "" {
		if x.NIC {
			if x.Count > len(hosts) {
				return nil, fmt.Errorf("--slow: %d slow nodes, and %d take part", x.Count, len(hosts))
			}
			return hosts[:x.Count], nil
		}
		list, err := r.tasks.Worst(r.chip, x.Count, x.Loss)
		if err != nil {
			err = fmt.Errorf("--slow: %w", err)
		}
		return list, err
	}
	at := c.HostIndex(x.Node)
	if n, err := strconv.Atoi(x.Node); at < 0 && err == nil && n >= 0 && n < len(hosts) {
		at = hosts[n]
	}
	for _, h := range hosts {
		if h == at {
			return []int{at}, nil
		}
	}
	return nil, fmt.Errorf("--slow %s: no such node takes part; expected a name such as %s, or a number below %d", x.Node, c.Hosts[hosts[0]].Name, len(hosts))
}
