// Package check measures collectives and training steps in a lab and compares them with their predictions.
//
// What a message and a byte cost on this machine is measured between pairs of ranks; everything else is predicted from the
// plan of the lab, the schedule and those costs. Nothing is fitted to the collectives themselves.
//
// The package is what `busbar lab check` runs. It is not stable.
package check

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/engine"
	"busbar.dev/lab"
	"busbar.dev/launch"
	"busbar.dev/predict"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Check is what to measure; its fields are the flags of `busbar lab check`. Without Plan and Step it is collectives.
type Check struct {
	Cluster string `arg:"" optional:"" help:"Cluster file or preset, as for lab up (default: the scenarios in docs/lab.md)."`
	Layouts string `short:"l" default:"1x4,2x2,4x1" placeholder:"L1,L2,…" help:"Layouts, NODESxRANKS (default 1x4,2x2,4x1)."`
	Algos   string `default:"ring,ring:interleaved,tree,hierarchical,halving_doubling" placeholder:"A1,A2,…" help:"Algorithms; ring:interleaved changes node at every step (default ring,ring:interleaved,tree,hierarchical,halving_doubling)."`
	Sizes   string `default:"512K,1M,4M,16M" placeholder:"S1,S2,…" help:"Message sizes (default 512K,1M,4M,16M)."`
	Op      string `default:"all_reduce" help:"Collective (default all_reduce)."`
	lab.Settings
	Transport string   `enum:"auto,tcp" default:"auto" help:"auto: shared memory inside a node; tcp: sockets there too (default auto)."`
	Slow      []string `placeholder:"NODE:NIC=25%" help:"Links with a reduced rate, in the lab and in the prediction."`
	Jobs      int      `default:"1" help:"Number of concurrent jobs; 2 gives each every other node, and so on (default 1)."`
	Iters     int      `default:"0" help:"Measured iterations per size; 0 chooses by duration (default 0)."`
	Quick     bool     `help:"Measure pairs of ranks only briefly; predictions are then less accurate on a busy machine."`
	Training
	Plan   string   `placeholder:"DIR" help:"Instead of layouts and algorithms, check a folder of busbar plan --hosts … --emit DIR for CLUSTER: its rank order and fastest predicted algorithm against the given host order and a flat ring; with --step also whole steps."`
	Place  []string `placeholder:"HOSTLIST" sep:"none" help:"Instead of layouts and algorithms, run one job on several sets of hosts of CLUSTER, such as busbar place gives; with --step also whole steps. Repeat for each set."`
	Only   string   `placeholder:"WORD" help:"Without CLUSTER: only scenarios whose name contains this."`
	Median float64  `name:"max-median" default:"0.10" help:"Exit 1 when the median error exceeds this (default 0.10)."`
	Worst  float64  `name:"max-worst" default:"0.35" help:"Exit 1 when the greatest error exceeds this (default 0.35)."`
	Noise  float64  `name:"max-noise" default:"0.5" help:"Ignore points whose runs differ by more than this (default 0.5)."`
}

// Training are the flags of training steps.
type Training struct {
	Step     string  `placeholder:"MODEL" help:"Instead of collectives, run data-parallel training steps of this model (see busbar models), with and without overlap (default cluster: baskerville)."`
	Shrink   int     `default:"64" placeholder:"N" help:"With --step: scale gradients and buckets to 1/N, so that a step takes seconds (default 64)."`
	Batch    int64   `default:"8" help:"With --step: sequences per rank and step (default 8)."`
	Speed    float64 `default:"150" placeholder:"TFLOPS" help:"With --step: TFLOPS per GPU (default 150)."`
	StepAlgo string  `name:"step-algo" default:"ring" placeholder:"ALGORITHM" help:"With --step: algorithm for the buckets (default ring)."`
	Compress string  `default:"none,fp16" placeholder:"C1,C2,…" help:"With --step: gradient compression: none, fp16, bf16, int8 (default none,fp16)."`
}

// Env is what a check needs beside its flags. All fields but Verbose must be set.
type Env struct {
	Labs lab.Folder
	// Program is this program: it holds labs as `busbar lab hold` and is their ranks as `busbar lab rank FILE`.
	Program string
	// Cluster, Model and LaunchPlan read what the flags name.
	Cluster    func(word string) (*cluster.Cluster, error)
	Model      func(word string) (*workload.Model, error)
	LaunchPlan func(folder string) (*launch.Plan, error)
	// Progress says what is being done; the function it returns says that it is over.
	Progress func(text string) func()
	// Verbose gets a line for each point as it is measured; nil is none.
	Verbose io.Writer
	// Stdout and Stderr get what ranks print, rank 0's standard output apart.
	Stdout, Stderr io.Writer
}

// Document is what --json prints: a *Collectives, a *Steps or a *Planned.
type Document interface {
	// Wrong reports whether a prediction is worse than the check allows.
	Wrong() bool
}

