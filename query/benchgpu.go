package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/bench"
	"busbar.dev/engine/bench/gpu"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/internal/failure"
	"busbar.dev/measure"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// BenchGPU measures NCCL's collectives on GPUs by busbar-gpu, or drives nccl-tests; it tries NCCL's algorithms and
// protocols and finds the best of each size.
type BenchGPU struct {
	measure.GPURanks
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

// BenchGPUDoc is the answer of BenchGPU.
type BenchGPUDoc struct {
	Dtype   string      `json:"dtype"`
	Library string      `json:"library"` // the release of NCCL, "" unknown
	Op      coll.Kind   `json:"op"`
	Ranks   int         `json:"ranks"`
	Tool    string      `json:"tool"` // busbar-gpu or nccl-tests, and its release
	Ops     []coll.Kind `json:"ops,omitempty"`
	Notes   []string    `json:"notes,omitempty"`
	gpu.Results
}

// Wrong reports elements that are not what they must be.
func (d *BenchGPUDoc) Wrong() bool { return d.Bad > 0 }

// BenchGPUCommands is what BenchGPU would run.
type BenchGPUCommands struct {
	Commands []gpu.Command `json:"commands"`
	DryRun   bool          `json:"dry_run"`
	Op       string        `json:"op"`
	Repeat   int           `json:"repeat"`
}

// Commands is what Run would run. A program that is not installed is called by its name.
func (q BenchGPU) Commands(ctx context.Context, env Env, with measure.Programs) (doc *BenchGPUCommands, err error) {
	defer begin(&q, &env, &doc, &err)()
	kinds, err := q.kinds(false)
	if err != nil {
		return nil, err
	}
	t, settings, err := q.test(ctx, env, kinds[0], false)
	if err != nil {
		return nil, err
	}
	if t.Program, err = q.find(t.Kind, with); err != nil {
		t.Program = t.Kind.Binary()
	}
	d := &BenchGPUCommands{Op: string(q.Op), DryRun: true, Repeat: q.Repeat, Commands: []gpu.Command{}}
	for _, s := range settings {
		d.Commands = append(d.Commands, gpu.Command{Setting: s.String(), Env: s.Env(), Args: t.Command(s)})
	}
	return d, nil
}

// RunWith tries all settings. All fields count as they are: a Warm of 0 is none.
func (q BenchGPU) RunWith(ctx context.Context, env Env, with measure.Programs) (doc *BenchGPUDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	own := q.By != "nccl-tests" && q.Tests == ""
	kinds, err := q.kinds(own)
	if err != nil {
		return nil, err
	}
	t, settings, err := q.test(ctx, env, kinds[0], own)
	if err == nil && !own {
		t.Program, err = q.find(t.Kind, with)
	}
	if err == nil && with.Ready != nil {
		err = with.Ready()
	}
	if err != nil {
		return nil, err
	}
	d := &BenchGPUDoc{Op: kinds[0], Results: gpu.Results{Refused: []gpu.Refusal{}, Rows: []gpu.Best{}}}
	all := q.Repeat * len(settings)
	for k := range all {
		s := settings[k%len(settings)]
		env.steps(k, all)
		if own {
			err = q.byWorkers(ctx, env, with, t, s, kinds, d)
		} else {
			env.progress(fmt.Sprintf("%s, setting %d of %d: %s", t.Kind.Binary(), k+1, all, s))
			err = q.byTests(ctx, with, t, s, d)
		}
		env.progress("")
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && s.Auto():
			return nil, failure.Cannot(err)
		case err != nil:
			d.Refuse(s, err)
		}
	}
	return d, d.complete(t)
}

// complete fills in what comes after all runs.
func (d *BenchGPUDoc) complete(t *gpu.Test) error {
	if len(d.Sweeps) == 0 && t.Program != "" {
		return failure.Cannot(fmt.Errorf("%s printed no rows", t.Kind.Binary()))
	}
	d.Find()
	for _, s := range d.Sweeps[:min(len(d.Sweeps), 1)] {
		d.Ranks, d.Dtype, d.Tool, d.Library = s.Ranks, s.Dtype, s.Tool, s.Library
	}
	return nil
}

