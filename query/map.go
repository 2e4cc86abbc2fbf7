package query

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/unit"
)

// Map asks what a cluster consists of, from whatever describes it, and what is wrong with it.
type Map struct {
	Sources []string `arg:"" optional:"" name:"source" page:"c" names:"cluster" help:"Files in any known format, - for standard input, a preset (dgx-h100:16), a folder of such files or with a copy of /sys and /proc, HOSTLIST=FILE, FILE:COUNT (default: this machine)."`
	Given
}

// Given is what to take a cluster's nodes to have where its sources do not say.
type Given struct {
	GPU string `name:"gpu" placeholder:"MODEL" help:"GPU model when the sources do not name it: a100-80."`
	NIC string `name:"nic" placeholder:"[COUNTx]SPEED" help:"NICs when the sources do not state them: 200Gb/s or HDR sets the rate of existing NICs, 4x200Gb/s or 4xHDR adds four per node."`

	Set []string `placeholder:"KEY=VALUE" sep:"none" help:"Change the cluster: nic=400G, nics=4 (per node), gdr=on or off, nvlink=off, oversubscription=4:1, gpu=h200, gpu.memory=141G, power=500W. Repeatable."`
}

// load reads sources and fills what was given. Without anything given nothing is assumed beyond what the catalogue
// says.
func (g Given) load(ctx context.Context, env *Env, sources []string) (*cluster.Cluster, []input.Source, error) {
	cl, from, err := env.loadFrom(ctx, sources)
	if err != nil || g.GPU+g.NIC == "" && len(g.Set) == 0 {
		return cl, from, err
	}
	cl, err = (&placement{gpu: g.GPU, nic: g.NIC, set: g.Set, mapped: true}).assume(env, cl, []shape{{}})
	return cl, from, err
}

// MapDoc is the answer to Map: the cluster's written form with what follows from it.
type MapDoc struct {
	*cluster.Document
	Summary cluster.Summary   `json:"summary"`
	Audit   []finding.Finding `json:"audit"`
	// Contributed is what each of several sources gave; what they disagree about is in Warnings.
	Contributed []input.Contribution `json:"contributed,omitempty"`
	Noted

	cluster *cluster.Cluster
}

// Cluster is the cluster of the written form.
func (d *MapDoc) Cluster() (*cluster.Cluster, error) {
	if d.cluster != nil {
		return d.cluster, nil
	}
	return d.Document.Cluster()
}

// Run reads the sources, joins them and audits the result.
func (q Map) Run(ctx context.Context, env Env) (doc *MapDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	cl, from, err := q.Given.load(ctx, &env, q.Sources)
	if err != nil {
		return nil, err
	}
	d, err := mapOf(env.budget(ctx), cl)
	if list := input.Contributions(from); err == nil && len(list) > 1 {
		d.Contributed = list
	}
	return d, err
}

func mapOf(b *cluster.Budget, cl *cluster.Cluster) (*MapDoc, error) {
	d, err := cl.DocumentWithin(b)
	if err != nil {
		return nil, err
	}
	return &MapDoc{Document: d, Summary: cl.Summary(), Audit: orEmpty(audit.Run(cl)), cluster: cl}, nil
}

// Audit asks what of a cluster will slow or break jobs.
type Audit struct {
	Sources []string `arg:"" optional:"" name:"source" page:"c" names:"cluster" help:"As for Map."`
	Given
}

// AuditDoc is the answer to Audit.
type AuditDoc struct {
	Audit    []finding.Finding `json:"audit"`
	Summary  cluster.Summary   `json:"summary"`
	Warnings []cluster.Warning `json:"warnings"`
	// Unchecked is what no source says, so that it could not be looked at.
	Unchecked []string `json:"unchecked,omitempty"`
	Noted
}

// Wrong reports findings beyond notes.
func (d *AuditDoc) Wrong() bool { return finding.Serious(d.Audit) }

// Run reads the sources and audits the cluster.
func (q Audit) Run(ctx context.Context, env Env) (doc *AuditDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	cl, _, err := q.Given.load(ctx, &env, q.Sources)
	if err != nil {
		return nil, err
	}
	return &AuditDoc{
		Audit: orEmpty(audit.Run(cl)), Summary: cl.Summary(), Warnings: orEmpty(cl.Warnings),
		Unchecked: audit.Unchecked(cl),
	}, nil
}

// Path asks how data travels between pairs of devices.
type Path struct {
	Sources []string `arg:"" optional:"" name:"source" page:"c" names:"cluster" help:"As for Map."`
	Path    []string `placeholder:"FROM,TO" sep:"none" help:"Two devices: node0/gpu0,node1/gpu3. Repeatable."`
	Given
}

