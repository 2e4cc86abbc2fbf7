package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/engine/ranks"
	"busbar.dev/hardware"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
	"busbar.dev/launch"
)

type execCmd struct {
	common
	Plan   string   `placeholder:"DIR" help:"The folder that busbar plan --emit wrote, or its plan.json. Without it: what this machine shows."`
	Rank   int      `default:"-1" help:"By hand: this rank's number. Else the launcher's."`
	Ranks  int      `short:"n" placeholder:"N" help:"By hand: how many ranks there are."`
	Local  int      `name:"local-rank" default:"-1" help:"By hand: the place among the ranks of this host, which is its GPU."`
	NoBind bool     `name:"no-bind" help:"Leave cores and memory as they are."`
	DryRun bool     `name:"dry-run" help:"Say what would be done, and do not start the program."`
	Args   []string `arg:"" optional:"" passthrough:"" name:"command" help:"The program and its arguments, behind --."`
}

// Help ends with examples.
func (execCmd) Help() string {
	return "Starts a program as one rank of a job, in place of itself. Finds which rank and GPU this process is from the launcher's variables (torchrun, Open MPI, MPICH, Slurm, Kubernetes, or " +
		"BUSBAR_RANK and BUSBAR_LOCAL_RANK), binds it to the cores of its GPU's NUMA domain that it is allowed, prefers that domain's memory, and sets NCCL's variables and the ones PyTorch expects. " +
		"What is already set in the environment stays.\n\n" +
		"Examples:\n" +
		"  srun --cpu-bind=none busbar exec --plan run1 -- python train.py\n" +
		"  torchrun --nproc_per_node 8 --no_python busbar exec -v -- python train.py\n" +
		"  mpirun -n 8 busbar exec -- ./all_reduce_perf -g 1\n" +
		"  busbar exec --local-rank 3 --dry-run --json -- true"
}

// execDoc is what exec does, or would.
type execDoc struct {
	Host     string            `json:"host"`
	Launcher string            `json:"launcher"` // "" without one
	Rank     int               `json:"rank"`
	Ranks    int               `json:"ranks"` // 0 unknown
	Local    int               `json:"local_rank"`
	GPU      string            `json:"gpu"`   // "" unknown
	Cores    string            `json:"cores"` // "" as they were
	NUMA     int               `json:"numa"`  // whose memory is preferred; -1 none
	Env      map[string]string `json:"env"`   // that were set
	Notes    []string          `json:"notes,omitempty"`
	Command  []string          `json:"command"`

	elsewhere bool // than the plan has this rank
}

func (d *execDoc) note(format string, args ...any) {
	d.Notes = append(d.Notes, fmt.Sprintf(format, args...))
}

// Run becomes the program.
func (c *execCmd) Run(e *env) error {
	args := c.Args
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0 && !c.DryRun:
		return errors.New("no program; expected busbar exec [--plan DIR] -- PROGRAM ARGUMENTS…")
	case c.JSON && !c.DryRun:
		return errors.New("--json is for --dry-run; standard output is the program's")
	}
	d, err := c.decide(e)
	if err != nil {
		return err
	}
	d.Command = append([]string{}, args...)
	switch {
	case c.JSON:
		return writeIndented(e.stdout, d)
	case c.DryRun:
		for _, l := range d.lines() {
			fmt.Fprintln(e.stdout, l)
		}
		return nil
	case c.Verbose:
		for _, l := range d.lines() {
			fmt.Fprintf(e.stderr, "busbar exec: rank %d: %s\n", d.Rank, l)
		}
	case d.elsewhere && !c.Quiet:
		fmt.Fprintf(e.stderr, "busbar exec: rank %d on %s: %s\n", d.Rank, d.Host, d.Notes[0])
	}
	return become(d, args)
}

// lines say what is done.
func (d *execDoc) lines() []string {
	from := d.Launcher
	if from == "" {
		from = "no launcher"
	}
	list := []string{fmt.Sprintf("rank %d of %s on %s, local rank %d (%s)", d.Rank, orUnknown(d.Ranks), d.Host, d.Local, from)}
	gpu, cores, memory := "GPU unknown", "cores as they were", "memory as it was"
	if d.GPU != "" {
		gpu = d.GPU
	}
	if d.Cores != "" {
		cores = "cores " + d.Cores
	}
	if d.NUMA >= 0 {
		memory = fmt.Sprintf("memory of NUMA domain %d preferred", d.NUMA)
	}
	list = append(list, gpu+": "+cores+", "+memory)
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		list = append(list, k+"="+d.Env[k])
	}
	for _, n := range d.Notes {
		list = append(list, "note: "+n)
	}
	return list
}

