package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine/device"
	"busbar.dev/engine/health"
	"busbar.dev/finding"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Node is what a node says of itself.
type Node struct {
	GPUs     int               `json:"gpus"`
	Hidden   int               `json:"hidden"` // GPUs that this process may not use
	Model    string            `json:"model"`
	Asked    bool              `json:"asked"` // its GPUs were looked for
	Loads    []Load            `json:"loads"`
	Findings []finding.Finding `json:"findings"`
	Notes    []string          `json:"notes"`
	Name     string            `json:"name"` // in Slurm or Kubernetes, where they say it
	// Ports are those of RDMA, where they could be read; later what they were at the end.
	Ports     []Port `json:"ports"`
	PortsRead bool   `json:"ports_read"`

	Host  string `json:"-"` // as pairs know it
	Away  string `json:"-"` // why it does not answer
	later []Port
}

// Load is what a GPU did under load.
type Load struct {
	Index  int     `json:"gpu"`
	Name   string  `json:"name"`
	TFLOPS float64 `json:"tflops,omitempty"`
	GBps   float64 `json:"GBps,omitempty"`
	MHz    int     `json:"sm_mhz,omitempty"`
	Why    string  `json:"throttled,omitempty"`
}

// check refuses what a node cannot say of itself, and drops what it says of others.
func (n *Node) check() error {
	switch {
	case n.GPUs < 0 || n.Hidden < 0 ||
		max(n.GPUs, n.Hidden, len(n.Findings), len(n.Notes), len(n.Loads)) > mostDevices:
		return fmt.Errorf("%d GPUs, %d of them hidden, %d findings and %d notes", n.GPUs, n.Hidden, len(n.Findings),
			len(n.Notes))
	case len(n.Model)+len(n.Name) > mostText:
		return errors.New("long names")
	case unsoundPorts(n.Ports):
		return fmt.Errorf("%d RDMA ports", len(n.Ports))
	}
	for i := range n.Findings {
		n.Findings[i].Ranks = nil
	}
	return nil
}

// found adds what is certain of this node alone.
func (n *Node) found(f finding.Finding) {
	f.Confidence, f.Nodes, f.Where = 1, []string{n.Host}, cmp.Or(f.Where, n.Host)
	n.Findings = append(n.Findings, f)
}