// byTests measures a setting by nccl-tests.
func (q *BenchGPU) byTests(ctx context.Context, with measure.Programs, t *gpu.Test, s gpu.Setting,
	d *BenchGPUDoc,
) error {
	start := func(ctx context.Context, args []string, w io.Writer) error { return with.Run(ctx, q.Timeout, args, w) }
	list, untimed, err := t.Measure(ctx, start, s)
	d.Untimed += untimed
	d.Add(s, list)
	return err
}

// byWorkers measures all collectives by workers that were started with a setting.
func (q *BenchGPU) byWorkers(ctx context.Context, env Env, with measure.Programs, t *gpu.Test, s gpu.Setting,
	kinds []coll.Kind, d *BenchGPUDoc,
) error {
	team, notes, err := q.Workers(ctx, with, t.Launch, s.Env(), true)
	if err != nil {
		return err
	}
	defer team.End()
	if busy := measure.Busy(ctx, team); busy != "" {
		notes = append(notes, busy+": times are of a GPU that others use too")
	}
	d.Notes = notes
	own := gpu.Own{
		Dtype: t.Dtype, Warm: q.Warm, Iters: q.Iters, Check: q.Check, Timeout: q.Timeout, Cluster: q.Cluster, Setting: s,
	}
	sizes, err := benchSizes(t.Kind, q.Min, q.Max, q.Factor)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if kind == coll.Hypercube && len(team)&(len(team)-1) != 0 {
			continue // it needs a power of two
		}
		sweep, err := own.Sweep(ctx, team, kind, sizes,
			func(size unit.Bytes) { env.progress(fmt.Sprintf("%s, %s, %v", kind, s, size)) })
		if err != nil {
			return err
		}
		if len(sweep.Points) == 0 {
			continue
		}
		if d.Add(s, result.Sweeps{sweep}); !slices.Contains(d.Ops, kind) {
			d.Ops = append(d.Ops, kind)
		}
	}
	return nil
}

// kinds are those of --op, which may be all where busbar-gpu measures.
func (q *BenchGPU) kinds(own bool) ([]coll.Kind, error) {
	if q.Op == "all" && own { // those that predictions know; hypercube is run where it is named
		return []coll.Kind{
			coll.AllReduce, coll.ReduceScatter, coll.AllGather, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.Gather,
			coll.Scatter, coll.SendRecv,
		}, nil
	}
	k, err := q.Op.kind()
	switch {
	case err != nil:
		return nil, err
	case own && (k == coll.AllToAllV || k == coll.Barrier):
		return nil, fmt.Errorf("--op %s: busbar-gpu does not run it; --by nccl-tests may", k)
	case !own && k.Binary() == "":
		return nil, fmt.Errorf("--op %s: nccl-tests has no program for it", k)
	}
	return []coll.Kind{k}, nil
}

// test reports fields that cannot be, before anything runs, and what to try.
func (q *BenchGPU) test(ctx context.Context, env Env, kind coll.Kind, own bool) (*gpu.Test, []gpu.Setting, error) {
	t := &gpu.Test{
		Kind: kind, Factor: q.Factor, Warm: q.Warm, Iters: q.Iters, GPUs: q.GPUs, Check: q.Check, Cluster: q.Cluster,
	}
	if !own && q.Factor != math.Trunc(q.Factor) {
		return nil, nil, fmt.Errorf("-f %g: nccl-tests takes whole factors", q.Factor)
	}
	var err error
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
		return nil, nil, err
	}
	if _, err = benchSizes(t.Kind, q.Min, q.Max, q.Factor); err != nil {
		return nil, nil, err
	}
	t.Min, _ = q.Min.bytes()
	t.Max, _ = q.Max.bytes()
	settings, err := q.settings(t.Kind)
	if err == nil && own && len(q.Algos) == 0 &&
		!slices.ContainsFunc(q.Channels, func(n string) bool { return n != "auto" }) {
		settings = settings[:1] // every setting needs workers of its own
	}
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
func (q *BenchGPU) find(kind coll.Kind, with measure.Programs) (string, error) {
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
	return "", failure.Cannot(fmt.Errorf("%s of nccl-tests is not installed: no such program %s "+
		"(https://github.com/NVIDIA/nccl-tests; make, with MPI=1 for several hosts). --by busbar-gpu needs none of it, and "+
		"busbar bench without gpu no GPUs either", kind.Binary(), where))
}

