package query

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/health"
	"busbar.dev/input/slurm"
	"busbar.dev/internal/failure"
	"busbar.dev/plan/campaign"
)

// ask asks the fleet's server.
func (e *Env) ask(ctx context.Context, method, path string, in, out any) error {
	if e.Fleet == nil {
		return failure.Cannot(errors.New("there is no server of a fleet to ask"))
	}
	return e.Fleet.Call(ctx, method, path, in, out)
}

// Nodes asks which nodes a fleet has, how they are, and what is wrong with it.
type Nodes struct {
	Slurm string `placeholder:"FILE" help:"Output of scontrol show node or sinfo, - for standard input: nodes that Slurm gives no jobs are marked."`
	// Bad asks for the nodes that jobs should be kept off, instead of all: those with a fault of their own that is certain
	// and not getting better.
	Bad bool `kong:"-"`
}

// NodesDoc is the answer to Nodes.
type NodesDoc struct {
	Bad      []fleet.NodeState `json:"bad,omitzero"` // where they were asked for
	Findings []finding.Finding `json:"findings"`     // of the whole fleet
	Hostlist string            `json:"hostlist"`     // of the nodes, as Slurm writes them
	Nodes    []fleet.NodeState `json:"nodes,omitzero"`
	// Slurm are those of the nodes that Slurm gives no jobs; null where nobody said what Slurm says.
	Slurm []fleet.SlurmOut `json:"slurm,omitempty"`
}

// Wrong reports nodes that jobs should be kept off, where they were asked for.
func (d *NodesDoc) Wrong() bool { return len(d.Bad) > 0 }

// Reasons are the findings about one of the bad nodes alone.
func (d *NodesDoc) Reasons() (list []finding.Finding) {
	for _, f := range d.Findings {
		if len(f.Nodes) == 1 &&
			slices.ContainsFunc(d.Bad, func(n fleet.NodeState) bool { return f.Nodes[0] == string(n.Name) }) {
			list = append(list, f)
		}
	}
	return list
}

// Run asks the server.
func (q Nodes) Run(ctx context.Context, env Env) (doc *NodesDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	nodes, found, err := env.fleet(ctx)
	if err != nil {
		return nil, err
	}
	doc = &NodesDoc{Findings: found.Findings}
	if q.Bad {
		nodes = slices.DeleteFunc(nodes, func(n fleet.NodeState) bool { return !n.Unhealthy })
		doc.Bad = nodes
	} else {
		doc.Nodes = nodes
	}
	doc.Hostlist = hostlist(nodes)
	if q.Slurm != "" {
		doc.Slurm, err = env.slurmOut(ctx, q.Slurm, nodes)
	}
	return doc, err
}

// slurmOut are the nodes of a fleet that a file says Slurm gives no jobs.
func (e *Env) slurmOut(ctx context.Context, file string, nodes []fleet.NodeState) ([]fleet.SlurmOut, error) {
	const wants = "the output of scontrol show node or sinfo in a file, or - for standard input"
	text, err := e.readWhole(file, wants)
	if err != nil {
		return nil, fmt.Errorf("--slurm: %w", err)
	}
	states, known, err := slurm.NodeStates(e.budget(ctx), string(text))
	if err != nil {
		return nil, fmt.Errorf("--slurm %s: %w", file, err)
	}
	if !known {
		return nil, fmt.Errorf("--slurm %s: no states of nodes in it; expected %s", file, wants)
	}
	out := map[string]*cluster.Out{}
	for _, s := range states {
		out[cluster.ShortHost(s.Name)] = s.Out
	}
	list := []fleet.SlurmOut{}
	for _, n := range nodes {
		if o := out[cluster.ShortHost(string(n.Name))]; o != nil {
			list = append(list, fleet.SlurmOut{Node: string(n.Name), State: o.State, Reason: o.Reason})
		}
	}
	return list, nil
}

// fleet is the state of all nodes, and what is wrong.
func (e *Env) fleet(ctx context.Context) ([]fleet.NodeState, *fleet.FindingsReply, error) {
	var nodes fleet.NodesReply
	if err := e.ask(ctx, "GET", "/api/fleet/nodes?brief=1", nil, &nodes); err != nil {
		return nil, nil, err
	}
	var found fleet.FindingsReply
	if err := e.ask(ctx, "GET", "/api/fleet/findings", nil, &found); err != nil {
		return nil, nil, err
	}
	found.Findings = orEmpty(health.Tempered(found.Findings))
	return orEmpty(nodes.Nodes), &found, nil
}

func hostlist(nodes []fleet.NodeState) string {
	names := make([]fleet.Name, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return cluster.FormatSlurmHosts(names)
}

// ForgetNodes takes nodes that are gone for good out of a fleet. One that is up is refused.
type ForgetNodes struct {
	Nodes string `placeholder:"HOSTLIST" help:"Nodes: gpu[01-16]."`
}

// ForgetNodesDoc is the answer to ForgetNodes.
type ForgetNodesDoc struct {
	Forgotten []string `json:"forgotten"`
}

// Hostlist is who was taken out, as Slurm writes them.
func (d *ForgetNodesDoc) Hostlist() string { return cluster.FormatSlurmHosts(d.Forgotten) }

// Run takes them out one by one. Where some cannot be, the document has the others.
func (q ForgetNodes) Run(ctx context.Context, env Env) (doc *ForgetNodesDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	names, err := cluster.ParseHosts(q.Nodes)
	if err != nil {
		return nil, fmt.Errorf("--forget: %w", err)
	}
	doc = &ForgetNodesDoc{Forgotten: []string{}}
	var failed error
	for _, n := range names {
		if err := env.ask(ctx, "DELETE", "/api/fleet/nodes/"+url.PathEscape(n), nil, new(any)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", n, err))
			continue
		}
		doc.Forgotten = append(doc.Forgotten, n)
	}
	return doc, failed
}

// Link asks what the fleet measured between two nodes over time.
type Link struct {
	Nodes string `placeholder:"NODE,NODE" help:"Two nodes: gpu01,gpu02."`
}

// LinkDoc is the answer to Link.
type LinkDoc struct {
	From  string         `json:"from"`
	To    string         `json:"to"`
	There []health.Point `json:"there"`
	Back  []health.Point `json:"back"`
}

// Run asks the server.
func (q Link) Run(ctx context.Context, env Env) (doc *LinkDoc, err error) {
	defer begin(&q, &env, &doc, &err)()
	from, to, ok := strings.Cut(q.Nodes, ",")
	if !ok || from == "" || to == "" || strings.Contains(to, ",") {
		return nil, fmt.Errorf("--link %.80s: expected two nodes: --link gpu01,gpu02", q.Nodes)
	}
	doc = &LinkDoc{}
	path := "/api/fleet/link?" + url.Values{"from": {from}, "to": {to}}.Encode()
	return doc, env.ask(ctx, "GET", path, nil, doc)
}

// ofFleet is the word of --mtbf for the fleet's own history.
const ofFleet = "fleet"

// fleetHistory asks the fleet's server which nodes it had, and what was wrong with them.
func (e *Env) fleetHistory(ctx context.Context) (*campaign.History, error) {
	nodes, found, err := e.fleet(ctx)
	if err == nil && len(nodes) == 0 {
		err = errors.New("--mtbf fleet: the server knows no nodes yet; give --mtbf TIME")
	}
	if err != nil {
		return nil, err
	}
	joined := map[string]time.Time{}
	for i := range nodes {
		joined[string(nodes[i].Name)] = nodes[i].Joined
	}
	return campaign.NewHistory(joined, slices.Concat(found.Past, found.Findings), e.now()), nil
}
