package query

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/counter"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// checkPort is an RDMA port as its node shows it.
type checkPort struct {
	Name     string            `json:"name"` // mlx5_0/1
	Layer    string            `json:"layer"`
	Up       bool              `json:"up"`
	State    string            `json:"state"`
	Physical string            `json:"physical"`
	Rate     unit.Rate         `json:"rate"`
	Lanes    string            `json:"lanes"`
	Counters map[string]uint64 `json:"counters"`
}

// checkPorts reads the RDMA ports of this node; false where that is not possible.
func checkPorts(root fs.FS) ([]checkPort, bool) {
	if root == nil {
		return nil, false
	}
	all, err := sysfs.Ports(root)
	var list []checkPort
	for _, p := range all {
		software := strings.HasPrefix(p.Name, "rxe") || strings.HasPrefix(p.Name, "siw")
		if p.RDMA && !software {
			list = append(list, checkPort{p.Name, p.Layer, p.Up, p.State, p.Physical, p.Rate, p.Lanes, p.Counters})
		}
	}
	return list, err == nil
}

// portFindings judge the ports of all nodes: by themselves, by what most nodes show, and by the cluster's description.
func (x expectation) portFindings(locals []checkLocal) {
	usual := usualPorts(locals)
	for i := range locals {
		l := &locals[i]
		if l.Away != "" || !l.PortsRead {
			continue
		}
		l.portsLike(usual)
		for _, p := range l.Ports {
			l.portItself(p, len(locals) > 2)
		}
		if t := x.node(l); t != nil {
			l.portsDescribed(t, x.oneNode)
		}
		for _, p := range l.Later {
			l.portCounts(p)
		}
	}
}

// portFinding adds one; a port is named once.
func (l *checkLocal) portFinding(id string, severity finding.Severity, port, format string, args ...any) {
	where := l.Host + "/" + port
	if slices.ContainsFunc(l.Findings, func(f finding.Finding) bool { return f.Where == where && f.Severity >= severity }) {
		return
	}
	l.Findings = append(l.Findings, finding.Finding{
		ID: id, Severity: severity, Confidence: 1, Where: where, Nodes: []string{l.Host},
		Text: fmt.Sprintf("port %s of %s ", port, l.Host) + fmt.Sprintf(format, args...),
		Fix:  "Look at ibstat and at the switch port; reseat or replace cable and transceiver.",
	})
}

// portItself judges a port by itself. One that is down may have no cable, as a second port often has.
func (l *checkLocal) portItself(p checkPort, compared bool) {
	switch {
	case p.Layer == "InfiniBand" && p.State == "INIT":
		l.portFinding("port-init", finding.Error, p.Name, "has a link, and no subnet manager has configured it (INIT)")
	case p.Up && strings.HasPrefix(p.Lanes, "1X"):
		l.portFinding("port-slow", finding.Error, p.Name, "runs on one lane: %s (%s)", p.Rate.Bits(), p.Lanes)
	case !p.Up && p.Physical != "Disabled" && !compared:
		l.portFinding("port-down", finding.Note, p.Name, "is down (%s)", p.words())
	}
}

func (p checkPort) words() string { return strings.TrimPrefix(p.Physical+", "+p.State, ", ") }

// usualPorts are the ports that are up on more than half of at least three nodes, with the rate that as many have.
func usualPorts(locals []checkLocal) map[string]unit.Rate {
	nodes := 0
	up, rates := map[string]int{}, map[string]map[unit.Rate]int{}
	for _, l := range locals {
		if l.Away != "" || !l.PortsRead {
			continue
		}
		nodes++
		for _, p := range l.Ports {
			if p.Up {
				up[p.Name]++
				if rates[p.Name] == nil {
					rates[p.Name] = map[unit.Rate]int{}
				}
				rates[p.Name][p.Rate]++
			}
		}
	}
	usual := map[string]unit.Rate{}
	for name, n := range up {
		if nodes < 3 || 2*n <= nodes {
			continue
		}
		usual[name] = 0
		for rate, n := range rates[name] {
			if 2*n > nodes {
				usual[name] = rate
			}
		}
	}
	return usual
}

