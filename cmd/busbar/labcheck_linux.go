package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/internal/failure"
	"busbar.dev/lab"
	"busbar.dev/predict"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// scenario is a lab to be made and what to try in it.
type scenario struct {
	name      string
	cluster   *cluster.Cluster
	options   lab.Options
	layouts   [][2]int
	algos     []string
	sizes     []unit.Bytes
	kind      coll.Kind
	transport engine.Transport
	slow      map[string]float64 // by NODE:NIC
	jobs      int
	iters     int
}

// Run measures and predicts.
func (c *labCheckCmd) Run(e *env) error {
	switch {
	case c.Plan != "":
		return c.planned(e)
	case c.Step != "":
		return c.steps(e)
	}
	list, err := c.scenarios(e)
	if err != nil {
		return err
	}
	d := labCheckDoc{Points: []lab.Point{}, Skipped: []string{}, labVerdict: labVerdict{MaxMedian: c.Median, MaxWorst: c.Worst, MaxNoise: c.Noise}}
	var here *lab.Machine
	for _, s := range list {
		if here, err = c.scenario(e, s, here, &d); err != nil {
			return err
		}
	}
	if len(d.Points) == 0 {
		return fmt.Errorf("nothing to measure: %s", strings.Join(d.Skipped, "; "))
	}
	d.Score = lab.Rate(d.Points, orderMatters)
	if d.Score.Points == 0 {
		return failure.Cannot(fmt.Errorf("all %d measurements differ from run to run by more than %.0f%%; the machine is too busy for a check", d.Score.Noisy, c.Noise*100))
	}
	if c.Points != "" {
		if err := c.write(e, list, d.Points); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := writeIndented(e.stdout, d); err != nil {
			return err
		}
	} else {
		printLabCheck(e, &d)
	}
	if d.Score.Median > c.Median || d.Score.Worst > c.Worst || len(d.Score.Wrong) > 0 {
		return errWrong
	}
	return nil
}

// orderMatters is the difference between two times from which on their order must be
// predicted.
const orderMatters = 0.15

// scenarios are what the flags ask for.
func (c *labCheckCmd) scenarios(e *env) ([]scenario, error) {
	if c.Cluster == "" {
		return builtinScenarios(c.Only)
	}
	s := scenario{jobs: c.Jobs, iters: c.Iters, transport: engine.Transport(c.Transport), slow: map[string]float64{}}
	var err error
	if s.cluster, err = e.load([]string{c.Cluster}, c.common); err != nil {
		return nil, err
	}
	if s.kind, err = coll.ParseKind(c.Op); err != nil {
		return nil, fmt.Errorf("--op: %w", err)
	}
	if c.Jobs < 1 || c.Jobs > 8 {
		return nil, fmt.Errorf("--jobs %d: expected 1 to 8", c.Jobs)
	}
	s.options, err = c.options()
	if err != nil {
		return nil, err
	}
	for _, w := range strings.Split(c.Layouts, ",") {
		nodes, each, err := predict.ParseLayout(w)
		if err != nil {
			return nil, err
		}
		s.layouts = append(s.layouts, [2]int{nodes, each})
	}
	s.algos = strings.Split(c.Algos, ",")
	for _, w := range strings.Split(c.Sizes, ",") {
		n, err := unit.ParseBytes(w)
		if err != nil || n < 4 || n > unit.GiB {
			return nil, fmt.Errorf("--sizes: %q; expected sizes from 4 bytes to 1 GiB: 256K,1M", w)
		}
		s.sizes = append(s.sizes, n)
	}
	for _, w := range c.Slow {
		link, share, _ := strings.Cut(w, "=")
		x, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
		if err != nil || !strings.HasSuffix(share, "%") || x <= 0 || x > 100 {
			return nil, fmt.Errorf("--slow %q: expected NODE:NIC=25%%", w)
		}
		s.slow[link] = x / 100
	}
	return []scenario{s}, nil
}

// scenario makes one lab and measures in it: the machine first, where that was not done.
func (c *labCheckCmd) scenario(e *env, s scenario, here *lab.Machine, d *labCheckDoc) (*lab.Machine, error) {
	trials, skipped, err := s.trials()
	if err != nil {
		return nil, err
	}
	d.Skipped = append(d.Skipped, skipped...)
	err = c.inLab(e, s, here, d, func(x *labChecker) error {
		here = x.here
		for _, t := range trials {
			if err := x.trial(t); err != nil {
				return err
			}
		}
		return nil
	})
	return here, err
}

// inLab makes the lab of a scenario, measures the machine where that was not done, and does
// something in it.
func (c *labCheckCmd) inLab(e *env, s scenario, here *lab.Machine, d *labCheckDoc, work func(*labChecker) error) error {
	p, err := s.plan()
	if err != nil {
		return err
	}
	if p.Inside == lab.Links {
		s.transport = engine.TCP
	}
	name := fmt.Sprintf("check-%d", os.Getpid())
	state, err := startLab(e, lab.Config{Name: name, Plan: p, Rootless: c.Rootless, Tied: true})
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(state) // it has the tie
	defer labFolder().Down(name)
	l, err := labFolder().Open(name)
	if err != nil {
		return labError(err)
	}
	x := &labChecker{e: e, c: c, s: s, l: l, here: here, d: d}
	if here == nil || !here.HasNet && len(p.Nodes) > 1 {
		if err := x.calibrate(); err != nil {
			return err
		}
	}
	if err := x.slowDown(); err != nil {
		return err
	}
	return work(x)
}

// plan is the lab that a scenario needs.
func (s *scenario) plan() (*lab.Plan, error) {
	ranks := 0 // that talk inside nodes
	for _, l := range s.layouts {
		s.options.Nodes = max(s.options.Nodes, l[0]*s.jobs)
		if l[1] > 1 {
			ranks = max(ranks, l[0]*l[1]*s.jobs)
		}
	}
	if s.options.Ranks = ranks; ranks == 0 && s.options.Inside != lab.Links {
		s.options.Inside = lab.Memory // nobody talks there
	}
	p, err := lab.New(s.cluster, s.options)
	if err == nil && s.options.Scale == (lab.Scale{}) {
		// Half of what suits a lab: the links are to be measured, not the processors.
		s.options.Scale = lab.Scale{Num: p.Scale.Num, Den: 2 * p.Scale.Den}
		p, err = lab.New(s.cluster, s.options)
	}
	return p, err
}

// slowDown takes their part of the rate from the links that are to be slow.
func (x *labChecker) slowDown() error {
	x.slow = map[int]float64{}
	for where, share := range x.s.slow {
		i, err := x.l.State.Plan.Link(where)
		if err != nil {
			return err
		}
		x.slow[i] = share
		if err := x.l.Fault(lab.Fault{Kind: "link", Where: where, What: "rate", Share: share}); err != nil {
			return labError(err)
		}
	}
	return nil
}

// trials are all combinations that make sense.
func (s *scenario) trials() (list []lab.Trial, skipped []string, err error) {
	for _, l := range s.layouts {
		for _, w := range s.algos {
			t, err := lab.NewTrial(s.kind, strings.TrimSpace(w), l[0], l[1])
			var no *schedule.Refusal
			switch {
			case errors.As(err, &no):
				skipped = append(skipped, fmt.Sprintf("%s %s: %s", t.Layout, w, no.Reason))
			case err != nil:
				return nil, nil, err
			default:
				list = append(list, t)
			}
		}
	}
	return list, skipped, nil
}