// look is what this node says of itself.
func (c *Checker) look(ctx context.Context) *Node {
	host, _ := os.Hostname()
	r := c.With.Health(host, c.Helper).Read(ctx)
	n := &Node{
		GPUs: len(r.GPUs), Findings: r.Findings, Notes: r.Notes, Asked: true, Hidden: r.Hidden,
		// by the Job of --emit kube in Kubernetes, where a pod's host name is its own
		Name: cmp.Or(os.Getenv("BUSBAR_NODE"), os.Getenv("SLURMD_NODENAME")),
	}
	n.Ports, n.PortsRead = hardwarePorts(c.With.Sys)
	if len(r.GPUs) > 0 {
		n.Model = r.GPUs[0].Name
	}
	if c.NoLoad || r.By != "busbar-gpu" || len(r.GPUs) == 0 {
		return n
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	team, _, err := (&GPURanks{Helper: c.Helper}).Workers(ctx, c.With, nil, nil, false)
	if err != nil {
		n.Notes = append(n.Notes, fmt.Sprintf("products and memory were not measured: %v", err))
		return n
	}
	defer team.End()
	n.load(ctx, team, r.GPUs)
	return n
}

// hardwarePorts reads the RDMA ports of this node that are hardware; false where that is not possible.
func hardwarePorts(root fs.FS) ([]Port, bool) {
	if root == nil {
		return nil, false
	}
	all, err := sysfs.Ports(root)
	return slices.DeleteFunc(all, func(p Port) bool {
		return !p.RDMA || strings.HasPrefix(p.Name, "rxe") || strings.HasPrefix(p.Name, "siw")
	}), err == nil
}

// The product and the copy of a check, and how long the product runs before it counts: locked clocks, cooling and power
// limits show under load only.
const (
	loadSide   = 8192
	loadCopy   = 256 * unit.MiB
	loadHeat   = 0.5e6 // µs
	loadTimed  = 0.2e6
	loadCopies = 50
)

// load times a product and a copy on the GPUs of a team, all at once. What one refuses is a note.
func (n *Node) load(ctx context.Context, team device.Team, states []device.State) {
	if busy := busyGPUs(states); busy != "" {
		n.Notes = append(n.Notes, "products and memory were not measured: "+busy)
		return
	}
	ask := func(what string, q device.Request) []device.Answer {
		answers, err := team.All(ctx, q, nil)
		if err != nil {
			n.Notes = append(n.Notes, fmt.Sprintf("%s not measured: %v", what, err))
			return make([]device.Answer, len(team))
		}
		return answers
	}
	product := device.Request{
		Do: device.Product, M: loadSide, N: loadSide, K: loadSide, Dtype: "bfloat16", Warm: 1, Iters: 2,
	}
	products := ask("products were", product)
	if p := products[0].Product; p != nil {
		us := max(p.Micros, 1)
		product.Warm, product.Iters, product.Check = 1+int(loadHeat/us), 1+int(loadTimed/us), true
		products = ask("products were", product)
	}
	copies := ask("memory was", device.Request{Do: device.Memory, Bytes: int64(loadCopy), Warm: 5, Iters: loadCopies})
	for i, w := range team {
		g := Load{Index: i, Name: w.Device.Name}
		if p := products[i].Product; p != nil {
			g.TFLOPS, g.MHz, g.Why = p.TFLOPS, p.MHz, strings.Join(p.Why, ", ")
		}
		for _, r := range copies[i].Rates {
			if r.What == "copy" {
				g.GBps = r.GBps
			}
		}
		n.Loads = append(n.Loads, g)
	}
}

// usual is the value that more than a part of at least three nodes have.
func usual[V comparable](values []V, part float64) (most V, ok bool) {
	count := map[V]int{}
	for _, v := range values {
		if count[v]++; len(values) >= 3 && float64(count[v]) > part*float64(len(values)) {
			most, ok = v, true
		}
	}
	return most, ok
}

// unknownHosts finds nodes that the description says nothing of: nobody knows what they should have, so that they
// cannot be called healthy.
func (x Expectation) unknownHosts(nodes []*Node) {
	for _, n := range nodes {
		if x.Cluster == nil || n.Away != "" || !n.Asked || x.node(n) != nil {
			continue
		}
		name, names := n.Host, make([]string, len(x.Cluster.Hosts))
		for i, h := range x.Cluster.Hosts {
			names[i] = h.Name
		}
		if n.Name != "" && n.Name != n.Host {
			name += " (" + n.Name + ")"
		}
		text := fmt.Sprintf("%s is not among the hosts of the cluster's description, %s", name,
			cluster.FormatSlurmHosts(names))
		if x.host(n) >= 0 {
			text = name + " is among the hosts of the cluster's description, which does not say what it has"
		}
		n.found(finding.Finding{
			ID: "host-unknown", Severity: finding.Error, Text: text,
			Fix: "Write the description anew with busbar map, or give the one of this node's cluster with -c.",
		})
	}
}

// countGPUs finds nodes with fewer GPUs than the description has or, without one, than most nodes with GPUs of the same
// model.
func (x Expectation) countGPUs(nodes []*Node) {
	counts := map[string][]int{} // by model
	for _, n := range nodes {
		if n.Away == "" && n.Asked && n.Model != "" {
			counts[n.Model] = append(counts[n.Model], n.GPUs+n.Hidden)
		}
	}
	for _, n := range nodes {
		if n.Away != "" || !n.Asked || slices.ContainsFunc(n.Findings, func(f finding.Finding) bool {
			return f.ID == health.GPUMissing || strings.HasPrefix(f.ID, "gpu-driver-")
		}) {
			continue
		}
		want, _ := usual(counts[n.Model], 0.66)
		from := "most nodes have"
		if x.Cluster != nil {
			t := x.node(n)
			if t == nil {
				continue
			}
			want, from = t.Count(cluster.GPU), "the cluster's description has"
		}
		if has := n.GPUs + n.Hidden; has < want {
			n.found(finding.Finding{
				ID: health.GPUMissing, Severity: finding.Error,
				Text: fmt.Sprintf("%d of %s of %s were found; %s %[2]s", has, words.Plural(want, "GPU"), n.Host, from),
				Fix: "Look at nvidia-smi -L, lspci and dmesg: a GPU that fell off the bus, a driver that is not loaded, or a " +
					"description that is not this node's.",
			})
		}
	}
}

// judgePorts judges the ports of all nodes: by themselves, by what most nodes show, and by the cluster's description.
func (x Expectation) judgePorts(nodes []*Node) {
	read := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return n.Away != "" || !n.PortsRead })
	common := usualPorts(read)
	for _, n := range read {
		n.portsLike(common)
		for _, p := range n.Ports {
			n.portItself(p, len(nodes) > 2)
		}
		if t := x.node(n); t != nil {
			n.portsDescribed(t, x.OneNode)
		}
		for _, p := range n.later {
			n.portCounts(p)
		}
	}
}

// portFinding adds one; a port is named once.
func (n *Node) portFinding(id string, severity finding.Severity, port, format string, args ...any) {
	where := n.Host + "/" + port
	if slices.ContainsFunc(n.Findings,
		func(f finding.Finding) bool { return f.Where == where && f.Severity >= severity }) {
		return
	}
	n.found(finding.Finding{
		ID: id, Severity: severity, Where: where,
		Text: fmt.Sprintf("port %s of %s ", port, n.Host) + fmt.Sprintf(format, args...),
		Fix:  "Look at ibstat and at the switch port; reseat or replace cable and transceiver.",
	})
}

// portItself judges a port by itself. One that is down may have no cable, as a second port often has.
func (n *Node) portItself(p Port, compared bool) {
	switch {
	case p.Layer == "InfiniBand" && p.State == "INIT":
		n.portFinding("port-init", finding.Error, p.Name, "has a link, and no subnet manager has configured it (INIT)")
	case p.Up && strings.HasPrefix(p.Lanes, "1X"):
		n.portFinding("port-slow", finding.Error, p.Name, "runs on one lane: %s (%s)", p.Rate.Bits(), p.Lanes)
	case !p.Up && p.Physical != "Disabled" && !compared:
		n.portFinding("port-down", finding.Note, p.Name, "is down (%s)", portState(p))
	}
}

