package launch

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/engine/ranks"
	"busbar.dev/hardware"
	"busbar.dev/input/sysfs"
)

// Exec asks what a process is bound and set to as one rank of a job.
type Exec struct {
	Rank   int  `default:"-1" help:"This rank's number (default: the launcher's)."`
	Ranks  int  `short:"n" placeholder:"N" help:"Number of ranks (default: the launcher's)."`
	Local  int  `name:"local-rank" default:"-1" help:"Rank among those of this host, which is also its GPU (default: the launcher's)."`
	NoBind bool `name:"no-bind" help:"Leave cores and memory as they are."`
}

// Process is what a process that becomes a rank knows of itself and its machine.
type Process struct {
	Host string                            // the machine's name
	Env  func(name string) (string, bool)  // the environment
	Node *cluster.NodeType                 // the machine as its /sys shows it; nil unknown
	May  func() (cores []int, err error)   // the cores that the process may use
	NUMA func(domain int) bool             // whether the machine has a NUMA domain
	File func(name string) (string, error) // the path of a file beside the plan
}

// Binding is what a rank is bound and set to.
type Binding struct {
	Host     string            `json:"host"`
	Launcher string            `json:"launcher"` // "" without one
	Rank     int               `json:"rank"`
	Ranks    int               `json:"ranks"` // 0 unknown
	Local    int               `json:"local_rank"`
	GPU      string            `json:"gpu"`   // "" unknown
	Cores    string            `json:"cores"` // "" as they were
	NUMA     int               `json:"numa"`  // whose memory is preferred; -1 none
	Env      map[string]string `json:"env"`   // that are to be set
	Notes    []string          `json:"notes,omitempty"`
	Command  []string          `json:"command"`

	// Elsewhere says that the plan has this rank on another host; the first note says which.
	Elsewhere bool `json:"-"`
}

