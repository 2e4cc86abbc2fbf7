package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/texttab"
	"busbar.dev/nccl"
	"busbar.dev/result"
)

// BenchGPU measures NCCL's collectives on GPUs by busbar-gpu, or drives nccl-tests; it tries NCCL's algorithms and protocols and
// finds the best of each size.
type BenchGPU struct {
	GPURanks
	By       string        `default:"busbar-gpu" enum:"busbar-gpu,nccl-tests" help:"What measures: busbar-gpu or nccl-tests (default busbar-gpu; --nccl-tests implies the other)."`
	Op       Op            `default:"all_reduce" help:"all (with busbar-gpu), all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, all_to_all_v, gather, scatter, sendrecv, hypercube (default all_reduce)."`
	Min      Size          `short:"b" name:"minbytes" default:"1K" placeholder:"SIZE" help:"Smallest size (default 1K); 8, 64K, 1M, 1G are 1024-based as in nccl-tests."`
	Max      Size          `short:"e" name:"maxbytes" default:"1G" placeholder:"SIZE" help:"Largest size (default 1G)."`
	Factor   float64       `short:"f" name:"stepfactor" default:"4" help:"Factor between sizes (default 4)."`
	Warm     int           `short:"w" name:"warmup" default:"5" least:"0" help:"Warm-up iterations per size (default 5)."`
	Iters    int           `name:"iters" default:"20" least:"1" help:"Measured iterations per size (default 20)."`
	Dtype    Dtype         `short:"d" default:"float" help:"float, half, bfloat16, double, int8, int32, int64, … (default float)"`
	GPUs     int           `short:"g" name:"gpus" default:"1" least:"1" most:"1024" help:"With nccl-tests: GPUs per process (default 1); without --launch, give the number of GPUs of the host."`
	Check    bool          `help:"Check the results."`
	Algos    []string      `placeholder:"NAME,…" help:"Values of NCCL_ALGO to try besides NCCL's choice: ring, tree, nvls, nvls_tree, collnet_direct, collnet_chain, pat, or none (default: none with busbar-gpu, all that the collective supports with nccl-tests)."`
	Protos   []string      `default:"ll,ll128,simple" help:"Values of NCCL_PROTO to try (default ll,ll128,simple)."`
	Channels []string      `default:"auto" help:"Numbers of channels to try (NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS), and auto (default auto)."`
	Repeat   int           `default:"1" least:"1" most:"1000" help:"Runs per setting; bench diff needs four (default 1)."`
	Tests    string        `name:"nccl-tests" placeholder:"DIR" help:"Folder of the nccl-tests programs (default: PATH)."`
	Launch   string        `placeholder:"COMMAND" help:"Launch command, such as \"mpirun -np 16 -H node0:8,node1:8\" or \"srun -N 2 --ntasks-per-node 8\"; quoting as in a shell."`
	Cluster  string        `short:"c" names:"cluster" placeholder:"CLUSTER" help:"Cluster that is measured; kept with the results for validate."`
	Timeout  time.Duration `default:"10m" least:"1ms" help:"Time limit of one run (default 10m)."`
}

// Programs is how a question runs other programs.
type Programs struct {
	// Find is the path of a program: of one in a folder, or in PATH where the folder is empty.
	Find func(folder, name string) (path string, err error)
	// Run runs a program until it ends, for at most a time; w gets what it prints.
	Run func(ctx context.Context, limit time.Duration, args []string, w io.Writer) error
	// Worker starts a program that answers on its standard output what its standard input asks, with settings in its environment.
	Worker func(args, settings []string) (device.Process, error)
	// Helper is where busbar-gpu is.
	Helper func() (string, error)
	// Ready is asked before the first program runs; nil: there is nothing to ask.
	Ready func() error
	// Sys is the machine's / of which sys is read; nil: nothing is known of its ports.
	Sys fs.FS
	// Alone keeps RDMA ports for one measurement at a time; nil: nobody asks.
	Alone *PortsAlone
	// Kernel is the kernel's log, and how long the machine is up; where it is refused, the journal and syslog's files are read. nil: none is.
	Kernel func(ctx context.Context) (log []byte, up time.Duration, err error)
}

// BenchGPUDoc is the answer of BenchGPU.
type BenchGPUDoc struct {
	Dtype   string            `json:"dtype"`
	Library string            `json:"library"` // the release of NCCL, "" unknown
	Op      coll.Kind         `json:"op"`
	Ranks   int               `json:"ranks"`
	Refused []BenchGPURefusal `json:"refused"`
	Results result.Sweeps     `json:"results"`
	Rows    []BenchGPURow     `json:"rows"`
	Tool    string            `json:"tool"`         // busbar-gpu or nccl-tests, and its release
	Untimed int               `json:"untimed_rows"` // without a time that is a number above 0
	Bad     int64             `json:"wrong"`        // elements
	Ops     []coll.Kind       `json:"ops,omitempty"`
	Notes   []string          `json:"notes,omitempty"`

	Own      bool       `json:"-"` // busbar-gpu measured it
	GPU      string     `json:"-"` // "" unknown
	Settings int        `json:"-"` // that gave something
	Best     []gpu.Best `json:"-"` // the rows
}

