package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

type benchGPUCmd struct {
	common
	keepFlag
	Op string `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v, gather, scatter, sendrecv, hypercube."`
	//lint:ignore SA5008 the parser of flags takes several
	sweepFlags `set:"least=1K" set:"most=1G" set:"factor=4"`
	GPUs       int           `short:"g" name:"gpus" default:"1" least:"1" most:"1024" help:"GPUs of a process; all of a host without --launch."`
	Check      bool          `help:"Let nccl-tests check the results."`
	Algos      []string      `placeholder:"NAME,…" help:"Values of NCCL_ALGO beside NCCL's own choice: ring, tree, nvls, nvls_tree, collnet_direct, collnet_chain, pat, or none; default: those that the collective has."`
	Protos     []string      `default:"ll,ll128,simple" help:"Values of NCCL_PROTO."`
	Channels   []string      `default:"auto" help:"Numbers of channels (NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS), and auto."`
	Repeat     int           `default:"1" least:"1" most:"1000" help:"Runs of every setting; bench diff wants four."`
	Tests      string        `name:"nccl-tests" placeholder:"DIR" help:"Where the programs of nccl-tests are; default: PATH."`
	Launch     string        `placeholder:"COMMAND" help:"What starts the ranks, e.g. \"mpirun -np 16 -H node0:8,node1:8\" or \"srun -N 2 --ntasks-per-node 8\"; quotes and backslashes keep words together as in a shell."`
	Cluster    string        `short:"c" placeholder:"CLUSTER" help:"What is measured, kept with the results for validate."`
	Timeout    time.Duration `default:"10m" least:"1ms" help:"How long one run may take."`
	DryRun     bool          `help:"Print what would be run."`

	launch []string // the words of Launch
}

// Help ends with examples.
func (benchGPUCmd) Help() string {
	return "Runs the programs of nccl-tests where they are installed, once by NCCL's own choice and then by every algorithm, protocol and number of channels, and prints the best setting of each size and what NCCL's choice lost against it. " +
		"A setting that NCCL refuses is left out, with its words. Settings reach the ranks of other hosts through env(1). Old releases of NCCL take another algorithm without a word where the one asked for is impossible.\n\n" +
		"Examples:\n" +
		"  busbar bench gpu --nccl-tests /opt/nccl-tests/build -g 8 -o gpu.jsonl\n" +
		"  busbar bench gpu -g 8 --algos ring,tree --channels auto,8,16 --dry-run\n" +
		"  busbar bench gpu --launch \"mpirun -np 16 -H node0:8,node1:8\" --op all_gather -c dgx-h100:2 -o gpu.jsonl"
}

// gpuSetting is one thing to try.
type gpuSetting struct {
	algo, proto string // "auto": NCCL's choice
	channels    int    // 0: NCCL's choice
}

func (s gpuSetting) auto() bool { return s == gpuSetting{algo: "auto", proto: "auto"} }

// env is what makes NCCL do it.
func (s gpuSetting) env() map[string]string {
	e := map[string]string{}
	if s.algo != "auto" {
		e["NCCL_ALGO"] = strings.ReplaceAll(s.algo, "_", "")
	}
	if s.proto != "auto" {
		e["NCCL_PROTO"] = s.proto
	}
	if s.channels > 0 {
		e["NCCL_MIN_NCHANNELS"], e["NCCL_MAX_NCHANNELS"] = strconv.Itoa(s.channels), strconv.Itoa(s.channels)
	}
	return e
}

func (s gpuSetting) String() string {
	if s.auto() {
		return "auto"
	}
	var parts []string
	if s.algo != "auto" || s.proto != "auto" {
		parts = append(parts, s.algo+"/"+s.proto)
	}
	if s.channels > 0 {
		parts = append(parts, fmt.Sprintf("%d channels", s.channels))
	}
	return strings.Join(parts, ", ")
}

// Run tries all settings.
func (c *benchGPUCmd) Run(e *env) error {
	kind, err := c.checked(e)
	if err != nil {
		return err
	}
	settings, err := c.settings(kind)
	if err != nil {
		return err
	}
	program, err := c.find(kind)
	if err != nil {
		if !c.DryRun {
			return err
		}
		program = kind.Binary()
	}
	if c.DryRun {
		return c.printCommands(e, program, settings)
	}
	if err := c.refused(e, c.JSON); err != nil {
		return err
	}
	sweep := &gpuSweep{c: c, kind: kind}
	for k := range c.Repeat {
		for i, s := range settings {
			clear := e.progress(c.common, fmt.Sprintf("%s, setting %d of %d: %s", kind.Binary(), k*len(settings)+i+1, c.Repeat*len(settings), s))
			list, untimed, err := c.measure(e, program, kind, s)
			clear()
			sweep.untimed += untimed
			switch {
			case e.ctx.Err() != nil:
				return e.ctx.Err()
			case err != nil && s.auto():
				return failure.Cannot(err)
			case err != nil:
				sweep.refuse(s, err)
			}
			sweep.add(s, list)
		}
	}
	return sweep.end(e)
}

