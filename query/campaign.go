package query

import (
	"cmp"
	"fmt"
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
	Failures
	Tokens string `placeholder:"N" help:"Tokens of the whole run: 300B, 15.6T."`
	Prices
}

// Failures is how GPUs fail and state is saved.
type Failures struct {
	Goodput  bool   `help:"Goodput: the share of time spent in useful steps when GPUs fail, with published figures for what is not given."`
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
	Price    string   `placeholder:"AMOUNT/gpu-hour" help:"Price: 2.50/gpu-hour, EUR 20/node-hour."`
	Energy   string   `placeholder:"AMOUNT/kWh" help:"Price of energy: 0.12/kWh."`
	Power    string   `name:"gpu-power" placeholder:"POWER" help:"Power limit per GPU: 700W (default: from its data sheet)."`
	Overhead *float64 `default:"1" help:"Total watts per GPU watt, with hosts, network and cooling: 1 is GPUs alone, a whole DGX H100 is 1.8 (default 1)."`
}

// running is a campaign as it was asked for.
type running struct {
	slow   []step.Slow
	tokens float64
	failing
	paying
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
	r.paying, err = q.Prices.read()
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
	history  *FleetHistory
}

// read parses the fields.
func (q *Failures) read() (failing, error) {
	f := failing{
		per: "gpu", saves: q.Save != "", restarts: q.Restart != "", async: q.Async, elastic: q.Elastic, repairs: q.Repair != "", loses: q.Losing != "",
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

// paying is prices and power, as far as they were given.
type paying struct {
	rent, energy campaign.Price // for an hour of a GPU or node, and for a kWh
	power        unit.Power
	overhead     float64
	money        bool // a price was given
}

// read parses the fields.
func (q *Prices) read() (p paying, err error) {
	if q.Price != "" {
		if p.rent, err = campaign.ParsePrice(q.Price, "gpu-hour", "node-hour"); err != nil {
			return p, fmt.Errorf("--price: %w", err)
		}
	}
	if q.Energy != "" {
		if p.energy, err = campaign.ParsePrice(q.Energy, "kWh", "MWh"); err != nil {
			return p, fmt.Errorf("--energy: %w", err)
		}
		if p.energy.Per == "MWh" {
			p.energy.Amount /= 1000
		}
	}
	if a, b := p.rent.Currency, p.energy.Currency; a != "" && b != "" && a != b {
		return p, fmt.Errorf("--price is in %s, --energy in %s; give both in one currency", a, b)
	}
	if q.Power != "" {
		if p.power, err = unit.ParsePower(q.Power); err != nil {
			return p, fmt.Errorf("--gpu-power: %w", err)
		}
		if p.power == 0 {
			return p, fmt.Errorf("--gpu-power %s: expected more than 0", q.Power)
		}
	}
	if p.overhead = *q.Overhead; !(p.overhead >= 1 && p.overhead <= 100) {
		return p, fmt.Errorf("--overhead %g; expected 1 to 100", p.overhead)
	}
	p.money = q.Price != "" || q.Energy != ""
	return p, nil
}

// currency is that of the prices that were given; "" where none was.
func (p *paying) currency() string {
	return cmp.Or(p.energy.Currency, p.rent.Currency)
}