// ReadNode is the machine whose file system is given, as its /sys shows it; nil where that is not
// one machine.
func ReadNode(host string, root fs.FS) *cluster.NodeType {
	f, err := sysfs.Read(host, root)
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

// Bind finds out which rank the process is and what that means. plan may be nil.
func (x Exec) Bind(plan *Plan, p Process) (*Binding, error) {
	id, err := ranks.IdentityFromEnv(p.getenv)
	if err != nil {
		return nil, err
	}
	if x.Rank >= 0 {
		id.Launcher, id.Rank, id.Size = "", x.Rank, x.Ranks
	}
	if x.Local >= 0 {
		id.LocalRank = x.Local
	}
	host := p.Host
	if name := p.getenv("SLURMD_NODENAME"); name != "" && id.Launcher == "Slurm" {
		host = name
	}
	if name := p.getenv("BUSBAR_HOST"); name != "" { // a pod's host name is its own
		host = name
	}
	b := &Binding{
		Host: host, Launcher: id.Launcher, Rank: id.Rank, Ranks: id.Size, Local: id.LocalRank, NUMA: -1,
		Env: map[string]string{},
	}
	var at Seat
	if plan != nil {
		if at, err = b.seat(plan, &id); err != nil {
			return nil, err
		}
	}
	b.Local = max(id.LocalRank, 0)
	gpu, settings := b.gpu(p), []Setting(nil)
	switch {
	case gpu != nil:
		settings = NodeSettings(p.Node, fabricOf(p.Node))
	case plan != nil:
		gpu, settings = at.GPU, at.Type.Settings
		b.note("this machine shows no GPU for this rank; cores and NICs are the plan's for %s", at.Type.Name)
	default:
		b.note("this machine shows no GPU for this rank, and there is no plan: nothing is bound")
	}
	if gpu != nil {
		b.GPU = gpu.Name
		if !x.NoBind {
			b.bind(gpu, p)
		}
	}
	if plan != nil && at.Type.Topology != "" {
		settings = append(slices.Clone(settings), b.topology(at.Type, p)...)
	}
	b.environment(plan, at, settings, id, p)
	return b, nil
}

func (p *Process) getenv(name string) string {
	v, _ := p.Env(name)
	return v
}

func (b *Binding) note(format string, args ...any) {
	b.Notes = append(b.Notes, fmt.Sprintf(format, args...))
}

// Lines say what is done, for people.
func (b *Binding) Lines() []string {
	from := cmp.Or(b.Launcher, "no launcher")
	size := "?"
	if b.Ranks > 0 {
		size = strconv.Itoa(b.Ranks)
	}
	list := []string{fmt.Sprintf("rank %d of %s on %s, local rank %d (%s)", b.Rank, size, b.Host, b.Local, from)}
	gpu, cores, memory := "GPU unknown", "cores as they were", "memory as it was"
	if b.GPU != "" {
		gpu = b.GPU
	}
	if b.Cores != "" {
		cores = "cores " + b.Cores
	}
	if b.NUMA >= 0 {
		memory = fmt.Sprintf("memory of NUMA domain %d preferred", b.NUMA)
	}
	list = append(list, gpu+": "+cores+", "+memory)
	for _, k := range slices.Sorted(maps.Keys(b.Env)) {
		list = append(list, k+"="+b.Env[k])
	}
	for _, n := range b.Notes {
		list = append(list, "note: "+n)
	}
	return list
}

// topology is the file that NCCL is to read in place of what the node shows; a file that is not
// there would end NCCL's start.
func (b *Binding) topology(t *Type, p Process) []Setting {
	file, err := p.File(t.Topology)
	if err != nil {
		b.note("the plan has a topology file for NCCL: %v; NCCL's own detection is used", err)
		return nil
	}
	return []Setting{{Name: "NCCL_TOPO_FILE", Value: file, Reason: t.Why}}
}

// seat finds the rank's seat in the plan.
func (b *Binding) seat(p *Plan, id *ranks.Identity) (Seat, error) {
	at, err := p.Seat(id.Rank)
	if err != nil {
		return at, err
	}
	if n := p.Ranks(); id.Size == 0 {
		id.Size, b.Ranks = n, n
	} else if id.Size != n {
		return at, fmt.Errorf("%s started %d ranks; the plan has %d", b.Launcher, id.Size, n)
	}
	if id.LocalRank < 0 && b.Launcher != "Kubernetes" {
		id.LocalRank = at.Local
	}
	if id.LocalRank >= at.Count && b.Launcher == "" {
		return at, fmt.Errorf("local rank %d; the plan has local ranks 0 to %d on a host", id.LocalRank, at.Count-1)
	}
	if !p.Placeholders && !cluster.SameHost(at.Host, b.Host) && p.AsGood(at, b.Host) {
		b.note("the plan has rank %d on %s; %s is below the same leaf switch, which is as good", id.Rank, at.Host, b.Host)
	} else if !p.Placeholders && !cluster.SameHost(at.Host, b.Host) {
		b.note("the plan has rank %d on %s: ranks are not where it put them", id.Rank, at.Host)
		b.Elsewhere = true
	} else if id.LocalRank >= 0 && id.LocalRank != at.Local && b.Launcher != "Kubernetes" {
		b.note("the plan has rank %d as local rank %d", id.Rank, at.Local)
	}
	return at, nil
}

// fabricOf is the network that NCCL would take on a machine: one with RDMA where there is any.
func fabricOf(t *cluster.NodeType) cluster.NetKind {
	for _, d := range t.Of(cluster.NIC) {
		if n := t.Devices[d].NIC; n != nil && (n.Kind == cluster.InfiniBand || n.Kind == cluster.RoCE) {
			return n.Kind
		}
	}
	return cluster.Ethernet
}

// gpu is the one that the local rank means on this machine, or nil.
func (b *Binding) gpu(p Process) *GPU {
	t := p.Node
	if t == nil || t.Count(cluster.GPU) == 0 {
		return nil
	}
	env := map[string]string{}
	for _, k := range []string{"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"} {
		if v, ok := p.Env(k); ok {
			env[k] = v
		}
	}
	visible, doubt := cluster.CUDAOrder(t, env)
	if doubt != "" {
		b.note("which GPU is which: %s", doubt)
	}
	local := b.Local
	if len(visible) == 1 {
		local = 0 // the launcher gave this rank a GPU of its own
	}
	if local >= len(visible) {
		b.note("local rank %d, and %d GPUs are visible (CUDA_VISIBLE_DEVICES=%q)", local, len(visible),
			env["CUDA_VISIBLE_DEVICES"])
		return nil
	}
	kind := TypeOf(t, "")
	return &kind.GPUs[slices.Index(t.Of(cluster.GPU), visible[local])]
}

// bind narrows the cores that the process may use to those near its GPU.
func (b *Binding) bind(g *GPU, p Process) {
	near, err := ParseCores(g.Cores)
	if err != nil || len(near) == 0 {
		b.note("the cores near %s are not known", g.Name)
		return
	}
	may, err := p.May()
	if err != nil {
		b.note("the cores that are allowed cannot be read: %v", err)
		return
	}
	both := slices.DeleteFunc(slices.Clone(near), func(c int) bool { return !slices.Contains(may, c) })
	switch {
	case len(both) == 0:
		b.note("none of the cores near %s (%s) is allowed here (%s): the launcher or a cgroup put the process elsewhere; "+
			"left as it is", g.Name, g.Cores, FormatCores(may))
		return
	case len(both) < len(near):
		b.note("of the cores near %s (%s) only %s are allowed here", g.Name, g.Cores, FormatCores(both))
	}
	b.Cores = FormatCores(both)
	if g.NUMA >= 0 && p.NUMA(g.NUMA) {
		b.NUMA = g.NUMA
	} else if g.NUMA >= 0 {
		b.note("this machine has no NUMA domain %d; memory is left as it is", g.NUMA)
	}
}

// environment is what is to be set: NCCL's variables, and those that PyTorch looks for. What the
// environment has stays.
func (b *Binding) environment(p *Plan, at Seat, own []Setting, id ranks.Identity, here Process) {
	set := func(name, value string) {
		switch have, ok := here.Env(name); {
		case !ok:
			b.Env[name] = value
		case have != value && strings.HasPrefix(name, "NCCL_"):
			b.note("%s=%s is set already; the plan has %s", name, have, value)
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
	if id.Launcher == "" && id.Size == 0 {
		return // one process, started explicitly
	}
	set("RANK", strconv.Itoa(b.Rank))
	set("LOCAL_RANK", strconv.Itoa(b.Local))
	if b.Ranks > 0 {
		set("WORLD_SIZE", strconv.Itoa(b.Ranks))
	}
	switch {
	case id.LocalSize > 0:
		set("LOCAL_WORLD_SIZE", strconv.Itoa(id.LocalSize))
	case p != nil && id.Launcher != "Kubernetes":
		set("LOCAL_WORLD_SIZE", strconv.Itoa(at.Count))
	}
	cfg, _, err := ranks.ConfigFromEnv(ranks.Environment{Getenv: here.getenv})
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