// printCommands prints what would be run.
func (c *benchGPUCmd) printCommands(e *env, program string, settings []gpuSetting) error {
	type run struct {
		Setting string            `json:"setting"`
		Env     map[string]string `json:"env"`
		Args    []string          `json:"args"`
	}
	runs := []run{}
	for _, s := range settings {
		if args := c.command(program, s); c.JSON {
			runs = append(runs, run{s.String(), s.env(), args})
		} else if _, err := fmt.Fprintln(e.stdout, shellWords(args)); err != nil {
			return err
		}
	}
	if !c.JSON {
		return nil
	}
	return writeIndented(e.stdout, map[string]any{"op": c.Op, "dry_run": true, "repeat": c.Repeat, "commands": runs})
}

// checked reports flags that cannot be, before anything runs.
func (c *benchGPUCmd) checked(e *env) (coll.Kind, error) {
	kind, err := coll.ParseKind(c.Op)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--op: %w", err)
	case kind.Binary() == "":
		return 0, fmt.Errorf("--op %s: nccl-tests has no program for it", kind)
	case c.Factor != math.Trunc(c.Factor):
		return 0, fmt.Errorf("-f %g: nccl-tests takes whole factors", c.Factor)
	}
	if c.launch, err = splitWords(c.Launch); err != nil {
		return 0, fmt.Errorf("--launch %s: %w", c.Launch, err)
	}
	if c.Cluster != "" {
		if _, err := e.clusterFor(c.Cluster, 1, common{Quiet: true}); err != nil {
			return 0, fmt.Errorf("-c: %w", err)
		}
	}
	if _, err := coll.ParseDtype(c.Dtype); err != nil {
		return 0, fmt.Errorf("--dtype: %w", err)
	}
	_, err = c.sizes(kind)
	return kind, err
}

// settings are what to try: NCCL's own choice first.
func (c *benchGPUCmd) settings(kind coll.Kind) ([]gpuSetting, error) {
	algos, err := c.algorithms(kind)
	if err != nil {
		return nil, err
	}
	var protos []nccl.Proto
	for _, w := range c.Protos {
		p, err := nccl.ParseProto(w)
		if err != nil {
			return nil, fmt.Errorf("--protos: %w", err)
		}
		protos = append(protos, p)
	}
	list := []gpuSetting{{algo: "auto", proto: "auto"}}
	for _, w := range c.Channels {
		channels := 0
		if w != "auto" {
			if channels, err = strconv.Atoi(w); err != nil || channels < 1 || channels > 64 {
				return nil, fmt.Errorf("--channels %s: expected auto, or numbers from 1 to 64", w)
			}
			list = append(list, gpuSetting{"auto", "auto", channels})
		}
		for _, a := range algos {
			for _, p := range protos {
				// The other algorithms know one protocol.
				if a != nccl.Ring && a != nccl.Tree && p != nccl.Simple {
					continue
				}
				list = append(list, gpuSetting{a.String(), p.String(), channels})
			}
		}
	}
	return list, nil
}

// algorithms are those that the flags or the collective name.
func (c *benchGPUCmd) algorithms(kind coll.Kind) ([]nccl.Algo, error) {
	if len(c.Algos) == 0 {
		switch kind {
		case coll.AllReduce:
			return []nccl.Algo{nccl.Ring, nccl.Tree, nccl.NVLS, nccl.NVLSTree}, nil
		case coll.AllGather, coll.ReduceScatter:
			return []nccl.Algo{nccl.Ring, nccl.NVLS, nccl.PAT}, nil
		case coll.Broadcast, coll.Reduce:
			return []nccl.Algo{nccl.Ring}, nil
		}
		return nil, nil // sends and receives know no algorithms
	}
	var list []nccl.Algo
	for _, w := range c.Algos {
		if w == "none" && len(c.Algos) == 1 {
			return nil, nil
		}
		if w == "none" {
			return nil, fmt.Errorf("--algos %s: none stands alone: it leaves NCCL's own choice only", strings.Join(c.Algos, ","))
		}
		a, err := nccl.ParseAlgo(w)
		if err != nil {
			return nil, fmt.Errorf("--algos: %w", err)
		}
		list = append(list, a)
	}
	return list, nil
}

// measure runs one setting and returns its rows.
func (c *benchGPUCmd) measure(e *env, program string, kind coll.Kind, s gpuSetting) (list result.Sweeps, untimed int, err error) {
	list, untimed, err = c.run(e, kind, c.command(program, s))
	session, when := newSession(), time.Now().UTC().Truncate(time.Second)
	for _, x := range list {
		x.Env, x.Session, x.When, x.Cluster = s.env(), session, when, c.Cluster
		for i := range x.Points {
			p := &x.Points[i]
			p.Algo, p.Channels = s.algo, s.channels
			if s.proto != "auto" {
				p.Proto = s.proto
			}
		}
	}
	return list, untimed, err
}