// Wrong reports elements that are not what they must be.
func (d *BenchGPUDoc) Wrong() bool { return d.Bad > 0 }

// BenchGPURow is the best setting of a size.
type BenchGPURow struct {
	Op       coll.Kind         `json:"op,omitempty"`
	Size     int64             `json:"size_bytes"`
	Auto     float64           `json:"auto_us"` // by NCCL's own choice
	Best     float64           `json:"best_us"`
	Algo     string            `json:"algo"`
	Proto    string            `json:"proto"`
	Channels int               `json:"channels,omitempty"`
	Env      map[string]string `json:"env"`  // what makes NCCL do it
	Lost     float64           `json:"lost"` // how much longer NCCL's own choice takes, as a share
}

// BenchGPURefusal is a setting that gave nothing.
type BenchGPURefusal struct {
	Setting string `json:"setting"`
	Why     string `json:"why"`
}

// BenchGPUCommands is what BenchGPU would run.
type BenchGPUCommands struct {
	Commands []BenchGPUCommand `json:"commands"`
	DryRun   bool              `json:"dry_run"`
	Op       string            `json:"op"`
	Repeat   int               `json:"repeat"`
}

// BenchGPUCommand is what runs one setting.
type BenchGPUCommand struct {
	Setting string            `json:"setting"`
	Env     map[string]string `json:"env"` // what makes NCCL do it
	Args    []string          `json:"args"`
}

// Commands is what Run would run. A program that is not installed is called by its name.
func (q BenchGPU) Commands(ctx context.Context, env Env, with Programs) (doc *BenchGPUCommands, err error) {
	defer begin(&q, &env, &doc, &err)()
	t, settings, err := q.test(ctx, env)
	if err != nil {
		return nil, err
	}
	if t.Program, err = q.find(t.Kind, with); err != nil {
		t.Program = t.Kind.Binary()
	}
	d := &BenchGPUCommands{Op: string(q.Op), DryRun: true, Repeat: q.Repeat, Commands: []BenchGPUCommand{}}
	for _, s := range settings {
		d.Commands = append(d.Commands, BenchGPUCommand{s.String(), s.Env(), t.Command(s)})
	}
	return d, nil
}

// RunWith tries all settings. All fields count as they are: a Warm of 0 is none.
func (q BenchGPU) RunWith(ctx context.Context, env Env, with Programs) (doc *BenchGPUDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if q.By != "nccl-tests" && q.Tests == "" {
		return q.own(ctx, env, with)
	}
	t, settings, err := q.test(ctx, env)
	if err != nil {
		return nil, err
	}
	if t.Program, err = q.find(t.Kind, with); err != nil {
		return nil, err
	}
	if with.Ready != nil {
		if err := with.Ready(); err != nil {
			return nil, err
		}
	}
	start := func(ctx context.Context, args []string, w io.Writer) error { return with.Run(ctx, q.Timeout, args, w) }
	d := &BenchGPUDoc{Op: t.Kind, Refused: []BenchGPURefusal{}, Rows: []BenchGPURow{}}
	var got gpu.Results
	for k := range q.Repeat {
		for i, s := range settings {
			env.steps(k*len(settings)+i, q.Repeat*len(settings))
			env.progress(fmt.Sprintf("%s, setting %d of %d: %s", t.Kind.Binary(), k*len(settings)+i+1, q.Repeat*len(settings), s))
			list, untimed, err := t.Measure(ctx, start, s)
			env.progress("")
			got.Untimed += untimed
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case err != nil && s.Auto():
				return nil, failure.Cannot(err)
			case err != nil:
				d.refuse(s, err)
			}
			got.Add(s, list)
		}
	}
	if len(got.Sweeps) == 0 {
		return nil, failure.Cannot(fmt.Errorf("%s printed no rows", t.Kind.Binary()))
	}
	d.fill(&got)
	return d, nil
}

func (d *BenchGPUDoc) refuse(s gpu.Setting, err error) {
	r := BenchGPURefusal{s.String(), texttab.Clean(err.Error())}
	if !slices.Contains(d.Refused, r) {
		d.Refused = append(d.Refused, r)
	}
}