func portState(p Port) string { return strings.TrimPrefix(p.Physical+", "+p.State, ", ") }

// usualPorts are the ports that are up on more than half of at least three nodes, with the rate that as many have.
func usualPorts(nodes []*Node) map[string]unit.Rate {
	up, rates := map[string][]bool{}, map[string][]unit.Rate{}
	for i, n := range nodes {
		for _, p := range n.Ports {
			if up[p.Name] == nil {
				up[p.Name], rates[p.Name] = make([]bool, len(nodes)), make([]unit.Rate, len(nodes))
			}
			if up[p.Name][i] = p.Up; p.Up {
				rates[p.Name][i] = p.Rate
			}
		}
	}
	list := map[string]unit.Rate{}
	for name := range up {
		if is, ok := usual(up[name], 0.5); ok && is {
			list[name], _ = usual(rates[name], 0.5)
		}
	}
	return list
}

// portsLike compares the ports of a node with those of most.
func (n *Node) portsLike(common map[string]unit.Rate) {
	for _, name := range slices.Sorted(maps.Keys(common)) {
		i := slices.IndexFunc(n.Ports, func(p Port) bool { return p.Name == name })
		switch {
		case i < 0:
			n.portFinding("port-missing", finding.Error, name, "is missing; most nodes have it")
		case !n.Ports[i].Up:
			n.portFinding("port-down", finding.Error, name, "is down (%s); on most nodes it is up", portState(n.Ports[i]))
		case n.Ports[i].Rate < common[name]*0.97:
			n.portFinding("port-slow", finding.Error, name, "runs at %s (%s); on most nodes it has %s", n.Ports[i].Rate.Bits(),
				n.Ports[i].Lanes, common[name].Bits())
		}
	}
}

// portsDescribed compares the fastest port of each RDMA device with the NICs of the description, the fastest with the
// fastest: descriptions name NICs differently. A job on one node does not need them, so that what is wrong is a note
// there.
func (n *Node) portsDescribed(t *cluster.NodeType, oneNode bool) {
	severity, why := finding.Error, "; a job over several nodes needs them"
	if oneNode {
		severity, why = finding.Note, "; this job has one node and does not need them"
	}
	var want []unit.Rate
	for _, d := range t.Devices {
		if d.Kind == cluster.NIC && d.NIC != nil && (d.NIC.Kind == cluster.InfiniBand || d.NIC.Kind == cluster.RoCE) {
			want = append(want, d.NIC.Rate().Value)
		}
	}
	fastest := map[string]Port{}
	var down []string
	for _, p := range n.Ports {
		device := portEnd(p.Name).device
		if old, known := fastest[device]; p.Up && (!known || p.Rate > old.Rate) {
			fastest[device] = p
		}
		if !p.Up {
			down = append(down, p.Name)
		}
	}
	have := slices.SortedFunc(maps.Values(fastest), func(a, b Port) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(want, func(a, b unit.Rate) int { return cmp.Compare(b, a) })
	if len(have) < len(want) {
		text := fmt.Sprintf("%d of %s of %s are active, as the cluster's description has them", len(have),
			words.Plural(len(want), "RDMA device"), n.Host)
		if len(down) > 0 {
			text += "; down: " + strings.Join(down, ", ")
		}
		n.found(finding.Finding{
			ID: "nic-missing", Severity: severity, Text: text + why,
			Fix: "Look at ibstat and lspci: a NIC without a driver or a link, or a description that is not this node's.",
		})
	}
	for i := range min(len(have), len(want)) {
		if have[i].Rate > 0 && have[i].Rate < want[i]*0.97 {
			n.portFinding("port-slow", severity, have[i].Name, "runs at %s (%s); the cluster's description has %s",
				have[i].Rate.Bits(), have[i].Lanes, want[i].Bits())
		}
	}
}

// portCounts looks for errors that were counted while the check ran.
func (n *Node) portCounts(later Port) {
	i := slices.IndexFunc(n.Ports, func(p Port) bool { return p.Name == later.Name })
	if i < 0 {
		return
	}
	if n.Ports[i].Up && !later.Up {
		n.portFinding("port-down", finding.Error, later.Name, "went down during the check (%s)", portState(later))
	}
	for _, name := range slices.Sorted(maps.Keys(later.Counters)) {
		c := counter.Find(name)
		before, known := n.Ports[i].Counters[name]
		if c == nil || c.Kind != counter.Link || !known || later.Counters[name] <= before {
			continue
		}
		more := later.Counters[name] - before
		if more < 2 && c.Hourly > 2 { // one by itself is ordinary
			continue
		}
		n.portFinding("port-errors", finding.Error, later.Name, "counted %s during the check (%s: %s)",
			words.Plural(int(min(more, 1<<31)), "error"), name, c.Says)
	}
}