// portsLike compares the ports of a node with those of most.
func (l *checkLocal) portsLike(usual map[string]unit.Rate) {
	for _, name := range slices.Sorted(maps.Keys(usual)) {
		i := slices.IndexFunc(l.Ports, func(p checkPort) bool { return p.Name == name })
		switch {
		case i < 0:
			l.portFinding("port-missing", finding.Error, name, "is missing; most nodes have it")
		case !l.Ports[i].Up:
			l.portFinding("port-down", finding.Error, name, "is down (%s); on most nodes it is up", l.Ports[i].words())
		case l.Ports[i].Rate < usual[name]*0.97:
			l.portFinding("port-slow", finding.Error, name, "runs at %s (%s); on most nodes it has %s", l.Ports[i].Rate.Bits(), l.Ports[i].Lanes, usual[name].Bits())
		}
	}
}

// portsDescribed compares the fastest port of each RDMA device with the NICs of the description, the fastest with the fastest: descriptions name NICs
// differently. A job on one node does not need them, so that what is wrong is a note there.
func (l *checkLocal) portsDescribed(t *cluster.NodeType, oneNode bool) {
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
	fastest := map[string]checkPort{}
	var down []string
	for _, p := range l.Ports {
		device, _, _ := strings.Cut(p.Name, "/")
		if old, known := fastest[device]; p.Up && (!known || p.Rate > old.Rate) {
			fastest[device] = p
		}
		if !p.Up {
			down = append(down, p.Name)
		}
	}
	have := slices.SortedFunc(maps.Values(fastest), func(a, b checkPort) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(want, func(a, b unit.Rate) int { return cmp.Compare(b, a) })
	if len(have) < len(want) {
		text := fmt.Sprintf("%d of %s of %s are active, as the cluster's description has them", len(have), words.Plural(len(want), "RDMA device"), l.Host)
		if len(down) > 0 {
			text += "; down: " + strings.Join(down, ", ")
		}
		text += why
		l.Findings = append(l.Findings, finding.Finding{
			ID: "nic-missing", Severity: severity, Confidence: 1, Where: l.Host, Nodes: []string{l.Host}, Text: text,
			Fix: "Look at ibstat and lspci: a NIC without a driver or a link, or a description that is not this node's.",
		})
	}
	for i := range min(len(have), len(want)) {
		if have[i].Rate > 0 && have[i].Rate < want[i]*0.97 {
			l.portFinding("port-slow", severity, have[i].Name, "runs at %s (%s); the cluster's description has %s", have[i].Rate.Bits(), have[i].Lanes, want[i].Bits())
		}
	}
}

// oneNodeJob tells that Slurm runs a job of one node here. Where nobody says, there may be several.
func oneNodeJob(getenv func(string) string) bool {
	if n := getenv("SLURM_JOB_NUM_NODES"); n != "" {
		return n == "1"
	}
	hosts, err := cluster.ParseHosts(getenv("SLURM_JOB_NODELIST"))
	return err == nil && len(hosts) == 1
}

// portCounts looks for errors that were counted while the check ran.
func (l *checkLocal) portCounts(later checkPort) {
	i := slices.IndexFunc(l.Ports, func(p checkPort) bool { return p.Name == later.Name })
	if i < 0 {
		return
	}
	if l.Ports[i].Up && !later.Up {
		l.portFinding("port-down", finding.Error, later.Name, "went down during the check (%s)", later.words())
	}
	for _, name := range slices.Sorted(maps.Keys(later.Counters)) {
		c := counter.Find(name)
		before, known := l.Ports[i].Counters[name]
		if c == nil || c.Kind != counter.Link || !known || later.Counters[name] <= before {
			continue
		}
		n := later.Counters[name] - before
		if n < 2 && c.Hourly > 2 { // one by itself is ordinary
			continue
		}
		l.portFinding("port-errors", finding.Error, later.Name, "counted %s during the check (%s: %s)", words.Plural(int(min(n, 1<<31)), "error"), name, c.Says)
	}
}
