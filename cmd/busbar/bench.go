package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"busbar/bench"
	"busbar/coll"
	"busbar/engine"
	"busbar/schedule"
	"busbar/unit"
)

type benchCmd struct {
	common
	Ranks     int           `short:"n" name:"ranks" help:"How many ranks. Without a launcher they are processes of this host."`
	Op        string        `default:"all_reduce" help:"all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter, sendrecv, hypercube, barrier."`
	Min       string        `short:"b" name:"minbytes" default:"8" placeholder:"SIZE" help:"The smallest size (8, 64K, 1M, 1G are 1024-based as in nccl-tests)."`
	Max       string        `short:"e" name:"maxbytes" default:"64M" placeholder:"SIZE" help:"The greatest size."`
	Factor    float64       `short:"f" name:"stepfactor" default:"2" help:"From size to size."`
	Warm      int           `short:"w" name:"warmup" default:"5" help:"Runs of each size before those that count."`
	Iters     int           `name:"iters" default:"20" help:"Runs of each size that count."`
	Dtype     string        `short:"d" default:"float" help:"float, half, bfloat16, double, int8, int32, int64, …"`
	Redop     string        `default:"sum" help:"sum, prod, min, max, avg, mulsum."`
	Root      int           `help:"The root of broadcast, reduce, gather, scatter."`
	Algo      string        `default:"auto" help:"An algorithm's name (busbar sched --list), or auto: by size."`
	Channels  int           `default:"1" help:"Parts of the data that go side by side, with --algo NAME."`
	Transport string        `enum:"auto,tcp,shm,mem" default:"auto" help:"auto, tcp, shm (processes of one host) or mem (ranks of one process)."`
	Conns     int           `default:"1" help:"Connections between each pair of ranks."`
	Bind      string        `placeholder:"IFACE|ADDR" help:"Interfaces or addresses to use, with commas."`
	Check     bool          `help:"Check the results; wrong elements are counted, and make the exit code 1."`
	Timeout   time.Duration `default:"10s" help:"How soon a rank that died or hangs is noticed."`
	Rank      int           `default:"-1" help:"By hand: this rank's number, with -n and --meet on every rank."`
	Meet      string        `placeholder:"HOST:PORT|FILE" help:"By hand: where the ranks meet: rank 0's address, or a file with a slash in its name."`
}

// Help ends with examples.
func (benchCmd) Help() string {
	return "Runs collectives on real memory and measures them; no GPU, MPI or Python is needed. Columns are those of nccl-tests. " +
		"Under torchrun, srun, mpirun or in an indexed Kubernetes job the ranks are the launcher's; alone, the command starts -n processes of its own. " +
		"Ranks started by hand take --rank, -n and --meet. The job's secret is read from BUSBAR_SECRET.\n\n" +
		"Examples:\n" +
		"  busbar bench -n 4\n" +
		"  busbar bench -n 8 --op all_gather -b 1K -e 256M -f 4 --algo ring --check\n" +
		"  busbar bench -n 4 --transport tcp --json\n" +
		"  srun -N 2 --ntasks-per-node 2 busbar bench -b 1M -e 1G\n" +
		"  BUSBAR_SECRET=… busbar bench -n 2 --rank 0 --meet 10.0.0.1:29500"
}

// Run measures as a rank, or starts ranks that do.
func (c *benchCmd) Run(e *env) error {
	plan, err := c.plan()
	if err != nil {
		return err
	}
	cfg, found, err := c.place()
	if err != nil {
		return err
	}
	if c.Transport == "mem" {
		if found {
			return errors.New("--transport mem is for ranks of one process; it cannot be used with a launcher or --rank")
		}
		return c.inProcess(e, plan)
	}
	if !found {
		n := c.count()
		if err := plan.Validate(n); err != nil {
			return err
		}
		return c.launch(e, n)
	}
	if err := plan.Validate(cfg.Size); err != nil {
		return err
	}
	return c.rank(e, cfg, plan)
}

// count is the number of ranks to start.
func (c *benchCmd) count() int {
	if c.Ranks > 0 {
		return c.Ranks
	}
	return min(max(runtime.NumCPU(), 2), 8)
}

// plan is what the flags ask for.
func (c *benchCmd) plan() (bench.Plan, error) {
	p := bench.Plan{Algo: c.Algo, Warm: c.Warm, Iters: c.Iters, Check: c.Check, Params: schedule.Params{Channels: c.Channels}}
	var err error
	if p.Op.Kind, err = coll.ParseKind(c.Op); err != nil {
		return p, fmt.Errorf("--op: %w", err)
	}
	if p.Op.Type, err = coll.ParseDtype(c.Dtype); err != nil {
		return p, fmt.Errorf("--dtype: %w", err)
	}
	if p.Op.Reduce, err = coll.ParseRedop(c.Redop); err != nil {
		return p, fmt.Errorf("--redop: %w", err)
	}
	if p.Transport, err = engine.ParseTransport(c.Transport); err != nil {
		return p, fmt.Errorf("--transport: %w", err)
	}
	p.Op.Root = c.Root
	p.Sizes, err = c.sizes(p.Op.Kind)
	return p, err
}