// PathDoc is the answer to Path.
type PathDoc struct {
	Paths []pathRow `json:"paths"`
	Noted
}

// pathRow is the path between two devices.
type pathRow struct {
	From       string         `json:"from"`
	To         string         `json:"to"`
	Class      string         `json:"class"` // as nvidia-smi names it: NV18, PIX, SYS
	Reach      string         `json:"reach"`
	Via        string         `json:"via"`
	Rate       unit.Rate      `json:"rate_GBps,omitempty"`
	Origin     cluster.Origin `json:"rate_from"`
	Unknown    int            `json:"hops_without_rate,omitempty"` // with any, Rate is only what the path cannot exceed
	Latency    unit.Time      `json:"latency_s"`
	Bottleneck string         `json:"bottleneck"`
	Hops       []pathHop      `json:"hops"`
}

// pathHop is one link of a path.
type pathHop struct {
	From   string         `json:"from"`
	To     string         `json:"to"`
	Kind   string         `json:"kind"`
	Rate   unit.Rate      `json:"rate_GBps,omitempty"`
	Origin cluster.Origin `json:"rate_from"`
}

// Wrong reports that two of the devices have no known path.
func (d *PathDoc) Wrong() bool {
	for i := range d.Paths {
		if d.Paths[i].Class == (cluster.Class{}).String() {
			return true
		}
	}
	return false
}

// Run finds the paths.
func (q Path) Run(ctx context.Context, env Env) (doc *PathDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	if len(q.Path) == 0 {
		return nil, errors.New("no path; expected two devices, e.g. node0/gpu0,node1/gpu3")
	}
	cl, _, err := q.Given.load(ctx, &env, q.Sources)
	if err != nil {
		return nil, err
	}
	routes := cluster.NewRoutes(cl)
	d := &PathDoc{Paths: []pathRow{}}
	for _, ask := range q.Path {
		row, err := pathOf(cl, routes, ask)
		if err != nil {
			return nil, fmt.Errorf("--path %s: %w", ask, err)
		}
		d.Paths = append(d.Paths, row)
	}
	return d, nil
}

func pathOf(cl *cluster.Cluster, routes *cluster.Routes, ask string) (pathRow, error) {
	from, to, ok := strings.Cut(ask, ",")
	if !ok {
		return pathRow{}, errors.New("expected two devices, e.g. node0/gpu0,node1/gpu3")
	}
	a, err := findDevice(cl, from)
	if err != nil {
		return pathRow{}, err
	}
	b, err := findDevice(cl, to)
	if err != nil {
		return pathRow{}, err
	}
	p := routes.Path(a, b)
	row := pathRow{
		From: from, To: to, Class: p.Class.String(), Reach: p.Reach.String(), Via: p.Via, Rate: p.Rate.Value,
		Origin: p.Rate.Origin, Unknown: p.Unknown, Latency: p.Latency, Bottleneck: p.Bottleneck(), Hops: []pathHop{},
	}
	for _, h := range p.Hops {
		row.Hops = append(row.Hops, pathHop{h.From, h.To, h.Kind, h.Rate.Value, h.Rate.Origin})
	}
	return row, nil
}

// findDevice resolves "node0/gpu3", "node0/mlx5_0", or a name without its host
// when the cluster has one host.
func findDevice(c *cluster.Cluster, s string) (cluster.Place, error) {
	host, dev, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok {
		if len(c.Hosts) != 1 {
			return cluster.Place{}, fmt.Errorf("%q: expected HOST/DEVICE, since there are %d hosts", s, len(c.Hosts))
		}
		host, dev = c.Hosts[0].Name, host
	}
	h := c.HostIndex(host)
	if h < 0 && len(c.Hosts) == 0 {
		return cluster.Place{}, fmt.Errorf("no host is known")
	}
	if h < 0 {
		return cluster.Place{}, fmt.Errorf("no host %q; the first is %s", host, c.Hosts[0].Name)
	}
	t := c.TypeOf(h)
	if t == nil {
		return cluster.Place{}, fmt.Errorf("nothing is known about the inside of %s", host)
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		if strings.EqualFold(d.Name, dev) || strings.EqualFold(d.Label, dev) ||
			d.PCI != "" && string(d.PCI) == strings.ToLower(dev) {
			return cluster.Place{Host: h, Device: i}, nil
		}
	}
	for _, id := range c.Hosts[h].IDs {
		if id.UUID != "" && id.UUID == dev {
			return cluster.Place{Host: h, Device: t.ByName(id.Device)}, nil
		}
	}
	var names []string
	for _, d := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		names = append(names, t.Devices[d].Title())
	}
	return cluster.Place{}, fmt.Errorf("no device %q on %s; it has %s", dev, host, strings.Join(names, ", "))
}

// orEmpty makes an empty list print as [] rather than null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