func orUnknown(n int) string {
	if n == 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

// decide finds out who this process is and what that means.
func (c *execCmd) decide(e *env) (*execDoc, error) {
	seat, err := ranks.IdentityFromEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	if c.Rank >= 0 {
		seat.Launcher, seat.Rank, seat.Size = "", c.Rank, c.Ranks
	}
	if c.Local >= 0 {
		seat.LocalRank = c.Local
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	if name := os.Getenv("SLURMD_NODENAME"); name != "" && seat.Launcher == "Slurm" {
		host = name
	}
	if name := os.Getenv("BUSBAR_HOST"); name != "" { // a pod's host name is its own
		host = name
	}
	d := &execDoc{Host: host, Launcher: seat.Launcher, Rank: seat.Rank, Ranks: seat.Size, Local: seat.LocalRank, NUMA: -1, Env: map[string]string{}}
	var plan *launch.Plan
	var at launch.Seat
	if c.Plan != "" {
		if plan, err = readPlan(c.Plan); err != nil {
			return nil, err
		}
		if at, err = d.take(plan, &seat); err != nil {
			return nil, err
		}
	}
	d.Local = max(seat.LocalRank, 0)
	node := here(host)
	gpu, settings := d.gpu(node), []launch.Setting(nil)
	switch {
	case gpu != nil:
		settings = launch.NodeSettings(node, fabricOf(node))
	case plan != nil:
		gpu, settings = at.GPU, at.Type.Settings
		d.note("this machine shows no GPU for this rank; cores and NICs are the plan's for %s", at.Type.Name)
	default:
		d.note("this machine shows no GPU for this rank, and there is no plan: nothing is bound")
	}
	if gpu != nil {
		d.GPU = gpu.Name
		if !c.NoBind {
			d.bind(gpu)
		}
	}
	if plan != nil && at.Type.Topology != "" {
		settings = append(slices.Clone(settings), c.topology(d, at.Type)...)
	}
	d.environment(plan, at, settings, seat)
	return d, nil
}

// topology is the file that NCCL is to read in place of what the node shows; a file that is not there would
// end NCCL's start.
func (c *execCmd) topology(d *execDoc, t *launch.Type) []launch.Setting {
	dir := c.Plan
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	file, err := filepath.Abs(filepath.Join(dir, t.Topology))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		d.note("the plan has a topology file for NCCL: %v; NCCL's own detection is taken", err)
		return nil
	}
	return []launch.Setting{{Name: "NCCL_TOPO_FILE", Value: file, Reason: t.Why}}
}

// take finds the rank's seat in the plan.
func (d *execDoc) take(p *launch.Plan, seat *ranks.Identity) (launch.Seat, error) {
	at, err := p.Seat(seat.Rank)
	if err != nil {
		return at, err
	}
	if n := p.Ranks(); seat.Size == 0 {
		seat.Size, d.Ranks = n, n
	} else if seat.Size != n {
		return at, fmt.Errorf("%s started %d ranks; the plan has %d", d.Launcher, seat.Size, n)
	}
	if seat.LocalRank < 0 && d.Launcher != "Kubernetes" {
		seat.LocalRank = at.Local
	}
	if seat.LocalRank >= at.Count && d.Launcher == "" {
		return at, fmt.Errorf("local rank %d; the plan has local ranks 0 to %d on a host", seat.LocalRank, at.Count-1)
	}
	if !p.Placeholders && !launch.Same(at.Host, d.Host) && p.AsGood(at, d.Host) {
		d.note("the plan has rank %d on %s; %s is below the same leaf switch, which is as good", seat.Rank, at.Host, d.Host)
	} else if !p.Placeholders && !launch.Same(at.Host, d.Host) {
		d.note("the plan has rank %d on %s: ranks are not where it put them", seat.Rank, at.Host)
		d.elsewhere = true
	} else if seat.LocalRank >= 0 && seat.LocalRank != at.Local && d.Launcher != "Kubernetes" {
		d.note("the plan has rank %d as local rank %d", seat.Rank, at.Local)
	}
	return at, nil
}

func readPlan(name string) (*launch.Plan, error) {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "plan.json")
	}
	f, err := os.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("--plan: %w; expected a folder of busbar plan --emit, on every node", err)
		}
		return nil, failure.Cannot(err)
	}
	defer f.Close()
	return launch.Read(name, f)
}

// here is this machine as its /sys shows it, or nil.
func here(host string) *cluster.NodeType {
	f, err := sysfs.Read(host, os.DirFS("/"))
	if err != nil {
		return nil
	}
	c := cluster.Join(f)
	hardware.Complete(c)
	if len(c.Hosts) != 1 {
		return nil
	}
	return c.TypeOf(0)
}

