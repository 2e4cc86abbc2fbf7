package launch

import (
	"fmt"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Version is that of the written form; fields are only ever added.
const Version = 1

// Plan is a job on the ranks of a cluster.
type Plan struct {
	Version int    `json:"version"`
	Made    string `json:"made_by"` // the command that made it
	Cluster string `json:"cluster"`
	NCCL    string `json:"nccl"`
	Job     Job    `json:"job"`
	// Placeholders says that the hosts' names stand for nodes that a scheduler will pick.
	Placeholders bool `json:"placeholder_hosts,omitempty"`
	// Given is the order in which a scheduler gave the hosts, as a hostlist; "" where nobody did.
	Given string `json:"given_hosts,omitempty"`
	// Nodes are in the order of ranks: the GPUs of the first host are the first ranks.
	Nodes []Nodes `json:"nodes"`
	// Leaves counts the hosts below each leaf switch, in the order of ranks; none where that is not
	// known, or where the order comes back to a leaf.
	Leaves []int `json:"leaves,omitempty"`
	// Rails is how many leaf switches the first host is cabled to; 0 where that is not known.
	Rails int    `json:"rails,omitempty"`
	Types []Type `json:"types"`
	// Settings are NCCL's for all ranks. Try are ones that are predicted to help and that the
	// platform may not bear; nothing sets them.
	Settings []Setting `json:"settings,omitempty"`
	Try      []Setting `json:"try,omitempty"`

	kinds []*cluster.NodeType // what Types were made from
	job   *workload.Job       // what Job was made from; none in a plan that was read
	sm    int                 // compute capability of the GPUs, ×10; 0 where it is not known
}

// Job is what is trained and how.
type Job struct {
	Model       string         `json:"model"`
	Dims        workload.Dims  `json:"dims"`
	Parallel    workload.Split `json:"parallel"`
	Seq         int64          `json:"seq"`
	GlobalBatch int64          `json:"global_batch"`
	MicroBatch  int64          `json:"micro_batch"`
	Precision   string         `json:"precision"`
	Recompute   string         `json:"recompute"`
	Schedule    string         `json:"schedule,omitempty"`
	// Framework is NAME@RELEASE that the plan is for; "" is any. Kernels are eager, compiled or fused.
	Framework string `json:"framework,omitempty"`
	Kernels   string `json:"kernels,omitempty"`
	// Params is the number of parameters; Architecture and Details are what programs build the model from.
	Params       int64                  `json:"params,omitempty"`
	Architecture *workload.Architecture `json:"architecture,omitempty"`
	Details      *workload.Details      `json:"details,omitempty"`
	Options
	Step unit.Span `json:"predicted_step_s"`
	// Memory is what a GPU holds as PyTorch counts it (max_memory_allocated); 0 where nobody predicted it.
	Memory unit.Bytes `json:"predicted_memory_bytes,omitempty"`
	Check  string     `json:"-"` // the command that holds a log against the prediction
}

// Nodes is a run of hosts that are alike, as a hostlist.
type Nodes struct {
	Hosts string `json:"hosts"`
	Type  int    `json:"type"` // index into Types
	GPUs  []int  `json:"gpus"` // places in the type's GPUs, in the order of local ranks
}

// Type is what is the same on nodes of a kind.
type Type struct {
	Name     string    `json:"name"`
	GPUs     []GPU     `json:"gpus"`
	Settings []Setting `json:"settings,omitempty"` // NCCL's on such nodes: their own NICs
	// Memory is the node's own, where it is known.
	Memory unit.Bytes `json:"memory_bytes,omitempty"`
	// Topology is the file beside plan.json that NCCL is to read on such nodes (NCCL_TOPO_FILE), because they
	// show themselves wrongly; "" for none. Why says what is wrong.
	Topology string `json:"topology,omitempty"`
	Why      string `json:"topology_reason,omitempty"`
}

// GPU is one of a node, and what of the host is near it.
type GPU struct {
	Name  string `json:"name"`
	PCI   string `json:"pci,omitempty"`
	NUMA  int    `json:"numa"`            // -1 unknown
	Cores string `json:"cores,omitempty"` // cpulist; none where unknown
}

// Setting is a variable of the environment and why it is set.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// New puts a job on the ranks of a layout. hosts are the real names, in the order of the
// layout's hosts; without them the cluster's own are taken, and placeholder says whether those
// are made up.
func New(c *cluster.Cluster, l nccl.Layout, v nccl.Version, j *workload.Job, hosts []string,
	placeholder bool,
) (*Plan, error) {
	p := &Plan{Version: Version, Cluster: c.Name, NCCL: v.String(), Placeholders: placeholder && len(hosts) == 0, Job: Job{
		Model: j.Model.Name, Dims: j.Model.Dims, Parallel: j.Split, Seq: j.Seq, GlobalBatch: j.GlobalBatch,
		MicroBatch: j.MicroBatch,
		Precision:  string(j.Precision), Recompute: string(j.Recompute), Schedule: string(j.Schedule), Options: optionsOf(j),
		Kernels: string(j.Kernels), Params: j.Model.Params(),
	}}
	if err := writable(j); err != nil {
		return nil, err
	}
	own := *j
	p.job = &own
	if j.Framework != nil {
		p.Job.Framework = j.Framework.String()
	}
	if j.Model.Dims.Heads > 0 {
		a, d := j.Model.Architecture(), j.Model.Detailed()
		p.Job.Architecture, p.Job.Details = &a, &d
	}
	if model, err := step.GPUOf(c, l); err == nil { // several kinds of GPUs have none in common
		p.sm = model.SM
	}
	types := map[int]int{}
	seen := map[int]bool{}
	var run []string
	flush := func() {
		if len(run) > 0 {
			p.Nodes[len(p.Nodes)-1].Hosts = cluster.FormatHosts(run)
			run = nil
		}
	}
	for at, n := 0, 0; at < len(l); n++ {
		host := l[at].Host
		if seen[host] {
			return nil, fmt.Errorf("rank %d is on %s again after other hosts; expected all ranks of a host one after another",
				at, c.Hosts[host].Name)
		}
		seen[host] = true
		t := c.TypeOf(host)
		gpus := t.Of(cluster.GPU)
		var places []int
		for ; at < len(l) && l[at].Host == host; at++ {
			places = append(places, slices.Index(gpus, l[at].GPU))
		}
		kind := c.Hosts[host].Type
		if _, ok := types[kind]; !ok {
			types[kind] = len(p.Types)
			p.Types, p.kinds = append(p.Types, TypeOf(t, c.Network.Kind)), append(p.kinds, t)
		}
		name := c.Hosts[host].Name
		if len(hosts) > 0 {
			if n >= len(hosts) {
				return nil, fmt.Errorf("%d hosts are named; the layout has more nodes", len(hosts))
			}
			name = hosts[n]
		}
		if k := len(p.Nodes) - 1; k < 0 || p.Nodes[k].Type != types[kind] || !slices.Equal(p.Nodes[k].GPUs, places) {
			flush()
			p.Nodes = append(p.Nodes, Nodes{Type: types[kind], GPUs: places})
		}
		run = append(run, name)
	}
	flush()
	p.Leaves, p.Rails = leaves(c, l), railsOf(c, l[0].Host)
	if want := len(seen); len(hosts) > 0 && len(hosts) != want {
		return nil, fmt.Errorf("%d hosts are named; the layout has %d nodes", len(hosts), want)
	}
	return p, p.Check()
}

// TypeOf is what a node type tells of its GPUs and NICs.
func TypeOf(t *cluster.NodeType, net cluster.NetKind) Type {
	out := Type{Name: t.Name, GPUs: []GPU{}, Settings: NodeSettings(t, net), Memory: hardware.HostMemorySize(t).Value}
	for _, d := range t.Of(cluster.GPU) {
		out.GPUs = append(out.GPUs, near(t, d))
	}
	return out
}

// near is the host's side of a GPU: the NUMA domain above it in the tree, else what the driver
// says.
func near(t *cluster.NodeType, d int) GPU {
	dev := &t.Devices[d]
	g := GPU{Name: dev.Name, PCI: string(dev.PCI), NUMA: -1}
	if dev.GPU != nil {
		g.Cores = dev.GPU.Cores
		g.NUMA = dev.GPU.NUMA.Or(-1)
	}
	if n := t.Above(d, cluster.NUMA); n >= 0 {
		if cpu := t.Devices[n].CPU; cpu != nil && cpu.Cores != "" {
			g.Cores = cpu.Cores
		}
		if t.Devices[n].Index >= 0 {
			g.NUMA = t.Devices[n].Index
		}
	} else if s := t.Above(d, cluster.Socket); s >= 0 && g.Cores == "" {
		if cpu := t.Devices[s].CPU; cpu != nil {
			g.Cores = cpu.Cores
		}
	}
	return g
}