// fill takes what all settings gave.
func (d *BenchGPUDoc) fill(got *gpu.Results) {
	s := got.Sweeps[0]
	d.Ranks, d.Dtype, d.Tool, d.Library = s.Ranks, s.Dtype, s.Tool, s.Library
	d.Results, d.Bad, d.Untimed, d.Settings, d.Best = got.Sweeps, got.Wrong, got.Untimed, len(got.Order), got.Best()
	if s.Machine != nil {
		d.GPU = s.Machine.GPU
	}
	for _, b := range d.Best {
		d.Rows = append(d.Rows, BenchGPURow{d.Op, int64(b.Size), b.Auto, b.Time, b.Setting.Algo, b.Setting.Proto, b.Setting.Channels, b.Setting.Env(), b.Lost()})
	}
}

// test reports fields that cannot be, before anything runs, and what to try.
func (q *BenchGPU) test(ctx context.Context, env Env) (*gpu.Test, []gpu.Setting, error) {
	t := &gpu.Test{Factor: q.Factor, Warm: q.Warm, Iters: q.Iters, GPUs: q.GPUs, Check: q.Check, Cluster: q.Cluster}
	var err error
	t.Kind, err = q.Op.kind()
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("--op: %w", err)
	case t.Kind.Binary() == "":
		return nil, nil, fmt.Errorf("--op %s: nccl-tests has no program for it", t.Kind)
	case q.Factor != math.Trunc(q.Factor):
		return nil, nil, fmt.Errorf("-f %g: nccl-tests takes whole factors", q.Factor)
	}
	if t.Launch, err = gpu.SplitWords(q.Launch); err != nil {
		return nil, nil, fmt.Errorf("--launch %s: %w", q.Launch, err)
	}
	if q.Cluster != "" {
		env.Note, env.notes = nil, nil
		if _, err := LoadAtLeast(ctx, env, q.Cluster, 1); err != nil {
			return nil, nil, fmt.Errorf("-c: %w", err)
		}
	}
	if t.Dtype, err = q.Dtype.dtype(); err != nil {
		return nil, nil, fmt.Errorf("--dtype: %w", err)
	}
	if _, err = benchSizes(t.Kind, string(q.Min), string(q.Max), q.Factor); err != nil {
		return nil, nil, err
	}
	t.Min, _ = q.Min.bytes()
	t.Max, _ = q.Max.bytes()
	settings, err := q.settings(t.Kind)
	return t, settings, err
}

// settings are what to try.
func (q *BenchGPU) settings(kind coll.Kind) ([]gpu.Setting, error) {
	algos, err := q.algorithms(kind)
	if err != nil {
		return nil, err
	}
	var protos []nccl.Proto
	for _, w := range q.Protos {
		p, err := nccl.ParseProto(w)
		if err != nil {
			return nil, fmt.Errorf("--protos: %w", err)
		}
		protos = append(protos, p)
	}
	var channels []int
	for _, w := range q.Channels {
		n := 0
		if w != "auto" {
			if n, err = strconv.Atoi(w); err != nil || n < 1 || n > 64 {
				return nil, fmt.Errorf("--channels %s: expected auto, or numbers from 1 to 64", w)
			}
		}
		channels = append(channels, n)
	}
	return gpu.Settings(algos, protos, channels), nil
}

// algorithms are those that the fields or the collective name.
func (q *BenchGPU) algorithms(kind coll.Kind) ([]nccl.Algo, error) {
	if len(q.Algos) == 0 {
		return gpu.Algorithms(kind), nil
	}
	var list []nccl.Algo
	for _, w := range q.Algos {
		if w == "none" && len(q.Algos) == 1 {
			return nil, nil
		}
		if w == "none" {
			return nil, fmt.Errorf("--algos %s: none stands alone: it leaves NCCL's own choice only", strings.Join(q.Algos, ","))
		}
		a, err := nccl.ParseAlgo(w)
		if err != nil {
			return nil, fmt.Errorf("--algos: %w", err)
		}
		list = append(list, a)
	}
	return list, nil
}

// find is where nccl-tests' program is. One that was built for MPI is preferred where something
// starts the ranks.
func (q *BenchGPU) find(kind coll.Kind, with Programs) (string, error) {
	if with.Find == nil || with.Run == nil {
		return "", failure.Cannot(errors.New("no programs can be run here"))
	}
	names := []string{kind.Binary(), kind.Binary() + "_mpi"}
	if q.Launch != "" {
		names[0], names[1] = names[1], names[0]
	}
	folders := []string{""}
	if q.Tests != "" {
		folders = []string{q.Tests, filepath.Join(q.Tests, "build")}
	}
	for _, name := range names {
		for _, dir := range folders {
			if path, err := with.Find(dir, name); err == nil {
				return path, nil
			}
		}
	}
	where := "in PATH; give its folder with --nccl-tests DIR"
	if q.Tests != "" {
		where = "in " + q.Tests + " or its folder build"
	}
	return "", failure.Cannot(fmt.Errorf("%s of nccl-tests is not installed: no such program %s (https://github.com/NVIDIA/nccl-tests; make, with MPI=1 for several hosts). --by busbar-gpu needs none of it, and busbar bench without gpu no GPUs either", kind.Binary(), where))
}