// fabricOf is the network that NCCL would take on this machine: one with RDMA where there is any.
func fabricOf(t *cluster.NodeType) cluster.NetKind {
	for _, d := range t.Of(cluster.NIC) {
		if n := t.Devices[d].NIC; n != nil && (n.Kind == cluster.InfiniBand || n.Kind == cluster.RoCE) {
			return n.Kind
		}
	}
	return cluster.Ethernet
}

// gpu is the one that the local rank means on this machine, or nil.
func (d *execDoc) gpu(t *cluster.NodeType) *launch.GPU {
	if t == nil || t.Count(cluster.GPU) == 0 {
		return nil
	}
	env := map[string]string{}
	for _, k := range []string{"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} {
		if v, ok := os.LookupEnv(k); ok {
			env[k] = v
		}
	}
	order := cluster.CUDAOrder(t, nil, env)
	if order.Doubt != "" {
		d.note("which GPU is which: %s", order.Doubt)
	}
	local := d.Local
	if len(order.GPUs) == 1 {
		local = 0 // the launcher gave this rank a GPU of its own
	}
	if local >= len(order.GPUs) {
		d.note("local rank %d, and %d GPUs are visible (CUDA_VISIBLE_DEVICES=%q)", local, len(order.GPUs), env["CUDA_VISIBLE_DEVICES"])
		return nil
	}
	kind := launch.TypeOf(t, "")
	return &kind.GPUs[slices.Index(t.Of(cluster.GPU), order.GPUs[local].GPU)]
}

// bind narrows the cores that the process may use to those near its GPU.
func (d *execDoc) bind(g *launch.GPU) {
	near, err := launch.ParseCores(g.Cores)
	if err != nil || len(near) == 0 {
		d.note("the cores near %s are not known", g.Name)
		return
	}
	may, err := allowed()
	if err != nil {
		d.note("the cores that are allowed cannot be read: %v", err)
		return
	}
	both := slices.DeleteFunc(slices.Clone(near), func(c int) bool { return !slices.Contains(may, c) })
	switch {
	case len(both) == 0:
		d.note("none of the cores near %s (%s) is allowed here (%s): the launcher or a cgroup put the process elsewhere; left as it is", g.Name, g.Cores, launch.FormatCores(may))
		return
	case len(both) < len(near):
		d.note("of the cores near %s (%s) only %s are allowed here", g.Name, g.Cores, launch.FormatCores(both))
	}
	d.Cores = launch.FormatCores(both)
	if _, err := os.Stat(fmt.Sprintf("/sys/devices/system/node/node%d", g.NUMA)); g.NUMA >= 0 && err == nil {
		d.NUMA = g.NUMA
	} else if g.NUMA >= 0 {
		d.note("this machine has no NUMA domain %d; memory is left as it is", g.NUMA)
	}
}

// environment is what will be set: NCCL's variables, and those that PyTorch looks for. What the
// environment has stays.
func (d *execDoc) environment(p *launch.Plan, at launch.Seat, own []launch.Setting, seat ranks.Identity) {
	set := func(name, value string) {
		switch have, ok := os.LookupEnv(name); {
		case !ok:
			d.Env[name] = value
		case have != value && strings.HasPrefix(name, "NCCL_"):
			d.note("%s=%s is set already; the plan has %s", name, have, value)
		}
	}
	if p != nil {
		for _, s := range p.Settings {
			set(s.Name, s.Value)
		}
	}
	for _, s := range own {
		set(s.Name, s.Value)
	}
	if seat.Launcher == "" && seat.Size == 0 {
		return // one process by hand
	}
	set("RANK", strconv.Itoa(d.Rank))
	set("LOCAL_RANK", strconv.Itoa(d.Local))
	if d.Ranks > 0 {
		set("WORLD_SIZE", strconv.Itoa(d.Ranks))
	}
	switch {
	case seat.LocalSize > 0:
		set("LOCAL_WORLD_SIZE", strconv.Itoa(seat.LocalSize))
	case p != nil && seat.Launcher != "Kubernetes":
		set("LOCAL_WORLD_SIZE", strconv.Itoa(at.Count))
	}
	cfg, _, err := ranks.ConfigFromEnv(ranks.Environment{Getenv: os.Getenv})
	if addr, port, bad := net.SplitHostPort(cfg.Meet); err == nil && bad == nil && !strings.Contains(cfg.Meet, "/") {
		set("MASTER_ADDR", addr)
		set("MASTER_PORT", port)
	} else if p != nil && !p.Placeholders {
		if first, err := p.Seat(0); err == nil {
			set("MASTER_ADDR", first.Host)
			set("MASTER_PORT", "29500")
		}
	}
}