// sizes from the smallest to the greatest; a barrier has none.
func (c *benchCmd) sizes(kind coll.Kind) ([]unit.Bytes, error) {
	if kind == coll.Barrier {
		return []unit.Bytes{0}, nil
	}
	least, err := unit.ParseBytes(c.Min)
	if err != nil {
		return nil, fmt.Errorf("-b: %w", err)
	}
	most, err := unit.ParseBytes(c.Max)
	if err != nil {
		return nil, fmt.Errorf("-e: %w", err)
	}
	switch {
	case least < 0 || most < least:
		return nil, fmt.Errorf("-b %s -e %s: expected sizes from the smaller to the greater", c.Min, c.Max)
	case !(c.Factor > 1) && least != most:
		return nil, fmt.Errorf("-f %v: expected a factor above 1", c.Factor)
	case most > 64*unit.GiB:
		return nil, fmt.Errorf("-e %s: at most 64 GiB", c.Max)
	}
	var list []unit.Bytes
	for x := least; x <= most; {
		list = append(list, x)
		next := unit.Bytes(float64(x) * c.Factor)
		if next <= x {
			next = x + 1
		}
		if len(list) > 10000 || least == most {
			break
		}
		x = next
	}
	return list, nil
}

// place finds out whether this process is a rank of a job, by its flags or a launcher's
// environment.
func (c *benchCmd) place() (cfg engine.Config, found bool, err error) {
	cfg, launcher, err := engine.FromEnv(engine.Surroundings{Getenv: os.Getenv, Parent: os.Getppid(), Temp: os.TempDir(), User: os.Getuid()})
	switch {
	case c.Rank >= 0:
		if c.Ranks < 1 || c.Meet == "" && c.Ranks > 1 {
			return cfg, true, errors.New("--rank needs -n (the number of ranks) and --meet (where they meet)")
		}
		cfg.Rank, cfg.Size, err = c.Rank, c.Ranks, nil
		found = true
	case launcher == "" || cfg.Size <= 1 && c.Ranks > 1:
		return cfg, false, nil
	case c.Ranks > 0 && c.Ranks != cfg.Size:
		return cfg, true, fmt.Errorf("-n %d, but %s has started %d ranks", c.Ranks, launcher, cfg.Size)
	default:
		found = true
	}
	if c.Meet != "" {
		cfg.Meet, err = c.Meet, nil
	}
	if c.Bind != "" {
		cfg.Bind = c.Bind
	}
	cfg.Transport, cfg.Conns, cfg.Timeout = engine.Transport(c.Transport), c.Conns, c.Timeout
	return cfg, found, err
}

// rank is the life of one rank.
func (c *benchCmd) rank(e *env, cfg engine.Config, p bench.Plan) error {
	g, err := engine.Join(e.ctx, cfg)
	if err != nil {
		return cannotError{err}
	}
	defer g.Close()
	return c.measure(e, g, p)
}

// measure runs the plan on a group; rank 0 prints.
func (c *benchCmd) measure(e *env, g *engine.Group, p bench.Plan) error {
	out := newBenchOutput(c, e, g, p)
	if err := bench.Run(e.ctx, g, p, out.row); err != nil {
		out.clear()
		return cannotError{err}
	}
	if g.Rank() != 0 {
		return nil
	}
	return out.end()
}

// inProcess runs all ranks in this process.
func (c *benchCmd) inProcess(e *env, p bench.Plan) error {
	n := c.count()
	if err := p.Validate(n); err != nil {
		return err
	}
	groups, err := engine.Local(n)
	if err != nil {
		return err
	}
	errs := make(chan error, n)
	for _, g := range groups {
		go func() {
			err := c.measure(e, g, p)
			g.Close()
			errs <- err
		}()
	}
	var worst error
	for range groups {
		if err := <-errs; err != nil && (worst == nil || errors.Is(worst, engine.ErrClosed)) {
			worst = err
		}
	}
	return worst
}

// binary is the name of the program of nccl-tests whose table this is.
func binary(kind coll.Kind) string {
	if b := kind.Binary(); b != "" {
		return b
	}
	return strings.ReplaceAll(kind.String(), "_", "") + "_perf"
}