// BenchGPUNode measures everything inside a node: memory, copies, products, pairs of GPUs and a collective over all.
type BenchGPUNode struct {
	Helper string   `name:"busbar-gpu" placeholder:"PATH" help:"The program busbar-gpu (default: beside busbar, or in PATH)."`
	Shapes []string `placeholder:"MxNxK:TYPE" help:"Products to measure (default: eight shapes of transformer layers); TYPE is bfloat16, half, float, tf32, double or f8e4m3."`
	Size   Size     `default:"1G" placeholder:"SIZE" help:"Bytes that are copied (default 1G)."`
	Iters  int      `name:"iters" default:"20" least:"1" help:"Measured iterations (default 20)."`
}

// RunWith measures. What one GPU refuses does not keep the others from being measured.
func (q BenchGPUNode) RunWith(ctx context.Context, env Env,
	with measure.Programs,
) (doc *measure.GPUNode, err error) {
	defer begin(&q, &env, &doc, &err)()
	size, err := q.Size.bytes()
	if err != nil || size < 4 {
		return nil, fmt.Errorf("--size %s: expected a size such as 1G", q.Size)
	}
	products, err := measure.Products(q.Shapes, device.Request{Warm: 3, Iters: q.Iters, Check: true})
	if err != nil {
		return nil, err
	}
	team, _, err := (&measure.GPURanks{Helper: q.Helper}).Workers(ctx, with, nil, nil, false)
	if err != nil {
		return nil, err
	}
	defer team.End()
	doc, err = measure.GPUs(ctx, team, size, q.Iters, products, env.progress)
	env.progress("")
	return doc, failure.Cannot(err)
}

// BenchGPUPairs measures every pair of GPUs by NCCL's sends and receives.
type BenchGPUPairs struct {
	measure.GPURanks
	Size   Size   `default:"64M" placeholder:"SIZE" help:"Message size for bandwidth (default 64M)."`
	Small  Size   `default:"8" placeholder:"SIZE" help:"Message size for latency (default 8 bytes)."`
	Warm   int    `short:"w" name:"warmup" default:"2" least:"0" help:"Warm-up iterations per pair (default 2)."`
	Iters  int    `name:"iters" default:"10" least:"1" help:"Measured iterations per pair (default 10)."`
	Alone  bool   `help:"Measure one pair at a time (default: all disjoint pairs of a round concurrently)."`
	Check  bool   `help:"Check what arrives."`
	Launch string `placeholder:"COMMAND" help:"Launch command such as \"srun -N 2 --ntasks-per-node 8\"; -n says how many ranks it starts in all."`
}

// RunWith measures.
func (q BenchGPUPairs) RunWith(ctx context.Context, env Env, with measure.Programs) (doc *BenchPairsDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	p := bench.PairPlan{Warm: q.Warm, Iters: q.Iters, Alone: q.Alone}
	if err := pairSizes(q.Size, q.Small, &p.Large, &p.Small); err != nil {
		return nil, err
	}
	launch, err := gpu.SplitWords(q.Launch)
	if err != nil {
		return nil, fmt.Errorf("--launch %s: %w", q.Launch, err)
	}
	team, notes, err := q.Workers(ctx, with, launch, nil, true)
	if err != nil {
		return nil, err
	}
	defer team.End()
	if len(team) < 2 {
		return nil,
			failure.Cannot(errors.New("one GPU has nobody to be measured with; expected two or more, or -n 2 to share one"))
	}
	// Where ranks share GPUs, what stands out may be whose turn it was.
	table, tries, wrong, err := measure.Team(ctx, team, p, q.Check, len(notes) > 0, env.progress)
	env.progress("")
	if err != nil {
		return nil, failure.Cannot(err)
	}
	d := newBenchPairsDoc(table, p, result.NCCL, notes)
	if d.Tries = tries; wrong > 0 {
		d.Findings = append(d.Findings, finding.Finding{
			Severity: finding.Error, Confidence: 1, Text: fmt.Sprintf("%d bytes arrived wrong", wrong),
		})
	}
	return d, nil
}