// Run makes the labs, measures and predicts.
func (c Check) Run(ctx context.Context, env Env) (Document, error) {
	switch {
	case len(c.Place) > 0:
		return c.placed(ctx, env)
	case c.Plan != "":
		return c.planned(ctx, env)
	case c.Step != "":
		return c.steps(ctx, env)
	}
	return c.collectives(ctx, env)
}

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

// scenarios are what the flags ask for.
func (c *Check) scenarios(env *Env) ([]scenario, error) {
	if c.Cluster == "" {
		return builtinScenarios(c.Only)
	}
	s, err := c.scenario(env)
	return []scenario{s}, err
}

// scenario is the one of a given cluster.
func (c *Check) scenario(env *Env) (s scenario, err error) {
	s = scenario{jobs: c.Jobs, iters: c.Iters, transport: engine.Transport(c.Transport), slow: map[string]float64{}}
	if s.cluster, err = env.Cluster(c.Cluster); err != nil {
		return s, err
	}
	if s.kind, err = coll.ParseKind(c.Op); err != nil {
		return s, fmt.Errorf("--op: %w", err)
	}
	if c.Jobs < 1 || c.Jobs > 8 {
		return s, fmt.Errorf("--jobs %d: expected 1 to 8", c.Jobs)
	}
	if s.options, err = c.Options(); err != nil {
		return s, err
	}
	for _, w := range strings.Split(c.Layouts, ",") {
		nodes, each, err := predict.ParseLayout(w)
		if err != nil {
			return s, err
		}
		s.layouts = append(s.layouts, [2]int{nodes, each})
	}
	s.algos = strings.Split(c.Algos, ",")
	for _, w := range strings.Split(c.Sizes, ",") {
		n, err := unit.ParseBytes(w)
		if err != nil || n < 4 || n > unit.GiB {
			return s, fmt.Errorf("--sizes: %q; expected sizes from 4 bytes to 1 GiB: 256K,1M", w)
		}
		s.sizes = append(s.sizes, n)
	}
	for _, w := range c.Slow {
		link, share, _ := strings.Cut(w, "=")
		x, err := strconv.ParseFloat(strings.TrimSuffix(share, "%"), 64)
		if err != nil || !strings.HasSuffix(share, "%") || x <= 0 || x > 100 {
			return s, fmt.Errorf("--slow %q: expected NODE:NIC=25%%", w)
		}
		s.slow[link] = x / 100
	}
	return s, nil
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
		s.options.Inside = lab.Memory // no two ranks of a node talk
	}
	p, err := lab.New(s.cluster, s.options)
	if err == nil && s.options.Scale == (lab.Scale{}) {
		// Half of what suits a lab: the links are to be measured, not the processors.
		s.options.Scale = lab.Scale{Num: p.Scale.Num, Den: 2 * p.Scale.Den}
		p, err = lab.New(s.cluster, s.options)
	}
	return p, err
}

// session is one lab that is up, and what is measured in it.
type session struct {
	ctx     context.Context
	env     *Env
	check   *Check
	s       scenario
	lab     *lab.Lab
	slow    map[int]float64 // share of the rate that is left, by NIC
	machine *Machine
	points  []Point
}

// inLab makes the lab of a scenario, measures the machine where that was not done, and works in the lab.
func (c *Check) inLab(ctx context.Context, env *Env, s scenario, m *Machine, work func(*session) error) error {
	p, err := s.plan()
	if err != nil {
		return err
	}
	if p.Inside == lab.Links {
		s.transport = engine.TCP
	}
	name := fmt.Sprintf("check-%d", os.Getpid())
	state, err := lab.Start(ctx, lab.Config{
		Folder: env.Labs, Name: name, Plan: p, Program: env.Program, Args: []string{"busbar", "lab", "hold"}, Rootless: c.Rootless, Tied: true,
	})
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(state) // it has the tie
	defer env.Labs.Down(name)
	l, err := env.Labs.Open(name)
	if err != nil {
		return err
	}
	x := &session{ctx: ctx, env: env, check: c, s: s, lab: l, machine: m}
	if m == nil || !m.HasNet && len(p.Nodes) > 1 {
		if err := x.calibrate(); err != nil {
			return err
		}
	}
	if err := x.slowDown(); err != nil {
		return err
	}
	return work(x)
}

// slowDown takes their part of the rate from the links that are to be slow.
func (x *session) slowDown() error {
	x.slow = map[int]float64{}
	for where, share := range x.s.slow {
		i, err := x.lab.State.Plan.Link(where)
		if err != nil {
			return err
		}
		x.slow[i] = share
		if _, err := x.lab.Fault(lab.Fault{Kind: "link", Where: where, What: "rate", Share: share}); err != nil {
			return err
		}
	}
	return nil
}
